"""What is secret among a model's settings, and how it is kept out of errors, traces and pickles."""

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

__all__ = [
    "digest",
    "has_password",
    "header_variables",
    "hide_illegal_values",
    "hide_secrets",
    "is_secret_header",
    "public_headers",
    "public_params",
    "secret_values",
    "shown",
]

_HIDDEN = "***"
_SECRET_HEADER = re.compile(r"authorization|cookie|key|token|secret|password", re.IGNORECASE)
_QUOTED = re.compile(r"""b(['"]).*\1""", re.DOTALL)
_USER = re.compile(r"(?<=:)//[^/?#@\s]*@")
_ADMITS = ("authorization", "authorization_token", "headers")  # what a request says of a remote MCP server to be let in
_SHORTEST_SECRET = 8  # "x" and "EMPTY" are no secrets, and hiding them would garble every text


def digest(secret: Any) -> str:
    """What tells secrets apart and does not say them."""
    return hashlib.sha256(str(secret).encode()).hexdigest()


def shown(name: str, value: Any, hidden: Callable[[Any], str] = lambda secret: _HIDDEN) -> Any:
    """A setting as it may be shown: without the user and password in an address, and the secret ones among headers.

    Args:
        name: What the setting is called.
        value: Its value.
        hidden: What is shown of a header's secret.
    """
    if isinstance(value, str):
        return _USER.sub(f"//{_HIDDEN}@", value)
    if isinstance(value, Mapping) and name.endswith(("headers", "query")):
        return {key: hidden(inner) if is_secret_header(str(key)) else inner for key, inner in value.items()}
    return value


def is_secret_header(name: str) -> bool:
    """Whether a header of this name is likely to hold a secret."""
    return _SECRET_HEADER.search(name) is not None


def secret_values(headers: Mapping[str, str] | None, proxy: str | None) -> list[str]:
    """The secrets among a model's headers and in its proxy's URL."""
    password = urlsplit(proxy).password if proxy else None
    return [*(value for name, value in (headers or {}).items() if is_secret_header(name)), *([password] if password else [])]


def public_headers(headers: Mapping[str, str] | None) -> dict[str, str] | None:
    """The headers that hold no secret; None where there are none."""
    return {name: value for name, value in (headers or {}).items() if not is_secret_header(name)} or None


def public_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a request without what lets it into remote MCP servers, which stand among its `tools` or its `mcp_servers`."""
    lists = {name: params[name] for name in ("tools", "mcp_servers") if isinstance(params.get(name), list)}
    return {**params, **{name: [_public_server(entry, name == "mcp_servers") for entry in entries] for name, entries in lists.items()}}


def _public_server(entry: Any, is_server: bool) -> Any:
    if not isinstance(entry, Mapping) or not (is_server or entry.get("type") == "mcp"):
        return entry
    return {key: _HIDDEN if key in _ADMITS and value else value for key, value in entry.items()}


def header_variables(vendor: str, field: str, headers: Mapping[str, str] | None) -> dict[str, str]:
    """The secret ones among the headers that a field holds, by the environment variable to find each in."""
    secret = [name for name in headers or {} if is_secret_header(name)]
    return {f"{field}.{name}": re.sub(r"\W", "_", f"{vendor}_HEADER_{name}").upper() for name in secret}


def has_password(url: str | None) -> bool:
    """Whether a URL names a user, and with it most likely a password."""
    return "@" in (url or "")


def hide_secrets(error: Any, secrets: list[str]) -> None:
    """Replace the secrets in an error's texts, in place: it stays the cause of the new one and is shown with it."""
    long_enough = [secret for secret in secrets if len(secret) >= _SHORTEST_SECRET]
    if not long_enough:
        return
    error.args = tuple(_hidden(value, long_enough) for value in error.args)
    for name in ("message", "body", "details"):
        if hasattr(error, name):
            setattr(error, name, _hidden(getattr(error, name), long_enough))


def hide_illegal_values(error: BaseException) -> None:
    """Replace what an HTTP library quotes of a header that it cannot send, in place, in the errors too that this one came from."""
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
