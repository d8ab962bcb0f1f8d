"""Which old results of a history are cut out of a request.

A line takes the place of each, and has the handle by which it is read again.

A result is known by its number among all results of the history, and by a digest of its content. What was cut of a request is recorded on
the AI message that answers it, with a digest of the messages up to the last result that is cut: where these were changed since, the record
says nothing. System messages count for nothing in it, for some programs write them anew for each request. Where cutting results is not
enough, a summary stands for the oldest turns, see `history.summaries`.
"""

import hashlib
import json
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from pydantic import BaseModel, Field

from ..messages.calls import calls_of, compact
from ..messages.incremental import MessageMemo
from ..messages.metadata import COMPACTED, is_cut_reply, own_metadata, text_of
from ..messages.run_messages import open_run
from .summaries import Outline, Summary, read_summary, summary_message, summary_record

# ---------------------------------------------------------------------------------------------- a history, read


_LONGEST_LINE: Final = 300
"""Characters of a result that is not cut: the line in its place would save nothing."""

_LINE_TOKENS: Final = 60
"""Tokens of a line that stands for a result, as estimated."""

_BEGINNING: Final = 60
"""Characters of a result that its line shows."""

_MEDIA = frozenset({"image", "image_url", "input_image", "audio", "input_audio", "video", "file", "input_file", "document", "media"})
_TEXTS = frozenset({"text", "text-plain"})
_BROKEN_OFF = frozenset({"incomplete", "deadline", "cancelled"})


@dataclass(frozen=True)
class Cut:
    """What is cut of a history: results, by their numbers among all results, from 0 on, and the turns that a summary covers.

    Attributes:
        before: All with smaller numbers that are longer than a line.
        also: Others.
        summary: The summary that stands for the oldest turns, with their results; None for none.
    """

    before: int = 0
    also: tuple[int, ...] = ()
    summary: Summary | None = None

    @property
    def end(self) -> int:
        """The number after the last one that may be cut."""
        return max((self.before, *(number + 1 for number in self.also)))

    def has(self, number: int) -> bool:
        """Whether a result is cut, if it can be."""
        return number < self.before or number in self.also


def is_cuttable(message: ToolMessage) -> bool:
    """Whether a line may stand for a result: it is longer than one, and has nothing but text, pictures and files.

    What answers an item of the vendor's own has a form of its own, and a run that waits inside a call goes on with its record.
    """
    if message.additional_kwargs.get("type") or open_run(message) is not None:
        return False
    content = message.content
    if isinstance(content, str):
        return len(content) > _LONGEST_LINE
    kinds = {block.get("type") if isinstance(block, Mapping) else "text" for block in content}
    return kinds <= _TEXTS | _MEDIA and (bool(kinds & _MEDIA) or len(text_of(message)) > _LONGEST_LINE)


def _content_of(message: BaseMessage) -> bytes:
    """Return what of a message counts for a digest: role, text and other content, calls; not ids, metadata and cache marks."""
    content: list[Any] = [message.type, text_of(message)]
    if isinstance(message, AIMessage):
        content += [[call.name, call.arguments if call.args is None else compact(call.args)] for call in calls_of(message)]
    elif not isinstance(message.content, str):
        content += [block for block in message.content if isinstance(block, Mapping) and block.get("type") != "text"]
    return json.dumps(content, ensure_ascii=True, default=str, separators=(",", ":"), sort_keys=True).encode()


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\n".join(parts)).hexdigest()[:16]


@dataclass(slots=True)
class Reading:
    """A fold that reads a history: its sizes, its digests, what was cut of it before.

    Attributes:
        estimate: Returns the estimated tokens of a message.
        tokens: The tokens of the first messages together, by their number.
        chain: The digests of the first messages that are no system messages, by their number.
        savings: The tokens that cutting the first results saves, by their number.
        covered: The number of messages in `chain` up to each result.
        seen: The number of results before the last AI message, which the model has seen.
        outline: Its turns.
        cut: What is cut by the last valid record.
        tried: The number of messages of the last summary that was asked for and not made.
        windows: The context windows that servers have told, by the model's name.
        known: What the usage of the last reply says: the number of messages up to it, their tokens, what was saved of them.
    """

    estimate: Callable[[BaseMessage], int]
    tokens: list[int] = field(default_factory=lambda: [0])
    chain: list[str] = field(default_factory=lambda: [""])
    savings: list[int] = field(default_factory=lambda: [0])
    covered: list[int] = field(default_factory=list)
    seen: int = 0
    outline: Outline = field(default_factory=Outline)
    cut: Cut = Cut()
    tried: int = 0
    windows: Mapping[str, int] = field(default_factory=dict)
    known: tuple[int, int, int] | None = None
    _has_records: bool = False

    def copy(self) -> "Reading":
        """Return an independent copy."""
        lists: dict[str, Any] = {name: [*getattr(self, name)] for name in ("tokens", "chain", "savings", "covered")}
        return replace(self, outline=self.outline.copy(), **lists)

    def read(self, messages: Sequence[BaseMessage]) -> None:
        """Read the next messages."""
        for message in messages:
            size = self.estimate(message)
            self.tokens.append(self.tokens[-1] + size)
            self.outline.add(message, size, len(self.tokens) - 1)
            if isinstance(message, SystemMessage):
                continue
            self.chain.append(_digest(self.chain[-1].encode(), _content_of(message)))
            if isinstance(message, AIMessage):
                self._read_reply(message)
            elif isinstance(message, ToolMessage):
                self.savings.append(self.savings[-1] + (max(0, size - _LINE_TOKENS) if is_cuttable(message) else 0))
                self.covered.append(len(self.chain) - 1)

    def _read_reply(self, message: AIMessage) -> None:
        self.seen = len(self.covered)
        record = own_metadata(message).get(COMPACTED)
        is_valid = record is not None and self._take(record)
        self._has_records = self._has_records or record is not None
        usage, about = message.usage_metadata, message.response_metadata
        broken = is_cut_reply(message) or about.get("finish_reason") in _BROKEN_OFF
        if usage and about and not broken and is_valid is self._has_records:  # else what was sent for it is not known
            self.known = len(self.tokens) - 1, usage["input_tokens"] + usage["output_tokens"], self.saved(self.cut)

    def _take(self, record: Any) -> bool:
        """Take up what a record says; return whether it is valid."""
        try:
            messages, before, also = record["messages"], record["results"], tuple(record.get("also", ()))
            numbers = (messages, before, *also)
            if not all(isinstance(one, int) and one >= 0 for one in numbers) or self.chain[messages] != record["digest"]:
                return False
            summary, tried = self.cut.summary, record.get("tried", self.tried)
            if "summary" in record:
                summary = read_summary(record["summary"], self.chain, self.outline, self.estimate)
                if summary is None:
                    return False
            cut = Cut(before, also, summary)
            if cut.end > len(self.covered) or not isinstance(tried, int) or not 0 <= tried <= messages:
                return False
            self.windows = {**self.windows, **{str(name): int(size) for name, size in record.get("windows", {}).items()}}
        except (AttributeError, LookupError, TypeError, ValueError):  # a history may come from anywhere
            return False
        self.cut, self.tried = cut, tried
        return True

    # ------------------------------------------------------------------------------------------ sizes

    def saving(self, number: int) -> int:
        """Return the tokens that cutting a result saves."""
        return self.savings[number + 1] - self.savings[number]

    def saved(self, cut: Cut) -> int:
        """Return the tokens that a cut saves."""
        summary, covered = cut.summary, self.summed_results(cut)
        lines = self.savings[max(cut.before, covered)] - self.savings[covered]
        lines += sum(self.saving(number) for number in cut.also if number >= covered)
        if summary is None:
            return lines
        return lines + self.tokens[self.outline.places[summary.messages]] - self.outline.sent(summary)

    def summed_results(self, cut: Cut) -> int:
        """Return the number of results that the summary of a cut covers."""
        return 0 if cut.summary is None else bisect_right(self.covered, cut.summary.messages)

    def size(self, cut: Cut, declared: int) -> int:
        """Return the tokens of a request: what the last reply's usage says, and the estimate of what is new.

        Args:
            cut: What is cut of it.
            declared: The estimated tokens of its tools.
        """
        estimated = self.tokens[-1] + declared - self.saved(cut)
        if self.known is None:
            return estimated
        place, said, saved = self.known
        told = said + self.tokens[-1] - self.tokens[place] - int((self.saved(cut) - saved) * self.ratio(declared))
        return max(told, estimated // 4)  # some servers do not count what their cache holds

    def ratio(self, declared: int) -> float:
        """Return how many tokens a token of the estimate is, by the last reply's usage."""
        place, said, saved = self.known or (0, 0, 0)
        return min(4.0, max(0.25, said / max(1, self.tokens[place] + declared - saved))) if self.known is not None else 1.0

    def record(self, cut: Cut, windows: Mapping[str, int], tried: int = 0, *, is_stored: bool = True) -> dict[str, Any] | None:
        """Return the record of a cut; None where nothing is cut.

        Args:
            cut: The cut. Its summary is in the record where the history has none of it.
            windows: The context windows that servers have told.
            tried: The number of messages of a summary that was asked for and not made.
            is_stored: Whether the messages that were read are all stored, so that their records are found again.
        """
        if not cut.end and cut.summary is None and not tried:
            return None
        numbers = (tried, self.covered[cut.end - 1] if cut.end else 0, cut.summary.messages if cut.summary is not None else 0)
        made: dict[str, Any] = {"messages": max(numbers), "digest": self.chain[max(numbers)], "results": cut.before}
        if cut.summary is not None and (cut.summary != self.cut.summary or not is_stored):
            made["summary"] = summary_record(cut.summary, self.chain)
        more = {"also": list(cut.also), "windows": dict(windows), "tried": tried}
        return made | {name: value for name, value in more.items() if value}


# ---------------------------------------------------------------------------------------------- what is cut


def results_cut(reading: Reading, keep: int, size: Callable[[Cut], int], limit: float, window: float) -> Cut:
    """Return what to cut of a history whose request would pass a limit.

    All results older than the newest `keep` are cut at once, so that the next requests begin alike for long. Where that is not enough, more
    are: first of the others that the model has seen, then of those that it has not, the largest first. What it has not seen, and what is no
    longer than it may read of a result at once, it sees while the window has room.

    Args:
        reading: The history.
        keep: The number of the newest results that stay.
        size: Returns the tokens of the request with a cut.
        limit: The most tokens that it may have.
        window: The context window.
    """
    count, cut = len(reading.covered), first_cut(reading, keep)
    if reading.saved(cut) == reading.saved(reading.cut):
        cut = reading.cut
    seen = range(cut.before, reading.seen)
    new = range(max(cut.before, reading.seen), count)
    for numbers, least, most in ((seen, 0.0, limit), (new, window / 4, limit), (new, 0.0, window)):
        large = sorted((one for one in numbers if not cut.has(one)), key=lambda one: (-reading.saving(one), one))
        for number in large:
            if size(cut) <= most or reading.saving(number) <= least:
                break
            cut = replace(cut, also=tuple(sorted((*cut.also, number))))
    return cut


def first_cut(reading: Reading, keep: int) -> Cut:
    """Return the cut of all results older than the newest `keep` that the model has seen."""
    before = max(reading.cut.before, min(len(reading.covered) - keep, reading.seen))
    return replace(reading.cut, before=before, also=tuple(number for number in reading.cut.also if number >= before))


# ---------------------------------------------------------------------------------------------- lines for results


_lines: MessageMemo[ToolMessage] = MessageMemo()  # the same line in every turn, so that what was encoded of it is found again


def handle_of(message: ToolMessage, number: int) -> str:
    """Return the handle of a result: its number among all results, and a digest by which it is known when the number has changed."""
    return f"r{number + 1}-{_digest(_content_of(message))[:6]}"


def line_for(message: ToolMessage, number: int, tool_name: str) -> ToolMessage:
    """Return the message that stands for a result: how long it was, what it began with, how to read it. A cache mark stays."""
    known = _lines.get(message, (number, tool_name))
    if known is not None:
        return known
    text, blocks = text_of(message), message.content if isinstance(message.content, list) else []
    media = [one for one in blocks if isinstance(one, Mapping) and _is_media(one)]
    kinds = Counter("picture" if "image" in str(one.get("type")) else "file" for one in media)
    length = [f"{len(text):,} characters"] if text else []
    length += [f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in kinds.items()]
    beginning = " ".join(text[: 4 * _BEGINNING].split())[:_BEGINNING]
    said = f', beginning "{beginning}"' if beginning else ""
    line = f'[Left out: {", ".join(length)}{said}. Read it with {tool_name}(handle="{handle_of(message, number)}").]'
    marks = {key: value for one in blocks if isinstance(one, Mapping) for key, value in _marks_of(one).items()}
    made = message.model_copy(update={"content": [{"type": "text", "text": line, **marks}] if marks else line})
    _lines.put(message, (number, tool_name), made)
    return made


def _is_media(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") in _MEDIA


def _marks_of(block: Mapping[str, Any]) -> dict[str, Any]:
    """Return the user's cache mark of a block."""
    extras = block.get("extras")
    marks = {"cache_control": block["cache_control"]} if "cache_control" in block else {}
    return marks | (
        {"extras": {"cache_control": extras["cache_control"]}} if isinstance(extras, Mapping) and "cache_control" in extras else {}
    )


@dataclass(slots=True)
class SentMessages:
    """A fold that makes the messages to send: lines for cut results, behind what stands for the turns that a summary covers.

    Attributes:
        cut: What is cut.
        tool_name: The name of the tool that reads what was cut.
        messages: The messages to send; at first those that stand for the covered ones.
        skipped: The number of messages at the beginning that are not to be read.
        results: The number of results so far, those that are covered included.
    """

    cut: Cut
    tool_name: str
    messages: list[BaseMessage] = field(default_factory=list)
    skipped: int = 0
    results: int = 0

    @classmethod
    def of(cls, history: Sequence[BaseMessage], reading: Reading, cut: Cut, tool_name: str) -> "SentMessages":
        """Return the fold for a history, at the first message that no summary covers. What is covered is not read again."""
        summary, results = cut.summary, reading.summed_results(cut)
        if summary is None:
            return cls(cut, tool_name)
        head = [*reading.outline.standing(history, summary), summary_message(summary, results, tool_name)]
        return cls(cut, tool_name, head, reading.outline.places[summary.messages], results)

    def copy(self) -> "SentMessages":
        """Return an independent copy."""
        return replace(self, messages=[*self.messages])

    def read(self, messages: Sequence[BaseMessage]) -> None:
        """Read the next messages. The first ones are at least all that are covered."""
        skipped, self.skipped = self.skipped, 0
        for message in messages[skipped:]:
            made: BaseMessage = message
            if isinstance(message, ToolMessage):
                if self.cut.has(self.results) and is_cuttable(message):
                    made = line_for(message, self.results, self.tool_name)
                self.results += 1
            self.messages.append(made)


# ---------------------------------------------------------------------------------------------- results read again


_PIECE: Final = 1000
"""Characters of one line of a result, as it is read; longer lines are several."""

_LEAST: Final = 1000
_WITHOUT_WINDOW: Final = 24_000
_HANDLE = re.compile(r"r?(\d{1,9})(?:-([0-9a-f]{6}))?")


class Part(BaseModel):
    """What is to be read of a result: the arguments of a call, as the model writes them.

    Attributes:
        handle: The handle of the result.
        find: A text that the lines contain, in upper or lower case; None for all lines.
        start: The number of the first line, from 1 on; None for the first.
        lines: The number of lines; None for as many as there is room for.
    """

    handle: str
    find: str | None = None
    start: int | None = Field(default=None, ge=1)
    lines: int | None = Field(default=None, ge=1)


def read_part(messages: Sequence[BaseMessage], wanted: Part, window: int | None) -> str | list[Any]:
    """Return the content of a result, or a part of it: at most about a quarter of the context window.

    Args:
        messages: The history.
        wanted: What is wanted.
        window: The context window; None if it is not known.

    Raises:
        LookupError: There is no such result; the text is for the model.
    """
    message, handle = _found(messages, wanted.handle)
    most = _WITHOUT_WINDOW if window is None else max(_LEAST, window // 4 * 3)  # three characters of a token: more in most languages
    text, media = text_of(message), [one for one in message.content if _is_media(one)] if isinstance(message.content, list) else []
    if wanted.find is None and wanted.start is None and wanted.lines is None and len(text) <= most:
        if not media:
            return text
        return [
            {key: value for key, value in one.items() if key != "cache_control"} if isinstance(one, dict) else one
            for one in message.content
        ]
    pieces = [line[at : at + _PIECE] for line in text.split("\n") for at in range(0, max(1, len(line)), _PIECE)]
    return _found_lines(pieces, wanted, handle, most) if wanted.find else _part_of(pieces, wanted, handle, most)


def _found(messages: Sequence[BaseMessage], given: str) -> tuple[ToolMessage, str]:
    """Return the result that a handle means, and its whole handle."""
    results = [message for message in messages if isinstance(message, ToolMessage)]
    match = _HANDLE.fullmatch(given.strip().strip("\"'`[]()").lower())
    number = int(match[1]) - 1 if match else -1
    if match and 0 <= number < len(results):
        known = handle_of(results[number], number)
        if match[2] is None or known.endswith(match[2]):
            return results[number], known
    for place, message in enumerate(results) if match and match[2] else ():
        if (known := handle_of(message, place)).endswith(str(match and match[2])):
            return message, known
    example = next((handle_of(one, place) for place, one in enumerate(results) if is_cuttable(one)), "r1-0a1b2c")
    raise LookupError(f"There is no result {given[:60]!r}. A handle is in the line in place of a result, and looks like {example!r}.")


def _part_of(pieces: Sequence[str], wanted: Part, handle: str, most: int) -> str:
    """Return lines of a result, with where they are."""
    first = (wanted.start or 1) - 1
    if first >= len(pieces):
        return f"[{handle} has {len(pieces):,} lines: there is no line {first + 1:,}.]"
    last = len(pieces) if wanted.lines is None else min(len(pieces), first + wanted.lines)
    ends, total = list[int](), 0
    for piece in pieces[first:last]:
        total += len(piece) + 1
        ends.append(total)
    shown = first + max(1, bisect_left(ends, most))
    last = min(last, shown)
    more = f" Go on with start={last + 1}." if last < len(pieces) else ""
    head = f"[Lines {first + 1:,} to {last:,} of {len(pieces):,} of {handle}.{more}]"
    return "\n".join([head, *pieces[first:last]])


def _found_lines(pieces: Sequence[str], wanted: Part, handle: str, most: int) -> str:
    """Return the lines of a result that contain a text, with their numbers."""
    text, start = str(wanted.find).lower(), (wanted.start or 1) - 1
    numbers = [number for number in range(start, len(pieces)) if text in pieces[number].lower()]
    if not numbers:
        return f"[No line of the {len(pieces):,} lines of {handle} contains {wanted.find!r}.]"
    shown, total = list[str](), 0
    for number in numbers[: wanted.lines]:
        line = f"{number + 1}: {pieces[number]}"
        total += len(line) + 1
        if shown and total > most:
            break
        shown.append(line)
    more = f" Go on with start={numbers[len(shown)] + 1}." if len(shown) < len(numbers) else ""
    return "\n".join([f"[{len(numbers):,} of {len(pieces):,} lines of {handle} contain {wanted.find!r}.{more}]", *shown])
