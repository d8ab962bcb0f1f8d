"""Error classes for `errors`, each derived from the SDK's error as well as its counterpart in `langchain_core.exceptions`.

They subclass the SDK's, so this module loads it: `errors` imports it when a class is first asked for.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import anthropic
from langchain_core import exceptions

from .._base.errors import ProviderError

if TYPE_CHECKING:
    _Overloaded = anthropic.InternalServerError
else:
    _Overloaded = getattr(anthropic, "OverloadedError", anthropic.InternalServerError)  # newer releases of the SDK have the very class


class _Answered(ProviderError):
    if not TYPE_CHECKING and "type" not in anthropic.APIStatusError.__annotations__:

        @property
        def type(self) -> str | None:
            """The vendor's word for the error, as in newer releases of the SDK."""
            inner = self.body.get("error") if isinstance(self.body, Mapping) else None
            return inner.get("type") if isinstance(inner, Mapping) else None


class AnthropicInvalidRequestError(anthropic.BadRequestError, exceptions.ModelInvalidRequestError, _Answered):
    """The server rejects the request (400, 413, 422)."""


class AnthropicContextOverflowError(anthropic.BadRequestError, exceptions.ContextOverflowError, _Answered):
    """The messages are longer than the model's context."""


class AnthropicAuthenticationError(anthropic.AuthenticationError, exceptions.ModelAuthenticationError, _Answered):
    """The key is missing or invalid (401)."""


class AnthropicPermissionDeniedError(anthropic.PermissionDeniedError, exceptions.ModelPermissionDeniedError, _Answered):
    """The key lacks the permission (403)."""


class AnthropicModelNotFoundError(anthropic.NotFoundError, exceptions.ModelNotFoundError, _Answered):
    """There is no such model or path (404)."""


class AnthropicRequestTimeoutError(anthropic.APIStatusError, exceptions.ModelTimeoutError, _Answered):
    """The server waited too long for the request (408)."""


class AnthropicConflictError(anthropic.ConflictError, exceptions.ModelAPIError, _Answered):
    """The request conflicts with another (409)."""


class AnthropicRateLimitError(anthropic.RateLimitError, exceptions.ModelRateLimitError, _Answered):
    """Too many requests or tokens (429)."""


class AnthropicQuotaError(anthropic.BadRequestError, exceptions.ModelRateLimitError, _Answered):
    """The credit is spent, or the account's own limit is reached (400)."""


class AnthropicOverloadedError(_Overloaded, exceptions.ModelAPIError, _Answered):
    """The vendor is overloaded (529)."""


class AnthropicAPIError(anthropic.InternalServerError, exceptions.ModelAPIError, _Answered):
    """The server failed (5xx)."""


class AnthropicStatusError(anthropic.APIStatusError, _Answered):
    """The server returned another error status."""


class AnthropicConnectionError(anthropic.APIConnectionError, exceptions.ModelConnectionError, ProviderError):
    """The server cannot be reached, or the connection broke."""


class AnthropicTimeoutError(anthropic.APITimeoutError, exceptions.ModelTimeoutError, ProviderError):
    """The server did not answer in time."""
