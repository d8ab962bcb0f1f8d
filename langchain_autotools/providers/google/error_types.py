"""The classes of `errors`: each is an error of google-genai's and the one of `langchain_core.exceptions` that says the same.

They subclass the SDK's, so they are made when they are first asked for.

```
GoogleInvalidRequestError       400, 413, 422   google.genai.errors.ClientError     ModelInvalidRequestError
GoogleContextOverflowError      400             google.genai.errors.ClientError     ContextOverflowError
GoogleAuthenticationError       401             google.genai.errors.ClientError     ModelAuthenticationError
GooglePermissionDeniedError     403             google.genai.errors.ClientError     ModelPermissionDeniedError
GoogleModelNotFoundError        404             google.genai.errors.ClientError     ModelNotFoundError
GoogleRequestTimeoutError       408, 499        google.genai.errors.ClientError     ModelTimeoutError
GoogleConflictError             409             google.genai.errors.ClientError     ModelAPIError
GoogleRateLimitError            429             google.genai.errors.ClientError     ModelRateLimitError
GoogleDeadlineExceededError     504             google.genai.errors.ServerError     ModelTimeoutError
GoogleAPIError                  5xx             google.genai.errors.ServerError     ModelAPIError
GoogleStatusError               other           google.genai.errors.APIError        ModelError
GoogleConnectionError           -               google.genai.errors.APIError        ModelConnectionError
GoogleTimeoutError              -               google.genai.errors.APIError        ModelTimeoutError
```
"""

from collections.abc import Mapping
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
    "GoogleAPIError",
    "GoogleAuthenticationError",
    "GoogleConflictError",
    "GoogleConnectionError",
    "GoogleContextOverflowError",
    "GoogleDeadlineExceededError",
    "GoogleInvalidRequestError",
    "GoogleModelNotFoundError",
    "GooglePermissionDeniedError",
    "GoogleRateLimitError",
    "GoogleRequestTimeoutError",
    "GoogleStatusError",
    "GoogleTimeoutError",
    "error_class",
    "error_names",
]

_PUBLIC_MODULE = __name__.replace("error_types", "errors")

_PARENTS: dict[str, tuple[str, type[ModelError], str]] = {
    "GoogleInvalidRequestError": ("ClientError", ModelInvalidRequestError, "The server rejects the request (400, 413, 422)."),
    "GoogleContextOverflowError": ("ClientError", ContextOverflowError, "The messages are longer than the model's context."),
    "GoogleAuthenticationError": ("ClientError", ModelAuthenticationError, "The key is missing or refused (401, or 400 that says so)."),
    "GooglePermissionDeniedError": ("ClientError", ModelPermissionDeniedError, "The key may not do this (403)."),
    "GoogleModelNotFoundError": ("ClientError", ModelNotFoundError, "There is no such model or path (404)."),
    "GoogleRequestTimeoutError": ("ClientError", ModelTimeoutError, "The request took too long or was cancelled (408, 499)."),
    "GoogleConflictError": ("ClientError", ModelAPIError, "The request conflicts with another (409)."),
    "GoogleRateLimitError": ("ClientError", ModelRateLimitError, "Too many requests or tokens (429)."),
    "GoogleDeadlineExceededError": ("ServerError", ModelTimeoutError, "The server did not finish in time (504)."),
    "GoogleAPIError": ("ServerError", ModelAPIError, "The server failed (5xx)."),
    "GoogleStatusError": ("APIError", ModelError, "Any other status that says no."),
    "GoogleConnectionError": ("APIError", ModelConnectionError, "The server cannot be reached, or the connection broke."),
    "GoogleTimeoutError": ("APIError", ModelTimeoutError, "The server did not answer in time."),
}

if TYPE_CHECKING:
    from google.genai.errors import APIError, ClientError, ServerError

    class _Said:
        retry_after: float | None
        """The seconds that the server asked to wait; None if it did not."""
        status_code: int
        """The HTTP status; 0 where there was no reply."""
        body: Any
        """The reply's JSON."""

    class GoogleInvalidRequestError(ClientError, ModelInvalidRequestError, _Said):
        """The server rejects the request (400, 413, 422)."""

    class GoogleContextOverflowError(ClientError, ContextOverflowError, _Said):
        """The messages are longer than the model's context."""

    class GoogleAuthenticationError(ClientError, ModelAuthenticationError, _Said):
        """The key is missing or refused (401, or 400 that says so)."""

    class GooglePermissionDeniedError(ClientError, ModelPermissionDeniedError, _Said):
        """The key may not do this (403)."""

    class GoogleModelNotFoundError(ClientError, ModelNotFoundError, _Said):
        """There is no such model or path (404)."""

    class GoogleRequestTimeoutError(ClientError, ModelTimeoutError, _Said):
        """The request took too long or was cancelled (408, 499)."""

    class GoogleConflictError(ClientError, ModelAPIError, _Said):
        """The request conflicts with another (409)."""

    class GoogleRateLimitError(ClientError, ModelRateLimitError, _Said):
        """Too many requests or tokens (429)."""

    class GoogleDeadlineExceededError(ServerError, ModelTimeoutError, _Said):
        """The server did not finish in time (504)."""

    class GoogleAPIError(ServerError, ModelAPIError, _Said):
        """The server failed (5xx)."""

    class GoogleStatusError(APIError, ModelError, _Said):
        """Any other status that says no."""

    class GoogleConnectionError(APIError, ModelConnectionError, _Said):
        """The server cannot be reached, or the connection broke."""

    class GoogleTimeoutError(APIError, ModelTimeoutError, _Said):
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
    """The class of this name; imports the SDK.

    It is made with a message, and the HTTP response or request that there was.
    """
    from google.genai import errors

    parent, meaning, text = _PARENTS[name]

    def __init__(self: Any, message: str = "", *, response: Any = None, body: Any = None, request: Any = None) -> None:
        status = response.status_code if response is not None else 0
        errors.APIError.__init__(self, status, body if isinstance(body, Mapping) else {}, response)
        self.message = message or text.rstrip(".")
        self.status_code, self.body, self.request = status, body, request
        label = f"{status} {self.status}. " if self.status else f"{status} " if status else ""
        self.args = (label + self.message,)

    namespace = {"__module__": _PUBLIC_MODULE, "__doc__": text, "retry_after": None, "__init__": __init__}
    return type(name, (getattr(errors, parent), meaning), namespace)
