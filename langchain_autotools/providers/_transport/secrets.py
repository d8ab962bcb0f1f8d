"""Secrets among a model's settings, removed from errors, traces, pickles."""

import hashlib
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import SecretStr

from ...addresses import public_url
from ...pickling import differing
from .timeouts import EVENT_HOOKS

_HIDDEN = "***"
_SECRET_KEY = re.compile(
    r".*(api|access|secret|private|auth|client|subscription|account|session|bearer|refresh)[_-]?(key|token|secret)"
    r"|(.*[_-])?(authorization|password|secret|credentials?|token)|key",
    re.IGNORECASE,
)
_OF_THE_BODY = ("extra_body", "model_kwargs")
_BESIDE_THE_BODY = ("extra_headers", "extraheaders", "extra_query", "extraquery")  # where a wire's names are in camel case, also so
_HARMLESS = re.compile(
    r"accept(-\w+)*|age|cache-control|connection|content-[\w-]+|date|expires|host|http-referer|keep-alive|pragma|retry-after(-ms)?|server"
    r"|te|trailer|transfer-encoding|upgrade|user-agent|vary|via|trace(parent|state)|x-title|x-robots-tag|x-stainless-[\w-]+"
    r"|([\w-]+-)?(ratelimit-[\w-]+|request-id)|[\w-]+-(beta|client|length|ms|organization|project|region|type|version)"
    r"|alt|deployment|location|model|stream|timeout|version",
    re.IGNORECASE,
)
"""Names of headers and query parameters that hold no secret, as far as is known; any gateway may have names of its own for its keys."""
_QUOTED = re.compile(r"""b(['"]).*\1""", re.DOTALL)
_USER = re.compile(r"(?<=:)//[^/?#@\s]*@")
_ADDRESS_WITH_USER = re.compile(r"(\w+://)[^/?#@\s]*@")
_ADDRESS = re.compile(r"\w+://\S+")
_ADMITS = ("authorization", "authorization_token", "headers")  # what a request says of a remote MCP server to be let in
_COOKIES = ("set-cookie", "set-cookie2")
_OF_THE_BYTES = ("content-encoding", "content-length", "transfer-encoding")  # what they say is not so of a text that was read
_PLAIN = (bool, int, float, str, type(None))
_SHORTEST_SECRET = 8  # "x" and "EMPTY" are no secrets, and hiding them would garble every text


def digest(secret: Any) -> str:
    """Return a digest that distinguishes secrets without revealing them."""
    return hashlib.sha256(str(secret).encode()).hexdigest()


def shown(name: str, value: Any, hidden: Callable[[Any], str] = lambda secret: _HIDDEN) -> Any:
    """Return a setting for display, without the user and password in an address and without secret headers.

    Args:
        name: The setting's name.
        value: Its value.
        hidden: Returns the replacement for a header's secret.
    """
    if isinstance(value, str):
        return _with_query(_USER.sub(f"//{_HIDDEN}@", value), lambda name: f"{name}={_HIDDEN}")
    if is_sent_beside(name, value):
        return {key: hidden(inner) if is_secret_header(str(key)) else inner for key, inner in value.items()}
    return _shown_body(value, hidden) if name in _OF_THE_BODY else value


def is_sent_beside(name: str, value: Any) -> bool:
    """Whether a setting holds headers or query parameters."""
    return isinstance(value, Mapping) and name.lower().endswith(("headers", "query"))


def _shown_body(value: Any, hidden: Callable[[Any], str] = lambda secret: _HIDDEN) -> Any:
    """Return a request's JSON for display, without values under secret names, including those in nested headers.

    Args:
        value: The JSON.
        hidden: Returns the replacement for a secret.
    """
    if isinstance(value, Mapping):
        return {key: hidden(inner) if _is_secret_text(key, inner) else _shown_in_body(key, inner, hidden) for key, inner in value.items()}
    return [_shown_body(inner, hidden) for inner in value] if isinstance(value, list | tuple) else value


def _shown_in_body(name: Any, value: Any, hidden: Callable[[Any], str]) -> Any:
    return shown(str(name), value, hidden) if _is_beside_body(name, value) else _shown_body(value, hidden)


def _portable_body(value: Any) -> Any:
    """Return a request's JSON for a pickle, without secret values and their names."""
    if isinstance(value, Mapping):
        kept = {key: inner for key, inner in value.items() if not _is_secret_text(key, inner)}
        return {
            key: (_public_headers(inner) or {}) if _is_beside_body(key, inner) else _portable_body(inner) for key, inner in kept.items()
        }
    return [_portable_body(inner) for inner in value] if isinstance(value, list | tuple) else value


def _is_beside_body(name: Any, value: Any) -> bool:
    """Whether a keyword of a request is not part of its JSON: `extra_headers` and `extra_query`, also in `model_kwargs`."""
    return isinstance(value, Mapping) and str(name).lower() in _BESIDE_THE_BODY


def _is_secret_text(name: Any, value: Any) -> bool:
    return isinstance(value, str) and len(value) >= _SHORTEST_SECRET and _SECRET_KEY.fullmatch(str(name)) is not None


def portable(name: str, value: Any) -> Any:
    """Return a setting for a pickle, without an address's user and password and without secrets in headers, query and body.

    Args:
        name: The setting's name.
        value: Its value.
    """
    if isinstance(value, str):
        return _with_query(_ADDRESS_WITH_USER.sub(r"\1", value, count=1) if _ADDRESS_WITH_USER.match(value) else value, lambda name: "")
    if is_sent_beside(name, value):
        return _public_headers(value)
    return _portable_body(value) if name in _OF_THE_BODY else value


def secret_names(kwargs: Mapping[str, Any]) -> list[str]:
    """Return the names of request keywords or constructor arguments that a pickle must omit, other than keys."""
    public = public_params({name: portable(name, value) for name, value in kwargs.items()})
    return [one for name, value in kwargs.items() for one in differing(name, value, public[name])]


def is_key(name: str, value: Any) -> bool:
    """Whether a constructor argument is a key or token, which every process reads from its own environment."""
    return isinstance(value, SecretStr) or _is_secret_text(name, value)


def portable_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an HTTP client for a pickle: only plain ones without secrets."""
    plain = {name: value for name, value in arguments.items() if isinstance(value, _PLAIN) and not has_password(str(value))}
    headers = arguments.get("headers")
    return {**plain, **({"headers": _public_headers(headers) or {}} if isinstance(headers, Mapping) else {})}


def _with_query(value: str, shown_as: Callable[[str], str]) -> str:
    """Return an address with the secret parameters of its query replaced by `shown_as`; other texts unchanged."""
    if "?" not in value or not _ADDRESS.fullmatch(value):
        return value
    address, _, query = value.partition("?")
    parameters = [(part, part.partition("=")[0]) for part in query.split("&")]
    kept = [shown_as(name) if is_secret_header(name) else part for part, name in parameters]
    return "?".join([address, *filter(None, ["&".join(filter(None, kept))])])


class SecretDict(dict[str, Any]):
    """Headers or query parameters with a repr without secrets, for tracebacks that show local variables."""

    def __repr__(self) -> str:
        return repr(shown("headers", dict(self)))


class SecretText(str):
    """A text whose repr does not show it: releases of the SDKs log the query parameters of a request, in a copy of their dict."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(_HIDDEN)


def secret_query(query: Mapping[str, Any]) -> SecretDict:
    """Return query parameters whose texts are in no repr, where they may hold a secret."""
    return SecretDict({name: _as_secret(value) if is_secret_header(name) else value for name, value in query.items()})


def _as_secret(value: Any) -> Any:
    if isinstance(value, str):
        return SecretText(value)
    if isinstance(value, Mapping):
        return {name: _as_secret(inner) for name, inner in value.items()}
    return [_as_secret(inner) for inner in value] if isinstance(value, list | tuple) else value


def is_secret_header(name: str) -> bool:
    """Whether a header or a query parameter of this name may hold a secret: whatever is not known to hold none."""
    return _HARMLESS.fullmatch(name) is None


def secret_values(headers: Mapping[str, Any] | None, *urls: str | None) -> list[str]:
    """Return the secrets among headers or query parameters, and the passwords and keys in addresses."""
    addresses = [urlsplit(url) for url in urls if url]
    passwords = [unquote(address.password) for address in addresses if address.password]
    queries = [pair for address in addresses for pair in parse_qsl(address.query)]
    return [*header_secrets(headers or {}), *passwords, *header_secrets(dict(queries))]


def header_secrets(headers: Mapping[str, Any]) -> list[str]:
    """Return the secrets among headers, each also without its scheme (such as `Bearer`)."""
    values = [str(value) for name, value in headers.items() if is_secret_header(name)]
    return [*values, *(value.partition(" ")[2] for value in values if " " in value)]


_OF_THE_SDKS = ("Accept", "Authorization", "Content-Type", "User-Agent", "X-Api-Key", "OpenAI-Organization", "OpenAI-Project")
_SPELLED = {name.lower(): name for name in _OF_THE_SDKS}


def spelled(headers: Mapping[str, Any]) -> SecretDict:
    """Return headers with each name once, as the SDKs write it: releases of them compare names by case and would send both."""
    return SecretDict({_SPELLED.get(name.lower(), name.lower()): value for name, value in headers.items()})


def headers_in_lines(text: str | None) -> dict[str, str]:
    """Return the headers of an environment variable, a `name: value` in each line, as the SDKs read them."""
    pairs = [line.partition(":") for line in (text or "").split("\n")]
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}


def _public_headers(headers: Mapping[str, str] | None) -> dict[str, str] | None:
    """Return the headers that hold no secret; None if there are none."""
    return {name: value for name, value in (headers or {}).items() if not is_secret_header(name)} or None


def public_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a request without secrets, including the credentials of remote MCP servers."""
    lists = {name: params[name] for name in ("tools", "mcp_servers") if isinstance(params.get(name), list)}
    servers = {name: [_public_server(entry, name == "mcp_servers") for entry in entries] for name, entries in lists.items()}
    return {**params, **_shown_body({name: value for name, value in params.items() if name not in lists}), **servers}


def _public_server(entry: Any, is_server: bool) -> Any:
    if not isinstance(entry, Mapping) or not (is_server or entry.get("type") == "mcp"):
        return entry
    return {key: _HIDDEN if key in _ADMITS and value else value for key, value in entry.items()}


def has_password(url: str | None) -> bool:
    """Whether a URL names a user, and therefore most likely a password."""
    return "@" in (url or "")


def hide_secrets(error: Any, secrets: list[str]) -> None:
    """Replace the secrets in an error's text and attributes in place, because tracebacks show it as the cause of the new error.

    Args:
        error: The error; changed in place.
        secrets: Texts that must not be in it.
    """
    long_enough = [secret for secret in secrets if len(secret) >= _SHORTEST_SECRET]
    own = vars(error)
    if own.get("response") is not None:
        error.response = _public_response(error.response, long_enough)
    if own.get("request") is not None:
        error.request = public_request(error.request)
    if not long_enough:
        return
    error.args = tuple(_hidden(value, long_enough) for value in error.args)
    for name, value in list(own.items()):  # releases of the SDKs keep the text under further names
        if isinstance(value, str | Mapping | list):
            setattr(error, name, _hidden(value, long_enough))


def public_request(request: Any) -> Any:
    """Return an HTTP library's request for an error: its address and headers, without secrets and without its body."""
    headers = {name: value for name, value in request.headers.items() if not is_secret_header(name)}
    return type(request)(request.method, public_url(str(request.url)), headers=_in_its_encoding(request.headers, headers))


def _public_response(response: Any, secrets: list[str]) -> Any:
    """Return an HTTP library's response for an error, without cookies and secrets.

    Args:
        response: The response.
        secrets: Texts that must not be in it.
    """
    headers = {name: _hidden(value, secrets) for name, value in response.headers.items() if name not in (*_COOKIES, *_OF_THE_BYTES)}
    try:
        text, request = _hidden(response.text, secrets), public_request(response.request)
    except RuntimeError:  # one whose body was not read, or that was made without a request
        return response
    return type(response)(
        response.status_code,
        headers=_in_its_encoding(response.headers, headers),
        content=text.encode(response.encoding or "utf-8", "replace"),
        request=request,
    )


def _in_its_encoding(given: Any, headers: Mapping[str, str]) -> Any:
    """Return headers in the encoding of those that were given: servers and proxies send values that are not ASCII."""
    return type(given)(headers, encoding=given.encoding)


def hide_illegal_values(error: BaseException) -> None:
    """Replace the illegal header value that an HTTP library's error quotes, in place and in the errors that caused it."""
    cause: BaseException | None = error
    while cause is not None:
        cause.args = tuple(_QUOTED.sub(_HIDDEN, text) if isinstance(text, str) else text for text in cause.args)
        cause = cause.__cause__ or cause.__context__


def _hidden(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, _HIDDEN)
        return value
    if isinstance(value, Mapping):
        return {key: _hidden(item, secrets) for key, item in value.items()}
    return [_hidden(item, secrets) for item in value] if isinstance(value, list) else value


# ---------------------------------------------------------------------------------------------- logged
# Addresses of requests without user, password and query, for the HTTP libraries' logs and for errors.
#
# They log each request with its whole address. The address of a request is replaced once its authorization has been made of its user and
# password; the one that takes its place goes to the same target and is written without its query, which may hold keys.


Hooks = Mapping[str, Sequence[Callable[..., Any]]]


@cache
def _shown_without_query(address: Hashable) -> Any:
    """Return a subclass of an HTTP library's URL class whose text omits the query."""
    base: Any = address

    class ShownWithoutQuery(base):  # type: ignore[misc]
        is_concealed = True

        def __str__(self) -> str:
            return str(super().__str__()).partition("?")[0]

        def __repr__(self) -> str:
            return f"{base.__name__}({str(self)!r})"

    return ShownWithoutQuery


def _conceal(request: Any) -> None:
    url, kind = request.url, cast("Hashable", type(request.url))
    if (url.userinfo or url.query) and not getattr(url, "is_concealed", False):
        request.url = _shown_without_query(kind)(url.copy_with(userinfo=b""))


async def _aconceal(request: Any) -> None:
    _conceal(request)


@cache
def concealing(client: Hashable) -> Any:
    """Return a subclass of an SDK's client class whose requests are concealed once they are built: the SDKs log them before they go."""
    base: Any = client

    class Concealing(base):  # type: ignore[misc]
        def build_request(self, *args: Any, **kwargs: Any) -> Any:
            request = super().build_request(*args, **kwargs)
            _conceal(request)
            return request

    return Concealing


def hooks(arguments: Mapping[str, Any] = {}, *, awaited: bool = False) -> dict[str, list[Any]]:
    """Return the event hooks of the package's own client.

    Args:
        arguments: The user's arguments of it. Its hooks get each request as it is sent. Addresses are shown without secrets, but not
            where the user's own transport may read them as texts.
        awaited: Whether the client is asynchronous.
    """
    own: Hooks = arguments.get("event_hooks") or {}
    first: Hooks = {} if awaited else EVENT_HOOKS
    last = [] if {"transport", "mounts"} & arguments.keys() else [_aconceal if awaited else _conceal]
    requests, responses = ([*first.get(name, ()), *own.get(name, ())] for name in ("request", "response"))
    return {"request": [*requests, *last], "response": responses}
