"""Many runs at once, each one turn with two tool calls and the answer: `python -m benchmarks.many PEER WAY COUNT`. Prints one JSON object.

CPU milliseconds and kilobytes a run: of memory what the process has grown by at its peak. A peer is `sdk`, the openai SDK and the
shortest correct loop over it, or `autotools`, `ChatOpenAI` with `tools=`; the way is `tasks` (all in one event loop) or `threads`
(one for each run).
"""

import argparse
import asyncio
import gc
import json
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from . import peers
from .__main__ import server

MODEL = "turns-1"
SECONDS = 600.0  # that no connection of a thousand is given up


def sdk_task(port: int) -> Callable[[], Awaitable[int]]:
    """The loop of `peers.sdk` with the asynchronous client."""
    from openai import AsyncOpenAI

    client = AsyncOpenAI(api_key="x", base_url=f"http://127.0.0.1:{port}/v1", max_retries=0, timeout=SECONDS)

    async def run() -> int:
        messages: list[Any] = [{"role": "user", "content": "hello"}]
        while True:
            calls: dict[int, dict[str, Any]] = {}
            options: Any = {"stream": True, "stream_options": {"include_usage": True}}
            stream: Any = await client.chat.completions.create(model=MODEL, messages=messages, tools=peers.SCHEMAS, **options)
            async for chunk in stream:
                for delta in (chunk.choices[0].delta.tool_calls or ()) if chunk.choices else ():
                    call = calls.setdefault(delta.index, {"id": delta.id, "name": delta.function.name, "arguments": ""})
                    call["arguments"] += delta.function.arguments or ""
            if not calls:
                return len(messages)
            functions = [{"name": call["name"], "arguments": call["arguments"]} for call in calls.values()]
            wire = [{"id": call["id"], "type": "function", "function": one} for call, one in zip(calls.values(), functions, strict=True)]
            messages.append({"role": "assistant", "content": None, "tool_calls": wire})
            for call in calls.values():
                result = peers.FUNCTIONS[call["name"]](**json.loads(call["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})

    return run


def autotools_task(port: int) -> Callable[[], Awaitable[int]]:
    """This package's `astream`."""
    from langchain_autotools import ChatOpenAI

    url, tools = f"http://127.0.0.1:{port}/v1", list(peers.FUNCTIONS.values())
    chat = ChatOpenAI(model=MODEL, api_key="x", base_url=url, tools=tools, timeout=SECONDS)  # type: ignore[arg-type]

    async def run() -> int:
        return len([None async for _ in chat.astream("hello")])

    return run


def tasks(peer: str, port: int) -> Callable[[int], None]:
    """Return a function that makes so many runs in one event loop at once."""
    run = {"sdk": sdk_task, "autotools": autotools_task}[peer](port)
    loop = asyncio.new_event_loop()

    async def together(count: int) -> None:
        await asyncio.gather(*(run() for _ in range(count)))

    return lambda count: loop.run_until_complete(together(count))


def in_threads(peer: str, port: int) -> Callable[[int], None]:
    """Return a function that makes so many runs at once, each in a thread."""
    run = peers.PEERS[peer](port)
    messages: list[Any] = [{"role": "user", "content": "hello"}] if peer == "sdk" else [("user", "hello")]

    def together(count: int) -> None:
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(lambda _: run(MODEL, messages), range(count)))

    return together


def peak() -> int:
    """Return the kilobytes that this program held at its peak. (`resource` counts from the peak of the program that started it.)"""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def measure(peer: str, way: str, count: int, port: int) -> dict[str, float]:
    """Return what a run costs."""
    together = {"tasks": tasks, "threads": in_threads}[way](peer, port)
    together(10)
    gc.collect()
    before, cpu = peak(), time.process_time()
    together(count)
    taken, grown = time.process_time() - cpu, peak() - before
    return {"CPU ms a run": round(taken / count * 1e3, 2), "KB a run": round(grown / count, 1)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("peer", choices=["sdk", "autotools"])
    parser.add_argument("way", choices=["tasks", "threads"])
    parser.add_argument("count", type=int)
    given = parser.parse_args()
    with server() as at:
        print(json.dumps(measure(given.peer, given.way, given.count, at)))
