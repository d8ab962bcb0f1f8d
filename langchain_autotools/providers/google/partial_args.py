"""Tool call arguments that arrive as values at JSON paths (`streamFunctionCallArguments`).

Wire facts (wire quirk G-05): `partialArgs: [{"jsonPath": "$.a[0]", "stringValue": "Bos", "willContinue": true}]`; a string goes on
while its `willContinue` holds; the call goes on while its own does, and an empty `functionCall` ends it.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .wire import ReplyPart

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]")
_PATH = re.compile(f"(?:{_STEP.pattern})+")
_ESCAPED = re.compile(r"\\(.)")
_LONGEST_LIST = 100_000  # a path is the model's word: it must not make a list of any length
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")

Step = str | int


class PartialCall:
    """A call that is being written. Linear in the number of updates.

    Args:
        number: Its number among the blocks of the reply.
        part: The part that began it.
    """

    def __init__(self, number: int, part: ReplyPart) -> None:
        self.number = number
        self.part = part
        self._values: dict[str, list[Any]] = {}
        self._open: str | None = None
        self._broken = False

    def feed(self, pieces: Sequence[Mapping[str, Any]]) -> None:
        """Apply the `partialArgs` of one part."""
        for piece in pieces:
            path = str(piece.get("jsonPath", ""))
            key = next((key for key in _VALUES if key in piece), None)
            value = None if key in (None, "nullValue") else piece[key]
            if path == self._open and isinstance(value, str):
                self._values[path].append(value)
            elif key is not None:
                self._values[path] = [value]
            self._open = path if piece.get("willContinue") else None

    def arguments(self, *, ended: bool) -> dict[str, Any] | str:
        """Return the arguments; invalid JSON text if they are incomplete or contradictory.

        Args:
            ended: Whether the wire said that the call is complete.
        """
        root: dict[str, Any] = {}
        fits = [_put(root, path, _value_of(values)) for path, values in self._values.items()]
        if ended and self._open is None and all(fits):
            return root
        return json.dumps(root, ensure_ascii=False)[:-1]


def _value_of(values: list[Any]) -> Any:
    return "".join(values) if len(values) > 1 else _integral(values[0])


def _integral(value: Any) -> Any:
    """Return a number that the wire sent as a float as an integer if it is one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _put(root: dict[str, Any], path: str, value: Any) -> bool:
    """Set the value at a path, creating missing containers; returns False if the path does not fit the data."""
    steps = _steps(path)
    if not steps or not isinstance(steps[0], str):
        return False
    place: Any = root
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        if isinstance(step, str) != isinstance(place, dict) or not _reserve(place, step):
            return False
        if following is None:
            place[step] = value
        elif place[step] is None:
            place[step] = {} if isinstance(following, str) else []
        if not isinstance(place[step], dict | list) and following is not None:
            return False
        place = place[step]
    return True


def _reserve(place: Any, step: Step) -> bool:
    if isinstance(place, dict):
        place.setdefault(step, None)
        return True
    if not isinstance(place, list) or not isinstance(step, int) or step > _LONGEST_LIST:
        return False
    place.extend([None] * (step + 1 - len(place)))
    return True


def _steps(path: str) -> list[Step]:
    """Return a path's keys and positions; empty for an invalid path."""
    rest = path.removeprefix("$")
    if not _PATH.fullmatch(rest):
        return []
    found = (match.groups() for match in _STEP.finditer(rest))
    return [int(place) if place else plain or _ESCAPED.sub(r"\1", single or double or "") for plain, place, single, double in found]
