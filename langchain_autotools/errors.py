"""The package's few errors, and the one way to translate foreign ones.

```
AutoToolsError
 ├─ ConfigurationError        (ValueError)  an argument that cannot work; says what would
 ├─ UnsupportedFeatureError   (ValueError)  a message or tool that this wire cannot carry
 ├─ StreamError               (ModelError)  the bytes of a reply broke its protocol
 └─ LimitReachedError                       a run hit a limit and `on_limit="raise"`; `.stop_reason` says which
```

What a vendor answers (rate limits, refused keys, ...) is raised as the vendor SDK's own error that is also one of
`langchain_core.exceptions`, made under `providers/`.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from langchain_core.exceptions import ModelError

__all__ = ["AutoToolsError", "ConfigurationError", "LimitReachedError", "StreamError", "UnsupportedFeatureError", "map_errors"]


class AutoToolsError(Exception):
    """Root of every error that this package defines."""


class ConfigurationError(AutoToolsError, ValueError):
    """An argument that cannot work. The text names it and says what would."""


class UnsupportedFeatureError(AutoToolsError, ValueError):
    """A message, content block or tool that the wire in use cannot carry."""


class StreamError(AutoToolsError, ModelError):
    """The bytes of a reply do not follow their protocol: no events, no JSON, or an end in the middle."""

    is_retryable = True


class LimitReachedError(AutoToolsError):
    """A run reached one of its limits and was told to raise.

    Attributes:
        stop_reason: which limit it was, one of `limits.StopReason`.
    """

    def __init__(self, message: str, stop_reason: str) -> None:
        super().__init__(message, stop_reason)
        self.stop_reason = stop_reason

    def __str__(self) -> str:
        return str(self.args[0])


@contextmanager
def map_errors(table: Mapping[type[BaseException], Callable[[BaseException], BaseException]]) -> Iterator[None]:
    """Translate errors raised in the body: the entry of the nearest class in the error's MRO makes the new one.

    The original is kept as `__cause__`. An entry may return the error itself, which is then raised unchanged.
    """
    try:
        yield
    except BaseException as error:
        translate = next((table[cls] for cls in type(error).__mro__ if cls in table), None)
        if translate is None:
            raise
        new = translate(error)
        if new is error:
            raise
        raise new from error
