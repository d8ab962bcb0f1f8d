"""Requests to Ollama, and the bytes of their replies as they come.

The SDK's client has no public way to the bytes of a reply, and its public stream drops ids and places of calls and dies on lines that
servers send (wire quirks O-01 to O-03). So requests go through httpx, the library that the SDK itself stands on, with the SDK's own
configuration: its address rules, environment variables, redirects, and no limit on the time of a reply.
"""

from collections.abc import Mapping
from typing import Any

from .._transport.clients import Clients
from .._transport.http import ClientArguments, HttpClients
from .decode import is_model_mistake

__all__ = ["DEFAULT_TIMEOUT", "get_json", "http_clients", "refusal"]

DEFAULT_TIMEOUT = (10.0, None, None, None)
"""Ten seconds to connect, and any time for a reply: a model may have to be loaded first."""


def http_clients(sync: Mapping[str, Any], asynchronous: Mapping[str, Any], owner: Clients) -> HttpClients:
    """A model's HTTP clients, of httpx, because users give that one's objects.

    Args:
        sync: Arguments of the synchronous client.
        asynchronous: Arguments of the asynchronous client.
        owner: Keeps the clients that are the model's own.
    """
    import httpx

    first, second = (ClientArguments({"timeout": DEFAULT_TIMEOUT, **arguments}) for arguments in (sync, asynchronous))
    return HttpClients(httpx, first, second, owner)


def get_json(http: Any, url: str, options: Mapping[str, Any]) -> Any:
    """What the server says under an address.

    Raises:
        httpx.HTTPError: No reply, or one with an error status.
        ValueError: The reply is no JSON.
    """
    return http.get(url, **options).raise_for_status().json()


def refusal(response: Any) -> Exception | None:
    """The error that an error status means; None for a call that the server could not read: a reply like any other (wire quirk T-07)."""
    from .errors import error_of_response, message_of

    return None if is_model_mistake(message_of(response)) else error_of_response(response)
