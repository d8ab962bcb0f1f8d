"""Checks of pickles: values that cannot be pickled are rejected by name, none is dropped silently."""

import pickle
from collections.abc import Mapping, Sequence
from io import BytesIO
from types import FunctionType
from typing import Any

from pydantic import SecretStr

from .compat import current_pickler

_PLAIN = (str, int, float, bool, bytes, type(None), SecretStr)
_FUNCTION = "define functions at the top of a module"
_HOLDER = "what holds a connection, a lock or a secret belongs to one process: make it where it is used (a function that makes it travels)"


class _Refused(pickle.PicklingError):
    """Raised with a complete description of the values that cannot be pickled."""


def refuse(problem: str | None) -> None:
    """Raise if `problem` is set. The caller has returned from the code whose local variables may hold secrets.

    Raises:
        PicklingError: There is a problem.
    """
    if problem:
        raise _Refused(problem)


def check_portable(owner: str, values: Mapping[str, Any]) -> None:
    """Raise for values that the active pickler cannot write; cloudpickle can also write functions outside importable modules.

    Args:
        owner: The owner of the values.
        values: The values, by the names that a user knows them by. None of them is secret.

    Raises:
        PicklingError: One of them cannot be pickled.
    """
    problem = unportable(owner, values)
    del values  # a traceback that shows local variables shows none of what they hold
    refuse(problem)


def unportable(owner: str, values: Mapping[str, Any]) -> str | None:
    """Describe the values that cannot be pickled, the reason and the remedy; None if all can (see `check_portable`)."""
    problems = (_problem(f"{owner}: {name}", value) for name, value in values.items() if not isinstance(value, _PLAIN))
    return next((problem for problem in problems if problem), None)


def _problem(name: str, value: Any) -> str | None:
    try:
        current_pickler()(BytesIO(), pickle.HIGHEST_PROTOCOL).dump(value)
    except _Refused as error:
        return str(error)
    except Exception as error:  # whatever an object raises that cannot be written
        advice = _FUNCTION if callable(value) else _HOLDER
        return f"{name} cannot be pickled ({type(error).__name__}: {error}); {advice}"
    return None


def left_out(owner: str, names: Sequence[str], advice: str | None = None) -> str | None:
    """Return the message for a pickle with missing parts; None if nothing is missing.

    Args:
        owner: The owner of the pickled parts.
        names: The names of the missing parts.
        advice: The remedy.
    """
    return f"{owner}: {', '.join(names)} cannot be pickled; {advice or _HOLDER}" if names else None


def differing(name: str, one: Any, other: Any) -> list[str]:
    """Return the names under which two values differ: of their entries, for mappings.

    Args:
        name: The first value's name.
        one: The value.
        other: The other one. What it has more does not count.
    """
    if isinstance(one, Mapping) and (other is None or isinstance(other, Mapping)):
        return [found for key, value in one.items() for found in differing(f"{name}[{key!r}]", value, (other or {}).get(key))]
    return [] if one == other else [name]


def findable(value: Any) -> Any:
    """Return a function that other processes can import; None for other values, which may hold a secret."""
    if not isinstance(value, FunctionType):
        return None
    try:
        pickle.dumps(value)
    except (pickle.PicklingError, AttributeError):
        return None
    return value
