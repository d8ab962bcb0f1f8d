"""Error classes for `errors`, each derived from google-genai's error as well as its counterpart in `langchain_core.exceptions`.

They subclass the SDK's, so this module loads it: `errors` imports it when a class is first asked for.
"""

from collections.abc import Mapping
from typing import Any

from google.genai.errors import APIError, ClientError, ServerError
from langchain_core import exceptions

from .._base.errors import ProviderError


class _GoogleError(ProviderError, APIError):
    """Base class of errors with a message, and the HTTP response or request if there is one."""

    status_code: int
    """The HTTP status; 0 without a reply."""
    body: Any
    """The reply's JSON."""
    request: Any

    def __init__(self, message: str = "", *, response: Any = None, body: Any = None, request: Any = None) -> None:
        status = response.status_code if response is not None else 0
        APIError.__init__(self, status, body if isinstance(body, Mapping) else {}, response)
        self.message = message or (type(self).__doc__ or "").rstrip(".")
        self.status_code, self.body, self.request = status, body, request
        label = f"{status} {self.status}. " if self.status else f"{status} " if status else ""
        self.args = (label + self.message,)


class GoogleInvalidRequestError(_GoogleError, ClientError, exceptions.ModelInvalidRequestError):
    """The server rejects the request (400, 413, 422)."""


class GoogleContextOverflowError(_GoogleError, ClientError, exceptions.ContextOverflowError):
    """The messages are longer than the model's context."""


class GoogleAuthenticationError(_GoogleError, ClientError, exceptions.ModelAuthenticationError):
    """The key is missing or invalid (401, or 400 with that message)."""


class GooglePermissionDeniedError(_GoogleError, ClientError, exceptions.ModelPermissionDeniedError):
    """The key lacks the permission (403)."""


class GoogleModelNotFoundError(_GoogleError, ClientError, exceptions.ModelNotFoundError):
    """There is no such model or path (404)."""


class GoogleRequestTimeoutError(_GoogleError, ClientError, exceptions.ModelTimeoutError):
    """The request took too long or was cancelled (408, 499)."""


class GoogleConflictError(_GoogleError, ClientError, exceptions.ModelAPIError):
    """The request conflicts with another (409)."""


class GoogleRateLimitError(_GoogleError, ClientError, exceptions.ModelRateLimitError):
    """Too many requests or tokens (429)."""


class GoogleDeadlineExceededError(_GoogleError, ServerError, exceptions.ModelTimeoutError):
    """The server did not finish in time (504)."""


class GoogleAPIError(_GoogleError, ServerError, exceptions.ModelAPIError):
    """The server failed (5xx)."""


class GoogleStatusError(_GoogleError, exceptions.ModelError):
    """The server returned another error status."""


class GoogleConnectionError(_GoogleError, exceptions.ModelConnectionError):
    """The server cannot be reached, or the connection broke."""


class GoogleTimeoutError(_GoogleError, exceptions.ModelTimeoutError):
    """The server did not answer in time."""
