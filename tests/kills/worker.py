"""What runs in a process that will be killed: a worker, and the clients of its runs."""

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import BaseTool, tool
from sqlalchemy.exc import OperationalError

from langchain_autotools.durable import DurableModel, RunFailedError, durable, launch
from langchain_autotools.testing import ScriptedChatModel
from tests.support.postgres import PostgresServer

TURNS = 3
CALLS = 3
FULL_DISK = "full disk"
"""The mode of clients that try again where the database cannot be written."""
KILLS_IN_A_ROW = 1_000
"""How many executions of a run may end before it records anything: it is killed at random here, as fast as it begins."""
LIVES_ON = "lives on"
"""The worker that is not killed."""


@dataclass(frozen=True)
class Place:
    """Where runs are recorded, and where what they do is counted.

    Attributes:
        folder: Holds what the processes tell by files.
        url: The database.
        dump: Returns all that is in the database.
        lease: After how many seconds a silent worker loses its runs.
    """

    folder: Path
    url: str
    dump: Callable[[], str]
    lease: float


def in_sqlite(folder: Path) -> Place:
    """A place with a SQLite file."""
    file = folder / "runs.sqlite"

    def dump() -> str:
        with closing(sqlite3.connect(file)) as database:
            return "\n".join(database.iterdump())

    return Place(folder, f"sqlite:///{file}", dump, 2.0)


def in_postgresql(folder: Path, server: PostgresServer) -> Place:
    """A place with a database of a server."""
    return Place(folder, server.create(folder.name), lambda: server.dump(folder.name), 1.5)


def effects_of(folder: Path) -> list[str]:
    """The keys of all calls that were made, in order."""
    file = folder / "effects"
    return file.read_text().split() if file.exists() else []


def reply(messages: list[BaseMessage], **_: object) -> object:
    """A conversation that depends on nothing but its history: turns with calls, then an answer."""
    run = str(messages[0].content)
    turn = sum(message.type == "ai" for message in messages)
    if turn == TURNS:
        return f"All of {run} is done, word by word by word."
    names = ["pay", "look"]
    calls = [
        {
            "name": names[number % 2],
            "args": {"key": f"{run}.{turn}.{number}", "wait": (number * 7 + turn) % 4 / 40},
            "id": f"{run}.{turn}.{number}",
        }
        for number in range(CALLS)
    ]
    return AIMessage(f"Turn {turn} of {run}. ", tool_calls=calls)


def tools_of(folder: Path) -> list[BaseTool]:
    """Tools that write down outside the process what they do."""
    file = os.open(folder / "effects", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    @tool
    def pay(key: str, wait: float) -> str:
        """Pay once."""
        time.sleep(wait)
        os.write(file, f"{key}\n".encode())
        time.sleep(wait)
        return f"done {key}"

    @tool
    async def look(key: str, wait: float) -> str:
        """Look as often as you like."""
        os.write(file, f"{key}\n".encode())
        await asyncio.sleep(wait)
        return f"done {key}"

    return [pay, look]


def made(folder: Path) -> DurableModel:
    """The model with these tools."""
    return durable(ScriptedChatModel(tools=tools_of(folder), replies=reply), "kills", rerun=["look"])


def work(place: Place, worker: str, mode: str, runs: list[str]) -> None:
    """Launch a worker and wait for all runs, which begin where they have not begun."""
    chat = made(place.folder)
    _tried(mode, lambda: launch(place.url, f"{worker} of {place.folder}", lease=place.lease, max_silent_executions=KILLS_IN_A_ROW))
    (place.folder / worker).touch()
    if mode == "async":
        asyncio.run(_gather(chat, runs))
    else:
        with ThreadPoolExecutor(len(runs)) as pool:
            list(pool.map(lambda run: _wait(chat, mode, run), runs))


def stay(place: Place, worker: str) -> None:
    """Launch a worker that begins no runs and goes on with those of others, until it is killed."""
    made(place.folder)
    launch(place.url, f"{worker} of {place.folder}", lease=place.lease, max_silent_executions=KILLS_IN_A_ROW)
    (place.folder / worker).touch()
    threading.Event().wait()


def _wait(chat: DurableModel, mode: str, run: str) -> None:
    if mode != "stream":
        _tried(mode, lambda: chat.invoke(run, run_id=run))
        return
    try:
        for _ in chat.stream(run, run_id=run):
            pass
    except RunFailedError as error:  # this worker was frozen while it read
        assert "taken over" in str(error)
        chat.result(run)


def _tried(mode: str, task: Callable[[], object]) -> None:
    """Do something; over a disk that is full, until it is done."""
    while True:
        try:
            task()
            return
        except OperationalError:
            if mode != FULL_DISK:
                raise
            time.sleep(0.1)


async def _gather(chat: DurableModel, runs: list[str]) -> None:
    await asyncio.gather(*(chat.ainvoke(run, run_id=run) for run in runs))
