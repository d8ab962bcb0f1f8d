"""The HTTP clients of Ollama: made when first needed, from settings that hold all they depend on.

The SDK's client has no public way to the bytes of a reply, and its public stream drops ids and places of calls and dies on lines that
servers send (quirks O-01 to O-03). So requests go through httpx, the library that the SDK itself stands on, with the SDK's own
configuration: its address rules, environment variables, redirects, and no limit on the time of a reply.
"""

import asyncio
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .._clients import Clients, LoopPool, trusted
from .decode import is_model_mistake

if TYPE_CHECKING:
    import httpx

__all__ = ["ClientSettings", "apost", "async_client", "client", "default_timeout", "get_json", "post"]

_SECONDS_TO_CONNECT = 10.0
_CONNECTIONS = 1000
_KEPT_ALIVE = 100

_shared = Clients()
"""Clients of models without settings of their own, one a process and event loop."""


@dataclass(frozen=True)
class ClientSettings:
    """Everything a client depends on. What may differ from request to request is not in it.

    Attributes:
        sync: Arguments of the synchronous client.
        asynchronous: Arguments of the asynchronous client.
        owner: Keeps clients that have arguments of their own, and closes them when the model is gone.
    """

    sync: Mapping[str, Any] = field(default_factory=dict)
    asynchronous: Mapping[str, Any] = field(default_factory=dict)
    owner: Clients = field(default_factory=Clients)


def default_timeout() -> "httpx.Timeout":
    """Any time for a reply: a model may have to be loaded first."""
    import httpx

    return httpx.Timeout(None, connect=_SECONDS_TO_CONNECT)


def client(settings: ClientSettings) -> "httpx.Client":
    """The client for threads."""
    import httpx

    if not settings.sync:
        found: httpx.Client = _shared.get("sync", lambda: httpx.Client(**_arguments({})))
        return found

    def make() -> httpx.Client:
        made = httpx.Client(**_arguments(settings.sync))
        weakref.finalize(settings.owner, made.close)
        return made

    own: httpx.Client = settings.owner.get("sync", make)
    return own


def async_client(settings: ClientSettings, loop: asyncio.AbstractEventLoop) -> "httpx.AsyncClient":
    """The client for an event loop, which closes it at its end."""
    import httpx

    keeper = settings.owner if settings.asynchronous else _shared
    pool: LoopPool = keeper.get("async", lambda: LoopPool(httpx.AsyncClient(**_arguments(settings.asynchronous))), loop)
    found: httpx.AsyncClient = pool.client
    return found


def _arguments(more: Mapping[str, Any]) -> dict[str, Any]:
    import httpx

    limits = httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_KEPT_ALIVE)
    common = {"follow_redirects": True, "timeout": default_timeout(), "limits": limits}
    verify = {} if {"verify", "transport", "cert"} & more.keys() else {"verify": trusted(httpx)}
    return {**common, **verify, **more}


# ---------------------------------------------------------------------------------------------- requests


def post(http: "httpx.Client", url: str, body: bytes, options: Mapping[str, Any]) -> Any:
    """Send a request; returns the response, its body unread, as soon as the head is there.

    Args:
        http: The client.
        url: Where it goes.
        body: The JSON body.
        options: `headers`, and `timeout` where it is not the client's own.

    Raises:
        httpx.TransportError: No reply.
        ollama.ResponseError: A reply with an error status.
    """
    response = http.send(http.build_request("POST", url, content=body, **options), stream=True)
    if response.status_code >= 400:
        try:
            response.read()
        finally:
            response.close()
        _raise_unless_mistaken(response)
    return response


async def apost(http: "httpx.AsyncClient", url: str, body: bytes, options: Mapping[str, Any]) -> Any:
    """Like `post`, asynchronously."""
    response = await http.send(http.build_request("POST", url, content=body, **options), stream=True)
    if response.status_code >= 400:
        try:
            await response.aread()
        finally:
            await response.aclose()
        _raise_unless_mistaken(response)
    return response


def get_json(http: "httpx.Client", url: str, options: Mapping[str, Any]) -> Any:
    """What the server says under an address.

    Raises:
        httpx.HTTPError: No reply, or one with an error status.
        ValueError: The reply is no JSON.
    """
    return http.get(url, **options).raise_for_status().json()


def _raise_unless_mistaken(response: Any) -> None:
    """Raise what an error status means; a call that the server could not read is a reply like any other (quirk T-07)."""
    from .errors import error_of_response, message_of

    if not is_model_mistake(message_of(response)):
        raise error_of_response(response)
