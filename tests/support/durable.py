"""Lives of a worker of durable runs, in one process. A crash is what a run meets in a worker that is ending: nothing more is recorded, and
the workflow stays as a killed process would leave it."""

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NoReturn

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import tool

from langchain_autotools import new_messages
from langchain_autotools.durable import Conversations, DurableModel, durable, launch, shutdown
from langchain_autotools.durable.engine import engine
from langchain_autotools.event_types import MessageDone, RunEvent
from langchain_autotools.testing import ScriptedChatModel


def crash() -> NoReturn:
    """End the worker, as far as its runs can tell: from this moment on nothing of them is recorded."""
    engine.lifetime.is_shut_down = True
    raise SystemExit


class Life:
    """Lives of one worker over one database.

    Attributes:
        silent_executions: After how many executions that end with the silence of their worker a run is given up.
    """

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder / 'runs.sqlite'}"
        self.folder = folder
        self.silent_executions = 3

    def model(self, replies: Any, tools: Any = (), name: str = "test", rerun: Any = (), **fields: Any) -> DurableModel:
        """A durable model."""
        return durable(ScriptedChatModel(replies=replies, tools=tools, **fields), name, rerun)

    def conversations(
        self, replies: Any, tools: Any = (), name: str = "test", rerun: Any = (), max_concurrency: int = 32, **fields: Any
    ) -> Conversations:
        """Conversations."""
        return Conversations(
            ScriptedChatModel(replies=replies, tools=tools, **fields), self.url, name=name, rerun=rerun, max_concurrency=max_concurrency
        )

    def begin(self, worker: str = "worker", lease: float = 30.0, clock: Callable[[], float] = time.time) -> None:
        """Launch."""
        launch(self.url, f"{worker} of {self.folder}", lease=lease, clock=clock, max_silent_executions=self.silent_executions)

    def again(self, clock: Callable[[], float] = time.time) -> None:
        """Launch again, as after a crash."""
        shutdown()
        self.begin(clock=clock)

    def again_after_silence(self) -> None:
        """Launch again, as after a crash in which the worker could not note which runs it leaves."""
        shutdown()
        with closing(self.database()) as database, database:
            database.execute("update workflow_status set attributes = json_remove(attributes, '$.autotools_left_execution')")
        self.begin()

    def forget_workers(self) -> None:
        """Delete what workers have told of themselves."""
        with closing(self.database()) as database, database:
            assert database.execute("delete from workflow_status where name like '% worker'").rowcount

    def tell(self, worker: str) -> None:
        """Tell in the name of a worker that it lives."""
        with closing(self.database()) as database, database:
            told = "update workflow_status set updated_at = ? where workflow_uuid like ?"
            assert database.execute(told, [int(time.time() * 1000), f"% worker {worker} of %"]).rowcount == 1

    @contextmanager
    def away(self) -> Iterator[None]:
        """Keep the database from answering."""
        with closing(self.database()) as database:
            database.execute("begin exclusive")
            yield

    def rewrite_events(self, write: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
        """Replace what runs have told, as another release would have written it."""
        with closing(self.database()) as database, database:
            for key, value in database.execute("select rowid, value from streams").fetchall():
                row = json.loads(value)
                if isinstance(row, dict) and "events" in row:
                    told = json.dumps({**row, "events": write(row["events"])})
                    database.execute("update streams set value = ? where rowid = ?", [told, key])

    def database(self) -> sqlite3.Connection:
        """A connection to the database, beside those of the worker."""
        return sqlite3.connect(self.folder / "runs.sqlite", timeout=30)

    def dump(self) -> str:
        """All that is in the database."""
        with closing(self.database()) as database:
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
