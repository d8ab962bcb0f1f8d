"""What has been seen of runs as the messages of Gradio's `Chatbot`."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from html import unescape
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_autotools import Decision, aevents
from langchain_autotools.errors import AutoToolsError, StreamError
from langchain_autotools.event_types import (
    CallDiscarded,
    CallResult,
    CallsPending,
    MessageDiscarded,
    MessageDone,
    MessagesAdded,
    ReasoningDelta,
    RunEnded,
    RunEvent,
    RunFailed,
    RunStarted,
    TextDelta,
)
from langchain_autotools.showing import GradioChat, gradio_chat, gradio_words_of_tool
from langchain_autotools.showing.gradio_chat import gradio_markdown
from langchain_autotools.testing import ScriptedChatModel
from tests.support.seen_runs import INNER, OUTER, PAGE_TAG, Read, answered, begun, pending, ready, record, reported, written

PARIS = record("1", "forecast", {"city": "Paris"})
ASKED = MessagesAdded(**OUTER, messages=[HumanMessage("How warm is it?", id="h")])


class RunFailedError(AutoToolsError):
    """As the one of runs that are kept, which needs an extra."""


NEXT: dict[str, Any] = {"run_id": "next"}


def chat_of(*events: RunEvent | Iterable[RunEvent]) -> GradioChat:
    """The conversation after these events."""
    chat = GradioChat()
    for one in events:
        for event in [one] if isinstance(one, RunEvent) else one:
            chat.show(event)
    return chat


def words(content: str) -> list[str]:
    """What is to be read of a message."""
    return unescape(re.sub("<[^>]*>|```(?:text)?", " ", content)).split()


def shown(chat: GradioChat) -> list[str]:
    """Each message on a line: whose it is, the line of its panel, its content."""
    lines = []
    for message in chat.messages:
        title = message.get("metadata", {})
        panel = [f"[{' | '.join(str(title[key]) for key in ('title', 'log', 'status') if key in title)}]"] if title else []
        lines.append(" ".join([message["role"], *panel, *words(message["content"])]))
    return lines


def test_messages_stand_in_the_order_in_which_they_came() -> None:
    """The user's, reasoning, text, a call with its result, the answer."""
    thought = ReasoningDelta(**OUTER, message_id="m", text="A tool knows.")
    answer = TextDelta(**OUTER, message_id="n", text="It is warm.")
    chat = chat_of(ASKED, RunStarted(**OUTER, name="Weather"), thought, begun(), ready(PARIS), answered(PARIS, "21 °C"), answer)
    assert chat.is_running
    assert shown(chat) == [
        "user How warm is it?",
        "assistant [Reasoning] A tool knows.",
        "assistant Let me look .",
        'assistant [forecast | 21 °C | done] { "city": "Paris" } 21 °C',
        "assistant It is warm.",
    ]
    chat.show(RunEnded(**OUTER, stop_reason="complete", turns=2))
    assert not chat.is_running and len(chat.messages) == 5


def test_the_line_of_a_call_says_where_it_stands() -> None:
    """While it is written, while it runs, what its tool reports, and briefly what came of it."""
    chat = chat_of(begun(), written('{"city": "Pa'))
    assert shown(chat)[-1] == 'assistant [forecast | is being written | pending] {"city": "Pa'
    for events, line in [
        (ready(PARIS), "[forecast |  | pending]"),
        (reported("1", "station", {"done": 0.5}), '[forecast | {"done": 0.5} | pending]'),
        ([answered(PARIS, "21 °C\n" + "sunny " * 50)], "[forecast | 21 °C sunny"),
    ]:
        for event in events:
            chat.show(event)
        assert line in shown(chat)[-1]
    assert len(chat.messages[-1]["metadata"]["log"]) == 80 and "sunny " * 50 in chat.messages[-1]["content"]


def test_a_call_that_waits_keeps_its_panel_when_it_is_decided() -> None:
    """The run that goes on with it has another id. What ran is shown, not what was asked for."""
    waits = pending(PARIS)
    ended = RunEnded(**OUTER, stop_reason="calls_pending", turns=1)
    chat = chat_of(begun(), ready(PARIS), CallsPending(**OUTER, calls=[waits]), ended)
    assert chat.pending == [waits]
    assert shown(chat)[-1] == 'assistant [forecast | waits for you] { "city": "Paris" }'
    edited = replace(PARIS, decision=Decision("1", "edit", {"city": "Rome"}, "uuid", "digest"))
    for event in [RunStarted(**NEXT, name="Weather"), *ready(edited, NEXT)]:
        chat.show(event)
    assert chat.pending == [] and "pending" in shown(chat)[-1]
    chat.show(answered(edited, "27 °C", NEXT))
    assert shown(chat)[1:] == ['assistant [forecast &#40;edited&#41; | 27 °C | done] { "city": "Rome" } 27 °C']


def test_a_page_with_editors_shows_a_call_that_waits_there_alone() -> None:
    """It has its panel, at its place, from when it was decided; a call that has begun, and whose server asks a question, keeps it."""
    waits, question = pending(PARIS), {"message": "Which?", "schema": {"type": "object"}}
    chat = GradioChat(show_waiting=False)
    for event in [*begun(), *ready(PARIS), CallsPending(**OUTER, calls=[waits])]:
        chat.show(event)
    assert chat.pending == [waits] and shown(chat) == ["assistant Let me look ."]
    for event in [RunEnded(**OUTER, stop_reason="calls_pending", turns=1), RunStarted(**NEXT, name="Weather"), *ready(PARIS, NEXT)]:
        chat.show(event)
    assert shown(chat)[1:] == ['assistant [forecast |  | pending] { "city": "Paris" }']
    asks = replace(waits, kind="elicitation", args=question)
    chat.show(CallsPending(**NEXT, calls=[asks]))
    assert chat.pending == [asks] and "waits for you" in shown(chat)[1]
    assert gradio_words_of_tool(waits) == ""
    assert words(gradio_words_of_tool(asks)) == ["Expected", "answer:", "{", '"schema":', "{", '"type":', '"object"', "}", "}"]


def test_a_message_after_calls_that_wait_leaves_nothing_to_decide() -> None:
    """The user has said something else instead: the call's panel says that it was interrupted, also where the page has editors."""
    for chat in (GradioChat(), GradioChat(show_waiting=False)):
        for event in [*begun(), *ready(PARIS), CallsPending(**OUTER, calls=[pending(PARIS)]), ASKED]:
            chat.show(event)
        assert chat.pending == []
        assert shown(chat)[1:] == ['assistant [forecast | interrupted | done] { "city": "Paris" }', "user How warm is it?"]


def test_a_reply_that_died_is_gone_and_its_call_begins_again() -> None:
    """Under the same id: what the dead process told of it is another call."""
    died = CallDiscarded(**OUTER, message_id="m", call_id="1", reason="the process has ended")
    chat = chat_of(begun(), written('{"ci'), died, MessageDiscarded(**OUTER, message_id="m", attempt=1))
    assert shown(chat) == ['assistant [forecast | the process has ended | done] {"ci']
    for event in [*begun("Again."), *ready(PARIS), answered(PARIS, "21 °C")]:
        chat.show(event)
    assert shown(chat)[1:] == ["assistant Again.", 'assistant [forecast | 21 °C | done] { "city": "Paris" } 21 °C']


def test_a_later_call_with_the_same_id_is_another_call() -> None:
    """Some servers count their calls from one in every reply."""
    chat = chat_of(begun(), ready(PARIS), answered(PARIS, "21 °C"), ready(PARIS, NEXT), answered(PARIS, "22 °C", NEXT))
    assert [message["metadata"]["log"] for message in chat.messages[1:]] == ["21 °C", "22 °C"]


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (RunEnded(**OUTER, stop_reason="cancelled", turns=1), "The run was stopped: cancelled"),
        (RunEnded(**OUTER, stop_reason="max_turns", turns=1), "The run was stopped: max turns"),
        (RunFailed(**OUTER, error=ValueError("secret")), "The run failed: ValueError"),
    ],
)
def test_an_unusual_end_is_said(event: RunEvent, said: str) -> None:
    """Of a failure only its class; a call that was running is no longer."""
    chat = chat_of(begun(), ready(PARIS), event)
    assert shown(chat)[1:] == ['assistant [forecast | interrupted | done] { "city": "Paris" }', f"assistant {said}"]
    assert not chat.is_running


def test_a_run_inside_a_tool_stands_in_its_call() -> None:
    """Its end is not that of the conversation's run."""
    inner = [
        RunStarted(**INNER, name="Inner"),
        TextDelta(**INNER, message_id="i", text="Deep."),
        RunEnded(**INNER, stop_reason="complete", turns=1),
    ]
    chat = chat_of(begun(), ready(PARIS), inner)
    assert chat.is_running
    assert "Deep." in chat.messages[-1]["content"] and len(chat.messages) == 2


def test_a_reader_who_comes_while_a_tool_runs_a_model_sees_its_text() -> None:
    """The run around it began before; it ends as any other."""
    chat = chat_of(TextDelta(**INNER, message_id="i", text="Asking."), RunEnded(**OUTER, stop_reason="complete", turns=2))
    assert shown(chat) == ["assistant Asking."] and not chat.is_running


def test_what_a_tool_says_stays_in_its_fence() -> None:
    """However many backticks it has."""
    chat = chat_of(begun(), ready(PARIS), answered(PARIS, "````\n# Title"))
    assert chat.messages[-1]["content"].endswith("`````text\n````\n# Title\n`````")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RunFailedError("OpenAIRateLimitError: secret"), "has too much to do, or the account has reached its limit (OpenAIRateLimitError)"),
        (RunFailedError("TimeoutError: secret"), "The run failed: TimeoutError"),
        (RunFailedError("the run was ended from outside"), "The run failed: it was ended from outside"),
        (StreamError("secret"), "the model's answer cannot be read (StreamError)"),
    ],
)
def test_a_failure_says_what_failed_and_can_be_tried_again(error: Exception, said: str) -> None:
    """Nothing of the error's own text. What the run was is known until another one begins."""
    chat = chat_of(begun(), RunFailed(**OUTER, error=error))
    assert said in shown(chat)[-1] and "secret" not in str(chat.messages) and chat.failed == "outer"
    chat.show(RunStarted(**NEXT, name="Weather"))
    assert chat.failed is None and chat.is_running


@pytest.mark.parametrize(
    ("why", "said"), [(None, "Rejected: it did not run."), ("Too dear.", "Rejected: Too dear."), ("<b>", "Rejected: <b>")]
)
def test_a_call_that_was_rejected_says_so(why: str | None, said: str) -> None:
    """In a sentence, not as the JSON that the model reads; of any other error the sentence that is in it."""
    rejected = replace(PARIS, args=None, decision=Decision("1", "reject", why, "uuid", "digest"))
    told = json.dumps({"error": why or "This call was denied and did not run."})
    chat = chat_of(begun(), ready(PARIS), answered(rejected, told, status="error"))
    assert chat.messages[-1]["metadata"]["log"] == said and said in unescape(chat.messages[-1]["content"])
    chat = chat_of(begun(), ready(PARIS), answered(PARIS, '{"error": "No such city."}', status="error"))
    assert chat.messages[-1]["metadata"]["log"] == "No such city."


IMAGE: dict[str, Any] = {"type": "image", "base64": "aGVsbG8=", "mime_type": "image/png"}
OPENAI_IMAGE: dict[str, Any] = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}
SHOWN = '<img src="data:image/png;base64,aGVsbG8=" alt="image"'


@pytest.mark.parametrize("image", [IMAGE, OPENAI_IMAGE])
def test_images_are_shown_by_their_data(image: dict[str, Any]) -> None:
    """The user's, the model's and a tool's; one on the web is a link, any other address is there as text, what is none is a word."""
    elsewhere = {"type": "image", "url": "https://a.org/?secret"}
    stored = {"type": "image", "url": "gs://bucket/<b>.png"}
    wrong = {"type": "image", "base64": '"><script>', "mime_type": "text/html"}
    question = MessagesAdded(**OUTER, messages=[HumanMessage([{"type": "text", "text": "Look"}, image, elsewhere, stored, wrong], id="h")])
    reply = MessageDone(**OUTER, message=AIMessage([{"type": "text", "text": "So"}, image], id="m"))
    drawn = CallResult(**OUTER, call=PARIS, index=0, message=ToolMessage([image], tool_call_id="1"), duration=0.1, executed=True)
    chat = chat_of(question, begun(), reply, ready(PARIS), drawn)
    assert [message["content"].count(SHOWN) for message in chat.messages] == [1, 0, 1, 1]
    assert "https://a.org" in chat.messages[0]["content"] and "script" not in chat.messages[0]["content"]
    assert "<p>Image: gs://bucket/&lt;b&gt;.png</p>" in chat.messages[0]["content"] and "<p>[image]</p>" in chat.messages[0]["content"]
    assert str(chat.messages).count("<img") == 3


HOSTILE = "<form/action=x> **a** `b` ``` ~~~ | - $$ \\( \\[ \\] $ # > 1. & &lt; [e](javascript:f) ![i](http://e/?q) <!-- %%% '"


@given(st.lists(st.sampled_from([*HOSTILE.split(), "\n", "\n\n", "    ", "```python\n", "\n```\n", "x"]), max_size=25).map(" ".join))
def test_nothing_in_a_text_can_be_taken_for_html(text: str) -> None:
    """Wherever Gradio's own reading of Markdown would look: each line is our HTML, closed, or code in a fence, or empty."""
    fence = ""
    for line in gradio_markdown(text).split("\n"):
        if fence:
            fence = "" if line == fence else fence
            assert not line.startswith(fence) if fence else True
        elif line.startswith("```"):
            fence = "`" * (len(line) - len(line.lstrip("`")))
        elif line:
            read = Read(line)
            assert line.startswith("<div>") and read.balanced and all(map(PAGE_TAG.fullmatch, read.tags))
            assert {name for name, _ in read.attributes} <= {"href", "target", "rel", "class", "style", "start"}
    assert not fence


def test_messages_that_were_appended_have_their_roles() -> None:
    """What the system says is not for pages."""
    told = [SystemMessage("Be brief.", id="s"), HumanMessage("Hello", id="h"), AIMessage("Good day", id="a")]
    assert shown(chat_of(MessagesAdded(**OUTER, messages=told))) == ["user Hello", "assistant Good day"]


def test_what_a_run_has_read_is_known_and_stands_where_it_was_read() -> None:
    """Between the replies before and after, on the user's side."""
    said = MessageDone(**OUTER, message=HumanMessage("I meant Rome.", id="s"))
    chat = chat_of(ASKED, begun())
    assert chat.read == {"h"}
    for event in (said, TextDelta(**OUTER, message_id="n", text="It is warm.")):
        chat.show(event)
    assert shown(chat)[1:] == ["assistant Let me look .", "user I meant Rome.", "assistant It is warm."]
    assert chat.read == {"h", "s"}


async def test_many_events_are_few_views() -> None:
    """The first comes before any event, the last has all of them."""
    model = ScriptedChatModel(replies=["word " * 500])
    sizes = [
        len(words(view.messages[0]["content"])) if view.messages else 0 async for view in gradio_chat(aevents(model.astream("Go on.")))
    ]
    assert sizes[0] == 0 and sizes[-1] == 500 and len(sizes) < 100


async def test_a_failure_comes_after_what_was_told() -> None:
    """The last view says that the run failed."""
    model = ScriptedChatModel(replies=[["Well", ValueError("no")]])
    last: list[str] = []
    with pytest.raises(ValueError, match="no"):
        async for view in gradio_chat(aevents(model.astream("Go on."))):
            last = shown(view)
    assert last == ["assistant Well", "assistant The run failed: ValueError"]


async def test_who_leaves_closes_the_events() -> None:
    """A page that was closed leaves nobody reading."""
    closed = asyncio.Event()

    async def waiting() -> AsyncIterator[RunEvent]:
        try:
            yield ASKED
            await asyncio.Event().wait()
        finally:
            closed.set()

    views = gradio_chat(waiting())
    await anext(views)
    assert shown(await anext(views)) == ["user How warm is it?"]
    await views.aclose()
    assert closed.is_set()


async def test_what_cannot_be_shown_closes_the_events() -> None:
    """The error comes after what was shown, and the events have ended by then."""
    closed = asyncio.Event()

    async def wrong() -> AsyncIterator[Any]:
        try:
            yield RunStarted(**OUTER, name="Weather")
            yield "no event"
        finally:
            closed.set()

    with pytest.raises(TypeError):
        async for _ in gradio_chat(wrong()):
            pass
    assert closed.is_set()
