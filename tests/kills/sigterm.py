"""`python -m tests.kills.sigterm [--database postgresql]`: ends workers by SIGTERM while they wait for something asynchronous.

A worker waits, on its own event loop, for the reply to a request and for tools. It ends as programs do:
its main task is cancelled, its handler raises `SystemExit`, or it calls `shutdown` first. A second worker goes on. Prints JSON.
"""

import argparse
import asyncio
import json
import logging
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from pydantic import PrivateAttr

from langchain_autotools import ToolsAndMessagesMixin
from langchain_autotools.durable import Conversations, RunFailedError, launch, shutdown
from tests.support.postgres import postgres

from .worker import effects_of, in_postgresql, in_sqlite

ENDS = ("task", "exit", "shutdown")
WAITS = ("request", "tool", "tool that may run again")
_LONGEST = 25.0  # seconds in which a process that was asked to end must have ended
_LEASE = 2.0


class _Replies(ToolsAndMessagesMixin, BaseChatModel):
    """Makes its requests on the event loop of the program."""

    _work: "_Work" = PrivateAttr()

    def __init__(self, work: "_Work", **fields: Any) -> None:
        super().__init__(**fields)
        self._work = work

    @property
    def _llm_type(self) -> str:
        return "replies"

    def raw_stream(self, messages: list[BaseMessage], stop: list[str] | None = None, **_: Any) -> Iterator[AIMessage]:
        """Reply to a request."""
        last = messages[-1]
        if last.type == "human" and "tool" in last.text:
            name = "look" if "again" in last.text else "pay"
            yield AIMessage("", tool_calls=[{"name": name, "args": {"key": last.text}, "id": last.text}])
            return
        if last.text == "request":
            asyncio.run_coroutine_threadsafe(self._work.wait("request"), self._work.loop).result()
        yield AIMessage(f"{len(messages)} messages.")


class _Work:
    """What runs on the event loop: in the first life it does not end.

    Args:
        folder: Takes what happens.
        ends: Whether it ends.
    """

    def __init__(self, folder: Path, ends: bool) -> None:
        self.loop = asyncio.get_running_loop()
        self._folder = folder
        self._ends = ends

    async def wait(self, key: str) -> str:
        """Write down outside the process that it runs, and wait."""
        with (self._folder / "effects").open("a") as effects:
            effects.write(f"{key.replace(' ', '-')}\n")
        if not self._ends:
            await asyncio.sleep(600)
        return f"done {key}"

    def conversations(self, url: str) -> Conversations:
        """The conversations, in a process that has launched."""

        @tool
        async def pay(key: str) -> str:
            """Pay once."""
            return await self.wait(key)

        @tool
        async def look(key: str) -> str:
            """Look as often as you like."""
            return await self.wait(key)

        return Conversations(_Replies(self, tools=[pay, look]), url, rerun=["look"])


async def work(folder: Path, url: str, end: str) -> None:
    """Be the first worker, until somebody asks it to end."""
    logging.basicConfig(format="logged by %(name)s", force=True)
    done, task = asyncio.Event(), asyncio.current_task()
    assert task is not None
    if end == "exit":
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    else:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel if end == "task" else done.set)
    chats = _Work(folder, ends=False).conversations(url)
    await asyncio.to_thread(launch, url, f"first of {folder}", lease=_LEASE)
    for name in WAITS:
        await chats.asend(name, HumanMessage(name, id=name))
        await chats.asend(name, HumanMessage("Then", id=f"{name} then"))
    await done.wait()
    await asyncio.to_thread(shutdown)


async def go_on(folder: Path, url: str) -> list[str]:
    """Be the second worker; returns what is wrong."""
    chats, wrong = _Work(folder, ends=True).conversations(url), []
    await asyncio.to_thread(launch, url, f"second of {folder}", lease=_LEASE)
    for name in WAITS:
        for message in (HumanMessage(name, id=name), HumanMessage("Then", id=f"{name} then")):
            try:
                await chats.aresult(await chats.asend(name, message), timeout=60)
            except (RunFailedError, TimeoutError) as error:
                wrong.append(f"{name}: {type(error).__name__}: {error}")
        texts = [message.text for message in await chats.amessages(name)]
        result = {"request": None, "tool": "outcome unknown"}.get(name, f"done {name}")
        answer = ["1 messages."] if result is None else ["", *(text for text in texts if result in text), "3 messages."]
        wanted = [name, *answer, "Then"]
        if texts != [*wanted, f"{len(wanted)} messages."]:
            wrong.append(f"{name} is {texts}")
    await asyncio.to_thread(shutdown)
    effects = dict(Counter(effects_of(folder)))
    return wrong if effects == {"request": 2, "tool": 1, "tool-that-may-run-again": 2} else [*wrong, f"ran: {effects}"]


def ended_by(folder: Path, url: str, end: str) -> dict[str, Any]:
    """End a worker, and see what became of its runs in the next one."""
    command = [sys.executable, "-m", "tests.kills.sigterm", "--folder", str(folder), "--url", url, "--end"]
    first = subprocess.Popen([*command, end], stderr=subprocess.PIPE, text=True)
    try:
        until = time.monotonic() + 60
        while len(effects_of(folder)) < len(WAITS):
            assert first.poll() is None and time.monotonic() < until
            time.sleep(0.02)
        first.send_signal(signal.SIGTERM)
        asked = time.monotonic()
        _, errors = first.communicate(timeout=_LONGEST)
        seconds = time.monotonic() - asked
    finally:
        first.kill()
    second = subprocess.run([*command, ""], capture_output=True, text=True, timeout=200, check=True)
    logged = sum(f"logged by {name}" in errors or f"({name}:" in errors for name in ("dbos", "langchain_autotools"))
    return {"seconds": round(seconds, 1), "logged": logged, "wrong": json.loads(second.stdout.splitlines()[-1])}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.kills.sigterm")
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--url")
    parser.add_argument("--end")
    arguments = parser.parse_args()
    if arguments.end:
        asyncio.run(work(arguments.folder, arguments.url, arguments.end))
    elif arguments.folder:
        print(json.dumps(asyncio.run(go_on(arguments.folder, arguments.url))))
    else:
        with tempfile.TemporaryDirectory() as home, postgres() if arguments.database == "postgresql" else nullcontext() as server:
            figures = {}
            for one in ENDS:
                (place := Path(home) / one).mkdir()
                url = (in_sqlite(place) if server is None else in_postgresql(place, server)).url
                figures[one] = ended_by(place, url, one)
            print(json.dumps(figures))
