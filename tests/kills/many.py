"""`python -m tests.kills.many [1000]`: so many conversations at once over two workers and PostgreSQL; one worker is killed half way.

Each conversation has three messages, each answered by two requests and one call. Nothing is started in the place of the killed worker; of
the one that lives on it is measured what it holds at rest: after the launch, and after each batch. Prints JSON.
"""

import argparse
import json
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_autotools import ToolsAndMessagesMixin
from langchain_autotools.durable import Conversations, Sent, launch, shutdown
from langchain_autotools.history import repair
from tests.support.postgres import PostgresServer, postgres

from .harness import kill, launched
from .worker import KILLS_IN_A_ROW, Place, effects_of, in_postgresql, tools_of

MESSAGES = 3
_AT_ONCE = 32  # runs of a worker, each in a thread that DBOS keeps
_CONNECTIONS = 20  # those of DBOS's pool
_MORE = {"threads": _AT_ONCE, "files": _CONNECTIONS, "sockets": _CONNECTIONS}  # than after the launch, at the most
_LEASE = 10.0
_REQUEST, _CALL = 0.02, 0.01  # seconds that they take
_SENDERS = 8
_QUIET = 6.0  # seconds in which nothing changes: the package lets go of a thread that has had nothing to do for five
_LONGEST = 3600.0


class Answers(ToolsAndMessagesMixin, BaseChatModel):
    """A call for each message, then an answer that says how many messages there were. It remembers nothing, as a model does."""

    @property
    def _llm_type(self) -> str:
        return "answers"

    def raw_stream(self, messages: list[BaseMessage], stop: list[str] | None = None, **_: Any) -> Iterator[AIMessage]:
        """Reply to a request."""
        time.sleep(_REQUEST)
        last = messages[-1]
        if isinstance(last, ToolMessage):
            yield AIMessage(f"{last.tool_call_id} is answered after {len(messages)} messages.")
        else:
            yield AIMessage("", tool_calls=[{"name": "pay", "args": {"key": last.text, "wait": _CALL / 2}, "id": last.text}])


def made(place: Place, max_concurrency: int) -> Conversations:
    """The conversations, in a process that has launched."""
    pay = next(one for one in tools_of(place.folder) if one.name == "pay")
    chats = Conversations(Answers(tools=[pay]), place.url, max_concurrency=max_concurrency)
    launch(place.url, f"{os.getpid()} of {place.folder}", lease=place.lease, max_silent_executions=KILLS_IN_A_ROW)
    return chats


def work(place: Place, worker: str) -> None:
    """Be a worker, until somebody kills it."""
    made(place, _AT_ONCE)
    (place.folder / worker).touch()
    threading.Event().wait()


def held(process: int) -> dict[str, int]:
    """What a process holds."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    files = [os.readlink(file) for file in Path(f"/proc/{process}/fd").iterdir()]
    sockets, megabytes = sum(file.startswith("socket:") for file in files), int(status["VmRSS"].split()[0]) // 1024
    return {"megabytes": megabytes, "threads": int(status["Threads"]), "files": len(files), "sockets": sockets}


class Client:
    """Sends, waits and looks, in a process that takes no runs.

    Args:
        place: Where the conversations are kept.
        chats: The conversations.
    """

    def __init__(self, place: Place, chats: Conversations) -> None:
        self._place = place
        self._chats = chats
        self._names: list[str] = []

    def answer(self, batch: str, count: int) -> float:
        """Send all messages of some new conversations, and wait for the last answer of each; returns the seconds."""
        names, begun = [f"{batch}.{number}" for number in range(count)], time.monotonic()
        with ThreadPoolExecutor(_SENDERS) as pool:
            list(pool.map(self._send, names))
        for name in names:
            self._chats.result(self._send(name), timeout=_LONGEST)
        self._names += names
        return time.monotonic() - begun

    def _send(self, name: str) -> Sent:
        return [self._chats.send(name, HumanMessage(text, id=text)) for text in texts_of(name)][-1]

    def seen(self) -> dict[str, Any]:
        """What all conversations have come to."""
        effects = Counter(effects_of(self._place.folder))
        interrupted, wrong = 0, []
        for name in self._names:
            messages = self._chats.messages(name)
            calls = [str(call["id"]) for one in messages if isinstance(one, AIMessage) for call in one.tool_calls]
            results = [str(one.content) for one in messages if isinstance(one, ToolMessage)]
            texts = [one.text for one in messages if one.text and not isinstance(one, ToolMessage)]
            ends = [f"{text} is answered after {4 * number + 3} messages." for number, text in enumerate(texts_of(name))]
            if texts != [text for pair in zip(texts_of(name), ends, strict=True) for text in pair] or repair(messages) != messages:
                wrong.append(f"{name} is {texts}")
            for call, result in zip(calls, results, strict=True):
                interrupted += "interrupted" in result
                if result != f"done {call}" and "interrupted, outcome unknown" not in result:
                    wrong.append(f"{call} is answered with {result}")
        answered = len(self._names) * MESSAGES if not wrong else None
        twice = sum(times > 1 for times in effects.values())
        return {"answered in order": answered, "calls that ran twice": twice, "calls interrupted": interrupted, "wrong": wrong}


def texts_of(name: str) -> list[str]:
    """What is sent to a conversation."""
    return [f"{name}.{number}" for number in range(MESSAGES)]


def many(place: Place, count: int) -> dict[str, Any]:
    """Have so many conversations answered, with a batch of a fifth as many before and two after."""
    few = max(1, count // 5)
    batches = {"first": few, "large": count, "third": few, "fourth": few}
    dies, lives = (launched(place, name, lambda name=name: work(place, name), _LONGEST) for name in ("dies", "lives"))
    try:
        client = Client(place, made(place, 0))
        holds, took = {"launch": at_rest(lives)}, {}
        for batch, size in batches.items():
            if batch == "large":
                killing = threading.Thread(target=_kill_half_way, args=(place, (few + count // 2) * MESSAGES, dies), daemon=True)
                killing.start()
            took[f"seconds of the {batch} batch"] = round(client.answer(batch, size), 1)
            holds[batch] = at_rest(lives)
        killing.join()
        allowed = {what: holds["launch"][what] + more for what, more in _MORE.items()}
        kept = {"the worker that lives on holds": holds, "its settings allow": allowed}
        return {"conversations": sum(batches.values()), **client.seen(), **took, **kept}
    finally:
        shutdown()
        kill(dies)
        kill(lives)


def at_rest(process: int) -> dict[str, int]:
    """What a process holds when its threads and files have not changed for some time."""
    now, since = held(process), time.monotonic()
    while time.monotonic() - since < _QUIET:
        time.sleep(0.2)
        before, now = now, held(process)
        if any(now[what] != before[what] for what in _MORE):
            since = time.monotonic()
    return now


def _kill_half_way(place: Place, calls: int, process: int) -> None:
    while len(effects_of(place.folder)) < calls:
        time.sleep(0.1)
    kill(process)


def in_place(server: PostgresServer, count: int) -> dict[str, Any]:
    """The figures, of a database of their own."""
    with tempfile.TemporaryDirectory() as folder:
        (home := Path(folder) / "many").mkdir()
        return many(replace(in_postgresql(home, server), lease=_LEASE), count)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.kills.many")
    parser.add_argument("conversations", type=int, nargs="?", default=1000)
    with postgres() as running:
        print(json.dumps(in_place(running, parser.parse_args().conversations)))
