"""What is raised in a run that is no `Exception`: it ends no worker and blocks no conversation."""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import tool

from langchain_autotools import new_messages, stop_reason
from langchain_autotools.durable import RunFailedError, shutdown, workers
from langchain_autotools.event_types import RunEnded, RunFailed
from tests.support.durable import Life, answered, asks


class Stray(BaseException):
    """Derived from `BaseException` by mistake."""


KINDS: dict[str, Callable[[], BaseException]] = {
    "SystemExit": lambda: SystemExit("over"),
    "KeyboardInterrupt": lambda: KeyboardInterrupt("over"),
    "CancelledError": lambda: asyncio.CancelledError("over"),
    "GeneratorExit": lambda: GeneratorExit("over"),
    "Stray": lambda: Stray("over"),
}


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who was cancelled need not wait for the end of this process."""
    monkeypatch.setattr(workers, "_CLOSING_SECONDS", 0.0)


class _Records(logging.Handler):
    """Takes what is logged as an error, or with a traceback."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info or record.levelno >= logging.ERROR:
            self.texts.append(record.getMessage())


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """What DBOS and this package log as an error, or with a traceback."""
    records = _Records()
    loggers = [logging.getLogger(name) for name in ("dbos", "langchain_autotools")]
    for logger in loggers:
        logger.addHandler(records)
    yield records.texts
    for logger in loggers:
        logger.removeHandler(records)


@tool
def fetch(what: str) -> str:
    """Fetch something."""
    raise KINDS[what]()


@tool
async def afetch(what: str) -> str:
    """Fetch something."""
    raise KINDS[what]()


def fetching(messages: list[BaseMessage], **_: Any) -> Any:
    """Asks for a tool that raises, in both kinds."""
    what = {"what": messages[0].text}
    return "I could not." if answered(messages) else asks(("fetch", what), ("afetch", what))


def talking(messages: list[BaseMessage], **_: Any) -> Iterator[str]:
    """Raises in the middle of a reply what the message names."""
    yield "Well, "
    if messages[-1].text in KINDS:
        raise KINDS[messages[-1].text]()
    yield "here I am."


def test_what_a_tool_raises_is_a_result(life: Life) -> None:
    """The model reads it, whatever it is, and the run goes on."""
    chat = life.model(fetching, [fetch, afetch])
    life.begin()
    for name in KINDS:
        run = chat.invoke(name, run_id=name)
        assert stop_reason(run) == "complete" and run.text == "I could not."
        results = [message for message in new_messages(run) if isinstance(message, ToolMessage)]
        assert [result.status for result in results] == ["error", "error"]
        wanted = "cancelled" if name == "CancelledError" else f"{name}: over"
        assert all(wanted in result.text for result in results), results


def test_what_a_request_raises_fails_its_run(life: Life) -> None:
    """Who waits for the run gets a `RunFailedError` that names it, here and later; nobody's program is ended by it."""
    chat = life.model(talking)
    life.begin()
    for name in KINDS:
        with pytest.raises(RunFailedError, match=f"{name}: over") as raised:
            chat.invoke(name, run_id=name)
        with pytest.raises(RunFailedError, match=f"{name}: over"):
            chat.result(name)
        assert type(raised.value.__cause__).__name__ == name
    assert chat.invoke("Hello").text == "Well, here I am."


def test_a_conversation_goes_on_behind_what_was_raised(life: Life) -> None:
    """A run that has failed holds no place of those that may run at a time; each message is answered, or its failure told, in order."""
    chats = life.conversations(talking, max_concurrency=1)
    life.begin()
    sent = {name: chats.send("c", name) for name in KINDS}
    assert chats.result(chats.send("c", "Hello"), timeout=20).text == "Well, here I am."
    for name, one in sent.items():
        with pytest.raises(RunFailedError, match=f"{name}: over"):
            chats.result(one)
    ends = [event for event in chats.events("c") if isinstance(event, RunFailed | RunEnded)]
    assert [type(event) for event in ends] == [*([RunFailed] * len(KINDS)), RunEnded]
    chats.cancel("c")
    assert chats.result(chats.send("c", "Hello"), timeout=20).text == "Well, here I am."


class _Raises(BaseCallbackHandler):
    """Raises at the end of a run, where nothing of it is a request or a tool."""

    raise_error = True

    def __init__(self) -> None:
        self.errors = [SystemExit("over")]

    def on_chain_end(self, *args: Any, **kwargs: Any) -> None:
        if self.errors:
            raise self.errors.pop()


def test_what_a_handler_raises_fails_its_run(life: Life) -> None:
    """As of a request, although no step of the run has raised it; the messages that were made are kept."""
    chats = life.conversations(lambda messages, **_: f"{len(messages)}", callbacks=[_Raises()])
    sent, then = chats.send("c", "Go"), chats.send("c", "Then")
    with pytest.raises(RunFailedError, match="SystemExit: over"):
        chats.result(sent, timeout=20)
    assert chats.result(then, timeout=20).text == "3"


@pytest.mark.parametrize("error", [SystemExit("over"), RuntimeError("Event loop is closed")], ids=["SystemExit", "RuntimeError"])
def test_what_is_raised_because_the_worker_ends_is_no_failure(life: Life, error: BaseException, logged: list[str]) -> None:
    """After `shutdown` runs are left as a crash leaves them, without a word, and go on where a worker is launched: the outcome of a call
    that ran is unknown."""
    lives: list[str] = []
    running, over = threading.Barrier(4), threading.Event()

    def fails(what: str) -> str:
        lives.append(what)
        if lives.count(what) == 1:
            running.wait(20)
            assert over.wait(20)
            raise error
        return "it"

    @tool
    def fetch(what: str) -> str:
        """Fetch something."""
        return fails(what)

    @tool
    async def afetch(what: str) -> str:
        """Fetch something."""
        return await asyncio.to_thread(fails, what)

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        asked = messages[-1].text
        if asked in ("fetch", "afetch"):
            return asks((asked, {"what": asked}))
        if asked == "request":
            fails(asked)
        return AIMessage("Done.")

    chats = life.conversations(reply, [fetch, afetch])
    life.begin()
    sent = {name: (chats.send(name, name), chats.send(name, "Then")) for name in ("request", "fetch", "afetch")}
    running.wait(20)
    shutdown()
    over.set()
    life.begin()
    assert all(chats.result(one, timeout=20).text == "Done." for pair in sent.values() for one in pair)
    results = [message.text for name in ("fetch", "afetch") for message in chats.messages(name) if message.type == "tool"]
    assert len(results) == 2 and all("outcome unknown" in result for result in results)
    assert sorted(lives) == ["afetch", "fetch", "request", "request"]
    assert logged == []
