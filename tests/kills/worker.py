"""What runs in a process that will be killed: a worker, and the clients of its runs."""

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import tool

from langchain_autotools.durable import DurableModel, durable, launch
from langchain_autotools.testing import ScriptedChatModel

TURNS = 3
CALLS = 3


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


def made(folder: Path) -> DurableModel:
    """The model, whose tools write down outside the process what they do."""
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

    return durable(ScriptedChatModel(tools=[pay, look], replies=reply), "kills", rerun=["look"])


def work(folder: Path, mode: str, runs: list[str]) -> None:
    """Launch a worker and wait for all runs, which begin where they have not begun."""
    chat = made(folder)
    launch(f"sqlite:///{folder / 'runs.sqlite'}", f"worker of {folder}", lease=2)
    (folder / "launched").touch()
    if mode == "async":
        asyncio.run(_gather(chat, runs))
    else:
        with ThreadPoolExecutor(len(runs)) as pool:
            list(pool.map(lambda run: _wait(chat, mode, run), runs))
    (folder / "done").touch()


def _wait(chat: DurableModel, mode: str, run: str) -> None:
    if mode == "stream":
        for _ in chat.stream(run, run_id=run):
            pass
    else:
        chat.invoke(run, run_id=run)


async def _gather(chat: DurableModel, runs: list[str]) -> None:
    await asyncio.gather(*(chat.ainvoke(run, run_id=run) for run in runs))
