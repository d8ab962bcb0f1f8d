"""Modes `queue`, `ids` and `steer`: the runs are runs of conversations. Clients send and decide again whenever a worker begins its life.

In mode `steer`, most messages are sent while a run goes on, to join it.
"""

import json
import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any
from zlib import crc32

from dbos import DBOS
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import BaseTool, tool

from langchain_autotools import Decision, PendingCall
from langchain_autotools.durable import Conversations, launch
from langchain_autotools.testing import ScriptedChatModel

from .worker import KILLS_IN_A_ROW, Place, tools_of

MESSAGES = 3
_LONGEST_PAUSE = 0.4  # seconds between two messages that may steer a run
_SECONDS = 0.05  # how long the model takes, and how often clients look

# ---------------------------------------------------------------------------------------------- the script


def texts_of(conversation: str) -> list[str]:
    """What is sent to a conversation, in order; a message has its text for an id."""
    return [f"{conversation}.{number}" for number in range(MESSAGES)]


def reply(messages: Sequence[BaseMessage]) -> AIMessage:
    """A conversation that depends on nothing but its history: two turns with calls, those after the last message to be decided about."""
    humans = sum(message.type == "human" for message in messages)
    sent = next(message for message in reversed(messages) if message.type == "human").text
    turn = sum(message.type == "ai" for message in takewhile(lambda one: one.type != "human", reversed(messages)))
    if turn == 2:
        return AIMessage(f"{sent} is answered after {len(messages)} messages.")
    names = ["pay", "look", "pay", *(["sign"] * 2 if humans == MESSAGES else [])]
    calls = [_call(f"{sent}.{turn}.{number}", name, (number * 7 + turn) % 4 / 40) for number, name in enumerate(names)]
    return AIMessage(f"Turn {turn} of {sent}. ", tool_calls=calls)


def _call(key: str, name: str, wait: float) -> dict[str, Any]:
    return {"name": name, "args": {"key": key, "wait": wait}, "id": key, "type": "tool_call"}


def is_rejected(key: str) -> bool:
    """What clients decide about a call: the last one of a turn is rejected."""
    return key.endswith(".4")


def decided(call: PendingCall) -> Decision:
    """The decision about a call that waits."""
    return call.reject("No.") if is_rejected(call.id) else call.approve()


# ---------------------------------------------------------------------------------------------- the worker


class Diary:
    """What a worker does, written down outside its process, in one file for all.

    Args:
        folder: Holds the file.
        worker: The worker's id.
    """

    def __init__(self, folder: Path, worker: str) -> None:
        self._file = os.open(folder / "diary", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._about = {"worker": worker, "process": os.getpid()}

    def note(self, what: str, **more: Any) -> None:
        """Write a line."""
        os.write(self._file, (json.dumps({"what": what, **self._about, **more}) + "\n").encode())

    @contextmanager
    def runs(self, what: str) -> Iterator[None]:
        """Note the begin and the end of something that a run does."""
        run = str(DBOS.workflow_id)
        self.note(f"{what} begins", run=run)
        yield
        self.note(f"{what} ends", run=run)


class _TakenOver(logging.Handler):
    """Notes which runs of silent workers this one takes over."""

    def __init__(self, diary: Diary) -> None:
        super().__init__(logging.WARNING)
        self._diary = diary

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line of the log."""
        if "is taken over" in str(record.msg):
            silent, run = record.args  # type: ignore[misc]
            self._diary.note("taken over", silent=silent, run=run)


def made(place: Place, worker: str) -> Conversations:
    """The conversations, in a worker that has not been launched."""
    diary = Diary(place.folder, worker)
    sign, watched = _signs(place.folder), [_watched(one, diary) for one in tools_of(place.folder)]

    def replies(messages: list[BaseMessage], **_: Any) -> AIMessage:
        with diary.runs("a request"):
            time.sleep(_SECONDS)
            return reply(messages)

    diary.note("lives")
    logging.getLogger("langchain_autotools").addHandler(_TakenOver(diary))
    model = ScriptedChatModel(tools=[*watched, _watched(sign, diary)], replies=replies, requires_approval=["sign"])
    return Conversations(model, place.url, rerun=["look"])


def _signs(folder: Path) -> BaseTool:
    file = os.open(folder / "effects", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    @tool
    def sign(key: str, wait: float) -> str:
        """Sign once, if somebody allows it."""
        time.sleep(wait)
        os.write(file, f"{key}\n".encode())
        return f"done {key}"

    return sign


def _watched(one: Any, diary: Diary) -> BaseTool:
    """A tool, with its begin and its end noted."""
    if one.func is None:
        does = one.coroutine

        async def awaited(key: str, wait: float) -> str:
            with diary.runs(key):
                return str(await does(key, wait))

        one.coroutine = awaited
    else:
        runs = one.func

        def done(key: str, wait: float) -> str:
            with diary.runs(key):
                return str(runs(key, wait))

        one.func = done
    return one  # type: ignore[no-any-return]


def stay(place: Place, worker: str) -> None:
    """Launch a worker that sends nothing and takes what comes, until it is killed."""
    _launched(place, worker)
    threading.Event().wait()


def _launched(place: Place, worker: str) -> Conversations:
    name = f"{worker} of {place.folder}"
    chats = made(place, name)
    launch(place.url, name, lease=place.lease, max_silent_executions=KILLS_IN_A_ROW)
    (place.folder / worker).touch()
    return chats


# ---------------------------------------------------------------------------------------------- clients


def work(place: Place, worker: str, conversations: list[str]) -> None:
    """Launch a worker, send all messages, also those that were sent before, and decide from two sides until all is answered."""
    chats = _launched(place, worker)
    ways: list[Callable[[list[PendingCall]], list[list[Decision]]]] = [_together, _one_by_one]
    with ThreadPoolExecutor(len(ways) * len(conversations)) as pool:
        list(pool.map(lambda one: _send(chats, one), conversations))
        list(pool.map(lambda both: _decide(chats, *both), [(one, way) for one in conversations for way in ways]))


def _send(chats: Conversations, conversation: str) -> None:
    steers = conversation.startswith("steer")
    for text in texts_of(conversation):
        chats.send(conversation, HumanMessage(text, id=text), while_running="steer" if steers and crc32(text.encode()) % 4 else "queue")
        time.sleep(random.uniform(0, _LONGEST_PAUSE) if steers else 0)


def _decide(chats: Conversations, conversation: str, way: Callable[[list[PendingCall]], list[list[Decision]]]) -> None:
    """Decide until the last message is answered; what was decided once is decided again."""
    before: list[list[Decision]] = []
    while not is_answered(chats.messages(conversation)):
        new = way(chats.pending(conversation))
        for decisions in [*new, *before[-1:]]:
            chats.decide(conversation, decisions)
        before += new
        time.sleep(_SECONDS)


def _together(calls: list[PendingCall]) -> list[list[Decision]]:
    return [[decided(call) for call in calls]] if calls else []


def _one_by_one(calls: list[PendingCall]) -> list[list[Decision]]:
    return [[decided(call)] for call in calls]


def is_answered(messages: Sequence[BaseMessage]) -> bool:
    """Whether all that was sent to a conversation is answered."""
    return " is answered after " in messages[-1].text and sum(message.type == "human" for message in messages) == MESSAGES
