"""`show` outside of notebooks: a run is printed while it happens, and its message returned."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser

from langchain_autotools import ConfigurationError, ToolContext, new_messages, pending_calls, show
from langchain_autotools.encoders.finished_runs import history_events
from langchain_autotools.messages.display import run_markdown
from langchain_autotools.showing.page import part_html, part_text
from langchain_autotools.showing.view_model import ViewModel
from langchain_autotools.testing import ScriptedChatModel

CALL = {"name": "forecast", "args": {"city": "Paris"}, "id": "1", "type": "tool_call"}
USAGE: Any = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
PRINTED = """\
Let me look.
→ forecast(city="Paris")
… forecast: asking the station
← forecast: rain in Paris
Take a coat.
[2 turns]
"""


def forecast(city: str, context: ToolContext) -> str:
    """The forecast of a city."""
    context.report("asking the station")
    return f"rain in {city}"


def model_of(*replies: Any, **settings: Any) -> ScriptedChatModel:
    """A model that gives these replies."""
    return ScriptedChatModel(replies=replies, tools=[forecast], **settings)


def weather() -> ScriptedChatModel:
    """A model that looks and answers."""
    return model_of(AIMessage("Let me look.", tool_calls=[CALL]), "Take a coat.")


def test_a_run_is_printed_and_its_message_returned(capsys: pytest.CaptureFixture[str]) -> None:
    """What `invoke` returns, with its messages."""
    run = show(weather().stream("How is the weather?"))
    assert capsys.readouterr().out == PRINTED
    expected = weather().invoke("How is the weather?")
    assert run.text == expected.text and [one.type for one in new_messages(run)] == ["ai", "tool", "ai"]


async def test_an_asynchronous_run_is_awaited(capsys: pytest.CaptureFixture[str]) -> None:
    """In the loop that runs, as in a notebook."""
    run = await show(weather().astream("How is the weather?"))
    assert capsys.readouterr().out == PRINTED
    assert run.text == "Let me look.\nTake a coat."


def test_a_chain_is_shown_too(capsys: pytest.CaptureFixture[str]) -> None:
    """Also where it gives no messages: what is returned is the message of the run in it."""
    assert show((weather() | StrOutputParser()).stream("How is the weather?")).text == "Let me look.\nTake a coat."
    assert capsys.readouterr().out == PRINTED


def test_text_is_printed_as_it_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    """Each piece before the next one is asked for."""
    seen: list[str] = []

    def pieces() -> Iterator[str]:
        for piece in ("Once ", "upon ", "a time."):
            yield piece
            seen.append(capsys.readouterr().out)

    show(ScriptedChatModel(replies=[pieces()]).stream("A story!"))
    assert seen == ["Once ", "upon ", "a time."]


@pytest.mark.parametrize("added", [False, True], ids=["run not in history", "run in history"])
def test_calls_that_wait_are_printed(added: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """With what they would do, and the line that lets them run; it is right as it is printed."""
    model = model_of(AIMessage("", tool_calls=[CALL]), "Take a coat.", requires_approval=True)
    history: list[BaseMessage] = [HumanMessage("How is the weather?")]
    run = show(model.stream(history))
    *_, waits, end, how, line = capsys.readouterr().out.splitlines()
    assert (waits, end) == ('? forecast(city="Paris") waits', "[1 turn · stopped: calls_pending]")
    assert how == "1 call waits for you. To go on, with pending_calls from langchain_autotools:"
    history += new_messages(run) if added else []
    names = {"show": show, "model": model, "history": history, "run": run, "pending_calls": pending_calls}
    exec(line, names)
    assert run.tool_calls and isinstance(names["run"], AIMessage) and names["run"].text == "Take a coat."
    show([*history, *([] if added else new_messages(run))])
    line = capsys.readouterr().out.splitlines()[-1]
    assert line == "run = show(model.stream(history, resume=[call.approve() for call in pending_calls(history)]))"


class Closes:
    """Replies that note when their reading ends."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.closed = False

    def pieces(self, *_: Any, **__: Any) -> Iterator[Any]:
        """Some text, then the error."""
        try:
            yield "Once upon "
            raise self.error
        finally:
            self.closed = True


@pytest.mark.parametrize(("error", "said"), [(ValueError("a secret"), "failed: ValueError"), (KeyboardInterrupt(), "interrupted")])
def test_a_run_that_breaks_off_is_printed_closed_and_raised(error: BaseException, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The error of a run, and an interrupt; the stream behind it is closed."""
    replies = Closes(error)
    with pytest.raises(type(error)):
        show(ScriptedChatModel(replies=replies.pieces).stream("A story!"))
    assert capsys.readouterr().out == f"Once upon \n[{said}]\n"
    assert replies.closed


async def test_a_task_that_is_cancelled_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """And closes the run."""
    begun, left = asyncio.Event(), asyncio.Event()

    async def waits(city: str) -> str:
        """Wait."""
        begun.set()
        try:
            await asyncio.sleep(300)
        finally:
            left.set()
        return city

    call = {**CALL, "name": "waits"}
    task = asyncio.ensure_future(show(ScriptedChatModel(replies=[AIMessage("", tool_calls=[call])], tools=[waits]).astream("Hi")))
    await asyncio.wait_for(begun.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert left.is_set()
    assert capsys.readouterr().out.splitlines() == ['→ waits(city="Paris")', "[interrupted]"]


@pytest.mark.parametrize(("value", "why"), [("Hello", "not str"), (None, "not NoneType"), ([("human", "Hello")], "has a tuple in it")])
def test_what_cannot_be_shown_is_refused(value: Any, why: str) -> None:
    """Before anything is shown."""
    with pytest.raises(ConfigurationError, match=why):
        show(value)


def test_a_run_that_has_ended_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """What `invoke` returned, as its stream would have been, without what is in no message: the progress of calls."""
    assert show(weather().invoke("How is the weather?")) is None  # type: ignore[func-returns-value]
    assert capsys.readouterr().out == PRINTED.replace("… forecast: asking the station\n", "")


@pytest.mark.parametrize(
    ("message", "printed"),
    [
        (HumanMessage("How is\nthe weather?"), "> How is\n> the weather?\n"),
        (SystemMessage("Be brief."), "> (system) Be brief.\n"),
        (AIMessage("Rain.", usage_metadata=USAGE), "Rain.\n[1 turn · 3 tokens in, 2 out]\n"),
        (ToolMessage("rain", name="forecast", tool_call_id="1"), "← forecast: rain\n"),
    ],
)
def test_a_message_is_printed(message: BaseMessage, printed: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Of any kind; what a model was given is marked as quoted."""
    show(message)
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize("stores_run", [False, True], ids=["messages", "run message"])
def test_a_history_is_printed(stores_run: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Its questions, and what followed each of them; the last calls wait."""
    run = weather().invoke("How is the weather?")
    asked = AIMessage("", tool_calls=[{**CALL, "id": "2"}])
    messages = [run] if stores_run else new_messages(run)
    show([SystemMessage("Be brief."), HumanMessage("How is the weather?"), *messages, HumanMessage("And now?"), asked])
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["> (system) Be brief.", "> How is the weather?", "Let me look."]
    assert lines[5:] == [
        "Take a coat.",
        "[2 turns]",
        "> And now?",
        '→ forecast(city="Paris")',
        '? forecast(city="Paris") waits',
        "[1 turn · stopped: calls_pending]",
        "1 call waits for you. To go on, with pending_calls from langchain_autotools:",
        'run = show(model.stream(history, resume=[call.respond("...") for call in pending_calls(history)]))',
    ]


def test_a_history_with_one_call_of_two_open_is_pending(capsys: pytest.CaptureFixture[str]) -> None:
    """It says so, although its last message is a result."""
    asked = AIMessage("", tool_calls=[CALL, {**CALL, "id": "2", "args": {"city": "Rome"}}])
    show([HumanMessage("How is the weather?"), asked, ToolMessage("rain", tool_call_id="1")])
    assert capsys.readouterr().out.splitlines()[-4:-2] == ['? forecast(city="Rome") waits', "[1 turn · stopped: calls_pending]"]


def test_a_history_in_a_notebook_has_its_questions() -> None:
    """As words: nothing in them is a tag; beside them the plain text."""
    seen = ViewModel()
    for one in history_events([HumanMessage("<b>Hello</b>"), AIMessage("Hi")]):
        if isinstance(one, BaseMessage):
            seen.add_input(one)
        else:
            seen.apply(one)
    question, answer, _ = seen.parts
    assert "human" in part_html(question) and "&lt;b&gt;Hello&lt;/b&gt;" in part_html(question)
    assert [part_text(question), part_text(answer)] == ["> <b>Hello</b>", "Hi"]


def test_a_message_that_was_shown_is_one_line_in_a_notebook() -> None:
    """As the last value of the cell that showed its run; a copy from elsewhere is shown whole."""
    run = show(weather().stream("How is the weather?"))
    assert run_markdown(run) == "*The message of this run, with 3 new messages*"
    assert str(run_markdown(run.model_copy(deep=True))).startswith("Let me look.\n\n`forecast(")
