"""A real HTTP server on loopback for an ASGI application, in a thread of its own: connections close, clients leave."""

from __future__ import annotations

import socket
import threading
from typing import Any, Self

import uvicorn


class AsgiServer:
    """Serves an application while it is entered.

    Args:
        app: The application.

    Attributes:
        address: Where it is served.
    """

    def __init__(self, app: Any) -> None:
        config = uvicorn.Config(app, log_config=None, lifespan="off", ws="none", http="h11", loop="asyncio", timeout_graceful_shutdown=5)
        self._server = uvicorn.Server(config)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=20)
        assert not self._thread.is_alive()
