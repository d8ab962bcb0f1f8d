"""Errors of the Gemini API or Vertex AI, as classes that are LangChain's as well as google-genai's.

Every class inherits the SDK's own error and the class of `langchain_core.exceptions` that says the same, so code that catches either
keeps working. They subclass the SDK's, so they are made when first needed, under the names that langchain-google-genai uses:
`from langchain_autotools.providers.google.errors import GoogleRateLimitError` (this loads the SDK). `error_types` lists them.
Each says whether the same request may succeed later (`is_retryable`) and how long the server asked to wait (`retry_after`, seconds
or None).
"""

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ...errors import StreamError
from .._base.chat_model import by_name
from .._base.errors import ErrorMapping, hint_for_missing_page, lazy_classes
from .._base.errors import ModelRefusalError as ModelRefusalError
from .._transport.exchange import library
from .._transport.reader import parse_json
from .._transport.secrets import hide_secrets
from .._transport.secrets import is_secret_header as is_secret_header

if TYPE_CHECKING:
    from .error_types import *  # noqa: F403 - the classes, for type checkers

# `status` of an error object -> the HTTP status it has outside a stream (google.rpc.Code).
_STATUS_OF_LABEL = by_name(
    {
        "INVALID_ARGUMENT FAILED_PRECONDITION OUT_OF_RANGE": 400,
        "UNAUTHENTICATED": 401,
        "PERMISSION_DENIED": 403,
        "NOT_FOUND": 404,
        "ABORTED ALREADY_EXISTS": 409,
        "RESOURCE_EXHAUSTED": 429,
        "CANCELLED": 499,
        "UNKNOWN INTERNAL DATA_LOSS": 500,
        "UNIMPLEMENTED": 501,
        "UNAVAILABLE": 503,
        "DEADLINE_EXCEEDED": 504,
    }
)
_OVERFLOW_TEXTS = ("exceeds the maximum number of tokens", "input token count", "context length")
_KEY_REFUSED = "API_KEY_INVALID"
_RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"

__getattr__ = lazy_classes(__name__, "Google")


ERRORS = ErrorMapping(
    library=library,
    error_class=__getattr__,
    prefix="Google",
    by_status={499: "RequestTimeoutError", 504: "DeadlineExceededError"},
    status_of_label=_STATUS_OF_LABEL,
    overflow_texts=_OVERFLOW_TEXTS,
    envelope="error",
)

error_table = ERRORS.table


def status_error(response: Any, body: bytes, secrets: Iterable[str] = ()) -> Exception:
    """Return the error for a reply with an error status.

    Args:
        response: The HTTP library's response.
        body: All of its body.
        secrets: Texts that must not be in it.
    """
    try:
        parsed = parse_json(body)
    except StreamError:
        parsed = None
    if isinstance(parsed, list):  # what a stream that is not of server-sent events fails with
        parsed = next((item for item in parsed if isinstance(item, Mapping)), None)
    inner = parsed.get("error", parsed) if isinstance(parsed, Mapping) else None
    message = inner.get("message") if isinstance(inner, Mapping) else inner
    if not isinstance(message, str) or not message:
        message = body.decode("utf-8", "replace").strip()[:2000] or response.reason_phrase or "no reason given"
    if response.status_code == 404 and inner is None:  # no server of this protocol said so
        message = f"{message} {hint_for_missing_page(response.request.url)}"
    error = _with_details(ERRORS.status_error(message, response, parsed), inner)
    hide_secrets(error, list(secrets))
    return error


def error_from_body(error: Any, status: int | None = None) -> Exception:
    """Return the error for an error object inside a reply, as if the server had sent it with its HTTP status.

    Args:
        error: The value of `error`: `{code, message, status, details}`.
        status: The HTTP status, if the wire named one.

    Returns:
        One of this module's errors; an unknown one counts as the server's failure (500).
    """
    return _with_details(ERRORS.from_body(error, status), error)


def _with_details(error: Exception, inner: Any) -> Exception:
    """Return the error with the data of its details: the time to wait, and whether the key was rejected."""
    details = inner.get("details") if isinstance(inner, Mapping) else None
    known: Any = error
    for detail in details if isinstance(details, list) else ():
        if not isinstance(detail, Mapping):
            continue
        if detail.get("@type") == _RETRY_INFO and known.retry_after is None:
            known.retry_after = _seconds(detail.get("retryDelay"))
        if detail.get("reason") == _KEY_REFUSED:
            refused: Exception = ERRORS.error_class("GoogleAuthenticationError")(known.message, response=known.response, body=known.body)
            return refused
    return error


def _seconds(delay: Any) -> float | None:
    """Parse a protobuf duration such as `"17.5s"`."""
    try:
        return float(json.loads(str(delay).removesuffix("s"))) if delay else None
    except (TypeError, ValueError):
        return None
