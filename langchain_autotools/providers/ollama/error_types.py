"""The classes of `errors`: each is the SDK's own error and the one of `langchain_core.exceptions` that says the same.

They subclass the SDK's, so they are made when they are first asked for.

```
OllamaInvalidRequestError        400, 413, 422   ollama.ResponseError   ModelInvalidRequestError
OllamaContextOverflowError       400             ollama.ResponseError   ContextOverflowError
OllamaAuthenticationError        401             ollama.ResponseError   ModelAuthenticationError
OllamaPermissionDeniedError      403             ollama.ResponseError   ModelPermissionDeniedError
OllamaModelNotFoundError         404             ollama.ResponseError   ModelNotFoundError
OllamaRateLimitError             429             ollama.ResponseError   ModelRateLimitError
OllamaOverloadedError            503             ollama.ResponseError   ModelAPIError
OllamaAPIError                   5xx             ollama.ResponseError   ModelAPIError
OllamaStatusError                other           ollama.ResponseError   ModelError
OllamaConnectionError            -               ConnectionError        ModelConnectionError
OllamaTimeoutError               -               TimeoutError           ModelTimeoutError
```
"""

from functools import cache
from typing import TYPE_CHECKING, Any

from langchain_core.exceptions import (
    ContextOverflowError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelError,
    ModelInvalidRequestError,
    ModelNotFoundError,
    ModelPermissionDeniedError,
    ModelRateLimitError,
    ModelTimeoutError,
)

__all__ = [
    "OllamaAPIError",
    "OllamaAuthenticationError",
    "OllamaConnectionError",
    "OllamaContextOverflowError",
    "OllamaInvalidRequestError",
    "OllamaModelNotFoundError",
    "OllamaOverloadedError",
    "OllamaPermissionDeniedError",
    "OllamaRateLimitError",
    "OllamaStatusError",
    "OllamaTimeoutError",
    "error_class",
    "error_names",
]

_PUBLIC_MODULE = __name__.replace("error_types", "errors")
_RESPONSE = "ResponseError"

_PARENTS: dict[str, tuple[str, type[ModelError], str]] = {
    "OllamaInvalidRequestError": (_RESPONSE, ModelInvalidRequestError, "The server rejects the request (400, 413, 422)."),
    "OllamaContextOverflowError": (_RESPONSE, ContextOverflowError, "The messages are longer than the model's context."),
    "OllamaAuthenticationError": (_RESPONSE, ModelAuthenticationError, "The key is missing or refused (401)."),
    "OllamaPermissionDeniedError": (_RESPONSE, ModelPermissionDeniedError, "The key may not do this (403)."),
    "OllamaModelNotFoundError": (_RESPONSE, ModelNotFoundError, "The server has no such model, or no such path (404)."),
    "OllamaRateLimitError": (_RESPONSE, ModelRateLimitError, "Too many requests or tokens (429)."),
    "OllamaOverloadedError": (_RESPONSE, ModelAPIError, "The server has too much to do (503)."),
    "OllamaAPIError": (_RESPONSE, ModelAPIError, "The server failed (5xx)."),
    "OllamaStatusError": (_RESPONSE, ModelError, "Any other status that says no."),
    "OllamaConnectionError": ("ConnectionError", ModelConnectionError, "The server cannot be reached, or the connection broke."),
    "OllamaTimeoutError": ("TimeoutError", ModelTimeoutError, "The server did not answer in time."),
}

if TYPE_CHECKING:
    import ollama

    class _Said:
        retry_after: float | None
        """The seconds that the server asked to wait; None if it did not."""

    class OllamaInvalidRequestError(ollama.ResponseError, ModelInvalidRequestError, _Said):
        """The server rejects the request (400, 413, 422)."""

    class OllamaContextOverflowError(ollama.ResponseError, ContextOverflowError, _Said):
        """The messages are longer than the model's context."""

    class OllamaAuthenticationError(ollama.ResponseError, ModelAuthenticationError, _Said):
        """The key is missing or refused (401)."""

    class OllamaPermissionDeniedError(ollama.ResponseError, ModelPermissionDeniedError, _Said):
        """The key may not do this (403)."""

    class OllamaModelNotFoundError(ollama.ResponseError, ModelNotFoundError, _Said):
        """The server has no such model, or no such path (404)."""

    class OllamaRateLimitError(ollama.ResponseError, ModelRateLimitError, _Said):
        """Too many requests or tokens (429)."""

    class OllamaOverloadedError(ollama.ResponseError, ModelAPIError, _Said):
        """The server has too much to do (503)."""

    class OllamaAPIError(ollama.ResponseError, ModelAPIError, _Said):
        """The server failed (5xx)."""

    class OllamaStatusError(ollama.ResponseError, ModelError, _Said):
        """Any other status that says no."""

    class OllamaConnectionError(ConnectionError, ModelConnectionError, _Said):
        """The server cannot be reached, or the connection broke."""

    class OllamaTimeoutError(TimeoutError, ModelTimeoutError, _Said):
        """The server did not answer in time."""


def __getattr__(name: str) -> Any:
    if name in _PARENTS:
        return error_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def error_names() -> frozenset[str]:
    """The names of all classes."""
    return frozenset(_PARENTS)


@cache
def error_class(name: str) -> type[Any]:
    """The class of this name; imports the SDK."""
    import builtins

    import ollama

    parent, meaning, text = _PARENTS[name]
    members: dict[str, Any] = {"__module__": _PUBLIC_MODULE, "__doc__": text, "retry_after": None, "__init__": _say}
    if parent == _RESPONSE:
        members |= {"status_code": -1, "error": property(lambda error: error.args[0], _no_change)}
    return type(name, (getattr(builtins, parent, None) or getattr(ollama, parent), meaning), members)


def _say(
    error: Any, message: str = "Ollama did not answer in time", *, response: Any = None, body: Any = None, request: Any = None
) -> None:
    """The SDK's own constructor reads the text as JSON, which a text that happens to be some does not survive."""
    Exception.__init__(error, message)
    error.message = message
    if response is not None:
        error.status_code = response.status_code


def _no_change(error: Any, text: str) -> None:
    error.args = (text,)
