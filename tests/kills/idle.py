"""`python -m tests.kills.idle [--poll 0.1] [--followers 200]`: what an idle worker costs over SQLite, and who follows its conversations.

Prints the share of a core and the statements a second while nothing happens, and the seconds from sending to the first text. Prints JSON.
"""

import argparse
import asyncio
import json
import tempfile
import time
from statistics import median
from typing import Any

from langchain_core.messages import BaseMessage

from langchain_autotools import TextDelta
from langchain_autotools.durable import Conversations, launch, shutdown
from langchain_autotools.testing import ScriptedChatModel
from tests.support.statements import statements

SECONDS = 15.0
SENT = 12


def reply(messages: list[BaseMessage], **_: Any) -> str:
    """An answer."""
    return "Yes."


async def followed(chats: Conversations, chat: str) -> None:
    """Follow a conversation in which nothing happens."""
    async for _ in chats.aevents(chat, follow=True):
        pass


async def answered(chats: Conversations, chat: str) -> float:
    """The seconds from sending a message to the first text of its answer."""
    began = time.perf_counter()
    sent = await chats.asend(chat, "Hello")
    async for event in chats.aevents(chat, after=sent.position, follow=True):
        if isinstance(event, TextDelta):
            break
    return time.perf_counter() - began


async def measured(chats: Conversations, followers: int) -> dict[str, float]:
    """What it costs while nothing happens, and how long a message takes then."""
    tasks = [asyncio.create_task(followed(chats, f"followed {number}")) for number in range(followers)]
    await asyncio.sleep(5 + followers / 50)
    cpu, began = time.process_time(), time.perf_counter()
    with statements("") as made:
        await asyncio.sleep(SECONDS)
    share, seconds = time.process_time() - cpu, time.perf_counter() - began
    waits = [await answered(chats, f"sent {number}") for number in range(SENT)]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return {
        "percent of a core": round(100 * share / seconds, 1),
        "statements a second": round(len(made) / seconds, 1),
        "first text, median": round(median(waits), 2),
        "first text, longest": round(max(waits), 2),
    }


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--poll", type=float, default=0.1)
    parser.add_argument("--followers", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        chats = Conversations(ScriptedChatModel(replies=reply), f"sqlite:///{folder}/runs.sqlite")
        launch(poll_interval=given.poll)
        try:
            figures = asyncio.run(measured(chats, given.followers))
        finally:
            shutdown()
    print(json.dumps({"poll": given.poll, "followers": given.followers, **figures}))


if __name__ == "__main__":
    main()
