"""Constructor checks that reject unusable values: addresses, keys, headers, timeouts, HTTP clients.

Each check takes the argument's name and its value, and raises a `ConfigurationError` that says what would work. None of them shows
what may be secret. The HTTP libraries notice the same only inside a request, and then repeat a key that they cannot send.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import cache, partial
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, SecretStr, ValidationError

from ...errors import ConfigurationError
from ...turn.constructor import argument_names, names_of
from .._transport.secrets import SecretDict
from .._transport.timeouts import is_duration

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


def check_model(name: str, value: Any) -> None:
    """Raise if the name of the model is empty."""
    if value is not None and not value.strip():
        raise ConfigurationError(f"{name} is empty: say which model")


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
            raise ConfigurationError(f"{name} names a header {header!r}: only letters, digits and -_.!#$%&'*+^`|~ can stand in its name")
        check_header(f"{name}[{header!r}]", text)


def check_client_arguments(name: str, value: Any) -> None:
    """Raise if the HTTP client arguments contain headers that HTTP cannot carry. Other arguments are left to the client."""
    headers = (value or {}).get("headers")
    if isinstance(headers, str):
        raise ConfigurationError(f"{name}['headers'] must be a dict, not a text")
    check_headers(f"{name}['headers']", headers if isinstance(headers, Mapping) else None)


def extra_headers(keywords: Mapping[str, Any]) -> dict[str, str]:
    """Return the checked headers of one call."""
    headers = SecretDict(keywords.get("extra_headers") or {})
    check_headers("extra_headers", headers)
    return headers


def check_address(name: str, value: Any, schemes: tuple[str, ...] = _WEB) -> None:
    """Raise if an address has no scheme or no host."""
    if not value:
        return
    try:
        parts = urlsplit(value)
        sound = not re.search(r"\s", value) and parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is none
        sound = False
    if not sound:
        shown = "" if "@" in value else f" ({value!r})"  # it may hold a password
        raise ConfigurationError(
            f"{name} is no address{shown}: begin it with {' or '.join(f'{scheme}://' for scheme in schemes)} and a host"
        )


check_proxy: Check = partial(check_address, schemes=_PROXIES)
"""Raise if the address of a proxy has no scheme or no host."""


def check_seconds(name: str, value: Any) -> None:
    """Raise if a duration is not a positive number of seconds."""
    if value is not None and not is_duration(value):
        raise ConfigurationError(f"{name} must be a number of seconds above 0, or None, not {value!r}")


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


def check_call(model: type[BaseModel], connection: frozenset[str], keywords: Mapping[str, Any]) -> None:
    """Raise if keywords of a call set the connection: sent in the request, they would leak a key to the server and to traces.

    Args:
        model: The chat model's class.
        connection: Its fields that say this; other classes' names for a key and an address are refused too.
        keywords: The call's.

    Raises:
        ConfigurationError: One of them does.
    """
    given = [name for name in _connection_names(model, connection) & keywords.keys() if keywords[name] is not None]
    given += [name for name in keywords if name.endswith("_api_key") and keywords[name] is not None]
    if given:
        where = f", {model.__name__}({given[0]}=...)" if given[0] in argument_names(model) else ""
        raise ConfigurationError(
            f"{given[0]} is for the constructor{where}: a call cannot change how the server is reached. "
            "Make a model for it, which costs no connection of its own; headers of one call go in extra_headers={...}"
        )


@cache
def _connection_names(model: type[BaseModel], connection: frozenset[str]) -> frozenset[str]:
    return _CONNECTION.union(connection, *(names_of(model, field) for field in connection & model.model_fields.keys()))


# ---------------------------------------------------------------------------------------------- keys that a function gives


def key_of(get_key: Callable[[], str]) -> Callable[[], str]:
    """Return a function that calls `get_key` and checks the key."""
    return lambda: _sound(get_key())


def akey_of(get_key: Callable[[], Awaitable[str]]) -> Callable[[], Awaitable[str]]:
    """Like `key_of`, for an asynchronous function."""

    async def get() -> str:
        return _sound(await get_key())

    return get


def _sound(key: Any) -> str:
    if not isinstance(key, str) or not key:
        raise ConfigurationError(
            f"the function given as api_key returned {'an empty text' if key == '' else type(key).__name__}, not a key"
        )
    check_header("the key that the function given as api_key returned", key)
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
