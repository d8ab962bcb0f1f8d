"""What goes into a pickle: everything that can travel. What cannot is refused by name, and nothing is left out in silence."""

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
    """Says already what cannot be pickled, and where it stands."""


def refuse(problem: str | None) -> None:
    """Refuse to pickle. What found the problem may hold secrets, which a traceback would show: it has returned by now.

    Raises:
        PicklingError: There is a problem.
    """
    if problem:
        raise _Refused(problem)


def check_portable(owner: str, values: Mapping[str, Any]) -> None:
    """Refuse what cannot be pickled, by the pickler that is writing: cloudpickle can write functions that others must find in a module.

    Args:
        owner: What the values belong to.
        values: The values, by the names that a user knows them by. None of them is secret.

    Raises:
        PicklingError: One of them cannot be pickled.
    """
    problem = unportable(owner, values)
    del values  # a traceback that shows local variables shows none of what they hold
    refuse(problem)


def unportable(owner: str, values: Mapping[str, Any]) -> str | None:
    """Which of these values cannot be pickled, why, and what to do; None if all can (see `check_portable`)."""
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
    """What to say of a pickle that would be without something; None if nothing is missing.

    Args:
        owner: What it belongs to.
        names: What would be missing.
        advice: What to do about it.
    """
    return f"{owner}: {', '.join(names)} cannot be pickled; {advice or _HOLDER}" if names else None


def differing(name: str, one: Any, other: Any) -> list[str]:
    """The names under which two values differ: of what they hold, where they are mappings.

    Args:
        name: What the first value is called.
        one: The value.
        other: The other one. What it has more does not count.
    """
    if isinstance(one, Mapping) and (other is None or isinstance(other, Mapping)):
        return [found for key, value in one.items() for found in differing(f"{name}[{key!r}]", value, (other or {}).get(key))]
    return [] if one == other else [name]


def findable(value: Any) -> Any:
    """A function that other processes find in its module; None for anything else, which may hold a secret."""
    if not isinstance(value, FunctionType):
        return None
    try:
        pickle.dumps(value)
    except (pickle.PicklingError, AttributeError):
        return None
    return value
