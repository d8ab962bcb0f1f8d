"""What OpenAI and servers like it answer instead of a reply, as errors that are both the SDK's and LangChain's.

Every class inherits the SDK's own error and the class of `langchain_core.exceptions` that says the same, so code that
catches either keeps working. They subclass the SDK's, so they are made when first needed, under the names that
langchain-openai uses: `from langchain_autotools.providers.openai.errors import OpenAIRateLimitError` (this loads the SDK).
`error_types` lists them. Each says whether the same request may succeed later (`is_retryable`) and how long the server asked to
wait (`retry_after`, seconds or None).
"""

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from langchain_core.exceptions import ModelError

from ...retry import is_transient, retry_after, should_retry
from .._refusal import ModelRefusalError
from .error_types import error_class, error_names

if TYPE_CHECKING:
    from .error_types import (
        OpenAIAPIError,
        OpenAIAuthenticationError,
        OpenAIConflictError,
        OpenAIConnectionError,
        OpenAIContextOverflowError,
        OpenAIInvalidRequestError,
        OpenAIModelNotFoundError,
        OpenAIPermissionDeniedError,
        OpenAIRateLimitError,
        OpenAIRequestTimeoutError,
        OpenAIStatusError,
        OpenAITimeoutError,
        OpenAIUnprocessableEntityError,
    )

__all__ = [
    "ModelRefusalError",
    "OpenAIAPIError",
    "OpenAIAuthenticationError",
    "OpenAIConflictError",
    "OpenAIConnectionError",
    "OpenAIContextOverflowError",
    "OpenAIInvalidRequestError",
    "OpenAIModelNotFoundError",
    "OpenAIPermissionDeniedError",
    "OpenAIRateLimitError",
    "OpenAIRequestTimeoutError",
    "OpenAIStatusError",
    "OpenAITimeoutError",
    "OpenAIUnprocessableEntityError",
    "error_from_body",
    "error_table",
    "http_library",
    "is_known_error",
    "is_secret_header",
]

_BY_STATUS = {
    400: "OpenAIInvalidRequestError",
    401: "OpenAIAuthenticationError",
    403: "OpenAIPermissionDeniedError",
    404: "OpenAIModelNotFoundError",
    408: "OpenAIRequestTimeoutError",
    409: "OpenAIConflictError",
    422: "OpenAIUnprocessableEntityError",
    429: "OpenAIRateLimitError",
}

# `code` or `type` of an error object -> the status it would have had outside a stream.
_STATUS_OF_CODE = {
    "invalid_request_error": 400,
    "BadRequestError": 400,
    "content_policy_violation": 400,
    "image_content_policy_violation": 400,
    "invalid_prompt": 400,
    "invalid_api_key": 401,
    "authentication_error": 401,
    "permission_error": 403,
    "model_not_found": 404,
    "not_found_error": 404,
    "timeout": 408,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "requests": 429,
    "tokens": 429,
    "insufficient_quota": 429,
    "server_error": 500,
    "api_error": 500,
    "overloaded_error": 503,
}

# OpenAI's code, and the type that llama.cpp uses.
_OVERFLOW_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
# How OpenAI, vLLM, LiteLLM and Anthropic-shaped gateways say it where they set no code.
_OVERFLOW_TEXTS = (
    "context_length_exceeded",
    "maximum context length",
    "exceeds the context window",
    "exceeds the available context size",
    "Input tokens exceed the configured limit",
    "prompt is too long",
    "ContextWindowExceededError",
)
_NEVER_RETRIED = frozenset({"insufficient_quota"})  # a 429 that lasts until somebody pays
_ALWAYS_RETRIED = frozenset({"tool_use_failed"})  # the model wrote an unreadable call: its next try may be readable (quirks T-07)

_HIDDEN = "***"
_SECRET_HEADER = re.compile(r"authorization|cookie|key|token|secret|password", re.IGNORECASE)
_SHORTEST_SECRET = 8  # "x" and "EMPTY" are no secrets, and hiding them would garble every text


def __getattr__(name: str) -> Any:
    if name in error_names():
        return error_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def http_library() -> Any:
    """The HTTP library under the installed SDK, `httpx` or `httpx2`: the one that its public client class is made of."""
    import openai

    return sys.modules[openai.DefaultHttpxClient.__bases__[0].__module__.partition(".")[0]]


# ---------------------------------------------------------------------------------------------- what the SDK raises


def error_table(secrets: Iterable[str] = ()) -> dict[type[BaseException], Callable[[BaseException], BaseException]]:
    """How `errors.map_errors` translates what the SDK, and the HTTP library while a body is read, raise.

    Args:
        secrets: Texts that must not stand in any error.
    """
    import openai

    hidden = list(secrets)
    table: dict[type[BaseException], Callable[[BaseException], BaseException]] = {
        openai.APIError: lambda error: _typed(error, hidden),
        TimeoutError: _timed_out,
    }
    for name in ("httpx", "httpx2"):
        library = sys.modules.get(name)
        if library is not None:
            table[library.TimeoutException] = _timed_out
            table[library.TransportError] = _disconnected
            table[library.DecodingError] = _disconnected
    return table


def _typed(error: Any, secrets: list[str]) -> Exception:
    """The error as one of ours; one that already is, or that says nothing of the transport, stays itself."""
    import openai

    _hide(error, [*secrets, *_sent_secrets(error)])
    same: Exception = error
    if isinstance(error, ModelError):
        return same
    if isinstance(error, openai.APITimeoutError):
        return _timed_out(error)
    if isinstance(error, openai.APIConnectionError):
        return _disconnected(error.__cause__ or error, error.request)
    if isinstance(error, openai.APIStatusError):
        return _status_error(_worded(error), error.response, error.body)
    return same


def _worded(error: Any) -> str:
    """The error's message; of servers that say theirs under `detail`, or as a bare text under `error`, with that."""
    message = str(error.message)
    detail = error.body.get("detail") if isinstance(error.body, Mapping) else error.body
    return f"{message}: {detail}" if isinstance(detail, str) and detail not in message else message


def _timed_out(error: Any) -> Exception:
    new: Any = error_class("OpenAITimeoutError")(request=_request_of(error))
    new.message = f"{new.message} ({_reason(error.__cause__ or error)})"
    new.args = (new.message,)
    timed_out: Exception = new
    return timed_out


def _disconnected(error: Any, request: Any = None) -> Exception:
    request = request or _request_of(error)
    place = f"{request.url.scheme}://{request.url.netloc.decode('ascii', 'replace').rpartition('@')[2]}"
    new: Exception = error_class("OpenAIConnectionError")(message=f"No reply from {place} ({_reason(error)})", request=request)
    return new


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _request_of(error: Any) -> Any:
    try:
        return error.request
    except (AttributeError, RuntimeError):  # an HTTP library's error that was made without its request
        return http_library().Request("POST", "http://unknown")


def _status_error(message: str, response: Any, body: Any) -> Exception:
    status = response.status_code
    labels = _labels(body)
    name = _BY_STATUS.get(status) or ("OpenAIAPIError" if status >= 500 else "OpenAIStatusError")
    if status in (400, 413, 422, 500) and _is_overflow(labels, message):
        name = "OpenAIContextOverflowError"
    new: Exception = error_class(name)(message, response=response, body=body)
    new.retry_after = retry_after(response.headers)  # type: ignore[attr-defined]
    new.is_retryable = name != "OpenAIContextOverflowError" and _may_succeed(status, labels, response.headers)  # type: ignore[attr-defined]
    return new


def _may_succeed(status: int, labels: frozenset[str], headers: Mapping[str, str]) -> bool:
    """Whether the same request may succeed later: the server's word, then what is known of the code, then the status."""
    said = should_retry(headers)
    if said is not None:
        return said
    if labels & _NEVER_RETRIED:
        return False
    return bool(labels & _ALWAYS_RETRIED) or is_transient(status)


def _labels(body: Any) -> frozenset[str]:
    """The `code` and `type` of an error object."""
    if not isinstance(body, Mapping):
        return frozenset()
    return frozenset(value for value in (body.get("code"), body.get("type")) if isinstance(value, str))


def _is_overflow(labels: frozenset[str], message: str) -> bool:
    return bool(labels & _OVERFLOW_CODES) or any(text in message for text in _OVERFLOW_TEXTS)


# ---------------------------------------------------------------------------------------------- errors inside a reply


def error_from_body(error: Any, status: int | None = None) -> Exception:
    """The error that an error object inside a reply means, as if the server had sent it with its HTTP status.

    Sources: OpenAI's error object `{message, type, param, code}`; OpenRouter sends `code` as an HTTP status; others a bare text.

    Args:
        error: What stood under `error`.
        status: The HTTP status that the wire named, if it did.

    Returns:
        One of this module's errors; an unknown one counts as the server's failure (500).
    """
    body = error if isinstance(error, Mapping) else {"message": error}
    message = body.get("message")
    if not isinstance(message, str) or not message:
        message = json.dumps(error, ensure_ascii=False, default=str)
    library = http_library()
    request = library.Request("POST", "http://unknown")
    response = library.Response(status or _status_of(body, message), request=request)
    return _status_error(message, response, dict(body))


def is_known_error(body: Mapping[str, Any]) -> bool:
    """Whether an error object says what kind of error it is."""
    return any(value in _STATUS_OF_CODE for value in (body.get("code"), body.get("type")) if isinstance(value, str))


def _status_of(body: Mapping[str, Any], message: str) -> int:
    for value in (body.get("code"), body.get("status"), body.get("type")):
        number = int(value) if isinstance(value, int | str) and str(value).isdecimal() else 0
        if 400 <= number <= 599:
            return number
        if isinstance(value, str) and value in _STATUS_OF_CODE:
            return _STATUS_OF_CODE[value]
    return 400 if _is_overflow(_labels(body), message) else 500


# ---------------------------------------------------------------------------------------------- secrets


def is_secret_header(name: str) -> bool:
    """Whether a header of this name is likely to hold a secret."""
    return _SECRET_HEADER.search(name) is not None


def _sent_secrets(error: Any) -> list[str]:
    """The secrets that the failed request itself carried: a key that a function gave, headers of one call."""
    headers = getattr(getattr(error, "request", None), "headers", None) or {}
    values = [value for name, value in headers.items() if is_secret_header(name)]
    return [*values, *(value.removeprefix("Bearer ") for value in values)]


def _hide(error: Any, secrets: list[str]) -> None:
    """Replace the secrets in an error's texts, in place: it stays the cause of the new one and is shown with it."""
    long_enough = [secret for secret in secrets if len(secret) >= _SHORTEST_SECRET]
    if not long_enough:
        return
    error.args = tuple(_hidden(value, long_enough) for value in error.args)
    for name in ("message", "body"):
        if hasattr(error, name):
            setattr(error, name, _hidden(getattr(error, name), long_enough))


def _hidden(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, _HIDDEN)
        return value
    if isinstance(value, Mapping):
        return {key: _hidden(item, secrets) for key, item in value.items()}
    return [_hidden(item, secrets) for item in value] if isinstance(value, list) else value
