"""Errors of Anthropic or compatible servers, as classes that are LangChain's as well as the SDK's.

Every class inherits the SDK's own error and the class of `langchain_core.exceptions` that says the same, so code that catches either
keeps working. They subclass the SDK's, so they are made when first needed, under the names that langchain-anthropic uses:
`from langchain_autotools.providers.anthropic.errors import AnthropicRateLimitError` (this loads the SDK). `error_types` lists them.
Each says whether the same request may succeed later (`is_retryable`) and how long the server asked to wait (`retry_after`, seconds
or None).
"""

from typing import TYPE_CHECKING, Any

from .._base.errors import ErrorMapping, lazy_classes
from .._base.errors import ModelRefusalError as ModelRefusalError
from .._transport.clients import http_library
from .._transport.secrets import is_secret_header as is_secret_header

if TYPE_CHECKING:
    from .error_types import *  # noqa: F403 - the classes, for type checkers

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
_QUOTA_TEXTS = ("credit balance is too low", "reached your specified API usage limits")  # of a 400 that calls itself an invalid request

__getattr__ = lazy_classes(__name__, "Anthropic")


def sdk() -> Any:
    """The SDK's module."""
    import anthropic

    return anthropic


ERRORS = ErrorMapping(
    library=lambda: http_library(sdk()),
    sdk=sdk,
    error_class=__getattr__,
    prefix="Anthropic",
    by_status={529: "OverloadedError"},
    status_of_label=_STATUS_OF_TYPE,
    overflow_labels=frozenset({"exceed_context_size_error"}),  # llama.cpp's
    overflow_texts=_OVERFLOW_TEXTS,
    account_texts=dict.fromkeys(_QUOTA_TEXTS, "QuotaError"),
    envelope="error",
)

error_table = ERRORS.table
error_from_body = ERRORS.from_body
