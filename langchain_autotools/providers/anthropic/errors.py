"""What Anthropic and servers like it answer instead of a reply, as errors that are both the SDK's and LangChain's.

Every class inherits the SDK's own error and the class of `langchain_core.exceptions` that says the same, so code that catches either
keeps working. They subclass the SDK's, so they are made when first needed, under the names that langchain-anthropic uses:
`from langchain_autotools.providers.anthropic.errors import AnthropicRateLimitError` (this loads the SDK). `error_types` lists them.
Each says whether the same request may succeed later (`is_retryable`) and how long the server asked to wait (`retry_after`, seconds
or None).
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .._clients import http_library
from .._errors import Family, is_secret_header
from .._refusal import ModelRefusalError
from .error_types import error_class, error_names

if TYPE_CHECKING:
    from .error_types import (
        AnthropicAPIError,
        AnthropicAuthenticationError,
        AnthropicConflictError,
        AnthropicConnectionError,
        AnthropicContextOverflowError,
        AnthropicInvalidRequestError,
        AnthropicModelNotFoundError,
        AnthropicOverloadedError,
        AnthropicPermissionDeniedError,
        AnthropicRateLimitError,
        AnthropicRequestTimeoutError,
        AnthropicStatusError,
        AnthropicTimeoutError,
    )

__all__ = [
    "AnthropicAPIError",
    "AnthropicAuthenticationError",
    "AnthropicConflictError",
    "AnthropicConnectionError",
    "AnthropicContextOverflowError",
    "AnthropicInvalidRequestError",
    "AnthropicModelNotFoundError",
    "AnthropicOverloadedError",
    "AnthropicPermissionDeniedError",
    "AnthropicRateLimitError",
    "AnthropicRequestTimeoutError",
    "AnthropicStatusError",
    "AnthropicTimeoutError",
    "ModelRefusalError",
    "error_from_body",
    "error_table",
    "is_secret_header",
]

_BY_STATUS = {
    400: "AnthropicInvalidRequestError",
    401: "AnthropicAuthenticationError",
    403: "AnthropicPermissionDeniedError",
    404: "AnthropicModelNotFoundError",
    408: "AnthropicRequestTimeoutError",
    409: "AnthropicConflictError",
    413: "AnthropicInvalidRequestError",
    422: "AnthropicInvalidRequestError",
    429: "AnthropicRateLimitError",
    529: "AnthropicOverloadedError",
}

# `type` of an error object -> the status it has outside a stream (docs.claude.com, "Errors").
_STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_OVERFLOW_TEXTS = ("prompt is too long", "exceed context limit", "exceeds the available context size", "maximum context length")


def __getattr__(name: str) -> Any:
    if name in error_names():
        return error_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _sdk() -> Any:
    import anthropic

    return anthropic


_FAMILY = Family(
    library=lambda: http_library(_sdk()),
    sdk=_sdk,
    error_class=error_class,
    prefix="Anthropic",
    by_status=_BY_STATUS,
    status_of_label=_STATUS_OF_TYPE,
    overflow_labels=frozenset({"exceed_context_size_error"}),  # llama.cpp's
    overflow_texts=_OVERFLOW_TEXTS,
    envelope="error",
)


def error_table(secrets: Iterable[str] = ()) -> dict[type[BaseException], Callable[[BaseException], BaseException]]:
    """How `errors.map_errors` translates what the SDK, and the HTTP library while a body is read, raise.

    Args:
        secrets: Texts that must not stand in any error.
    """
    return _FAMILY.table(secrets)


def error_from_body(error: Any, status: int | None = None) -> Exception:
    """The error that an error object inside a reply means, as if the server had sent it with its HTTP status.

    Args:
        error: What stood under `error`: `{type, message}`.
        status: The HTTP status, if the wire named one.

    Returns:
        One of this module's errors; an unknown one counts as the server's failure (500).
    """
    return _FAMILY.from_body(error, status)
