"""Error classes for `errors`, each derived from the SDK's error as well as its counterpart in `langchain_core.exceptions`.

They subclass the SDK's, so this module loads it: `errors` imports it when a class is first asked for.
"""

from typing import Any

import ollama
from langchain_core import exceptions

from .._base.errors import ProviderError


class _OllamaError(ProviderError):
    def __init__(
        self: Any, message: str = "Ollama did not answer in time", *, response: Any = None, body: Any = None, request: Any = None
    ) -> None:
        """Initialize the error without the SDK's constructor, which parses the text as JSON and fails on some texts."""
        Exception.__init__(self, message)
        self.message = message
        if response is not None:
            self.status_code = response.status_code


class _Answered(_OllamaError, ollama.ResponseError):
    status_code = -1

    @property
    def error(self: Any) -> Any:
        """The message, by the SDK's name for it."""
        return self.args[0]

    @error.setter
    def error(self: Any, text: Any) -> None:
        self.args = (text,)


class OllamaInvalidRequestError(_Answered, exceptions.ModelInvalidRequestError):
    """The server rejects the request (400, 413, 422)."""


class OllamaContextOverflowError(_Answered, exceptions.ContextOverflowError):
    """The messages are longer than the model's context."""


class OllamaAuthenticationError(_Answered, exceptions.ModelAuthenticationError):
    """The key is missing or invalid (401)."""


class OllamaPermissionDeniedError(_Answered, exceptions.ModelPermissionDeniedError):
    """The key lacks the permission (403)."""


class OllamaModelNotFoundError(_Answered, exceptions.ModelNotFoundError):
    """The server has no such model, or no such path (404)."""


class OllamaRateLimitError(_Answered, exceptions.ModelRateLimitError):
    """Too many requests or tokens (429)."""


class OllamaOverloadedError(_Answered, exceptions.ModelAPIError):
    """The server is overloaded (503)."""


class OllamaAPIError(_Answered, exceptions.ModelAPIError):
    """The server failed (5xx)."""


class OllamaStatusError(_Answered, exceptions.ModelError):
    """The server returned another error status."""


class OllamaConnectionError(_OllamaError, ConnectionError, exceptions.ModelConnectionError):
    """The server cannot be reached, or the connection broke."""


class OllamaTimeoutError(_OllamaError, TimeoutError, exceptions.ModelTimeoutError):
    """The server did not answer in time."""
