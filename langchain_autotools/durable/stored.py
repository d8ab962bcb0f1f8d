"""Reading of what is stored of a run: a row that is not of its form is an error of the run, whatever stands in it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, wraps
from typing import Any, TypeVar

from ..errors import AutoToolsError
from .errors import RunFailedError

_T = TypeVar("_T")

_NOT_OF_ITS_FORM = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


@contextmanager
def reading(what: str, is_new: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Translate what the body raises over stored data that is not of its form.

    Args:
        what: What is read.
        is_new: Whether the body has made the data, and not read it.

    Raises:
        RunFailedError: It is not.
    """
    try:
        yield
    except AutoToolsError:
        raise
    except Exception as error:
        if is_new() or not (isinstance(error, _NOT_OF_ITS_FORM) or type(error) is Exception):  # DBOS's own of a step without a record
            raise
        raise RunFailedError(f"{what} cannot be read: it is not as a run stores it ({type(error).__name__})") from error


def stored(what: str) -> Callable[[Callable[[Any], _T]], cached_property[_T]]:
    """Return a decorator of a method that reads what is stored of its run: a cached property that raises as of `reading`."""

    def decorate(read: Callable[[Any], _T]) -> cached_property[_T]:
        @wraps(read)
        def checked(run: Any) -> _T:
            with reading(f"{what} of run {run.id!r}"):
                return read(run)

        return cached_property(checked)

    return decorate


def mapping_of(value: Any, *keys: str) -> Mapping[str, Any]:
    """Return a stored value that must be a mapping with these keys.

    Raises:
        TypeError: It is none.
    """
    if not isinstance(value, Mapping) or not value.keys() >= {*keys}:
        raise TypeError(f"a mapping with {', '.join(keys) or 'any keys'} is stored here, not {type(value).__name__}")
    return value


def checked(data: Mapping[str, Any], **kinds: Any) -> Mapping[str, Any]:
    """Return stored data whose values of these names, where it has them, must be of these types.

    Raises:
        TypeError: One is of another type.
    """
    for name, kind in kinds.items():
        if name in data and not isinstance(data[name], kind):
            raise TypeError(f"{name} is no {type(data[name]).__name__}")
    return data
