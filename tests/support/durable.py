"""Lives of a worker of durable runs, in one process. A crash is an exception that nothing records: the workflow stays
as a killed process would
leave it."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import tool

from langchain_autotools import MessageDone, RunEvent, new_messages
from langchain_autotools.durable import Conversations, DurableModel, durable, launch, shutdown
from langchain_autotools.testing import ScriptedChatModel


class Crash(BaseException):
    """Ends a process, as far as a run can tell."""


class Life:
    """Lives of one worker over one database."""

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder / 'runs.sqlite'}"
        self.folder = folder

    def model(self, replies: Any, tools: Any = (), name: str = "test", rerun: Any = (), **fields: Any) -> DurableModel:
        """A durable model."""
        return durable(ScriptedChatModel(replies=replies, tools=tools, **fields), name, rerun)

    def conversations(self, replies: Any, tools: Any = (), name: str = "test", rerun: Any = (), **fields: Any) -> Conversations:
        """Conversations."""
        return Conversations(ScriptedChatModel(replies=replies, tools=tools, **fields), self.url, name=name, rerun=rerun)

    def begin(self, worker: str = "worker", lease: float = 30.0, clock: Callable[[], float] = time.time) -> None:
        """Launch."""
        launch(self.url, f"{worker} of {self.folder}", lease=lease, clock=clock)

    def again(self, clock: Callable[[], float] = time.time) -> None:
        """Launch again, as after a crash."""
        shutdown()
        self.begin(clock=clock)

    def forget_workers(self) -> None:
        """Delete what workers have told of themselves."""
        with closing(self._database()) as database, database:
            assert database.execute("delete from workflow_status where name like '% worker'").rowcount

    def tell(self, worker: str) -> None:
        """Tell in the name of a worker that it lives."""
        with closing(self._database()) as database, database:
            told = "update workflow_status set updated_at = ? where workflow_uuid like ?"
            assert database.execute(told, [int(time.time() * 1000), f"% worker {worker} of %"]).rowcount == 1

    @contextmanager
    def away(self) -> Iterator[None]:
        """Keep the database from answering."""
        with closing(self._database()) as database:
            database.execute("begin exclusive")
            yield

    def _database(self) -> sqlite3.Connection:
        return sqlite3.connect(self.folder / "runs.sqlite", timeout=30)

    def dump(self) -> str:
        """All that stands in the database."""
        with sqlite3.connect(self.folder / "runs.sqlite") as database:
            return "\n".join(database.iterdump())


def asks(*calls: tuple[str, dict[str, Any]], text: str = "") -> AIMessage:
    """A reply that makes calls."""
    return AIMessage(text, tool_calls=[{"name": name, "args": args, "id": f"call {number}"} for number, (name, args) in enumerate(calls)])


def answered(messages: list[BaseMessage]) -> bool:
    """Whether a history ends in results."""
    return isinstance(messages[-1], ToolMessage)


def contents(run: Any) -> list[Any]:
    """What the new messages of a run say."""
    return [message.content for message in new_messages(run)]


def kind(event: RunEvent) -> str:
    """An event in a word, and what it says."""
    said = event.message.content if isinstance(event, MessageDone) else getattr(event, "text", getattr(event, "attempt", ""))
    return f"{type(event).__name__} {said}".strip()


@tool
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def doubling(messages: list[BaseMessage], **_: Any) -> Any:
    """A script that needs no state: doubles two numbers, then answers."""
    return "That is all." if answered(messages) else asks(("double", {"number": 1}), ("double", {"number": 2}), text="Let me see.")


def counting(messages: list[BaseMessage], **_: Any) -> Any:
    """Says how many messages there are, and repeats the last one; `double N` calls the tool."""
    last = messages[-1]
    if answered(messages):
        return f"It is {last.text}."
    if last.text.startswith("double"):
        return asks(*(("double", {"number": int(number)}) for number in last.text.split()[1:]), text="Let me see.")
    return f"{len(messages)}: {last.text}"
