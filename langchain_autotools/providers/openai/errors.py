"""Errors of OpenAI and compatible servers, as classes that are both the SDK's and LangChain's.

Every class inherits the SDK's own error and the class of `langchain_core.exceptions` that says the same, so code that
catches either keeps working. They subclass the SDK's, so they are made when first needed, under the names that
langchain-openai uses: `from langchain_autotools.providers.openai.errors import OpenAIRateLimitError` (this loads the SDK).
`error_types` lists them. Each says whether the same request may succeed later (`is_retryable`) and how long the server asked to
wait (`retry_after`, seconds or None).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .._base.errors import ErrorMapping, labels_of, lazy_classes
from .._base.profiles import by_name
from .._base.refusal import ModelRefusalError as ModelRefusalError
from .._transport.clients import http_library
from .._transport.secrets import is_secret_header as is_secret_header

if TYPE_CHECKING:
    from .error_types import *  # noqa: F403 - the classes, for type checkers

# `code` or `type` of an error object -> the status it would have had outside a stream.
_STATUS_OF_CODE = by_name(
    {
        "invalid_request_error BadRequestError content_policy_violation image_content_policy_violation invalid_prompt": 400,
        "invalid_api_key authentication_error": 401,
        "permission_error": 403,
        "model_not_found not_found_error": 404,
        "timeout": 408,
        "rate_limit_exceeded rate_limit_error requests tokens insufficient_quota": 429,
        "server_error api_error": 500,
        "overloaded_error": 503,
    }
)

__getattr__ = lazy_classes(__name__, "OpenAI")


def sdk() -> Any:
    """The SDK's module."""
    import openai

    return openai


ERRORS = ErrorMapping(
    library=lambda: http_library(sdk()),
    sdk=sdk,
    error_class=__getattr__,
    prefix="OpenAI",
    by_status={413: "StatusError", 422: "UnprocessableEntityError"},
    status_of_label=_STATUS_OF_CODE,
    overflow_labels=frozenset({"context_length_exceeded", "exceed_context_size_error"}),  # OpenAI's code, and llama.cpp's type
    overflow_texts=(  # how OpenAI, vLLM, LiteLLM and Anthropic-shaped gateways say it where they set no code
        "context_length_exceeded",
        "maximum context length",
        "exceeds the context window",
        "exceeds the available context size",
        "Input tokens exceed the configured limit",
        "prompt is too long",
        "ContextWindowExceededError",
    ),
    account_texts={"Incorrect API key provided": "KeyRefusedError"},  # xAI's, with a 400
    never_retried=frozenset({"insufficient_quota"}),  # a 429 that lasts until somebody pays
    always_retried=frozenset({"tool_use_failed"}),  # the model wrote an unreadable call: its next try may be readable (wire quirk T-07)
)

error_table = ERRORS.table
error_from_body = ERRORS.from_body


def is_known_error(body: Mapping[str, Any]) -> bool:
    """Whether an error object states its kind."""
    return any(label in _STATUS_OF_CODE for label in labels_of(body))
