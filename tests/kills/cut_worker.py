"""What runs in processes that are killed around cuts (`compact=`), and the server that outlives them.

The server answers by what is in a request alone: a conversation of some questions, for each of which pages are read, one after another.
"""

import asyncio
import json
import logging
import os
import random
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from hashlib import sha256
from itertools import count
from operator import add
from types import SimpleNamespace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, message_chunk_to_message, messages_from_dict, messages_to_dict

from langchain_autotools import Compaction, new_messages
from langchain_autotools.durable import Conversations, durable, launch
from tests.contract.wires import WIRES
from tests.support.http_server import Exchange, HttpReply, Part, Pause
from tests.support.script import Call, Reply, Turn

from .conversations import Diary
from .worker import KILLS_IN_A_ROW, Place

QUESTIONS, PAGES = 4, 7
WINDOW, WIDER = 2500, 4400
"""Tokens of the context window with summaries, and without them: then lines and calls have to fit for good."""
SERVERS = {wire.name: wire for wire in WIRES}
WHERE = ("unsent", "asked", "half", "handed", "whole")
"""Where a process is killed: before a request is sent, when the server has it, or in the middle of the reply. Also when the message of the
reply is handed over and not stored yet, and as soon as the reply is whole."""
_PROCESS, _KILLS = "x-process", "x-kills"


@dataclass(frozen=True)
class Setup:
    """How a conversation is held.

    Attributes:
        wire: The name of the server's wire.
        way: How its runs are made: by `stream` or `astream` of a model, or `durable`, or in `conversations`.
        stores: What the program stores itself: `parts`, each message as it is handed over; `runs`, run messages; or `nothing`.
        summary: Whether summaries are made.
        varies: Whether no two summaries are the same.
    """

    wire: str
    way: str
    stores: str
    summary: bool = True
    varies: bool = False

    @property
    def name(self) -> str:
        """The setup in words."""
        stores = {"parts": ["parts"], "runs": ["runs"]}.get(self.stores, [])
        words = [self.wire, self.way, *stores, "summaries" if self.summary else "results"]
        return " ".join([*words, "varying"] if self.varies else words)


@dataclass(frozen=True)
class Kill:
    """A moment at which a process is killed: where around the request with this digest."""

    where: str
    request: str


def page(number: int) -> str:
    """Return a page."""
    return f"Page {number} of the book. The fact is {number * 7}. " + "lorem ipsum dolor sit amet " * 20


# ---------------------------------------------------------------------------------------------- requests


def plain(body: bytes) -> bytes:
    """Return a request without the numbers of summaries."""
    return re.sub(rb"Summary \d{4}", b"Summary", body)


def digest(body: bytes) -> str:
    """Return what a request is known by."""
    return sha256(plain(body)).hexdigest()


def asks_for_summary(body: bytes) -> bool:
    """Whether a request asks for a summary."""
    return b"asks for a summary" in body or b"conversation>" in body


# ---------------------------------------------------------------------------------------------- the server


class Script:
    """The replies of the conversation, each made of its request.

    Args:
        varies: Whether no two summaries are the same.
    """

    def __init__(self, varies: bool) -> None:
        self._numbers = count() if varies else None

    def __call__(self, exchange: Exchange) -> Turn:
        """Reply. Ids follow from the request, not from how many came before it."""
        text = exchange.body.decode()
        question = list(re.finditer(r"Question (\d+)", text))[-1]
        read = list(re.finditer(r"number\W+(\d+)", text))
        is_reading = bool(read) and read[-1].start() > question.start()
        number = int(read[-1][1]) + 1 if is_reading else int(question[1]) * PAGES
        exchange.number = 2 * number + int(question[1])
        usage = (len(exchange.body) // 4, 20)
        if asks_for_summary(exchange.body):
            own = number if self._numbers is None else next(self._numbers)
            return Turn(f"Summary {own:04d}: the pages were read; their facts are multiples of seven.", usage=usage)
        if is_reading and number % PAGES == 0:
            return Turn(f"The pages up to {number} are read.", usage=usage)
        again = [Call("read_result", {"handle": "r2", "find": "fact"}, f"again_{number}")] if number % 5 == 4 else []
        return Turn(calls=[*again, Call("page", {"number": number}, f"call_{number}")], usage=usage)


def serve(place: Place, setup: Setup) -> None:
    """Serve the conversation until the process is killed. Requests are noted as they come; some end the process that they come from."""
    diary, killed = Diary(place.folder, "server"), set[str]()
    with SERVERS[setup.wire].serve(Script(setup.varies)) as server:
        encode = server.encode

        def answer(exchange: Exchange, body: dict[str, Any], reply: Reply) -> HttpReply:
            process, where = exchange.headers[_PROCESS], exchange.headers.get(_KILLS)
            if process in killed:
                threading.Event().wait()
            diary.note("request", body=exchange.body.decode())
            made = encode(exchange, body, reply)
            if where is None:
                return made
            killed.add(process)
            return replace(made, parts=_killing(exchange, where, list(made.parts)), framing="chunked")

        server.encode = answer  # type: ignore[method-assign]
        (place.folder / "address").write_text(json.dumps({"url": server.url, "address": server.address}))
        threading.Event().wait()


def _killing(exchange: Exchange, where: str, parts: Sequence[Part]) -> Iterator[Part]:
    """Give the parts of a reply, and kill the process that it is for on the way, or as soon as it is whole."""
    process = int(exchange.headers[_PROCESS])
    data = b"".join(part for part in parts if isinstance(part, bytes))
    if where == "whole":
        threading.Thread(target=_kill_after, args=(exchange, process)).start()
        yield data
        return
    yield data[: len(data) // 2 if where == "half" else 0]
    yield Pause(0.002)  # what comes before it is sent
    os.kill(process, signal.SIGKILL)
    yield Pause(60)  # until the connection has ended


def _kill_after(exchange: Exchange, process: int) -> None:
    exchange.finished.wait()
    time.sleep(random.uniform(0, 0.02))
    os.kill(process, signal.SIGKILL)


# ---------------------------------------------------------------------------------------------- the worker


class Doomed:
    """Marks the requests of this process, and kills it where it has to end.

    Args:
        kill: Where; None for nowhere.
    """

    def __init__(self, kill: Kill | None) -> None:
        self._kill = kill
        self._last = ""
        for library in map(sys.modules.get, ("httpx", "httpx2")):  # SDKs have one or the other
            if library is not None:
                self._mark_all(library)

    def _mark_all(self, library: Any) -> None:
        send, asend = library.Client.send, library.AsyncClient.send

        def sent(client: Any, request: Any, **more: Any) -> Any:
            self._mark(request, request.read())
            return send(client, request, **more)

        async def asent(client: Any, request: Any, **more: Any) -> Any:
            self._mark(request, await request.aread())
            return await asend(client, request, **more)

        library.Client.send, library.AsyncClient.send = sent, asent

    def _mark(self, request: Any, body: bytes) -> None:
        self._last = digest(body)
        request.headers[_PROCESS] = str(os.getpid())
        if self._kill is None or self._last != self._kill.request:
            return
        if self._kill.where == "unsent":
            os.kill(os.getpid(), signal.SIGKILL)
        if self._kill.where != "handed":
            request.headers[_KILLS] = self._kill.where

    def is_handed(self, message: BaseMessage) -> None:
        """End the process here, if it has to."""
        if isinstance(message, AIMessage) and self._kill == Kill("handed", self._last):
            os.kill(os.getpid(), signal.SIGKILL)


class Store:
    """What the program stores: messages, in a file, each of them before the next one is asked for."""

    def __init__(self, place: Place, diary: Diary) -> None:
        path = place.folder / "history"
        self._diary = diary
        self.messages = messages_from_dict([json.loads(line) for line in path.read_text().splitlines()]) if path.exists() else []
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def add(self, message: BaseMessage) -> None:
        """Store a message."""
        os.write(self._file, (json.dumps(messages_to_dict([message])[0]) + "\n").encode())
        os.fsync(self._file)
        self.messages.append(message)
        if isinstance(message, AIMessage):
            self._diary.note("stored")


def work(place: Place, setup: Setup, kill: Kill | None) -> None:
    """Hold the conversation to its end, from where the processes before this one have left it."""
    diary = Diary(place.folder, "worker")
    where = SimpleNamespace(**json.loads((place.folder / "address").read_text()))
    compact, window = Compaction(keep=3, summary=setup.summary), WINDOW if setup.summary else WIDER
    model = SERVERS[setup.wire].model(where, tools=[page], compact=compact, context_window=window, max_turns=None)
    doomed = Doomed(kill)
    logging.getLogger("langchain_autotools").setLevel(logging.CRITICAL)
    diary.note("lives")
    if setup.stores == "nothing":
        _IN_DATABASE[setup.way](place, model)
        return
    store = Store(place, diary)
    asked = sum(isinstance(one, HumanMessage) for one in store.messages)
    for number in range(asked, QUESTIONS) if not asked or is_answer(store.messages[-1]) else range(asked - 1, QUESTIONS):
        if number >= asked:
            store.add(question(number))
        _ask(model, setup, store, doomed)


def question(number: int) -> HumanMessage:
    """Return a question."""
    return HumanMessage(f"Question {number}: what do the next {PAGES} pages say?", id=f"question {number}")


def is_answer(message: BaseMessage) -> bool:
    """Whether a run ends in a message."""
    return isinstance(message, AIMessage) and not message.tool_calls


def _ask(model: Any, setup: Setup, store: Store, doomed: Doomed) -> None:
    """Make the run that goes on from what is stored, and store what it brings."""
    chunks = list[Any]()

    def take(chunk: Any) -> None:
        chunks.append(chunk)
        for message in new_messages(chunk):
            doomed.is_handed(message)
            if setup.stores == "parts":
                store.add(message)

    async def atake() -> None:
        async for chunk in model.astream([*store.messages]):
            take(chunk)

    if setup.way == "astream":
        asyncio.run(atake())
    else:
        for chunk in model.stream([*store.messages]):
            take(chunk)
    if setup.stores == "runs":
        store.add(message_chunk_to_message(reduce(add, chunks)))


def _durable(place: Place, model: Any) -> None:
    """Hold the conversation in durable runs, each with the run messages of those before it."""
    chat, history = durable(model, "cuts", rerun=["page"]), list[BaseMessage]()
    launch(place.url, "worker", lease=place.lease, max_silent_executions=KILLS_IN_A_ROW)
    for number in range(QUESTIONS):
        history.append(question(number))
        history.append(chat.invoke([*history], run_id=f"run {number}"))


def _in_conversation(place: Place, model: Any) -> None:
    """Hold it as a conversation, to which all questions are sent at once."""
    chats = Conversations(model, place.url, rerun=["page"])
    launch(place.url, "worker", lease=place.lease, max_silent_executions=KILLS_IN_A_ROW)
    for sent in [chats.send("talk", question(number)) for number in range(QUESTIONS)]:
        chats.result(sent)


_IN_DATABASE: Mapping[str, Callable[[Place, Any], None]] = {"durable": _durable, "conversations": _in_conversation}
