"""The classes of `errors`: each is the SDK's own error and the one of `langchain_core.exceptions` that says the same.

They subclass the SDK's, so they are made when they are first asked for.

```
AnthropicInvalidRequestError        400, 413, 422   anthropic.BadRequestError            ModelInvalidRequestError
AnthropicContextOverflowError       400             anthropic.BadRequestError            ContextOverflowError
AnthropicAuthenticationError        401             anthropic.AuthenticationError        ModelAuthenticationError
AnthropicPermissionDeniedError      403             anthropic.PermissionDeniedError      ModelPermissionDeniedError
AnthropicModelNotFoundError         404             anthropic.NotFoundError              ModelNotFoundError
AnthropicRequestTimeoutError        408             anthropic.APIStatusError             ModelTimeoutError
AnthropicConflictError              409             anthropic.ConflictError              ModelAPIError
AnthropicRateLimitError             429             anthropic.RateLimitError             ModelRateLimitError
AnthropicOverloadedError            529             anthropic.InternalServerError        ModelAPIError
AnthropicAPIError                   5xx             anthropic.InternalServerError        ModelAPIError
AnthropicStatusError                other           anthropic.APIStatusError             ModelError
AnthropicConnectionError            -               anthropic.APIConnectionError         ModelConnectionError
AnthropicTimeoutError               -               anthropic.APITimeoutError            ModelTimeoutError
```
"""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, cast

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
    "error_class",
    "error_names",
]

_PUBLIC_MODULE = __name__.replace("error_types", "errors")

_PARENTS: dict[str, tuple[str, type[ModelError], str]] = {
    "AnthropicInvalidRequestError": ("BadRequestError", ModelInvalidRequestError, "The server rejects the request (400, 413, 422)."),
    "AnthropicContextOverflowError": ("BadRequestError", ContextOverflowError, "The messages are longer than the model's context."),
    "AnthropicAuthenticationError": ("AuthenticationError", ModelAuthenticationError, "The key is missing or refused (401)."),
    "AnthropicPermissionDeniedError": ("PermissionDeniedError", ModelPermissionDeniedError, "The key may not do this (403)."),
    "AnthropicModelNotFoundError": ("NotFoundError", ModelNotFoundError, "There is no such model or path (404)."),
    "AnthropicRequestTimeoutError": ("APIStatusError", ModelTimeoutError, "The server waited too long for the request (408)."),
    "AnthropicConflictError": ("ConflictError", ModelAPIError, "The request conflicts with another (409)."),
    "AnthropicRateLimitError": ("RateLimitError", ModelRateLimitError, "Too many requests or tokens (429)."),
    "AnthropicOverloadedError": ("InternalServerError", ModelAPIError, "The vendor has too much to do (529)."),
    "AnthropicAPIError": ("InternalServerError", ModelAPIError, "The server failed (5xx)."),
    "AnthropicStatusError": ("APIStatusError", ModelError, "Any other status that says no."),
    "AnthropicConnectionError": ("APIConnectionError", ModelConnectionError, "The server cannot be reached, or the connection broke."),
    "AnthropicTimeoutError": ("APITimeoutError", ModelTimeoutError, "The server did not answer in time."),
}

if TYPE_CHECKING:
    import anthropic

    class _Said:
        retry_after: float | None
        """The seconds that the server asked to wait; None if it did not."""

    class AnthropicInvalidRequestError(anthropic.BadRequestError, ModelInvalidRequestError, _Said):
        """The server rejects the request (400, 413, 422)."""

    class AnthropicContextOverflowError(anthropic.BadRequestError, ContextOverflowError, _Said):
        """The messages are longer than the model's context."""

    class AnthropicAuthenticationError(anthropic.AuthenticationError, ModelAuthenticationError, _Said):
        """The key is missing or refused (401)."""

    class AnthropicPermissionDeniedError(anthropic.PermissionDeniedError, ModelPermissionDeniedError, _Said):
        """The key may not do this (403)."""

    class AnthropicModelNotFoundError(anthropic.NotFoundError, ModelNotFoundError, _Said):
        """There is no such model or path (404)."""

    class AnthropicRequestTimeoutError(anthropic.APIStatusError, ModelTimeoutError, _Said):
        """The server waited too long for the request (408)."""

    class AnthropicConflictError(anthropic.ConflictError, ModelAPIError, _Said):
        """The request conflicts with another (409)."""

    class AnthropicRateLimitError(anthropic.RateLimitError, ModelRateLimitError, _Said):
        """Too many requests or tokens (429)."""

    class AnthropicOverloadedError(anthropic.InternalServerError, ModelAPIError, _Said):
        """The vendor has too much to do (529)."""

    class AnthropicAPIError(anthropic.InternalServerError, ModelAPIError, _Said):
        """The server failed (5xx)."""

    class AnthropicStatusError(anthropic.APIStatusError, ModelError, _Said):
        """Any other status that says no."""

    class AnthropicConnectionError(anthropic.APIConnectionError, ModelConnectionError, _Said):
        """The server cannot be reached, or the connection broke."""

    class AnthropicTimeoutError(anthropic.APITimeoutError, ModelTimeoutError, _Said):
        """The server did not answer in time."""


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
    import anthropic

    parents = _PARENTS[name]
    if name == "AnthropicOverloadedError" and hasattr(anthropic, "OverloadedError"):  # newer releases of the SDK have the very class
        parents = ("OverloadedError", *parents[1:])
    made = make_error_class(anthropic, name, parents, _PUBLIC_MODULE)
    if issubclass(made, anthropic.APIStatusError) and "type" not in anthropic.APIStatusError.__annotations__:
        cast(Any, made).type = property(_type)
    return made


def _type(error: Any) -> str | None:
    """The vendor's word for the error, as newer releases of the SDK give it under `type`."""
    inner = error.body.get("error") if isinstance(error.body, Mapping) else None
    return inner.get("type") if isinstance(inner, Mapping) else None
