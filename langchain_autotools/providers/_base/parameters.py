"""Checks of constructor arguments, of call parameters, of environment variables, alike for every vendor.

Each check takes the argument's name and its value, and raises a `ConfigurationError` that says what would work. None of them shows
what may be secret. The HTTP libraries notice the same only inside a request, and then repeat a key that they cannot send.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any
from urllib.parse import urlsplit

from langchain_core.exceptions import ModelError
from pydantic import BaseModel, SecretStr, ValidationError

from ...addresses import query_of
from ...deadline import DeadlinePassed
from ...errors import AutoToolsError, ConfigurationError
from ...turn.model import names_of, unknown_argument
from .._transport.timeouts import PATIENCE, read_timeout, value_in_time

Check = Callable[[str, Any], None]

_WEB = ("http", "https")
_PROXIES = (*_WEB, "socks5", "socks5h")
_CONNECTION = frozenset(
    {
        *("api_key", "base_url", "default_headers", "default_query", "organization", "http_client", "http_async_client"),
        *("headers", "auth", "credentials", "async_client", "root_client", "client_kwargs", "client_options"),
        *("openai_api_base", "openai_organization", "anthropic_api_url"),
        *("azure_endpoint", "azure_ad_token", "azure_ad_token_provider"),
        *("token", "project", "location", "transport"),
    }
)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def check_key(name: str, value: Any) -> None:
    """Raise if a key is empty or not a legal header value. A function that returns the key is not called."""
    if isinstance(value, SecretStr) and not value.get_secret_value():
        raise ConfigurationError(
            f"{name} is empty: leave it out to take it from the environment; for a server that wants none give any text"
        )
    check_header(name, value)


def check_header(name: str, value: Any) -> None:
    """Raise if HTTP cannot carry the text in a header."""
    text = value.get_secret_value() if isinstance(value, SecretStr) else value
    if not isinstance(text, str):
        return
    if text != text.strip():
        raise ConfigurationError(f"{name} begins or ends with white space, as text from a file does: give it without (text.strip())")
    if not (text.isascii() and text.replace("\t", "").isprintable()):
        raise ConfigurationError(f"{name} holds a character that HTTP cannot send in a header: only printable ASCII characters can be sent")


def check_headers(name: str, value: Any) -> None:
    """Raise if a header has a name or value that HTTP cannot carry."""
    for header, text in (value or {}).items():
        if not isinstance(header, str) or not _HEADER_NAME.fullmatch(header):
            raise ConfigurationError(f"{name} names a header {header!r}: only letters, digits and -_.!#$%&'*+^`|~ can be in its name")
        if not isinstance(text, str | bytes) and type(text).__name__ != "Omit":  # the SDKs' own word for leaving a header out
            raise ConfigurationError(f"{name}[{header!r}] is {type(text).__name__}, not a text: leave out what is not to be sent")
        check_header(f"{name}[{header!r}]", text)


def check_client_arguments(name: str, value: Any) -> None:
    """Raise if the HTTP client arguments contain headers that HTTP cannot carry. Other arguments are left to the client."""
    headers = (value or {}).get("headers")
    if isinstance(headers, str):
        raise ConfigurationError(f"{name}['headers'] must be a dict, not a text")
    check_headers(f"{name}['headers']", headers if isinstance(headers, Mapping) else None)


def check_address(name: str, value: Any, schemes: tuple[str, ...] = _WEB) -> None:
    """Raise if an address has no scheme or no host."""
    if not value:
        return
    try:
        parts = urlsplit(value)
        sound = not re.search(r"\s", value) and parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is none
        sound = False
    twice = [one for one, found in query_of(value).items() if isinstance(found, list)]
    if twice:
        raise ConfigurationError(f"{name} says the query parameter {twice[0]!r} twice: say it once")
    if not sound:
        shown = "" if "@" in value else f" ({value!r})"  # it may hold a password
        raise ConfigurationError(
            f"{name} is no address{shown}: begin it with {' or '.join(f'{scheme}://' for scheme in schemes)} and a host"
        )


def check_in_path(name: str, value: Any) -> None:
    """Raise if a text cannot be put into the path or query of an address as it is."""
    if isinstance(value, str) and (value != value.strip() or re.search(r"[\s?#&]", value)):
        raise ConfigurationError(f"{name} holds white space, '?', '#' or '&', as text from a file may ({value!r}): give the name alone")


check_proxy: Check = partial(check_address, schemes=_PROXIES)
"""Raise if the address of a proxy has no scheme or no host."""


def check_count(name: str, value: Any) -> None:
    """Raise if a number is negative."""
    if value is not None and not value >= 0:
        raise ConfigurationError(f"{name} must be 0 or more, not {value!r}")


def check_client(name: str, value: Any, *, kind: str = "Client", other: str = "AsyncClient") -> None:
    """Raise if the value is not an HTTP client of the required kind (synchronous or asynchronous)."""
    kinds = {base.__name__ for base in type(value).__mro__}
    if value is not None and (not hasattr(value, "send") or (other in kinds and kind not in kinds)):
        raise ConfigurationError(f"{name} must be an httpx.{kind}, not {type(value).__module__}.{type(value).__name__}")


check_async_client: Check = partial(check_client, kind="AsyncClient", other="Client")
"""Raise if the value is not an asynchronous HTTP client."""


@cache
def connection_names(model: type[BaseModel], connection: frozenset[str]) -> frozenset[str]:
    """Return the keywords that set the connection: a class's names of these fields, and other classes' for a key and an address."""
    return _CONNECTION.union(connection, *(names_of(model, field) for field in connection & model.model_fields.keys()))


# ---------------------------------------------------------------------------------------------- keywords of a call in the constructor


_OWN_CLIENTS = "clients are made from the other settings when they are needed; http_client and http_async_client take your own HTTP clients"
"""Error message for constructors that reject a vendor SDK's client."""

_MESSAGES = "the messages are what invoke and stream are given"
REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("client", "async_client"), _OWN_CLIENTS),
    **dict.fromkeys(("messages", "input", "contents"), _MESSAGES),
    "stream": "use stream() or astream(); streaming=True has invoke stream its requests",
    "functions": "give tools=[...], or declare them with bind_tools",
    "function_call": "it is tool_choice=... now",
    "headers": "headers of every request go into default_headers={...}",
}
"""Constructor arguments of other packages, and what this package itself writes into a request, each with what to use instead."""


_OTHER_WORDS = frozenset(
    {
        *("mirostat", "mirostat_eta", "mirostat_lr", "num_thread", "openai_api_type", "reasoning_format", "safe_mode", "safety_model"),
        *("seed", "speed", "sync_client", "thread", "tool_call", "tool_calls"),
    }
)
"""Parameters of some vendors that are no misspelling of another vendor's, though they look like one."""


OF_CONFIG = frozenset({"callbacks", "configurable", "recursion_limit", "run_id", "run_name", "tags"})
"""What LangChain's configuration holds, and no call takes beside it. (`metadata` is a parameter of some vendors too.)"""


def unknown_name(model: type[BaseModel], name: str, known: Collection[str]) -> str:
    """Return the error text for a name that is neither an argument nor a keyword of a call, with the one that it misspells.

    Args:
        model: The chat model's class.
        name: The name.
        known: The names that there are.
    """
    return unknown_argument(model, name, () if name in _OTHER_WORDS else known, "others that the vendor knows go into model_kwargs={...}")


def unknown_keyword(model: type[BaseModel], name: str, known: Collection[str], refused: Mapping[str, str]) -> str:
    """Return the error text for an unknown keyword of a call, with the one that it misspells.

    Args:
        model: The chat model's class.
        name: The keyword.
        known: Those that there are.
        refused: What to use in place of those that are refused.
    """
    if name in OF_CONFIG or name in refused:
        return f"{model.__name__} has no keyword {name!r}: {refused.get(name, 'it goes into config={...}')}"
    others = "what a compatible server knows goes into extra_body={...}"
    return unknown_argument(model, name, () if name in _OTHER_WORDS else known, others, kind="keyword")


def with_call_keywords(model: str, given: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return constructor arguments with those that are keywords of a call moved into `model_kwargs`. None sets nothing.

    Args:
        model: The name of the chat model's class.
        given: The arguments.
        names: The keywords of a call that the constructor takes.

    Raises:
        ConfigurationError: One of them is in `model_kwargs` too.
    """
    moved = {name: value for name, value in given.items() if name in names}
    kept = {name: value for name, value in given.items() if name not in names}
    held = kept.get("model_kwargs") or {}
    sent = {name: value for name, value in moved.items() if value is not None}
    if not sent or not isinstance(held, Mapping):
        return kept
    if twice := sent.keys() & held.keys():
        raise ConfigurationError(f"{model}: {min(twice)} is in model_kwargs too: say it once")
    return {**kept, "model_kwargs": {**held, **sent}}


# ---------------------------------------------------------------------------------------------- keys that a function gives


Unreachable = Callable[..., Exception]
"""Makes a vendor's error for a request that could not be sent: of a text, and of `passes`, whether a retry may succeed."""


def key_of(get_key: Callable[[], str], name: str, unreachable: Unreachable) -> Callable[[], str]:
    """Return a function that calls `get_key` within the timeout of the request, and checks the key.

    Args:
        get_key: The function.
        name: The argument that it was given as.
        unreachable: Makes the error where it fails.
    """

    def get() -> str:
        try:
            key = value_in_time(get_key, read_timeout(PATIENCE.get()))
        except Exception as error:
            failed = _failed(error, name, unreachable)
            raise failed from (None if isinstance(failed, TimeoutError) else error)
        return _sound(key, name)

    return get


def akey_of(get_key: Callable[[], Awaitable[str]], name: str, unreachable: Unreachable) -> Callable[[], Awaitable[str]]:
    """Like `key_of`, for an asynchronous function."""

    async def get() -> str:
        try:
            key = await asyncio.wait_for(get_key(), read_timeout(PATIENCE.get()))
        except Exception as error:
            failed = _failed(error, name, unreachable)
            raise failed from (None if isinstance(failed, TimeoutError) else error)
        return _sound(key, name)

    return get


def _failed(error: Exception, name: str, unreachable: Unreachable) -> Exception:
    """Return the error for a function that gave no key: it is retried as a request is, unless the function itself is wrong."""
    if isinstance(error, AutoToolsError | ModelError | DeadlinePassed):
        return error
    if isinstance(error, TimeoutError):
        return TimeoutError(f"the function given as {name} returned no key in time")
    passes = not isinstance(error, ArithmeticError | AssertionError | AttributeError | LookupError | NameError | TypeError | ValueError)
    return unreachable(f"the function given as {name} gave no key ({type(error).__name__}: {error})", passes=passes)


def _sound(key: Any, name: str) -> str:
    if not isinstance(key, str) or not key:
        raise ConfigurationError(f"the function given as {name} returned {'an empty text' if key == '' else type(key).__name__}, not a key")
    check_header(f"the key that the function given as {name} returned", key)
    return key


# ---------------------------------------------------------------------------------------------- what pydantic refuses


def describe_validation_error(error: ValidationError, model: type[BaseModel], given: Collection[str]) -> str:
    """Return pydantic's complaints about constructor arguments in one line, without the arguments' values.

    Args:
        error: Pydantic's error.
        model: The chat model's class.
        given: The names that were given.
    """
    names = [names_of(model, field) for field in model.model_fields]
    first = {name: next((one for one in known if one in given), known[0]) for known in names for name in known}
    messages: dict[str, list[str]] = {}
    for problem in error.errors(include_url=False, include_input=False, include_context=False):
        place = str(problem["loc"][0]) if problem["loc"] else ""
        name = first.get(place, place)
        text = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "unexpected_keyword_argument":
            text = f"there is no {problem['loc'][-1]!r} in it"
        messages.setdefault(name, []).append(text if problem["type"] == "value_error" else text[:1].lower() + text[1:])
    return "; ".join(f"{name}: {' or '.join(dict.fromkeys(texts))}" if name else " ".join(texts) for name, texts in messages.items())


_NESTED = ("options", "generation_config", "generationConfig", "model_kwargs")


def check_values(values: Mapping[str, Any], numbers: Mapping[str, Check], dicts: Mapping[str, str]) -> None:
    """Raise if a value cannot work.

    Args:
        values: Parameters by name.
        numbers: The check of each numeric parameter.
        dicts: The parameters that must be dicts.

    Raises:
        ConfigurationError: One cannot.
    """
    for name, value in values.items():
        if name in numbers and isinstance(value, int | float):
            numbers[name](name, value)
        if name == "stop" and value is not None:
            texts = value if isinstance(value, Collection) and not isinstance(value, Mapping) else [value]
            if not all(isinstance(text, str) for text in texts):
                raise ConfigurationError(f"stop must be a text or a list of texts, not {value!r}")
        if name in dicts and not (value is None or isinstance(value, Mapping | BaseModel)):
            hint = f"; {dicts[name]}" if dicts[name] else ""
            raise ConfigurationError(f"{name} must be a dict, not {value!r}{hint}")
        if name in _NESTED and isinstance(value, Mapping):
            check_values(value, numbers, {})


# ---------------------------------------------------------------------------------------------- parameters
# Model parameters and trace metadata that are the same for all vendors.


_logger = logging.getLogger("langchain_autotools")


@dataclass(frozen=True)
class Environment:
    """The environment variables of a vendor, by setting, each in order of precedence.

    Attributes:
        key: Of the key.
        base_url: Of the base URL.
        organization: Of the organization.
        proxy: Of the proxy.
        sdk_headers: Of headers that the vendor's SDK reads by itself, one in a line.
    """

    key: tuple[str, ...] = ()
    base_url: tuple[str, ...] = ()
    organization: tuple[str, ...] = ()
    proxy: tuple[str, ...] = ()
    sdk_headers: tuple[str, ...] = ()


def log_parallel(keywords: Mapping[str, Any], wire: str) -> None:
    """Log that a request cannot rule out parallel tool calls although asked to, because the wire has no such parameter.

    Args:
        keywords: The call's keywords.
        wire: The wire's name in the log.
    """
    if keywords.get("parallel_tool_calls") is False and keywords.get("tools"):
        _logger.warning("%s has no parallel_tool_calls: a turn may hold several calls although that is ruled out", wire)
