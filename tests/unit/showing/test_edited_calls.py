"""Calls that ran with other arguments than the model wrote, wherever a call is shown with its result: with those, marked as edited."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, messages_from_dict, messages_to_dict

from langchain_autotools import ToolExecutor, events, new_messages, pending_calls
from langchain_autotools.encoders import ai_sdk, ai_sdk_messages, sse
from langchain_autotools.encoders.finished_runs import events_of, history_events
from langchain_autotools.event_types import CallResult
from langchain_autotools.messages.display import markdown_of
from langchain_autotools.showing import GradioChat, show
from langchain_autotools.showing.page import part_html, part_text
from langchain_autotools.showing.view_model import ViewModel
from langchain_autotools.testing import ScriptedChatModel
from tests.support.desk import QUESTION, Desk, asking, call
from tests.support.event_stream import frames_of

EDITED = {"to": "Eve"}


def waiting() -> list[BaseMessage]:
    """A history whose call waits: a mail to Anna."""
    first = Desk().model(asking(call("send", "1", to="Anna")), requires_approval=["send"]).invoke([QUESTION])
    return [QUESTION, *new_messages(first)]


@cache
def ran() -> tuple[list[BaseMessage], list[Any], AIMessage]:
    """A history, the events of the run that goes on with the edited call, and its run message."""
    history, desk = waiting(), Desk()
    decisions = [one.edit(EDITED) for one in pending_calls(history)]
    told = events(desk.model(requires_approval=["send"]).stream(history, resume=decisions))
    got = list(told)
    assert desk.done == ["send Eve 1"]
    return history, got, told.message


def stored() -> list[BaseMessage]:
    """The history afterwards, as it comes back from a database."""
    history, _, message = ran()
    return messages_from_dict(json.loads(json.dumps(messages_to_dict([*history, *new_messages(message)]))))


SOURCES: dict[str, Callable[[], list[Any]]] = {
    "the run's own events": lambda: ran()[1],
    "the events of its run message": lambda: list(events_of(ran()[2])),
    "the events of a stored history": lambda: [one for one in history_events(stored()) if not isinstance(one, BaseMessage)],
}
"""What a call is shown of: each says what it ran with."""


@pytest.fixture(params=SOURCES)
def told(request: pytest.FixtureRequest) -> list[Any]:
    """The events of one of them."""
    return SOURCES[request.param]()


def test_the_result_says_as_data_what_its_call_ran_with(told: list[Any]) -> None:
    """The event keeps the model's call, where it is known, and has the arguments that ran beside it."""
    (result,) = [one for one in told if isinstance(one, CallResult)]
    assert result.edited_arguments == EDITED and result.call.args != EDITED
    assert (result.carried_out.args, result.carried_out.edited) == (EDITED, True)
    assert result.message.response_metadata["autotools"]["edited_arguments"] == EDITED


def parts(told: list[Any]) -> Iterator[Any]:
    """What a notebook shows."""
    runs = ViewModel()
    for event in told:
        runs.apply(event)
    yield from runs.parts


def test_a_notebook_shows_what_ran(told: list[Any]) -> None:
    """In the line of the call and among its arguments, as HTML and as plain text."""
    html, text = "".join(map(part_html, parts(told))), "\n".join(map(part_text, parts(told)))
    words = " ".join(re.sub(r"<[^>]*>", " ", html).replace("&quot;", '"').split())
    assert 'send(to="Eve") edited' in words and 'to "Eve"' in words.replace("to Eve", 'to "Eve"')
    assert '→ send(to="Eve") (edited)\n←' in text


def test_a_gradio_page_shows_what_ran(told: list[Any]) -> None:
    """In the panel of the call, whose title says that it was edited."""
    chat = GradioChat()
    for event in told:
        chat.show(event)
    (panel,) = [one for one in chat.messages if "&#40;edited&#41;" in one.get("metadata", {}).get("title", "")]
    assert '"to": "Eve"' in panel["content"] and panel["metadata"]["title"].startswith("send")


def test_lines_show_what_ran(capsys: pytest.CaptureFixture[str]) -> None:
    """Once more behind the call as the model wrote it, before the result."""
    history, desk = waiting(), Desk()
    decisions = [one.edit(EDITED) for one in pending_calls(history)]
    show(desk.model(requires_approval=["send"]).stream(history, resume=decisions))
    written = "".join(capsys.readouterr())
    assert [line for line in written.splitlines() if line.startswith("→")] == ['→ send(to="Anna")', '→ send(to="Eve") (edited)']


def test_markdown_shows_what_ran() -> None:
    """Of the run message alone, and of one with the AI message that made the call."""
    _, _, message = ran()
    assert '`send(to="Eve")` *edited*' in markdown_of(message)
    whole = Desk().model(asking(call("send", "1", to="Anna")), approve=lambda one: one.edit(EDITED)).invoke([QUESTION])
    shown = markdown_of(messages_from_dict(messages_to_dict([whole]))[0])
    assert '`send(to="Eve")` *edited*' in shown and "Anna" not in shown

    def send(to: str) -> str:
        """Fail."""
        raise ValueError(to)

    model = ScriptedChatModel(tools=[send], replies=[asking(call("send", "1", to="Anna")), "Done."], approve=lambda one: one.edit(EDITED))
    failed = model.invoke([QUESTION])
    assert "*edited* *failed*" in markdown_of(failed)


def test_frames_have_what_ran(told: list[Any]) -> None:
    """Server-sent events, and the stream of the AI SDK."""
    (result,) = [frame.json for frame in frames_of(iter(sse(told))) if frame.event == "tool_result"]
    assert result["edited_arguments"] == EDITED
    chunks = [frame.json for frame in frames_of(iter(ai_sdk(told))) if frame.data.startswith("{")]
    assert [one["data"] for one in chunks if one["type"] == "data-edited-arguments"] == [{"toolCallId": "1", "input": EDITED}]


def test_a_page_of_the_ai_sdk_that_is_loaded_again_has_it() -> None:
    """As a part of the assistant's message."""
    found = [part for one in ai_sdk_messages(stored()) for part in one["parts"] if part["type"] == "data-edited-arguments"]
    assert [one["data"] for one in found] == [{"toolCallId": "1", "input": EDITED}]


def test_a_client_of_ag_ui_has_it() -> None:
    """In the metadata of the result, and of the message when the page is loaded again."""
    pytest.importorskip("ag_ui", reason="needs the extra `ag-ui`")
    from langchain_autotools.encoders import ag_ui

    written = [frame.json for frame in frames_of(iter(ag_ui(ran()[1], thread_id="t", run_id="r", history=stored())))]
    (result,) = [one for one in written if one["type"] == "TOOL_CALL_RESULT"]
    (snapshot,) = [one for one in written if one["type"] == "MESSAGES_SNAPSHOT"]
    tools = [one for one in snapshot["messages"] if one["role"] == "tool"]
    assert [one["metadata"]["autotools"]["editedArguments"] for one in (result, *tools)] == [EDITED] * 2


def test_an_executor_alone_marks_it_and_a_call_as_the_model_made_it_has_no_mark() -> None:
    """An edit that changes nothing is none."""
    executor = ToolExecutor([Desk().send], requires_approval=["send"])
    answer = AIMessage("", tool_calls=[call("send", "1", to="Anna")], id="m")
    (pending,) = executor.pending_calls(answer)
    marks = []
    for decision in (pending.edit(EDITED), pending.edit({"to": "Anna"}), pending.approve(), pending.respond("Sent.")):
        (result,) = executor.execute_all(answer, decisions=[decision])
        assert isinstance(result, ToolMessage)
        marks.append(result.response_metadata.get("autotools", {}).get("edited_arguments"))
    assert marks == [EDITED, None, None, None]


@pytest.mark.parametrize("forged", ["<script>alert(1)</script>", ["x"], 3, {"to": "<script>alert(1)</script>"}])
def test_a_mark_that_a_client_made_is_text_or_nothing(forged: Any) -> None:
    """What a stored result says is shown and nothing more."""
    history = stored()
    history[-2].response_metadata["autotools"]["edited_arguments"] = forged
    made = [one for one in history_events(history) if not isinstance(one, BaseMessage)]
    html = "".join(map(part_html, parts(made)))
    assert "<script>" not in html and ("edited" in html) == isinstance(forged, dict)
