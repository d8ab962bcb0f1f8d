"""A tool call during assembly: its fragments, and whether more of them may follow."""

from collections.abc import Collection, Mapping
from enum import Enum
from functools import cached_property
from typing import Any

from ..strict_json import read_json
from .arguments import Arguments, read_arguments, spelling
from .fragments import Fragment
from .json_text import JsonScanner, mend_json

_MOST_SURPLUS = 16


class Progress(Enum):
    """The state of a call's argument text."""

    EMPTY = "nothing yet"
    BARE = "an empty object: no arguments, or a placeholder for those to come"
    OPEN = "the beginning of an object"
    CLOSED = "whole"


class Slot:
    """One call, or one candidate for a call.

    Attributes:
        id: The first id that one of its fragments named.
        name: The tool's name.
        fragments: The number of its fragments.
        extra: Unknown keys of its fragments, the last value of each.
        ambiguity: Why it is unclear whether the fragments belong together, in words for the model; None if it is clear.
        misnamed: Whether fragments named another tool.
        copied: Whether its arguments came once more, after they were whole.
        bare_again: The number of repetitions without arguments.
        twin: The number of equal calls before it in its list.
    """

    def __init__(self) -> None:
        self.id: str | None = None
        self.name: str | None = None
        self.fragments = 0
        self.extra: dict[str, Any] = {}
        self.ambiguity: str | None = None
        self.misnamed = False
        self.copied = False
        self.bare_again = 0
        self.twin = 0
        self.pieces: list[str] = []
        self.first = ""
        self._surplus = 0
        self._scanner = JsonScanner()
        self._scanned = 0
        self._cumulative = True
        self._spelled: tuple[int, str | None] = (0, None)

    def add(self, fragment: Fragment, declared: Collection[str] = ()) -> None:
        """Add a fragment. The first id stays; a differing name is recorded, or appended if the name is incomplete."""
        if not self.fragments:
            self.first, self.twin = fragment.text, fragment.twin
        self.fragments += 1
        if self.id is None:
            self.id = fragment.id
        if fragment.name is not None and fragment.name != self.name:
            self._call_it(fragment.name, declared)
        self.learn(fragment.extra)
        if fragment.text:
            self.pieces.append(fragment.text)

    def add_text(self, text: str) -> None:
        """Add a fragment that contains only text."""
        self.fragments += 1
        if text:
            self.pieces.append(text)

    def add_surplus(self, fragment: Fragment, declared: Collection[str]) -> None:
        """Add a fragment that arrives after the call is complete; most such fragments make it ambiguous."""
        self._surplus += 1
        if self._surplus > _MOST_SURPLUS:
            self.ambiguity = self.ambiguity or "more text came after its arguments were whole"
        self.add(fragment, declared)

    def _call_it(self, name: str, declared: Collection[str]) -> None:
        if self.name is None:
            self.name = name
        elif self.may_be_named_on(name, declared):
            self.name += name
        else:
            self.misnamed = True

    def may_be_named_on(self, name: str, declared: Collection[str]) -> bool:
        """Whether `name` can continue this call's name (wire quirk N-01): no arguments yet, and the result is a declared name."""
        if self.name is None or self.pieces or name in declared:
            return False
        return not declared or any(tool.startswith(self.name + name) for tool in declared)

    def learn(self, extra: Mapping[str, Any] | None) -> None:
        """Add unknown keys; objects are merged one level deep, because servers send them in parts too (wire quirk R-05)."""
        for key, value in (extra or {}).items():
            known = self.extra.get(key)
            self.extra[key] = {**known, **value} if isinstance(known, Mapping) and isinstance(value, Mapping) else value

    def absorb(self, other: "Slot") -> None:
        """Append the text of another slot to this call."""
        self.pieces += other.pieces
        self.learn(other.extra)
        self.__dict__.pop("calls", None)

    @property
    def progress(self) -> Progress:
        """Return the state of the argument text."""
        pieces = self.pieces
        if not pieces:
            return Progress.EMPTY
        for number in range(self._scanned, len(pieces)):
            self._scanner.feed(pieces[number])
            self._cumulative = self._cumulative and (not number or pieces[number].startswith(pieces[number - 1]))
        self._scanned = len(pieces)
        if len(pieces) < 3 and "".join(pieces).strip() in ("{}", "null"):
            return Progress.BARE
        if self._scanner.closed and (self.ambiguity or self._spelling is not None):
            return Progress.CLOSED
        if self._cumulative and len(pieces) > 1 and _is_object(pieces[-1]):
            return Progress.CLOSED
        return Progress.OPEN

    @property
    def _spelling(self) -> str | None:
        """Return the arguments so far in canonical form; None if they are not an object. (An ambiguous call is not parsed again.)"""
        pieces, found = self._spelled
        if pieces != len(self.pieces):
            found = spelling(read_arguments(self.pieces))
            self._spelled = (len(self.pieces), found)
        return found

    @property
    def spelled_arguments(self) -> str | None:
        """Return the arguments so far in canonical form, for comparison; None if they are empty or invalid."""
        return None if self._spelling == "{}" else self._spelling

    @property
    def text(self) -> str:
        """Return the whole argument text."""
        return mend_json("".join(self.pieces))

    @cached_property
    def calls(self) -> list[Arguments]:
        """Return the parsed arguments, one entry per call. All fragments must have arrived."""
        return read_arguments(self.pieces)

    @property
    def arguments(self) -> Arguments | None:
        """Return the arguments if they are one object and the call has one name."""
        (found, *others) = self.calls
        return None if others or found.value is None or self.misnamed or self.name is None else found

    def grows_to(self, text: str) -> bool:
        """Whether `text` repeats the text so far and continues it (cumulative text). Check `progress` first."""
        last = self.pieces[-1] if self.pieces else ""
        return self._cumulative and len(text) > len(last) and text.startswith(last)


def _is_object(text: str) -> bool:
    try:
        return isinstance(read_json(text.strip()), dict)
    except ValueError:
        return False
