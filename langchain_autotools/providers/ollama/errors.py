"""What Ollama and servers like it answer instead of a reply, as errors that are both the SDK's and LangChain's.

Every class inherits `ollama.ResponseError` (where there is no reply: Python's `ConnectionError`, which the SDK raises then, or
`TimeoutError`) and the class of `langchain_core.exceptions` that says the same, so code that catches either keeps working. They
subclass the SDK's, so they are made when first needed: `from langchain_autotools.providers.ollama.errors import
OllamaModelNotFoundError` (this loads the SDK). `error_types` lists them. Each says whether the same request may succeed later
(`is_retryable`) and how long the server asked to wait (`retry_after`, seconds or None).
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from langchain_core.exceptions import ModelError

from ...retry import is_transient, retry_after
from .._errors import hide_secrets
from .error_types import error_class, error_names

if TYPE_CHECKING:
    from .error_types import (
        OllamaAPIError,
        OllamaAuthenticationError,
        OllamaConnectionError,
        OllamaContextOverflowError,
        OllamaInvalidRequestError,
        OllamaModelNotFoundError,
        OllamaOverloadedError,
        OllamaPermissionDeniedError,
        OllamaRateLimitError,
        OllamaStatusError,
        OllamaTimeoutError,
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
    "error_from_body",
    "error_of_response",
    "error_table",
    "message_of",
]

_BY_STATUS = {
    400: "OllamaInvalidRequestError",
    401: "OllamaAuthenticationError",
    403: "OllamaPermissionDeniedError",
    404: "OllamaModelNotFoundError",
    413: "OllamaInvalidRequestError",
    422: "OllamaInvalidRequestError",
    429: "OllamaRateLimitError",
    503: "OllamaOverloadedError",
}
# What the text of an error in mid-stream says of the status that it would have had outside (server/routes.go).
_STATUS_OF_TEXT = (
    (404, ("not found", "try pulling it first")),
    (400, ("does not support", "invalid format", "invalid option", "invalid think value")),
    (401, ("unauthorized", "sign in")),
    (429, ("rate limit", "too many requests", "usage limit")),
    (503, ("server busy", "overloaded")),
)
_OVERFLOW = ("exceeds the context length", "exceeds maximum context length", "exceed context limit", "exceeds the available context size")
_SHOWN = 500


def __getattr__(name: str) -> Any:
    if name in error_names():
        return error_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def error_table(secrets: Iterable[str] = ()) -> dict[type[BaseException], Callable[[BaseException], BaseException]]:
    """How `errors.map_errors` translates what the HTTP library, and the requests here, raise.

    Args:
        secrets: Texts that must not stand in any error.
    """
    hidden = list(secrets)

    def without_secrets(error: BaseException) -> BaseException:
        hide_secrets(error, hidden)
        return error

    table: dict[type[BaseException], Callable[[BaseException], BaseException]] = {TimeoutError: _timed_out, ModelError: without_secrets}
    library = sys.modules.get("httpx")
    if library is not None:
        table[library.TimeoutException] = _timed_out
        table[library.TransportError] = _disconnected
        table[library.DecodingError] = _disconnected
    return table


def message_of(response: Any) -> str:
    """The words of a reply with an error status: its `error`, or whatever else it says."""
    text: str = response.text.strip()
    try:
        body = json.loads(text)
    except ValueError:
        return text[:_SHOWN] or f"HTTP status {response.status_code} without a word"
    return _message(body.get("error") or body) if isinstance(body, Mapping) else text[:_SHOWN]


def error_of_response(response: Any) -> Exception:
    """The error that a reply with an error status means."""
    error = _status_error(message_of(response), response.status_code)
    error.retry_after = retry_after(response.headers)
    typed: Exception = error
    return typed


def error_from_body(error: Any) -> Exception:
    """The error that a line of a reply means, as if the server had sent it with its HTTP status.

    Args:
        error: What stood under `error`.

    Returns:
        One of this module's errors; an unknown one counts as the server's failure (500).
    """
    message = _message(error)
    lowered = message.lower()
    status = next((status for status, texts in _STATUS_OF_TEXT if any(text in lowered for text in texts)), 500)
    if any(text in lowered for text in _OVERFLOW):
        status = 400
    typed: Exception = _status_error(message, status)
    return typed


def _message(error: Any) -> str:
    if isinstance(error, Mapping):
        inner = error.get("message")
        return inner if isinstance(inner, str) and inner else json.dumps(error, ensure_ascii=False, default=str)
    return str(error)


def _status_error(message: str, status: int) -> Any:
    name = _BY_STATUS.get(status) or ("OllamaAPIError" if status >= 500 else "OllamaStatusError")
    overflows = status in (400, 413, 422, 500) and any(text in message.lower() for text in _OVERFLOW)
    error = error_class("OllamaContextOverflowError" if overflows else name)(message, status)
    error.is_retryable = not overflows and is_transient(status)
    return error


def _timed_out(error: BaseException) -> Exception:
    new: Exception = error_class("OllamaTimeoutError")(f"Ollama did not answer in time ({_reason(error)})")
    return new


def _disconnected(error: Any) -> Exception:
    try:
        url = error.request.url
        place = f"{url.scheme}://{url.netloc.decode('ascii', 'replace').rpartition('@')[2]}"
    except (AttributeError, RuntimeError):  # an error that was made without its request
        place = "the server"
    new: Exception = error_class("OllamaConnectionError")(f"No reply from {place} ({_reason(error)}). Is Ollama running there?")
    return new


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
