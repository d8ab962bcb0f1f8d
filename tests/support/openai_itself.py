"""OpenAI at its own address, both APIs, played by loopback servers: an HTTP client whose transport takes every request there.

    with OpenAIItself(chat=[Turn("Hi.")], responses=[Turn("Ho.")]) as vendor:
        model = ChatOpenAI(model="gpt-5", api_key="key", http_client=vendor.client())
        ...
        assert vendor.asked == ["/v1/chat/completions"]

A base URL that a test gives the model leads to the same servers.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Self
from urllib.parse import urlsplit

import openai

from langchain_autotools.providers._transport.clients import http_library, shared_ssl_context
from tests.support.openai_server import OpenAIServer, Script
from tests.support.responses_server import ResponsesServer

__all__ = ["OpenAIItself"]


class OpenAIItself:
    """Chat completions and Responses side by side, each with its script."""

    def __init__(self, *, chat: Script = (), responses: Script = ()) -> None:
        self.chat = OpenAIServer(chat)
        self.responses = ResponsesServer(responses)
        self.asked: list[str] = []
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        for server in (self.chat, self.responses):
            self._stack.enter_context(server)
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def client(self) -> Any:
        """The HTTP client for synchronous requests."""
        library: Any = http_library(openai)
        direct = self._direct

        class Transport(library.HTTPTransport):  # type: ignore[misc]
            def handle_request(self, request: Any) -> Any:
                return super().handle_request(direct(request))

        return self._stack.enter_context(library.Client(transport=Transport(verify=shared_ssl_context(library))))

    def async_client(self) -> Any:
        """The HTTP client for asynchronous requests; the test closes it."""
        library: Any = http_library(openai)
        direct = self._direct

        class Transport(library.AsyncHTTPTransport):  # type: ignore[misc]
            async def handle_async_request(self, request: Any) -> Any:
                return await super().handle_async_request(direct(request))

        return library.AsyncClient(transport=Transport(verify=shared_ssl_context(library)))

    def _direct(self, request: Any) -> Any:
        """Send the request to the server of its API."""
        self.asked.append(request.url.path)
        server = self.responses if request.url.path.endswith("/responses") else self.chat
        request.url = request.url.copy_with(scheme="http", host="127.0.0.1", port=urlsplit(server.address).port)
        return request
