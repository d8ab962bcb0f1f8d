"""Error classes for `errors`, each derived from the SDK's error as well as its counterpart in `langchain_core.exceptions`.

They subclass the SDK's, so this module loads it: `errors` imports it when a class is first asked for.
"""

import openai
from langchain_core import exceptions

from .._base.errors import ProviderError


class OpenAIAuthenticationError(openai.AuthenticationError, exceptions.ModelAuthenticationError, ProviderError):
    """The key is missing or invalid (401)."""


class OpenAIKeyRefusedError(openai.BadRequestError, exceptions.ModelAuthenticationError, ProviderError):
    """The key is invalid, and the server says so with the status of a wrong request (400)."""


class OpenAIPermissionDeniedError(openai.PermissionDeniedError, exceptions.ModelPermissionDeniedError, ProviderError):
    """The key lacks the permission (403)."""


class OpenAIInvalidRequestError(openai.BadRequestError, exceptions.ModelInvalidRequestError, ProviderError):
    """The server rejects the request (400)."""


class OpenAIUnprocessableEntityError(openai.UnprocessableEntityError, exceptions.ModelInvalidRequestError, ProviderError):
    """The server understands the request and rejects it (422)."""


class OpenAIContextOverflowError(openai.BadRequestError, exceptions.ContextOverflowError, ProviderError):
    """The messages are longer than the model's context."""


class OpenAIModelNotFoundError(openai.NotFoundError, exceptions.ModelNotFoundError, ProviderError):
    """There is no such model or path (404)."""


class OpenAIRequestTimeoutError(openai.APIStatusError, exceptions.ModelTimeoutError, ProviderError):
    """The server waited too long for the request (408)."""


class OpenAIConflictError(openai.ConflictError, exceptions.ModelAPIError, ProviderError):
    """The request conflicts with another (409)."""


class OpenAIRateLimitError(openai.RateLimitError, exceptions.ModelRateLimitError, ProviderError):
    """Too many requests or tokens, or no credit left (429)."""


class OpenAIAPIError(openai.InternalServerError, exceptions.ModelAPIError, ProviderError):
    """The server failed (5xx)."""


class OpenAIStatusError(openai.APIStatusError, ProviderError):
    """The server returned another error status."""


class OpenAIConnectionError(openai.APIConnectionError, exceptions.ModelConnectionError, ProviderError):
    """The server cannot be reached, or the connection broke."""


class OpenAITimeoutError(openai.APITimeoutError, exceptions.ModelTimeoutError, ProviderError):
    """The server did not answer in time."""
