"""A tool call while its fragments arrive: how they are read, what it holds, why it may be ambiguous.

Wire shapes (wire quirks A-10, A-11, A-26, A-28, N-02): the nested `{index, id, type, function: {name, arguments}}`, the flat
`{index, id, name, args | arguments}`, the id or index inside `function`, the index as a string, arguments as an object,
and `""`, `"null"` or `"None"` where nothing is meant.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from ..strict_json import read_json
from .arguments import Arguments, JsonScanner, agreed, as_text, mend_json, read_arguments, spell_text, spelling

# ---------------------------------------------------------------------------------------------- fragments


ACCOUNTS = "other_accounts"
"""The key of a fragment for other accounts of its call's arguments: a list with the pieces of each."""
DOUBT = "doubt_of_call"
"""The key of a fragment for why its call must not run, in words for the model."""
REPEATS = "repeats_call"
"""The key of a fragment that says a whole call of the stream again."""
_NOTHING = frozenset({"", "null", "None"})
_KNOWN = frozenset({"id", "index", "type", "function", "name", "args", "arguments", "error", ACCOUNTS, DOUBT, REPEATS})
_ARGUMENTS = frozenset({"function", "args", "arguments", ACCOUNTS, DOUBT, REPEATS})
_OF_FUNCTIONS = frozenset({"args", "arguments"})
_KINDS = (None, "", "function", "custom", "function_call", "tool_use", "tool_call", "tool_call_chunk", "invalid_tool_call")


@dataclass(slots=True)
class Fragment:
    """A fragment of a call.

    Attributes:
        id: The id it names, None where it names none.
        index: The index it names.
        name: The tool's name or a part of it, without white space around it.
        text: Its part of the argument text; an object on the wire as its JSON text.
        extra: Keys that are no part of a call as this package knows it, which go back to the server with the call; and a `type` that is no
            word for a function.
        twin: The number of equal entries before it in its list, which are distinct calls (`read_list`).
        header: The keys that it has beside its arguments, the `type` with its value; nothing where it has no name, or where it comes from
            a message that says again what the stream has said.
        doubt: Why the call must not run: what was said of it differs.
    """

    id: str | None
    index: int | None
    name: str | None
    text: str
    extra: Mapping[str, Any] | None = None
    twin: int = 0
    header: frozenset[str] = frozenset()
    doubt: str | None = None


def text_at(raw: Mapping[str, Any]) -> tuple[int, str] | None:
    """Return the index and the text of a fragment that brings nothing but text for the call at an index, as most do; None for others."""
    if raw.__class__ is not dict or len(raw) != 2:
        return None
    function, index = raw.get("function"), raw.get("index")
    if function.__class__ is not dict or len(function) != 1 or index.__class__ is not int:
        return None
    text = function.get("arguments")
    return (index, text) if text.__class__ is str else None


def read_fragment(raw: Mapping[str, Any]) -> Fragment:
    """Return a raw dict as a `Fragment`. Accepts any content."""
    inner = raw.get("function")
    if not isinstance(inner, Mapping):
        inner = raw
    text, doubt = as_text(_arguments(inner)), raw.get(DOUBT)
    name = _text_or_none(inner.get("name")) or _text_or_none(raw.get("name"))
    others = [*(raw.get(ACCOUNTS) or ()), *([[as_text(_arguments(raw))]] if inner is not raw and not _OF_FUNCTIONS.isdisjoint(raw) else ())]
    if others:
        text, conflict = agreed([[text], *others])
        doubt = doubt or conflict
    return Fragment(
        id=_text_or_none(raw.get("id")) or _text_or_none(inner.get("id")),
        index=_index(raw.get("index", inner.get("index"))),
        name=name,
        text=text,
        extra=_extra(raw) if raw.keys() - _KNOWN or raw.get("type") not in _KINDS else None,
        header=frozenset() if name is None else _header(raw, inner),
        doubt=doubt,
    )


def _arguments(function: Mapping[str, Any]) -> Any:
    arguments = function.get("arguments")
    return function.get("args") if arguments is None else arguments


def _extra(raw: Mapping[str, Any]) -> dict[str, Any]:
    extra = {key: value for key, value in raw.items() if key not in _KNOWN and value is not None}
    return extra if raw.get("type") in _KINDS else {**extra, "type": raw["type"]}


def _header(raw: Mapping[str, Any], inner: Mapping[str, Any]) -> frozenset[str]:
    keys = {"name"}
    for key, value in raw.items():
        if value is not None and key not in _ARGUMENTS:
            keys.add(f"type {value}" if key == "type" else key)
    for key in ("id", "index"):
        if inner.get(key) is not None:
            keys.add(key)
    return frozenset(keys)


def read_list(raws: Sequence[Mapping[str, Any]]) -> list[Fragment]:
    """Return the fragments of one list. Equal whole calls, without ids or each with its own, are distinct calls.

    A server that sends a call once more does so in a later chunk, or (where chunks were put together on the way) without the `type`
    that a call begins with.
    """
    fragments = [read_fragment(raw) for raw in raws]
    alike: dict[tuple[int | None, str, str, str], list[str | None]] = {}
    for raw, fragment in zip(raws, fragments, strict=True):
        spelled = spell_text(fragment.text)
        if fragment.name is None or spelled is None:
            continue
        ids = alike.setdefault((fragment.index, str(raw.get("type")), fragment.name, spelled), [])
        if not any(ids) if fragment.id is None else None not in ids and fragment.id not in ids:
            fragment.twin = len(ids)
        ids.append(fragment.id)
    return fragments


def _text_or_none(value: object) -> str | None:
    """Return a name or an id; None if it is missing."""
    if not isinstance(value, str):
        return None if value is None or isinstance(value, bool) else str(value)
    value = value.strip()
    return None if value in _NOTHING else value


def _index(value: Any) -> int | None:
    """Return an index, also from text."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


# ---------------------------------------------------------------------------------------------- slot
# A tool call during assembly: its fragments, and whether more of them may follow.


_MOST_SURPLUS = 16


class Progress(Enum):
    """The state of a call's argument text."""

    EMPTY = "nothing yet"
    BARE = "an empty object: no arguments, or a placeholder for those to come"
    OPEN = "the beginning of an object"
    CLOSED = "whole"


@dataclass(eq=False, repr=False)
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

    id: str | None = None
    name: str | None = None
    fragments: int = 0
    extra: dict[str, Any] = field(default_factory=dict)
    ambiguity: str | None = None
    misnamed: bool = False
    copied: bool = False
    bare_again: int = 0
    twin: int = 0
    pieces: list[str] = field(default_factory=list)
    first: str = ""
    _surplus: int = 0
    _scanner: JsonScanner = field(default_factory=JsonScanner)
    _scanned: int = 0
    _cumulative: bool = True
    _read: tuple[int, list[Arguments]] = field(default=(-1, []))  # the number of pieces, and the arguments that they have been read as

    def add(self, fragment: Fragment, declared: Collection[str] = ()) -> None:
        """Add a fragment. The first id stays; a differing name is recorded, or appended if the name is incomplete."""
        if not self.fragments:
            self.first, self.twin = fragment.text, fragment.twin
        self.fragments += 1
        if self.id is None:
            self.id = fragment.id
        if fragment.name is not None and fragment.name != self.name:
            if self.name is None or self.may_be_named_on(fragment.name, declared):
                self.name = (self.name or "") + fragment.name
            else:
                self.misnamed = True
        self.learn(fragment.extra)
        if fragment.doubt is not None:
            self.ambiguity = self.ambiguity or fragment.doubt
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

    def replace_text(self, text: str) -> None:
        """Set the argument text to what all accounts of the call agree on."""
        if text != "".join(self.pieces):
            self.pieces, self._scanner, self._scanned, self._read = [text], JsonScanner(), 0, (-1, [])

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
        if self._scanner.closed and (self.ambiguity or (len(self.calls) == 1 and self.calls[0].value is not None)):
            return Progress.CLOSED
        if self._cumulative and len(pieces) > 1 and _is_object(pieces[-1]):
            return Progress.CLOSED
        return Progress.OPEN

    @property
    def spelled_arguments(self) -> str | None:
        """Return the arguments so far in canonical form, for comparison; None if they are empty or invalid."""
        found = spelling(self.calls)
        return None if found == "{}" else found

    @property
    def text(self) -> str:
        """Return the whole argument text."""
        return mend_json("".join(self.pieces))

    @property
    def calls(self) -> list[Arguments]:
        """Return the arguments so far, parsed, one entry per call."""
        if self._read[0] != len(self.pieces):
            self._read = len(self.pieces), read_arguments(self.pieces)
        return self._read[1]

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


# ---------------------------------------------------------------------------------------------- ambiguity
# Why a call may be ambiguous, for which it does not run.


MIXED: Final = "it is unclear which of the calls the arguments belong to"
COPY: Final = "it may be the call before it, sent once more"
