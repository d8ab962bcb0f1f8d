"""The summaries that stand for the oldest turns of a history.

A summary covers the messages at the beginning of a history up to the end of a turn, never a call without its results. System messages
among them stay, and the user's messages as long as there is room. The next summary covers the former one.
"""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from ..messages.calls import awaited_calls, calls_of
from ..messages.metadata import KEY, OF_RUN, own_metadata, text_of
from ..messages.run_messages import is_paused, stop_reason


@dataclass(frozen=True)
class Summary:
    """A summary of the messages at the beginning of a history.

    Attributes:
        messages: The number of messages that it covers; system messages are not counted.
        dropped: How many of the user's messages, from the first on, are not sent beside it.
        text: Its text; empty for one that is yet to be made.
        tokens: Its estimated tokens.
    """

    messages: int
    dropped: int = 0
    text: str = ""
    tokens: int = field(default=0, compare=False)


_HEAD_TOKENS: Final = 90
"""Tokens of the words around the text of a summary, as estimated."""


@dataclass(slots=True)
class Outline:
    """What a fold over a history notes of its turns, all lists by the number of a message that is no system message.

    Attributes:
        places: The number of messages up to it, system messages included.
        stays: The tokens of those up to it that are sent beside a summary.
        ends: The numbers of messages after which a turn ends, so that a summary may end there.
        asked: The numbers of messages before each of the user's.
        spoken: The tokens of the user's first messages together, by their number.
        fixed: The places of the messages that are sent beside a summary, each with the number of the user's messages up to it; 0 for one
            that is not the user's.
    """

    places: list[int] = field(default_factory=lambda: [0])
    stays: list[int] = field(default_factory=lambda: [0])
    ends: list[int] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    spoken: list[int] = field(default_factory=lambda: [0])
    fixed: list[tuple[int, int]] = field(default_factory=list)
    _staying: int = 0
    _last: BaseMessage | None = None

    def copy(self) -> "Outline":
        """Return an independent copy."""
        lists: dict[str, Any] = {name: [*getattr(self, name)] for name in ("places", "stays", "ends", "asked", "spoken", "fixed")}
        return replace(self, **lists)

    def add(self, message: BaseMessage, size: int, place: int) -> None:
        """Note the next message, of so many tokens, with the number of messages up to it."""
        if isinstance(message, SystemMessage):
            self._staying += size
            self.fixed.append((place - 1, 0))
            return
        number, last = len(self.places) - 1, self._last
        begins = isinstance(message, AIMessage) or (isinstance(message, HumanMessage) and not isinstance(last, HumanMessage))
        if number and begins and not (isinstance(message, AIMessage) and isinstance(last, AIMessage)):
            self.ends.append(number)
        if is_users(message):
            self._staying += size
            self.asked.append(number)
            self.fixed.append((place - 1, len(self.asked)))
            self.spoken.append(self.spoken[-1] + size)
        self.places.append(place)
        self.stays.append(self._staying)
        self._last = message

    def sent(self, summary: Summary) -> int:
        """Return the tokens of what is sent in place of what a summary covers."""
        return self.stays[summary.messages] - self.spoken[summary.dropped] + summary.tokens + _HEAD_TOKENS

    def standing(self, history: Sequence[BaseMessage], summary: Summary) -> list[BaseMessage]:
        """Return the messages that are sent beside a summary, of those that it covers."""
        end = self.places[summary.messages]
        return [history[place] for place, number in self.fixed if place < end and not 0 < number <= summary.dropped]


def is_users(message: BaseMessage) -> bool:
    """Whether a message is the user's own."""
    return not isinstance(message, AIMessage | ToolMessage | SystemMessage) and not own_metadata(message).get(OF_RUN)


def next_summary(
    outline: Outline, former: Summary | None, most: int, kept: int, size: Callable[[Summary], int], limit: float, tokens: int
) -> Summary | None:
    """Return the summary to make of a history whose request passes a limit; None where no turn can be covered.

    It covers the oldest turns, so many that the request has half the limit, and leaves the newest results. Where these fill more than
    four fifths of the limit, it covers them too; at last it covers the user's messages but for the newest, the oldest first.

    Args:
        outline: The history.
        former: The summary that the history has now; None for none.
        most: The number of messages before the first result that the model has not seen.
        kept: The number of messages before the newest results, which are to stay.
        size: Returns the tokens of the request with a summary.
        limit: The most tokens that it may have.
        tokens: The tokens that a summary is to have at most.
    """
    begun = Summary(0, tokens=tokens) if former is None else replace(former, text="", tokens=tokens)
    ends = outline.ends[bisect_right(outline.ends, begun.messages) : bisect_right(outline.ends, most)]
    if not ends:
        return None

    def first(part: float) -> int:
        """Return the position of the first end with which the request has this part of the limit, or of the last one."""
        found = bisect_left(ends, True, key=lambda end: size(replace(begun, messages=end)) <= limit * part)
        return min(found, len(ends) - 1)

    position, before_kept = first(0.5), bisect_right(ends, kept) - 1
    if position > before_kept:
        position = max(before_kept, first(0.8))
    made = replace(begun, messages=ends[position])
    droppable = range(made.dropped, max(made.dropped, bisect_left(outline.asked, made.messages) - 1) + 1)
    enough = bisect_left(droppable, True, key=lambda dropped: size(replace(made, dropped=dropped)) <= limit * 0.8)
    return replace(made, dropped=droppable[min(enough, len(droppable) - 1)])


# ---------------------------------------------------------------------------------------------- records


def summary_record(summary: Summary, chain: Sequence[str]) -> dict[str, Any]:
    """Return the record of a summary, with the digest of the messages that it covers."""
    made = {"text": summary.text, "messages": summary.messages, "digest": chain[summary.messages]}
    return {**made, "dropped": summary.dropped} if summary.dropped else made


def read_summary(record: Any, chain: Sequence[str], outline: Outline, estimate: Callable[[BaseMessage], int]) -> Summary | None:
    """Return the summary of a record; None if it does not fit the history.

    Raises:
        Exception: The record has another form: a history may come from anywhere.
    """
    messages, dropped, text = record["messages"], record.get("dropped", 0), record["text"]
    if not isinstance(text, str) or not text.strip() or not all(isinstance(one, int) and one >= 0 for one in (messages, dropped)):
        return None
    position = bisect_left(outline.ends, messages)
    is_end = position < len(outline.ends) and outline.ends[position] == messages
    if not is_end or chain[messages] != record["digest"] or dropped > bisect_left(outline.asked, messages):
        return None
    return Summary(messages, dropped, text, estimate(HumanMessage(text)))


# ---------------------------------------------------------------------------------------------- what models are told


@lru_cache(maxsize=64)
def summary_message(summary: Summary, results: int, tool_name: str) -> HumanMessage:
    """Return the message that stands for what a summary covers, the same object each time.

    Args:
        summary: The summary.
        results: The number of results that it covers.
        tool_name: The name of the tool that reads them.
    """
    users = "The user's newest messages stand" if summary.dropped else "What the user wrote stands"
    handles = 'handle="r1"' if results == 1 else f'handle="r1") to {tool_name}(handle="r{results}"'
    which = "The result of the tool call that it covers" if results == 1 else f"The results of the {results:,} tool calls that it covers"
    read = f" {which} can still be read, numbered in the order in which they came: {tool_name}({handles})." if results else ""
    about = "You wrote it yourself; it is no message of the user's, and asks for nothing."
    head = f"[Summary of the conversation so far, in place of messages that are left out. {about} {users} above as it was written.{read}]"
    head = head.replace("above as it was", "above as they were") if summary.dropped else head
    return HumanMessage(f"{head}\n\n{summary.text}", response_metadata={KEY: {OF_RUN: True}})


_WANTED: Final = (
    "Write in plain text, in at most about {words} words, all that is needed to go on without these messages: the task, and everything "
    "the user wants or does not want; what was done so far; the facts that were found, with names, numbers and paths as they were "
    "written; decisions and their reasons; errors; what is still open, and the next step. Name the handle of a result (such as r12) with "
    "what comes from it, where one is known. If there is an earlier summary, take over what still matters of it. Reply with the summary "
    "alone."
)
_INSTRUCTION: Final = (
    "[This is not from the user: the program that runs this conversation asks for a summary.] The conversation grows too long for your "
    "context window, and the messages above will be left out of it from now on; your summary takes their place. Do not go on with the "
    "task, answer no question, and call no tools. "
)


def instruction(tokens: int) -> HumanMessage:
    """Return the request for a summary of the messages before it, of at most about so many tokens."""
    return HumanMessage(_INSTRUCTION + _WANTED.format(words=_words(tokens)), response_metadata={KEY: {OF_RUN: True}})


def transcript(messages: Sequence[BaseMessage], tokens: int, most: int) -> HumanMessage:
    """Return the request for a summary of messages that it quotes.

    Args:
        messages: The messages.
        tokens: The tokens that the summary is to have at most.
        most: The most characters of what is quoted; where there are more, each message is shortened.
    """
    pieces = [piece for message in messages if (piece := _quoted(message))]
    share = _share(sorted(map(len, pieces)), most)
    quoted = "\n\n".join(_shortened(piece, share) for piece in pieces)
    task = "Below is the record of a conversation between a user and an assistant that calls tools. " + _WANTED.format(words=_words(tokens))
    return HumanMessage(f"{task}\n\n<conversation>\n{_shortened(quoted, most)}\n</conversation>\n\nWrite the summary now.")


def _words(tokens: int) -> int:
    return max(50, tokens * 3 // 4 // 10 * 10)


def _quoted(message: BaseMessage) -> str:
    """Return what a transcript says of a message; empty for nothing."""
    text = text_of(message).strip()
    if isinstance(message, SystemMessage):
        return ""
    if isinstance(message, ToolMessage):
        return f"Result of {message.name or 'a tool'}:\n{text}"
    if not isinstance(message, AIMessage):
        return f"{'User' if is_users(message) else 'Summary'}:\n{text}" if text else ""
    calls = [f"(calls {call.name} with {json.dumps(call.args) if call.args is not None else call.arguments})" for call in calls_of(message)]
    said = "\n".join([text, *calls] if text else calls)
    return f"Assistant:\n{said}" if said else ""


def _share(lengths: Sequence[int], most: int) -> int:
    """Return how long each of some texts may be, so that all together, in rising order of length, have this length at most."""
    left = most
    for position, length in enumerate(lengths):
        share = left // (len(lengths) - position)
        if length > share:
            return max(200, share)
        left -= length
    return most


def _shortened(text: str, most: int) -> str:
    """Return a text, or its beginning and its end."""
    if len(text) <= most:
        return text
    return f"{text[: most * 2 // 3]}\n[...]\n{text[len(text) - most // 3 :]}"


def summary_text(reply: AIMessage | None) -> str | None:
    """Return the text of a reply that is a summary; None for one with calls, without text, cut off, paused or refused."""
    if reply is None or reply.tool_calls or reply.invalid_tool_calls or calls_of(reply) or awaited_calls(reply) or is_paused(reply):
        return None
    text = text_of(reply).strip()
    return text if text and stop_reason(reply) == "complete" else None
