"""Errors of Ollama or compatible servers, as classes that are LangChain's as well as the SDK's.

Every class inherits `ollama.ResponseError` (where there is no reply: Python's `ConnectionError`, which the SDK raises then, or
`TimeoutError`) and the class of `langchain_core.exceptions` that says the same, so code that catches either keeps working. They
subclass the SDK's, so they are made when first needed: `from langchain_autotools.providers.ollama.errors import
OllamaModelNotFoundError` (this loads the SDK). `error_types` lists them. Each says whether the same request may succeed later
(`is_retryable`) and how long the server asked to wait (`retry_after`, seconds or None).
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .._base.errors import ErrorMapping, hint_for_missing_page, lazy_classes

if TYPE_CHECKING:
    from .error_types import *  # noqa: F403 - the classes, for type checkers

_OVERFLOW = ("exceeds the context length", "exceeds maximum context length", "exceed context limit", "exceeds the available context size")
# What the text of an error in mid-stream says of the status that it would have had outside (server/routes.go).
_STATUS_OF_TEXT = (
    (400, _OVERFLOW),
    (404, ("not found", "try pulling it first")),
    (400, ("does not support", "invalid format", "invalid option", "invalid think value")),
    (401, ("unauthorized", "sign in")),
    (429, ("rate limit", "too many requests", "usage limit")),
    (503, ("server busy", "overloaded")),
)
_SHOWN = 500

__getattr__ = lazy_classes(__name__, "Ollama")


def _library() -> Any:
    import httpx

    return httpx


ERRORS = ErrorMapping(
    library=_library,
    error_class=__getattr__,
    prefix="Ollama",
    by_status={408: "StatusError", 409: "StatusError", 503: "OverloadedError"},
    overflow_texts=_OVERFLOW,
    advice=". Is Ollama running there?",
)

error_table = ERRORS.table


def message_of(response: Any) -> str:
    """Return the message of a reply with an error status: its `error`, or else its text."""
    text: str = response.text.strip("\ufeff \t\r\n")
    try:
        body = json.loads(text)
    except ValueError:
        return text[:_SHOWN] or f"HTTP status {response.status_code} without a word"
    return error_text(body.get("error") or body) if isinstance(body, Mapping) else text[:_SHOWN]


def error_from_body(error: Any) -> Exception:
    """Return the error for an error line of a reply, as if the server had sent it with its HTTP status.

    Args:
        error: The value of `error`.

    Returns:
        One of this module's errors; an unknown one counts as the server's failure (500).
    """
    message = error_text(error)
    lowered = message.lower()
    named = [status for status, texts in _STATUS_OF_TEXT if any(text in lowered for text in texts)]
    return ERRORS.from_body({"message": message}, named[0] if named else None)


def error_text(error: Any) -> str:
    """Return the text of an `error` value."""
    if isinstance(error, Mapping):
        inner = error.get("message")
        return inner if isinstance(inner, str) and inner else json.dumps(error, ensure_ascii=False, default=str)
    return str(error)


def error_of_response(response: Any) -> Exception:
    """Return the error for a reply with an error status."""
    message = message_of(response)
    if response.status_code == 404 and not response.text.strip().startswith("{"):  # no server of this protocol said so
        message = f"{message} {hint_for_missing_page(response.request.url)}"
    return ERRORS.status_error(message, response, None)
