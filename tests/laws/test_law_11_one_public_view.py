"""Law 11, one public view: a marker is in every field of every record of a run, and no reader finds those that are not for readers."""

import io
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage, messages_from_dict

from langchain_autotools import Agent, Decision, PendingCall, ToolCallRecord, event_types, events
from langchain_autotools.cli.display import EventDisplay
from langchain_autotools.encoders import ag_ui, ai_sdk, ai_sdk_messages, sse
from langchain_autotools.encoders.finished_runs import history_events
from langchain_autotools.event_types import RunEvent
from langchain_autotools.messages.metadata import KEY
from langchain_autotools.messages.run_messages import open_run
from langchain_autotools.showing.gradio_chat import GradioChat
from langchain_autotools.showing.page import part_html, part_text
from langchain_autotools.showing.view_model import Lines, ViewModel
from langchain_autotools.testing import ScriptedChatModel

ORDER = (
    *("MessagesAdded", "RunStarted", "ReasoningDelta", "TextDelta", "CallStarted", "CallArgumentsDelta", "CallReady"),
    *("VendorCallStarted", "VendorCallProgress", "VendorCallDone", "SourceFound", "FileMade", "MessageDone", "TurnUsage"),
    *("CallProgress", "CallResult", "ModelChanged", "ContextCompacted", "PrefixChanged", "MessageDiscarded", "CallDiscarded"),
    "CallsPending",
)
ENDS = ("RunEnded", "RunFailed")
HIDDEN = (
    *(".artifact", ".headers", ".rejected", ".compacted", ".used_inside", ".own.unknown", ".error", ".system"),
    *(".call.extra", ".call.wire_id", ".call.run", ".call.approved", ".open_run.messages", ".open_run.args", ".open_run.unknown"),
)
"""What in the path of a marker says that it is not for readers."""
OWN = ("calls", "awaits", "compacted", "failover", "origin", "rejected", "used_inside", "unknown")
NUMBERS: Mapping[Any, Any] = {int: 1, float: 0.5, bool: False, int | None: 1}
TEXTS = (str, str | None)
USAGE: Any = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}


class Field:
    """Plants markers.

    Attributes:
        markers: The path of each.
    """

    def __init__(self) -> None:
        self.markers: dict[str, str] = {}

    def __call__(self, path: str) -> str:
        """A marker, and a note of where it is."""
        marker = f"mark{len(self.markers):04d}x"
        self.markers[marker] = path
        return marker

    def found_in(self, text: str, hidden: Sequence[str] = HIDDEN) -> list[str]:
        """The paths of markers that are in a text and are not for readers."""
        return [path for marker, path in self.markers.items() if marker in text and any(one in path for one in hidden)]


def ai(plant: Field, path: str) -> AIMessage:
    """A message of the model with a marker in every field."""
    own = {name: [{"id": "c", "kept": plant(f"{path}.own.{name}")}] for name in OWN}
    metadata = {"model_provider": plant(f"{path}.provider"), "headers": {"x-request": plant(f"{path}.headers")}, KEY: own}
    call = {"name": plant(f"{path}.tool_calls.name"), "args": {"at": plant(f"{path}.tool_calls.args")}, "id": "c", "type": "tool_call"}
    return AIMessage(plant(f"{path}.content"), id="m", tool_calls=[call], response_metadata=metadata, usage_metadata=USAGE)


def result(plant: Field, path: str) -> ToolMessage:
    """A result inside which a run waits, with a marker in every field."""
    inner = [
        {"type": "ai", "data": {"content": plant(f"{path}.open_run.messages.content"), "type": "ai"}},
        {"type": "system", "data": {"content": plant(f"{path}.open_run.messages.system"), "type": "system"}},
    ]
    record = {name: plant(f"{path}.open_run.{name}") for name in ("args", "unknown")}
    open_run = {**record, "message": "m", "calls": [pending(plant, f"{path}.open_run.calls").to_dict()], "inside": [], "messages": inner}
    own = {"open_run": open_run, **{name: [{"kept": plant(f"{path}.own.{name}")}] for name in ("used_inside", "unknown")}}
    metadata = {KEY: own, "headers": {"x-request": plant(f"{path}.headers")}}
    about: Any = {"response_metadata": metadata, "artifact": {"kept": plant(f"{path}.artifact")}}
    return ToolMessage(plant(f"{path}.content"), tool_call_id="c", id="t", name="look", **about)


def pending(plant: Field, path: str) -> PendingCall:
    """A call that waits."""
    name, args, uuid, digest = (plant(f"{path}.{one}") for one in ("name", "args", "uuid", "digest"))
    return PendingCall("c", name, {"at": args}, "approval", uuid, digest)


def record(plant: Field, path: str, *, inner: bool = True) -> ToolCallRecord:
    """A call with a marker in every field."""
    names = [one.name for one in fields(ToolCallRecord) if one.type in TEXTS and one.name != "id"]
    texts: dict[str, Any] = {name: plant(f"{path}.{name}") for name in names}
    opaque: dict[str, Any] = {"extra": {"signature": plant(f"{path}.extra")}, "run": {"kept": plant(f"{path}.run")}}
    decided = Decision("c", "edit", {"at": plant(f"{path}.decision")}) if inner else None
    call = ToolCallRecord(**{"id": "c", **texts, **opaque, "args": {"at": plant(f"{path}.args")}, "decision": decided})
    return replace(call, approved=record(plant, f"{path}.approved", inner=False)) if inner else call


MADE: Mapping[str, Callable[[Field, str], Any]] = {
    "call": record,
    "calls": lambda plant, path: [pending(plant, path)],
    "error": lambda plant, path: RuntimeError(plant(path)),
    "usage": lambda plant, path: USAGE,
    "args": lambda plant, path: {"at": plant(path)},
    "messages": lambda plant, path: (SystemMessage(plant(f"{path}.system"), id="s"), HumanMessage(plant(f"{path}.human"), id="h")),
}
FIXED: Mapping[str, Any] = {
    "provisional": True,
    "stop_reason": "calls_pending",
    "mime_type": "text/plain",
    "url": None,
    "image": None,
    "data": None,
}


def planted(plant: Field, name: str, run: Mapping[str, Any], prefix: str) -> list[RunEvent]:
    """An event of a kind with a marker in each of its fields; of a message's end two, one for each kind of message."""
    kind, values = getattr(event_types, name), dict(run)
    for one in (one for one in fields(kind) if one.init and one.name not in values and one.name != "position"):
        path = f"{prefix}{name}.{one.name}"
        if one.name in MADE:
            values[one.name] = MADE[one.name](plant, path)
        elif one.name.endswith("_id") and one.name != "file_id":
            values[one.name] = {"message_id": "m"}.get(one.name, "v" if name.startswith("Vendor") else "c")
        elif one.name in FIXED:
            values[one.name] = FIXED[one.name]
        elif one.name != "message":
            values[one.name] = NUMBERS[one.type] if one.type in NUMBERS else plant(path)
    messages = {"MessageDone": (ai, result), "CallResult": (result,)}.get(name, ())
    return [kind(**values, message=make(plant, f"{prefix}{name}.message")) for make in messages] or [kind(**values)]


def a_run(plant: Field, end: str) -> list[RunEvent]:
    """Events of a run, and of a run inside one of its calls, in an order that could be."""
    inside = {"run_id": "i", "parent_run_id": "r", "parent_call_id": "c"}
    outer = [planted(plant, name, {"run_id": "r"}, "outer.") for name in ORDER]
    inner = [planted(plant, name, inside, "inner.") for name in (*ORDER[1:], end)]
    last = planted(plant, end, {"run_id": "r"}, "outer.")
    place = ORDER.index("CallProgress")
    return [event for group in (*outer[:place], *inner, *outer[place:], last) for event in group]


def as_text(chunks: Iterator[bytes]) -> str:
    """All that is sent."""
    return b"".join(chunks).decode()


def messages_of(text: str) -> list[BaseMessage]:
    """The messages that server-sent events bring."""
    data = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]
    return messages_from_dict([one["message"] for one in data if isinstance(one.get("message"), dict)])


def shown_by_page(happened: Sequence[Any]) -> str:
    """What cells of notebooks show."""
    model = ViewModel()
    for one in happened:
        model.apply(one) if isinstance(one, RunEvent) else model.add_input(one)
    return "".join(part_html(part) + part_text(part) for part in model.parts)


def shown_by_gradio(happened: Sequence[RunEvent]) -> str:
    """What a chat of Gradio's shows."""
    chat = GradioChat()
    for one in happened:
        chat.show(one)
    return json.dumps(chat.messages, default=str)


def shown_by_lines(happened: Sequence[RunEvent]) -> str:
    """What a terminal shows."""
    output = io.StringIO()
    lines = Lines(output, output)
    for one in happened:
        lines.show(one)
    return output.getvalue()


def shown_by_json_lines(happened: Sequence[RunEvent]) -> str:
    """What the command line writes for programs."""
    output = io.StringIO()
    display = EventDisplay(output)
    for one in happened:
        display.show(one)
    return output.getvalue()


READERS: Mapping[str, Callable[[Sequence[RunEvent]], str]] = {
    "sse": lambda happened: as_text(sse(happened)),
    "sse, not nested": lambda happened: as_text(sse(happened, nested=False)),
    "AI SDK": lambda happened: as_text(ai_sdk(happened)),
    "AI SDK, whole turns": lambda happened: as_text(ai_sdk(happened, whole_turns=True)),
    "AG-UI": lambda happened: as_text(ag_ui(happened, thread_id="t")),
    "AG-UI, not nested": lambda happened: as_text(ag_ui(happened, thread_id="t", nested=False)),
    "pages of notebooks": shown_by_page,
    "Gradio": shown_by_gradio,
    "lines": shown_by_lines,
    "JSON lines": shown_by_json_lines,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("end", ENDS)
def test_law_11_no_reader_finds_what_is_not_for_readers(reader: str, end: str, caplog: pytest.LogCaptureFixture) -> None:
    """Of every field of every event, call and message; nor does a log have anything of it at DEBUG."""
    if reader.startswith("AG-UI"):
        pytest.importorskip("ag_ui", reason="needs the extra `ag-ui`")
    plant = Field()
    happened = a_run(plant, end)
    with caplog.at_level(logging.DEBUG):
        text = READERS[reader](happened)
    hidden = (*HIDDEN, "inner.") if "not nested" in reader else HIDDEN
    if reader == "JSON lines":  # of a terminal of one's own: it shows the artifacts of tools
        hidden = tuple(one for one in hidden if one != ".artifact")
    assert plant.found_in(text, hidden) == []
    assert any(marker in text for marker, path in plant.markers.items() if path == "outer.CallResult.message.content")
    assert not [path for marker, path in plant.markers.items() if marker in caplog.text]


def test_law_11_a_history_that_is_shown_is_seen_through_the_same_view() -> None:
    """A page that is loaded again, and a cell that shows a history."""
    plant = Field()
    history = [SystemMessage(plant("system"), id="s"), HumanMessage(plant("question"), id="h"), ai(plant, "ai"), result(plant, "tool")]
    shown = {"pages of notebooks": shown_by_page(list(history_events(history[1:]))), "AI SDK": json.dumps(ai_sdk_messages(history))}
    if pytest.importorskip("ag_ui", reason="needs the extra `ag-ui`"):
        shown["AG-UI"] = as_text(ag_ui([], thread_id="t", history=history))
    for reader, text in shown.items():
        assert plant.found_in(text, (*HIDDEN, "system")) == [], reader
        assert next(iter(marker for marker, path in plant.markers.items() if path == "question")) in text


def test_law_11_the_transcript_of_a_waiting_agent_stays_with_the_server(caplog: pytest.LogCaptureFixture) -> None:
    """A page sees the call that waits inside, and what it waits for; the log has no content at all, at DEBUG."""

    def look(at: str) -> str:
        """Look."""
        return f"seen {at}"

    def pay(amount: str) -> str:
        """Pay."""
        return amount

    inner = [
        AIMessage("inner words", tool_calls=[{"name": "look", "args": {"at": "inner place"}, "id": "l"}]),
        AIMessage("", tool_calls=[{"name": "pay", "args": {"amount": "1 coin"}, "id": "p"}]),
    ]
    model = ScriptedChatModel(name="helper", replies=inner, tools=[look, pay], requires_approval=["pay"])
    asks = AIMessage("outer words", tool_calls=[{"name": "helper", "args": {"question": "outer question"}, "id": "h"}])
    outer = ScriptedChatModel(replies=[asks], tools=[Agent(model, system_prompt="inner prompt")])
    with caplog.at_level(logging.DEBUG):
        stream = events(outer.stream("Go."))
        happened = list(stream)
        shown = {reader: READERS[reader](happened) for reader in ("sse", "sse, not nested", "pages of notebooks", "Gradio", "JSON lines")}
    assert stream.message is not None and "inner place" in json.dumps(stream.message.response_metadata)  # the server's own messages have it
    for reader, text in shown.items():
        assert "inner prompt" not in text and "1 coin" in text, reader
        assert ("inner place" in text) == ("not nested" not in reader), reader
    records = [record for message in messages_of(shown["sse"]) if (record := open_run(message)) is not None]
    assert [list(record) for record in records] == [["calls"]]
    words = ("inner words", "inner place", "inner prompt", "outer words", "outer question", "1 coin")
    assert [word for word in words if word in caplog.text] == []
