"""What of the constructor concerns HTTP: clients, headers, timeouts, secrets, and what of it may be pickled."""

from collections.abc import Mapping
from typing import Any

from .._base.checks import extra_headers
from .._transport.clients import Clients
from .._transport.http import HttpClients
from .._transport.secrets import SecretDict, portable, public_headers, secret_values
from .._transport.timeouts import read_timeout, timeout_parts
from .client import DEFAULT_TIMEOUT, http_clients
from .parameters import OllamaParameters

__all__ = ["model_clients", "portable_fields", "request_options", "secrets_of", "silence_of"]

_PORTABLE = (bool, int, float, str)
_OF_A_REQUEST = ("headers", "timeout")
_JSON = {"content-type": "application/json", "accept": "application/json"}


def model_clients(model: OllamaParameters, owner: Clients) -> HttpClients:
    """The model's HTTP clients. Headers and timeout of both go with each request: they need no client of their own."""
    common = {name: value for name, value in (model.client_kwargs or {}).items() if name not in _OF_A_REQUEST}
    return http_clients({**common, **(model.sync_client_kwargs or {})}, {**common, **(model.async_client_kwargs or {})}, owner)


def request_options(model: OllamaParameters, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """What the HTTP client is told with one request: headers, and the timeout where anybody set one."""
    headers = {**_JSON, **_authorization(model), **_headers_of(model.client_kwargs)}
    headers |= {name.lower(): value for name, value in extra_headers(kwargs).items()}
    headers = SecretDict(headers)
    timeout = _timeout(model, kwargs)
    return {"headers": headers, **({} if timeout is None else {"timeout": timeout})}


def _headers_of(arguments: Mapping[str, Any] | None) -> dict[str, str]:
    return {name.lower(): value for name, value in dict((arguments or {}).get("headers") or {}).items()}


def _authorization(model: OllamaParameters) -> dict[str, str]:
    """A header of the user's own goes before the URL's user, and that before a key."""
    kwargs = (model.client_kwargs, model.sync_client_kwargs, model.async_client_kwargs)
    if any("authorization" in _headers_of(one) for one in kwargs):
        return {}
    if model.address.authorization:
        return {"authorization": model.address.authorization}
    return {"authorization": f"Bearer {model.api_key.get_secret_value()}"} if model.api_key else {}


def _asked_timeout(model: OllamaParameters, kwargs: Mapping[str, Any]) -> Any:
    said = (kwargs.get("timeout"), model.default_request_timeout, (model.client_kwargs or {}).get("timeout"))
    return next((timeout for timeout in said if timeout is not None), None)


def _timeout(model: OllamaParameters, kwargs: Mapping[str, Any]) -> Any:
    timeout = _asked_timeout(model, kwargs)
    if timeout is None and model.stream_chunk_timeout is None:
        return None
    return timeout_parts(DEFAULT_TIMEOUT if timeout is None else timeout, model.stream_chunk_timeout)


def silence_of(model: OllamaParameters, kwargs: Mapping[str, Any]) -> float | None:
    """Seconds that may pass between two events of a reply; None for any time."""
    timeout = _asked_timeout(model, kwargs)
    return model.stream_chunk_timeout or (None if timeout is None else read_timeout(timeout))


# ---------------------------------------------------------------------------------------------- secrets


def secrets_of(model: OllamaParameters) -> tuple[str, ...]:
    """Texts that must not stand in an error."""
    key = [model.api_key.get_secret_value()] if model.api_key else []
    own = [model.address.authorization, model.address.password]
    kwargs = (model.client_kwargs, model.sync_client_kwargs, model.async_client_kwargs)
    sent = [value for one in kwargs for value in secret_values(_headers_of(one), _proxy(one))]
    return (*key, *(value for value in own if value), *sent)


def _proxy(arguments: Mapping[str, Any] | None) -> str | None:
    proxy = (arguments or {}).get("proxy")
    return proxy if isinstance(proxy, str) else None


def portable_fields(model: OllamaParameters) -> dict[str, Any]:
    """The fields as they may be pickled: no key, no password, and of the clients' arguments only plain ones that hold no secret."""
    kwargs = {name: _portable(getattr(model, name)) for name in ("client_kwargs", "sync_client_kwargs", "async_client_kwargs")}
    base_url = model.address.url if model.address.authorization else portable("base_url", model.base_url)
    return {"api_key": None, "base_url": base_url, **kwargs}


def _portable(arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    arguments = arguments or {}
    plain = {name: value for name, value in arguments.items() if isinstance(value, _PORTABLE) and "@" not in str(value)}
    headers = public_headers(_headers_of(arguments))
    return {**plain, **({"headers": headers} if headers else {})}
