"""Runs that are recorded: what they come to, who reads them, what is refused."""

import asyncio
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from dbos import DBOS
from langchain_core.messages import AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool

from langchain_autotools import ChatOpenAI, new_messages, pending_calls, stop_reason
from langchain_autotools.durable import Conversations, RunFailedError, durable, launch, shutdown
from langchain_autotools.durable.journal import Journal, RecordedTexts
from langchain_autotools.durable.workers import CANCELLED, Lifetime
from langchain_autotools.errors import ConfigurationError
from langchain_autotools.event_types import MessageDone
from langchain_autotools.messages.metadata import KEY
from langchain_autotools.testing import ScriptedChatModel
from tests.support.durable import Life, answered, asks, contents, double, doubling


def test_a_durable_run_comes_to_what_the_model_comes_to(life: Life) -> None:
    """`invoke`, `stream` and a second `invoke` of the same run give the run message that the model gives by itself."""
    chat = life.model(doubling, [double])
    life.begin()
    plain = ScriptedChatModel(replies=doubling, tools=[double]).invoke("Go")
    run = chat.invoke("Go")
    assert (run.text, contents(run), stop_reason(run)) == (plain.text, contents(plain), "complete")
    chunks = list(chat.stream("Go", run_id="one"))
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole = whole + chunk
    assert [text for chunk in chunks if (text := chunk.text)] == ["Let me see.", "\n", "That ", "is ", "all."]
    assert (whole.text, contents(whole)) == (plain.text, contents(plain))
    assert contents(chat.invoke("Go", run_id="one")) == contents(chat.result("one")) == contents(plain)
    assert new_messages(chat.result("one")) == [message for chunk in chunks for message in new_messages(chunk)]
    (again,) = chat.stream("Go", run_id="one")
    assert isinstance(again, AIMessageChunk) and contents(again) == contents(plain)


async def test_asynchronous_clients_wait_for_the_same_runs(life: Life) -> None:
    """`ainvoke`, `astream`, `aresult` and `aevents` give what their twins give, and the loop goes on meanwhile."""
    chat = life.model(doubling, [double])
    life.begin()
    run, other = await asyncio.gather(chat.ainvoke("Go"), chat.ainvoke("Go", run_id="one"))
    assert contents(run) == contents(other) == contents(await chat.aresult("one"))
    chunks = [chunk async for chunk in chat.astream("Go", run_id="two")]
    assert "".join(chunk.text for chunk in chunks) == run.text
    told = [event async for event in chat.aevents("two")]
    assert [one.message.content for one in told if isinstance(one, MessageDone)] == contents(run)


def test_a_model_without_tools_is_durable_too(life: Life) -> None:
    """One request is a run of one step."""
    chat = life.model(["Good day."])
    life.begin()
    run = chat.invoke("Hello", run_id="one")
    assert run.text == "Good day." and contents(chat.result("one")) == ["Good day."]


def test_text_leaves_while_the_request_runs(life: Life) -> None:
    """A client in the process of the run has a word before the next one is there."""
    go_on = threading.Event()

    def slowly(messages: list[BaseMessage], **_: Any) -> Iterator[str]:
        yield "first"
        assert go_on.wait(20)
        yield " second"

    chat = life.model(slowly)
    life.begin()
    stream = chat.stream("Go")
    assert next(stream).text == "first"
    go_on.set()
    assert "".join(chunk.text for chunk in stream) == " second"


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_run_is_cancelled_by_its_id(life: Life, elsewhere: bool) -> None:
    """`cancel`, in whichever process, ends what the run waits for; what had come stays, also when the run is read again."""
    begun, left = threading.Event(), threading.Event()

    @tool
    def wait() -> str:
        """Wait."""
        begun.set()
        left.wait(20)
        return "waited"

    chat = life.model([asks(("wait", {}), text="Wait.")], [wait])
    life.begin()
    chunks: list[AIMessageChunk] = []
    client = threading.Thread(target=lambda: chunks.extend(chat.stream("Go", run_id="one")))
    client.start()
    assert begun.wait(20)
    if elsewhere:
        DBOS.update_workflow_attributes("one", {CANCELLED: True}, merge=True)
    else:
        chat.cancel("one")
    client.join(20)
    left.set()
    run = chat.result("one")
    assert stop_reason(run) == "cancelled" and contents(run)[0] == "Wait." and "cancelled" in contents(run)[1]
    assert [message for chunk in chunks for message in new_messages(chunk)] == new_messages(run)


def test_a_run_here_is_cancelled_although_the_database_fails(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller is told of the failure, and the run that goes on in this process ends."""
    begun = threading.Event()

    def reply(messages: list[BaseMessage], **_: Any) -> Iterator[str]:
        yield "Wait"
        begun.set()
        while True:
            threading.Event().wait(0.01)
            yield "."

    chat = life.model(reply)
    life.begin()
    chunks: list[AIMessageChunk] = []
    client = threading.Thread(target=lambda: chunks.extend(chat.stream("Go", run_id="one")), daemon=True)
    client.start()
    assert begun.wait(20)
    update = DBOS.update_workflow_attributes

    def fails(run: str, noted: dict[str, Any], **keywords: Any) -> None:
        if CANCELLED in noted:
            raise OSError("the database is gone")
        update(run, noted, **keywords)

    monkeypatch.setattr(DBOS, "update_workflow_attributes", fails)
    with pytest.raises(OSError, match="the database is gone"):
        chat.cancel("one")
    client.join(20)
    assert stop_reason(chunks[-1]) == "cancelled"


def test_calls_that_wait_for_approval_end_the_run_and_a_resumed_run_is_durable_too(life: Life) -> None:
    """Decisions travel as plain data."""
    script = lambda messages, **_: "Done." if answered(messages) else asks(("double", {"number": 3}))  # noqa: E731
    chat = life.model(script, [double], requires_approval=["double"])
    life.begin()
    history: list[BaseMessage] = [HumanMessage("Go")]
    history += new_messages(chat.invoke(history))
    (call,) = pending_calls(history)
    run = chat.invoke(history, resume=[call.approve()], run_id="two")
    assert contents(run) == contents(chat.result("two")) == ["6", "Done."]


def test_the_error_of_a_run_is_raised_here_and_told_elsewhere(life: Life) -> None:
    """Who began the run has the error itself, whoever asks later its class and text."""
    chat = life.model([ValueError("the vendor is out")])
    life.begin()
    with pytest.raises(ValueError, match="the vendor is out"):
        chat.invoke("Go", run_id="one")
    with pytest.raises(RunFailedError, match="ValueError: the vendor is out"):
        chat.result("one")


def test_an_artifact_that_is_no_plain_data_is_marked(life: Life) -> None:
    """What cannot be in the database is said to be missing, whether or not there was a crash."""

    @tool(response_format="content_and_artifact")
    def draw() -> tuple[str, Any]:
        """Draw."""
        return "drawn", object()

    chat = life.model([asks(("draw", {})), "Done."], [draw])
    life.begin()
    (result,) = (one for one in new_messages(chat.invoke("Go")) if isinstance(one, ToolMessage))
    assert result.artifact == {KEY: "artifact not carried", "type": "object"}


def test_nothing_in_the_database_is_pickled_and_no_key_stands_there(life: Life) -> None:
    """All that is there is plain JSON; the model is known by its name only."""
    chat = life.model(doubling, [double], approval_key="very-secret-key")
    life.begin()
    chat.invoke("Go", {"tags": ["mine"], "metadata": {"user": "u1"}, "configurable": {"thread": 7}})
    dump = life.dump()
    assert "py_pickle" not in dump and "very-secret-key" not in dump and "portable_json" in dump


def test_what_travels_of_a_config_reaches_the_tools(life: Life) -> None:
    """Tags, metadata and configurable go along."""
    seen: list[Any] = []

    @tool
    def look(config: RunnableConfig) -> str:
        """Look."""
        seen.append((config["tags"], config["metadata"]["user"], config["configurable"]["thread"]))
        return "seen"

    chat = life.model([asks(("look", {})), "Done."], [look])
    life.begin()
    chat.invoke("Go", {"tags": ["mine"], "metadata": {"user": "u1"}, "configurable": {"thread": 7}})
    assert seen == [(["mine"], "u1", 7)]


def test_a_misspelt_keyword_is_refused_before_anything_is_recorded(life: Life) -> None:
    """By a durable model and by conversations; there is no run, and no request."""
    model = ChatOpenAI(model="any", api_key="key", base_url="http://127.0.0.1:9", tools=[double])
    chat, chats = durable(model, "misspelt"), Conversations(model, life.url, name="talks")
    life.begin()
    for ask in (chat.invoke, lambda *asked, **more: list(chat.stream(*asked, **more)), partial(chats.send, "alice")):
        with pytest.raises(ConfigurationError, match="did you mean 'temperature'"):
            ask("Go", temprature=2)
    with pytest.raises(ConfigurationError, match="max_turns must be greater than 0"):
        chat.invoke("Go", run_id="one", max_turns=0)
    with pytest.raises(ConfigurationError, match="there is no run"):
        chat.result("one")


@pytest.mark.parametrize(
    ("config", "keywords", "said"),
    [
        ({"callbacks": [object()]}, {}, "callbacks"),
        ({"metadata": {"user": object()}}, {}, "metadata of a durable run must be plain JSON"),
        ({}, {"on_executed": print}, "on_executed of a durable run must be plain JSON"),
        ({}, {"cancel": threading.Event()}, "cancelled by its id"),
        ({"configurable": {1: "a"}}, {}, "configurable of a durable run must be plain JSON: it would not come back"),
    ],
)
def test_what_cannot_travel_is_refused(life: Life, config: Any, keywords: Any, said: str) -> None:
    """Nothing is dropped in silence, and nothing begins."""
    chat = life.model(doubling, [double])
    with pytest.raises(ConfigurationError, match=said):
        chat.invoke("Go", config, **keywords)


def test_a_process_has_one_database_and_one_worker(life: Life, tmp_path: Path) -> None:
    """A second database or worker is refused; so are a name that nobody knew at the launch, and a run that is not there."""
    chat = life.model(doubling, [double])
    life.begin()
    life.begin()
    with pytest.raises(ConfigurationError, match="another database or worker"):
        launch(f"sqlite:///{tmp_path / 'other.sqlite'}")
    with pytest.raises(ConfigurationError, match="another database or worker"):
        life.begin("other")
    with pytest.raises(ConfigurationError, match="before launch"):
        life.model(doubling, [double], name="never seen")
    for ask in (chat.result, chat.events):
        with pytest.raises(ConfigurationError, match="there is no run"):
            ask("none")


async def test_synchronous_clients_may_stand_on_an_event_loop(life: Life) -> None:
    """As in a notebook: all that is synchronous works there too."""
    chat = life.model(doubling, [double])
    life.begin()
    run = chat.invoke("Go", run_id="one")
    chat.cancel("one")
    assert contents(chat.result("one")) == contents(run)
    assert [one.message.content for one in chat.events("one") if isinstance(one, MessageDone)] == contents(run)
    shutdown()


def test_a_launch_that_fails_leaves_nothing_behind(life: Life, tmp_path: Path) -> None:
    """The next one begins anew, also with another database; where DBOS is the program's own, none does."""
    chat = life.model(doubling, [double])
    with pytest.raises(Exception, match="unable to open database file"):
        launch(f"sqlite:///{tmp_path / 'no' / 'such' / 'folder.sqlite'}")
    life.begin()
    assert chat.invoke("Go").text == "Let me see.\nThat is all."
    shutdown()
    DBOS(config={"name": "own", "system_database_url": life.url, "executor_id": "own"})
    try:
        with pytest.raises(ConfigurationError, match="uses DBOS by itself"):
            life.begin()
    finally:
        DBOS.destroy()


def test_approvals_that_would_be_asked_for_again_are_refused(life: Life) -> None:
    """`approve` and `claim` decide anew at each replay; a tool that is not there cannot run again."""
    with pytest.raises(ConfigurationError, match="decide anew"):
        life.model(doubling, [double], approve=lambda call: None)
    with pytest.raises(ConfigurationError, match="rerun names tools that do not exist: dbl"):
        life.model(doubling, [double], rerun=["dbl"])


def test_a_journal_is_for_synchronous_runs() -> None:
    """The keyword by which a run is recorded is refused where it would have no effect."""
    model = ScriptedChatModel(replies=doubling, tools=[double])
    journal = Journal(time.time(), time.time, threading.Event(), (), Lifetime(), RecordedTexts())
    with pytest.raises(ConfigurationError, match="an asynchronous run has none"):
        asyncio.run(model.ainvoke("Go", journal=journal))


def test_an_error_brings_what_had_completed(life: Life) -> None:
    """`invoke` raises with the messages of the turns before; `stream` has handed them out."""
    chat = life.model([asks(("double", {"number": 4}), text="Let me see."), ValueError("gone")] * 2, [double])
    life.begin()
    with pytest.raises(ValueError, match="gone") as raised:
        chat.invoke("Go")
    assert contents(raised.value) == ["Let me see.", "8"]
    with pytest.raises(ValueError, match="gone") as raised:
        list(chat.stream("Go"))
    assert contents(raised.value) == []
