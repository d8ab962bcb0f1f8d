"""Addresses of Ollama servers, in the forms that users and `OLLAMA_HOST` give them."""

import base64
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import SplitResult, unquote, urlsplit

from ...errors import ConfigurationError

_PORT = 11434
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Address:
    """The address of a server.

    Attributes:
        url: Its URL, without a slash at the end and without anything secret.
        authorization: The value of the header that the URL's user and password mean; None where it has none.
        password: That password; None where there is none.
    """

    url: str
    authorization: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)


@lru_cache(maxsize=64)
def address_of(host: str | None) -> Address:
    """Parse the address of a server like the vendor's SDK: scheme, host and port are optional.

    Args:
        host: `http://host:port/path`, `host:port`, `host`, `:port`, with or without `user:password@`; None for this machine.

    Raises:
        ConfigurationError: It is no address.
    """
    text = (host or "").strip()
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "http", text
    try:
        parts = urlsplit(f"{scheme}://{rest}")
        port = parts.port or (_PORTS.get(scheme, _PORT) if separator else _PORT)
    except ValueError as error:
        raise ConfigurationError(f"base_url is no address ({error}): give http://host:port") from None
    if scheme not in _PORTS:
        raise ConfigurationError(f"base_url begins with {scheme!r}: give http://host:port or https://host:port")
    name = parts.hostname or "127.0.0.1"
    name = f"[{name}]" if ":" in name else name
    path = parts.path.strip("/")
    return Address(f"{scheme}://{name}:{port}" + (f"/{path}" if path else ""), *_credentials(parts))


def _credentials(parts: SplitResult) -> tuple[str | None, str | None]:
    if not parts.username:
        return None, None
    password = unquote(parts.password or "")
    pair = f"{unquote(parts.username)}:{password}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}", password or None
