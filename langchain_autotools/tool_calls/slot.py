"""A tool call while its fragments arrive: what it holds, how its arguments are read, why it may be ambiguous.

Wire shapes (wire quirks A-10, A-11, A-26, A-28, N-02): the nested `{index, id, type, function: {name, arguments}}`, the flat
`{index, id, name, args | arguments}`, the id or index inside `function`, the index as a string, arguments as an object,
and `""`, `"null"` or `"None"` where nothing is meant.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from itertools import accumulate, pairwise, product
from typing import Any, Final

from ..compat import is_unterminated
from ..strict_json import canonical, decoder, mend_surrogates, read_json, same

_SPACE = re.compile(r"[ \t\n\r]*")
_END_TOKENS = (
    *("</s>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|call|>", "<|endoftext|>", "<|end_of_text|>", "<end_of_turn>"),
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
)
"""Tokens by which models end a turn, as their templates write them (wire quirk B-34)."""
_LEFT_BEHIND = re.compile(rf"(?:\s|\]|```|</function>|</tool_call>|{'|'.join(map(re.escape, _END_TOKENS))})*")
_WRAPPED: Final = 2
_NOTHING_GIVEN: Final = frozenset({"", "null", "none"})
_CONFLICT: Final = "its arguments came more than once, and not the same"


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one call.

    Attributes:
        raw: Their JSON text as the model wrote it; where `value` is not None it is exactly one JSON object.
        value: The object, or None if the call must not run.
        why: Why `value` is None, in words for the model.
        cumulative: Whether the text can only be cumulative (way 3).
        otherwise: The value of a rejected text if the server is known to send cumulative text.
    """

    raw: str
    value: dict[str, Any] | None = None
    why: str | None = None
    cumulative: bool = False
    otherwise: "Arguments | None" = None


def read_arguments(pieces: Sequence[str]) -> list[Arguments]:
    """Parse the pieces of one call's argument text. Returns one entry, or several by form 6.

    Args:
        pieces: The fragments as they came, empty ones left out; an object on the wire as its JSON text.
    """
    text = mend_json("".join(pieces))
    bare = text.strip()
    if bare in ("", "null"):
        return [Arguments("{}", {})]
    try:
        value = read_json(bare)
    except ValueError as error:
        return _broken(pieces, text, error)
    found = _unwrapped(text, value)
    return [found or _refused(text, "they are not a JSON object")]


def _unwrapped(text: str, value: object) -> Arguments | None:
    """Return the object that `value` is, or that it contains as a string."""
    for _ in range(_WRAPPED + 1):
        if isinstance(value, dict):
            return Arguments(text, value)
        if not isinstance(value, str):
            return None
        text = mend_json(value)
        try:
            value = read_json(text.strip())
        except ValueError:
            return None
    return None


def _refused(text: str, reason: str) -> Arguments:
    return Arguments(text, None, f"the arguments cannot be used: {reason}")


def _broken(pieces: Sequence[str], text: str, error: ValueError) -> list[Arguments]:
    """Parse pieces that do not form one JSON value together."""
    if len(pieces) > 1 and pieces[0].strip() == "{}":
        return read_arguments(pieces[1:])
    unfinished = is_prefix(text.strip(), error)
    snapshot = _last_snapshot(pieces)
    if snapshot is not None:
        # '{"a":' then '{"a":1}' is cumulative text, or the beginning of {"a":{"a":1}}: nothing tells
        return [replace(_refused(text, "they may be cut off"), otherwise=snapshot)] if unfinished else [snapshot]
    documents, rest = _documents(text)
    if documents and _LEFT_BEHIND.fullmatch(rest):
        return _several(pieces, text, documents)
    if unfinished:
        return [_refused(text, f"they were cut off after {len(text)} characters; write shorter arguments")]
    return [_refused(text, f"they are not valid JSON ({error})")]


def _last_snapshot(pieces: Sequence[str]) -> Arguments | None:
    """Return the last piece of cumulative text if it is one object; None for other text."""
    if len(pieces) < 2 or not all(after.startswith(before) for before, after in pairwise(pieces)):
        return None
    text = mend_json(pieces[-1])
    try:
        value = read_json(text.strip())
    except ValueError:
        return None
    return Arguments(text, value, cumulative=True) if isinstance(value, dict) else None


@dataclass(frozen=True, slots=True)
class _Document:
    """A JSON object at the top level of a text: its position and its value."""

    start: int
    arguments: Arguments
    value: dict[str, Any]


def _documents(text: str) -> tuple[list[_Document], str]:
    """Return the objects at the beginning of `text`, and the text after the last of them."""
    found: list[_Document] = []
    position = _skip_space(text, 0)
    while position < len(text):
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        arguments = _unwrapped(text[position:end], value)
        if arguments is None or arguments.value is None:
            break
        found.append(_Document(position, arguments, arguments.value))
        position = _skip_space(text, end)
    return found, text[position:]


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _several(pieces: Sequence[str], text: str, documents: list[_Document]) -> list[Arguments]:
    """Return the objects without placeholders and copies."""
    edges = set(accumulate(map(len, pieces)))
    while len(documents) > 1 and not documents[0].value and documents[1].start in edges:
        documents = documents[1:]
    different = [now for before, now in zip([None, *documents], documents, strict=False) if not (before and same(before.value, now.value))]
    if len(different) == 1:
        return [different[0].arguments]
    if any(document.start in edges for document in different[1:]) or not different[0].value:
        return [_refused(text, "they are several objects, and only one can be meant")]
    return [document.arguments for document in different]


# ---------------------------------------------------------------------------------------------- several accounts of one call


def agreed(accounts: Sequence[Sequence[str]]) -> tuple[str, str | None]:
    """Return the text on which all accounts of one call's arguments agree, and why it must not run if there is none.

    Servers give the arguments of one call several times: in pieces, at the end of them, as an item, in the whole reply. What counts is
    their values: all objects that are not empty are equal; one wins over empty accounts, and over unreadable pieces of itself.

    Args:
        accounts: The pieces of each.
    """
    given = {text: pieces for pieces in accounts if (text := "".join(pieces)).strip().lower() not in _NOTHING_GIVEN}
    if len(given) < 2:
        return next(iter(given), ""), None
    read = {text: read_arguments(pieces) for text, pieces in given.items()}
    broken = [text for text, found in read.items() if any(one.value is None for one in found)]
    whole = [(text, found) for text, found in read.items() if text not in broken and any(one.value for one in found)]
    if not whole:
        return (broken or [*given])[0], _CONFLICT if len(broken) > 1 else None
    (text, first), *others = whole
    if any(_spelled(found) != _spelled(first) for _, found in others) or not all(_is_part_of(piece, whole) for piece in broken):
        return text, _CONFLICT
    return (first[0].raw if len(first) == 1 else text), None


def _spelled(found: Sequence[Arguments]) -> list[str]:
    return [canonical(one.value) for one in found]


def _is_part_of(piece: str, whole: Sequence[tuple[str, list[Arguments]]]) -> bool:
    """Whether a text is a piece of one of these, in the layout of that text or in a usual one."""
    layouts = [text for text, _ in whole]
    for separators, ascii_only in product(((",", ":"), (", ", ": ")), (True, False)):
        layouts += [json.dumps(one.value, separators=separators, ensure_ascii=ascii_only) for _, found in whole for one in found]
    return any(piece.strip() in layout for layout in layouts)


def as_text(value: object) -> str:
    """Return arguments as text: a string unchanged, None as "", anything else as its JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def spelling(found: Sequence[Arguments]) -> str | None:
    """Return arguments in canonical form, whatever their layout and key order; None if they are not one object."""
    return canonical(found[0].value) if len(found) == 1 and found[0].value is not None else None


def spell_text(text: str) -> str | None:
    """Return a fragment's text in canonical form if it is complete arguments by itself; None if it is not."""
    return spelling(read_arguments([text])) if text.lstrip()[:1] in ("{", '"') else None


# ---------------------------------------------------------------------------------------------- json text
# Inspection of unfinished JSON text: whether it is complete, can continue, or contains several documents.


_MOST_PIECES = 12
_OUTSIDE = re.compile(r'["{}\[\]]')
_INSIDE = re.compile(r'["\\]')
_BEGUN = re.compile(r"\s*(?:u[0-9a-fA-F]{0,4}|-|tr?u?|fa?l?s?|nu?l?|\.|[eE][+-]?|)")
"""Pattern of an unfinished escape, word or number at the point where a truncated document breaks."""
_ESCAPES = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL)


def is_prefix(text: str, error: ValueError) -> bool:
    """Whether `text`, which failed to parse with `error`, is a prefix of some JSON document."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    if is_unterminated(error):
        return True
    return _BEGUN.fullmatch(text, error.pos) is not None


def mend_json(text: str) -> str:
    """Return JSON text with surrogate pairs joined and lone surrogates (also as escapes) replaced by U+FFFD.

    A half alone has no UTF-8: it could not be sent back (wire quirk B-20).
    """
    text = mend_surrogates(text)
    if "\\ud" in text or "\\uD" in text:
        text = _ESCAPES.sub(lambda match: r"\ufffd" if match[1] else match[0], text)
    return text


class JsonScanner:
    """Tracks whether the brackets and strings of a growing JSON text are closed, in linear time."""

    __slots__ = ("_depth", "_escaped", "_in_string", "_seen")

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._seen = False

    @property
    def closed(self) -> bool:
        """Whether the text so far ends after a closed bracket or string at the top level."""
        return self._seen and not self._depth and not self._in_string

    def feed(self, piece: str) -> None:
        """Process the next piece of the text."""
        position, end = 0, len(piece)
        if self._escaped and end:
            position, self._escaped = 1, False
        while position < end:
            match = (_INSIDE if self._in_string else _OUTSIDE).search(piece, position)
            if match is None:
                return
            position = match.end()
            character = match[0]
            if character == "\\":
                self._escaped = position == end
                position += 1
            else:
                self._step(character)

    def _step(self, character: str) -> None:
        self._seen = True
        if character == '"':
            self._in_string = not self._in_string
        elif character in "{[":
            self._depth += 1
        else:
            self._depth = max(0, self._depth - 1)


# ---------------------------------------------------------------------------------------------- one object, or several


def has_other_split(pieces: Sequence[str]) -> bool:
    """Whether the pieces can be distributed over two or more objects, each valid as far as it goes.

    A new object starts with a piece that begins with a bracket. `{"a":` `{"b":1}` `}` cannot be dealt out: `{"a":}` is nothing.
    `{"a":[` `{"b":1}` `]}` can. More pieces than can be tried out are taken for such a case.
    """
    if len(pieces) > _MOST_PIECES:
        return True
    return _deal((pieces[0],), pieces[1:])


def _deal(objects: tuple[str, ...], pieces: Sequence[str]) -> bool:
    if not pieces:
        return len(objects) > 1
    piece, rest = pieces[0], pieces[1:]
    if piece.lstrip().startswith("{") and _is_valid_so_far(piece) and _deal((*objects, piece), rest):
        return True
    for number, text in enumerate(objects):
        longer = text + piece
        if _is_valid_so_far(longer) and _deal((*objects[:number], longer, *objects[number + 1 :]), rest):
            return True
    return False


def _is_valid_so_far(text: str) -> bool:
    text = text.strip()
    try:
        read_json(text)
    except ValueError as error:
        return is_prefix(text, error)
    return True


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

    def replace_text(self, text: str) -> None:
        """Set the argument text to what all accounts of the call agree on."""
        if text != "".join(self.pieces):
            self.pieces, self._scanner, self._scanned, self._spelled = [text], JsonScanner(), 0, (0, None)
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


# ---------------------------------------------------------------------------------------------- ambiguity
# Detection of ambiguous calls, which are marked so that they do not run.


MIXED: Final = "it is unclear which of the calls the arguments belong to"
COPY: Final = "it may be the call before it, sent once more"
