"""Descriptions of errors for people who may not see servers' texts."""

from collections.abc import Mapping
from typing import Final

_MEANINGS: Final[Mapping[str, str]] = {
    "InvalidRequestError": "the model's server refused the request",
    "UnprocessableEntityError": "the model's server refused the request",
    "ContextOverflowError": "the conversation is too long for the model",
    "AuthenticationError": "the model's server did not accept the key",
    "PermissionDeniedError": "the key may not use this model",
    "ModelNotFoundError": "the model's server does not know the model",
    "RateLimitError": "the model's server has too much to do, or the account has reached its limit",
    "OverloadedError": "the model's server has too much to do",
    "ConnectionError": "the model's server cannot be reached",
    "TimeoutError": "the model's server did not answer in time",
    "DeadlineExceededError": "the model's server did not answer in time",
    "APIError": "the model's server had an error",
    "StatusError": "the model's server had an error",
}
"""Descriptions of the vendors' errors, by the end of their names."""
_OWN: Final[Mapping[str, str]] = {
    "StreamError": "the model's answer cannot be read",
    "LimitReachedError": "a limit of the run was reached",
    "ConfigurationError": "it cannot work as it is set up",
}


def failure_text(error: BaseException) -> str:
    """Describe an error by its class alone, without its text, which may contain data not for the reader."""
    name = type(error).__name__
    if name == "RunFailedError":  # it was seen in a run that is kept: its text begins with the class
        name = str(error).partition(":")[0]
    if not name.isidentifier():
        return "it was ended from outside"
    meaning = _OWN.get(name) or next((text for end, text in _MEANINGS.items() if name.endswith(end) and name != end), None)
    return f"{meaning} ({name})" if meaning else name
