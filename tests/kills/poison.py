"""Mode `poison`: one run of 32 ends the process of every worker that executes it, in a request or in a call. All others end well.

A worker that has died is followed by another one: over SQLite by one of its own id, over PostgreSQL by one of another id, which takes over.
"""

import json
import os
import signal
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import BaseTool, tool

from langchain_autotools import stop_reason
from langchain_autotools.durable import Conversations, RunFailedError, launch, shutdown
from langchain_autotools.testing import ScriptedChatModel
from tests.support.postgres import PostgresServer

from .harness import in_child
from .worker import Place, effects_of, in_postgresql, in_sqlite, tools_of

OTHERS = 31
KINDS = ("request", "call")
_POISON = "poison"
_REQUEST_SECONDS = 0.2
_MOST_WORKERS = 12
_REASON = "its worker fell silent before anything more was recorded"


@dataclass
class PoisonFigures:
    """What was seen.

    Attributes:
        poison: What ended the workers.
        died: How many workers did.
        ended_well: How many of the other runs have an answer.
        interrupted: How many of their calls were answered as interrupted.
        twice: Keys of calls that ran twice and must not.
        given_up: What the poison run has failed with.
        wrong: What is not as it must be.
    """

    poison: str
    died: int = 0
    ended_well: int = 0
    interrupted: int = 0
    twice: list[str] = field(default_factory=list)
    given_up: str = ""
    wrong: list[str] = field(default_factory=list)


def names() -> list[str]:
    """The conversations."""
    return [f"well{number}" for number in range(OTHERS // 2)] + [_POISON] + [f"well{number}" for number in range(OTHERS // 2, OTHERS)]


def made(place: Place, kind: str) -> Conversations:
    """The conversations of a worker that dies of one of them."""

    def replies(messages: list[BaseMessage], **_: object) -> AIMessage:
        time.sleep(_REQUEST_SECONDS)
        name, turn = str(messages[0].content), sum(message.type == "ai" for message in messages)
        if name == _POISON and kind == "request" and turn == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if turn == 2:
            return AIMessage(f"{name} is answered.")
        does = "fall" if name == _POISON and turn == 1 else "pay"
        return AIMessage("", tool_calls=[{"name": does, "args": {"key": f"{name}.{turn}", "wait": 0.05}, "id": f"{name}.{turn}"}])

    pay = next(one for one in tools_of(place.folder) if one.name == "pay")
    return Conversations(ScriptedChatModel(tools=[pay, _falls()], replies=replies), place.url, rerun=["fall"])


def _falls() -> BaseTool:
    @tool
    def fall(key: str, wait: float) -> str:
        """End the process, whatever else it does."""
        time.sleep(wait)
        os._exit(1)

    return fall


def work(place: Place, worker: str, kind: str) -> None:
    """Be a worker until all runs have ended."""
    chats = made(place, kind)
    launch(place.url, f"{worker} of {place.folder}", lease=place.lease)
    for sent in [chats.send(name, HumanMessage(name, id=name)) for name in names()]:
        try:
            chats.result(sent)
        except RunFailedError:
            continue


def poisoned(folder: Path, kind: str, server: PostgresServer | None = None) -> PoisonFigures:
    """Have workers begin, one after another, until one of them sees the end of all runs."""
    (home := folder / f"poison_{kind}").mkdir()
    place, figures = in_sqlite(home) if server is None else in_postgresql(home, server), PoisonFigures(kind)
    while True:
        worker = f"worker {1 if server is None else figures.died + 1}"
        _, status = os.waitpid(in_child(lambda worker=worker: work(place, worker, kind)), 0)
        if status == 0:
            break
        figures.died += 1
        assert figures.died < _MOST_WORKERS, f"one run has ended {figures.died} workers"
    seen = home / "figures.json"
    _, status = os.waitpid(in_child(lambda: _look(place, kind, figures, seen)), 0)
    assert status == 0
    return PoisonFigures(**json.loads(seen.read_text()))


def _look(place: Place, kind: str, figures: PoisonFigures, seen: Path) -> None:
    """Look at what the runs came to, from a process that has executed none."""
    chats = made(place, kind)
    launch(place.url, f"reader of {place.folder}", lease=place.lease)
    effects = Counter(effects_of(place.folder))
    figures.twice = [key for key, times in effects.items() if times > 1]
    for name in names():
        try:
            message = chats.result(chats.send(name, HumanMessage(name, id=name)))
        except RunFailedError as error:
            _note_failed(name, str(error), figures)
            continue
        whole = stop_reason(message) == "complete" and message.text == f"{name} is answered."
        figures.ended_well += whole and name != _POISON
        figures.interrupted += sum("interrupted" in str(one.content) for one in chats.messages(name))
        if not whole or name == _POISON:
            figures.wrong.append(f"{name} came to {message}")
    shutdown()
    seen.write_text(json.dumps(asdict(figures)))


def _note_failed(name: str, reason: str, figures: PoisonFigures) -> None:
    if name == _POISON:
        figures.given_up = reason
    if name != _POISON or _REASON not in reason:
        figures.wrong.append(f"{name} has failed: {reason}")
