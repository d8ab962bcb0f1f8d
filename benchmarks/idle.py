"""What an idle worker costs, and who follows its conversations: `python -m benchmarks.idle [--poll 0.1] [--followers 2000]`.

Over SQLite (extra `durable`). Prints one JSON object: the share of a core and the statements a second while nothing happens. Then messages
are sent, one after another, and what counts are the milliseconds from sending to the first frame of a reader that follows the conversation,
and to the first text of the answer.
"""

import argparse
import asyncio
import json
import tempfile
import time
from statistics import median, quantiles
from typing import Any

from langchain_core.messages import BaseMessage

from langchain_autotools.durable import Conversations, launch, shutdown
from langchain_autotools.event_types import TextDelta
from langchain_autotools.testing import ScriptedChatModel
from tests.support.statements import statements

SECONDS = 15.0


def reply(messages: list[BaseMessage], **_: Any) -> str:
    """An answer."""
    return "Yes."


class Follower:
    """Follows a conversation and notes when its next frame and its next text come."""

    def __init__(self, chats: Conversations, chat: str) -> None:
        self.chat = chat
        self.frame, self.text = 0.0, asyncio.Event()
        self._chats = chats
        self._began = 0.0
        self.task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        async for event in self._chats.aevents(self.chat, follow=True):
            self.frame = self.frame or time.perf_counter() - self._began
            if isinstance(event, TextDelta):
                self.text.set()

    async def answered(self) -> tuple[float, float]:
        """Send a message; return the milliseconds to its first frame and to the first text of its answer."""
        self._began, self.frame = time.perf_counter(), 0.0
        self.text.clear()
        await self._chats.asend(self.chat, "Hello")
        await self.text.wait()
        return self.frame * 1e3, (time.perf_counter() - self._began) * 1e3


async def measured(chats: Conversations, followers: int, sent: int) -> dict[str, float]:
    """Return what it costs while nothing happens, and how long a message takes then."""
    all_of_them = [Follower(chats, f"followed {number}") for number in range(max(followers, 1))]
    if not followers:
        all_of_them[0].task.cancel()
    await asyncio.sleep(5 + followers / 50)
    cpu, began = time.process_time(), time.perf_counter()
    with statements("") as made:
        await asyncio.sleep(SECONDS)
    share, seconds = time.process_time() - cpu, time.perf_counter() - began
    if not followers:
        all_of_them = [Follower(chats, "followed 0")]
        await asyncio.sleep(1)
    waits = [await all_of_them[number % len(all_of_them)].answered() for number in range(sent)]
    frames, texts = zip(*waits, strict=True)
    for one in all_of_them:
        one.task.cancel()
    await asyncio.gather(*(one.task for one in all_of_them), return_exceptions=True)
    return {
        "percent of a core": round(100 * share / seconds, 1),
        "statements a second": round(len(made) / seconds, 1),
        "first frame, median": round(median(frames)),
        "first frame, p99": round(quantiles(frames, n=100, method="inclusive")[-1]),
        "first text, median": round(median(texts)),
        "first text, p99": round(quantiles(texts, n=100, method="inclusive")[-1]),
    }


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.idle", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--poll", type=float, default=0.1)
    parser.add_argument("--followers", type=int, default=0)
    parser.add_argument("--sent", type=int, default=100, help="messages that are sent")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        chats = Conversations(ScriptedChatModel(replies=reply), f"sqlite:///{folder}/runs.sqlite")
        launch(poll_interval=given.poll)
        try:
            figures = asyncio.run(measured(chats, given.followers, given.sent))
        finally:
            shutdown()
    print(json.dumps({"poll": given.poll, "followers": given.followers, **figures}))


if __name__ == "__main__":
    main()
