"""What Anthropic and servers like it answer instead of a reply, as errors that are both the SDK's and LangChain's.

Every class inherits the SDK's own error and the class of `langchain_core.exceptions` that says the same, so code that catches either
keeps working. They subclass the SDK's, so they are made when first needed, under the names that langchain-anthropic uses:
`from langchain_autotools.providers.anthropic.errors import AnthropicRateLimitError` (this loads the SDK). `error_types` lists them.
Each says whether the same request may succeed later (`is_retryable`) and how long the server asked to wait (`retry_after`, seconds
or None).
"""

from typing import TYPE_CHECKING, Any

from .._base.errors import Family
from .._base.lazy import lazy
from .._base.refusal import ModelRefusalError
from .._transport.clients import http_library
from .._transport.secrets import is_secret_header

if TYPE_CHECKING:
    from .error_types import *  # noqa: F403 - the classes, for type checkers

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

__getattr__ = lazy(__name__, {name: f"{__package__}.error_types" for name in __all__ if name.startswith("Anthropic")})


def _sdk() -> Any:
    import anthropic

    return anthropic


_FAMILY = Family(
    library=lambda: http_library(_sdk()),
    sdk=_sdk,
    error_class=__getattr__,
    prefix="Anthropic",
    by_status=_BY_STATUS,
    status_of_label=_STATUS_OF_TYPE,
    overflow_labels=frozenset({"exceed_context_size_error"}),  # llama.cpp's
    overflow_texts=_OVERFLOW_TEXTS,
    envelope="error",
)

error_table = _FAMILY.table
error_from_body = _FAMILY.from_body
