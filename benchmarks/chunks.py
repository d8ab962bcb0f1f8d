"""Every wire beside its floor and its vendor's SDK, chunk by chunk, in one process: `python -m benchmarks.chunks [--rounds 30]`.

Prints Markdown tables of the client's CPU per chunk: of text, of reasoning, of a call's arguments, read in every way that a program
has. All of a wire's peers take turns in each round, so that a busy machine is busy for all of them, and the least of the rounds counts:
what comes on top of it is the machine's. The floor is httpx and jiter: the bytes are split and parsed, nothing else is done.
"""

import argparse
import asyncio
import gc
import platform
import time
from collections.abc import Callable, Iterable
from contextlib import aclosing
from functools import cache
from typing import Any

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.runnables import RunnablePassthrough

from langchain_autotools import aevents, events

from .__main__ import server
from .peers import FUNCTIONS
from .wires import WIRES, Run

CHAT = "Chat completions"
PATHS = {
    CHAT: "/v1/chat/completions",
    "Anthropic": "/v1/messages",
    "Responses": "/v1/responses",
    "Google": "/v1beta/models",
    "Ollama": "/api/chat",
}
KINDS = ("text", "reasoning", "arguments")
WHOLE_CALLS = frozenset({"Google", "Ollama"})  # they send calls whole


class _InlineTracer(BaseCallbackHandler):
    """What tracers of LangSmith and others are: synchronous, and called where the chunk is."""

    run_inline = True


def floor(wire: str, port: int) -> Run:
    """httpx and jiter: read the bytes, split the events, parse them."""
    import httpx
    import jiter

    client = httpx.Client(base_url=f"http://127.0.0.1:{port}")
    end = {"Google": b"\r\n\r\n", "Ollama": b"\n"}.get(wire, b"\n\n")

    def run(model: str) -> None:
        path = f"{PATHS[wire]}/{model}:streamGenerateContent" if wire == "Google" else PATHS[wire]
        with client.stream("POST", path, json={"model": model, "messages": [], "stream": True}) as response:
            tail = b""
            for piece in response.iter_raw():
                *events, tail = (tail + piece).split(end)
                for event in events:
                    if event != b"data: [DONE]":
                        jiter.from_json(event[event.find(b"{") :])

    return run


def chat_sdk(port: int) -> Run:
    """The SDK's chunks, their texts and fragments collected."""
    from openai import OpenAI

    client = OpenAI(api_key="x", base_url=f"http://127.0.0.1:{port}/v1", max_retries=0)

    def run(model: str) -> Any:
        found: list[Any] = []
        for chunk in client.chat.completions.create(model=model, messages=[{"role": "user", "content": "hello"}], stream=True):
            if chunk.choices:
                delta = chunk.choices[0].delta
                found.append(delta.tool_calls[0].function if delta.tool_calls else delta.content)
        return found

    return run


def model(wire: str, port: int) -> Callable[[str, bool], Any]:
    """A function that makes this package's model by its name, with tools or without."""
    from langchain_autotools import ChatAnthropic, ChatGoogleGenerativeAI, ChatOllama, ChatOpenAI

    url = f"http://127.0.0.1:{port}"
    fields: dict[str, tuple[Any, dict[str, Any]]] = {
        CHAT: (ChatOpenAI, {"base_url": f"{url}/v1"}),
        "Anthropic": (ChatAnthropic, {"base_url": url}),
        "Responses": (ChatOpenAI, {"base_url": f"{url}/v1", "use_responses_api": True}),
        "Google": (ChatGoogleGenerativeAI, {"base_url": url}),
        "Ollama": (ChatOllama, {"base_url": url}),
    }
    made, more = fields[wire]
    key = {} if wire == "Ollama" else {"api_key": "x"}
    return cache(lambda name, tools: made(model=name, **key, **more, **({"tools": list(FUNCTIONS.values())} if tools else {})))


def _read(chunks: Iterable[Any]) -> None:
    for _ in chunks:
        pass


async def _aread(chunks: Any) -> None:
    async with aclosing(chunks):
        async for _ in chunks:
            pass


def _watched(handler: type[BaseCallbackHandler]) -> Any:
    return {"callbacks": [handler()]}


EACH = "one event a write"
WAYS: dict[str, Callable[[Any], Iterable[Any]]] = {
    "stream": lambda chat: chat.stream("hello"),
    EACH: lambda chat: chat.stream("hello"),
    "a handler": lambda chat: chat.stream("hello", _watched(BaseCallbackHandler)),
    "a chain": lambda chat: (RunnablePassthrough() | chat).stream("hello"),
    "events": lambda chat: events(chat.stream("hello")),
}
"""The ways to read a reply; `EACH` differs by the server alone."""
ASYNC_WAYS: dict[str, Callable[[Any], Any]] = {
    "astream": lambda chat: chat.astream("hello"),
    "an inline tracer": lambda chat: chat.astream("hello", _watched(_InlineTracer)),
    "an asynchronous handler": lambda chat: chat.astream("hello", _watched(AsyncCallbackHandler)),
    "an asynchronous chain": lambda chat: (RunnablePassthrough() | chat).astream("hello"),
    "aevents": lambda chat: aevents(chat.astream("hello")),
    "astream_events v2": lambda chat: chat.astream_events("hello", version="v2"),
}
"""The asynchronous ways."""


def reader(way: str, make: Callable[[str, bool], Any], loop: asyncio.AbstractEventLoop, *, tools: bool) -> Run:
    """Return a function that reads the reply of a model's name in one way."""

    def run(name: str) -> None:
        chat = make(f"{name}-each" if way == EACH else name, tools)
        if way in WAYS:
            _read(WAYS[way](chat))
        else:
            loop.run_until_complete(_aread(ASYNC_WAYS[way](chat)))

    return run


def ways(make: Callable[[str, bool], Any], loop: asyncio.AbstractEventLoop) -> dict[str, Run]:
    """Return this package's ways to read a reply, by the row of the table, which says which model it uses."""
    rows = [(way, tools) for tools in (False, True) for way in (*WAYS, *ASYNC_WAYS)]
    return {f"{way}{', tools=' if tools else ''}": reader(way, make, loop, tools=tools) for way, tools in rows}


def peers(wire: str, port: int, loop: asyncio.AbstractEventLoop) -> dict[str, Run]:
    """Return everything that reads this wire, by name."""
    sdk = chat_sdk(port) if wire == CHAT else WIRES[wire].sdk(port)
    lowest = floor(wire, port)
    each = {"floor": lowest, f"floor, {EACH}": lambda name: lowest(f"{name}-each")}
    return {**each, "SDK": sdk, **ways(model(wire, port), loop)}


def measure(readers: dict[str, Run], name: str, size: int, rounds: int) -> dict[str, float]:
    """Return the least CPU microseconds per chunk of each reader; they take turns."""
    least = dict.fromkeys(readers, float("inf"))
    for number in range(rounds + 1):
        gc.collect()
        gc.freeze()  # what imports and clients have left is nobody's cost, and need not be looked at again
        for reader, run in readers.items():
            gc.collect()
            before = time.process_time()
            run(name)
            if number:  # the first round makes clients and models
                least[reader] = min(least[reader], (time.process_time() - before) / size * 1e6)
    return least


def main() -> None:
    """Measure and print a table for each kind of chunk."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chunks", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--size", type=int, default=1000, help="chunks in a reply")
    parser.add_argument("--wires", nargs="*", choices=list(PATHS), default=list(PATHS))
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=list(KINDS))
    parser.add_argument("--ways", nargs="*", help="only these rows, beside the floor and the SDK")
    options = parser.parse_args()
    print(f"Python {platform.python_version()}; CPU per chunk in us, least of {options.rounds} rounds, replies of {options.size} chunks")
    loop = asyncio.new_event_loop()
    with server() as port:
        for wire in options.wires:
            readers = peers(wire, port, loop)
            kept = {"floor", f"floor, {EACH}", "SDK", *(options.ways or readers)}
            readers = {name: run for name, run in readers.items() if name in kept}
            kinds = [kind for kind in options.kinds if kind != "arguments" or wire not in WHOLE_CALLS]
            columns = {kind: measure(readers, f"{kind}-{options.size}", options.size, options.rounds) for kind in kinds}
            print(f"\n### {wire}\n\n| | " + " | ".join(f"{kind} | of the floor | of the SDK" for kind in kinds) + " |")
            print("|---|" + "---|---|---|" * len(kinds))
            for reader in columns[kinds[0]]:
                cells = [
                    f"{column[reader]:.2f} | {column[reader] / column['floor']:.2f} | {column[reader] / column['SDK']:.2f}"
                    for column in columns.values()
                ]
                print(f"| {reader} | " + " | ".join(cells) + " |", flush=True)
    loop.close()


if __name__ == "__main__":
    main()
