"""What a reader of server-sent events makes of random runs: from the frames alone it arrives at the run's messages, calls and end."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, messages_from_dict

from langchain_autotools.encoders import sse
from langchain_autotools.event_types import RunEvent
from langchain_autotools.messages.metadata import text_of
from langchain_autotools.messages.run_messages import stop_reason
from tests.support.event_stream import Frame, frames_of
from tests.support.random_runs import Told, conversation


class Reader:
    """A program that knows the frames and nothing else.

    Attributes:
        texts: The text of each message.
        calls: What is known of each call: `begun`, `ready`, `discarded`, `done` or `pending`.
        results: The content of each call's result.
        messages: The messages of the outermost runs, without what is inside tools.
        runs: How each run is: `open`, or the frame that ended it.
        last: The last frame.
    """

    def __init__(self, frames: list[Frame]) -> None:
        self.texts: dict[str, str] = {}
        self.calls: dict[tuple[str, str], str] = {}
        self.results: dict[tuple[str, str], Any] = {}
        self.messages: list[BaseMessage] = []
        self.runs: dict[str, str] = {}
        self.last = frames[-1]
        for number, frame in enumerate(frames, 1):
            assert frame.id == str(number)
            data = frame.json
            if frame.event not in ("messages", "run_start", "done", "error"):
                assert self.runs[data["run_id"]] == "open"
            if frame.event == "messages":
                assert number == 1  # what an agent is asked
            else:
                getattr(self, frame.event, self.other)(data)

    def run_start(self, data: dict[str, Any]) -> None:
        """A new run; one inside a tool belongs to a run and a call that are open."""
        assert data["run_id"] not in self.runs
        self.runs[data["run_id"]] = "open"
        if "parent_call_id" in data:
            assert self.runs[data["parent_run_id"]] == "open"
            assert self.calls[data["parent_run_id"], data["parent_call_id"]] == "ready"

    def text(self, data: dict[str, Any]) -> None:
        """More of a message."""
        self.texts[data["message_id"]] = self.texts.get(data["message_id"], "") + data["text"]

    def tool_call_start(self, data: dict[str, Any]) -> None:
        """A new call."""
        self._move(data["run_id"], data["call_id"], None, "begun")

    def tool_call_delta(self, data: dict[str, Any]) -> None:
        """More of a call that is being written."""
        self._move(data["run_id"], data["call_id"], "begun", "begun")

    def tool_call(self, data: dict[str, Any]) -> None:
        """A whole call."""
        assert isinstance(data["args"], dict) or (data["args"] is None and data["why"] and isinstance(data["arguments"], str))
        self._move(data["run_id"], data["call_id"], "begun", "ready")

    def tool_call_discarded(self, data: dict[str, Any]) -> None:
        """None after all, or one that its run has left unanswered."""
        self._move(data["run_id"], data["call_id"], ("begun", "ready"), "discarded")

    def tool_progress(self, data: dict[str, Any]) -> None:
        """A tool is at work."""
        self._move(data["run_id"], data["call_id"], "ready", "ready")

    def tool_result(self, data: dict[str, Any]) -> None:
        """A call is answered."""
        self._move(data["run_id"], data["call_id"], "ready", "done")
        self.results[data["run_id"], data["call_id"]] = data["content"]

    def pending(self, data: dict[str, Any]) -> None:
        """Calls wait."""
        for call in data["calls"]:
            self._move(data["run_id"], call["id"], "ready", "pending")

    def message(self, data: dict[str, Any]) -> None:
        """A whole message: its text is that of its pieces, a result's content is that of its call."""
        (message,) = messages_from_dict([data["message"]])
        assert message.id == data["message_id"]
        if isinstance(message, AIMessage):
            assert text_of(message) == self.texts.get(data["message_id"], "")
        if isinstance(message, ToolMessage) and (data["run_id"], message.tool_call_id) in self.results:
            assert self.results[data["run_id"], message.tool_call_id] == message.content
        if "parent_run_id" not in data:
            self.messages.append(message)

    def run_end(self, data: dict[str, Any]) -> None:
        """A run has ended; nothing of it is open."""
        self._close(data["run_id"], data["stop_reason"])

    def run_error(self, data: dict[str, Any]) -> None:
        """A run has failed; nothing of it is open."""
        self._close(data["run_id"], data["error"])

    def other(self, data: dict[str, Any]) -> None:
        """What is not followed here."""

    def _move(self, run_id: str, call_id: str, before: str | tuple[str, ...] | None, after: str) -> None:
        assert self.calls.get((run_id, call_id)) in (before if isinstance(before, tuple) else (before,))
        self.calls[run_id, call_id] = after

    def _close(self, run_id: str, ending: str) -> None:
        assert {state for (of, _), state in self.calls.items() if of == run_id} <= {"discarded", "done", "pending"}
        self.runs[run_id] = ending


def check(told: Told, draw: random.Random) -> None:
    """The frames of one run, cut into random pieces, say what the run was."""

    def events() -> Iterator[RunEvent]:
        yield from told.events
        if told.error is not None:
            raise told.error

    whole = b"".join(sse(events()))
    cuts = sorted(draw.randint(0, len(whole)) for _ in range(draw.randint(0, 30)))
    frames = frames_of(whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True))
    reader = Reader(frames)
    assert [plain(one) for one in reader.messages] == [plain(one) for one in told.messages]
    assert "open" not in reader.runs.values()
    if told.error is not None:
        assert (reader.last.event, reader.last.json["error"]) == ("error", type(told.error).__name__)
    elif told.message is not None:
        assert (reader.last.event, reader.last.json["stop_reason"]) == ("done", stop_reason(told.message))
    rest = draw.randint(0, len(frames))
    assert frames_of(sse(events(), after=rest)) == frames[rest:]
    outer = [frame for frame in frames if "parent_run_id" not in frame.json]
    assert [(frame.event, frame.data) for frame in frames_of(sse(events(), nested=False))] == [(one.event, one.data) for one in outer]


def plain(message: BaseMessage) -> Any:
    """What a stored message says, without what only this process has."""
    return message.type, message.id, message.content, getattr(message, "tool_calls", None), getattr(message, "tool_call_id", None)


def check_seeds(seeds: range) -> None:
    """The runs of these seeds, and those that go on with their pending calls."""
    for seed in seeds:
        for told in conversation(seed):
            try:
                check(told, random.Random(seed))
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, a run in the way of {told.run.way}") from error


def test_a_reader_arrives_at_the_messages_of_the_run() -> None:
    """Failing, limited, approved, cancelled and nested runs, read in every way; again after any frame, and without what is nested."""
    check_seeds(range(10))


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(0, 10_000, 1000))
def test_a_reader_arrives_at_the_messages_of_many_runs(first: int) -> None:
    """The same, ten thousand times."""
    check_seeds(range(first, first + 1000))
