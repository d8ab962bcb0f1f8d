"""The classes of `errors`: each is the SDK's own error and the one of `langchain_core.exceptions` that says the same.

They subclass the SDK's, so they are made when they are first asked for.

```
OpenAIInvalidRequestError        400      openai.BadRequestError            ModelInvalidRequestError
 -                               422      openai.UnprocessableEntityError   ModelInvalidRequestError   OpenAIUnprocessableEntityError
OpenAIContextOverflowError       400      openai.BadRequestError            ContextOverflowError
OpenAIAuthenticationError        401      openai.AuthenticationError        ModelAuthenticationError
OpenAIPermissionDeniedError      403      openai.PermissionDeniedError      ModelPermissionDeniedError
OpenAIModelNotFoundError         404      openai.NotFoundError              ModelNotFoundError
OpenAIRequestTimeoutError        408      openai.APIStatusError             ModelTimeoutError
OpenAIConflictError              409      openai.ConflictError              ModelAPIError
OpenAIRateLimitError             429      openai.RateLimitError             ModelRateLimitError
OpenAIAPIError                   5xx      openai.InternalServerError        ModelAPIError
OpenAIStatusError                other    openai.APIStatusError             ModelError
OpenAIConnectionError            -        openai.APIConnectionError         ModelConnectionError
OpenAITimeoutError               -        openai.APITimeoutError            ModelTimeoutError
```
"""

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

from .._errors import make_error_class

__all__ = [
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
    "error_class",
    "error_names",
]

_PUBLIC_MODULE = __name__.replace("error_types", "errors")

if TYPE_CHECKING:
    import openai

    class _Said:
        retry_after: float | None
        """The seconds that the server asked to wait; None if it did not."""

    class OpenAIAuthenticationError(openai.AuthenticationError, ModelAuthenticationError, _Said):
        """The key is missing or refused (401)."""

    class OpenAIPermissionDeniedError(openai.PermissionDeniedError, ModelPermissionDeniedError, _Said):
        """The key may not do this (403)."""

    class OpenAIInvalidRequestError(openai.BadRequestError, ModelInvalidRequestError, _Said):
        """The server rejects the request (400)."""

    class OpenAIUnprocessableEntityError(openai.UnprocessableEntityError, ModelInvalidRequestError, _Said):
        """The server understands the request and rejects it (422)."""

    class OpenAIContextOverflowError(openai.BadRequestError, ContextOverflowError, _Said):
        """The messages are longer than the model's context."""

    class OpenAIModelNotFoundError(openai.NotFoundError, ModelNotFoundError, _Said):
        """There is no such model or path (404)."""

    class OpenAIRequestTimeoutError(openai.APIStatusError, ModelTimeoutError, _Said):
        """The server waited too long for the request (408)."""

    class OpenAIConflictError(openai.ConflictError, ModelAPIError, _Said):
        """The request conflicts with another (409)."""

    class OpenAIRateLimitError(openai.RateLimitError, ModelRateLimitError, _Said):
        """Too many requests or tokens, or no credit left (429)."""

    class OpenAIAPIError(openai.InternalServerError, ModelAPIError, _Said):
        """The server failed (5xx)."""

    class OpenAIStatusError(openai.APIStatusError, ModelError, _Said):
        """Any other status that says no."""

    class OpenAIConnectionError(openai.APIConnectionError, ModelConnectionError, _Said):
        """The server cannot be reached, or the connection broke."""

    class OpenAITimeoutError(openai.APITimeoutError, ModelTimeoutError, _Said):
        """The server did not answer in time."""


_PARENTS: dict[str, tuple[str, type[ModelError], str]] = {
    "OpenAIAuthenticationError": ("AuthenticationError", ModelAuthenticationError, "The key is missing or refused (401)."),
    "OpenAIPermissionDeniedError": ("PermissionDeniedError", ModelPermissionDeniedError, "The key may not do this (403)."),
    "OpenAIInvalidRequestError": ("BadRequestError", ModelInvalidRequestError, "The server rejects the request (400)."),
    "OpenAIUnprocessableEntityError": (
        "UnprocessableEntityError",
        ModelInvalidRequestError,
        "The server understands the request and rejects it (422).",
    ),
    "OpenAIContextOverflowError": ("BadRequestError", ContextOverflowError, "The messages are longer than the model's context."),
    "OpenAIModelNotFoundError": ("NotFoundError", ModelNotFoundError, "There is no such model or path (404)."),
    "OpenAIRequestTimeoutError": ("APIStatusError", ModelTimeoutError, "The server waited too long for the request (408)."),
    "OpenAIConflictError": ("ConflictError", ModelAPIError, "The request conflicts with another (409)."),
    "OpenAIRateLimitError": ("RateLimitError", ModelRateLimitError, "Too many requests or tokens, or no credit left (429)."),
    "OpenAIAPIError": ("InternalServerError", ModelAPIError, "The server failed (5xx)."),
    "OpenAIStatusError": ("APIStatusError", ModelError, "Any other status that says no."),
    "OpenAIConnectionError": ("APIConnectionError", ModelConnectionError, "The server cannot be reached, or the connection broke."),
    "OpenAITimeoutError": ("APITimeoutError", ModelTimeoutError, "The server did not answer in time."),
}


def __getattr__(name: str) -> Any:
    if name in _PARENTS:
        return error_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def error_names() -> frozenset[str]:
    """The names of all classes."""
    return frozenset(_PARENTS)


@cache
def error_class(name: str) -> type[Any]:
    """The class of this name; imports the SDK."""
    import openai

    return make_error_class(openai, name, _PARENTS[name], _PUBLIC_MODULE)
