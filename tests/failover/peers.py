"""Peers on the same faults, for figures: `python -m tests.failover.peers --cases 90`; with pydantic-ai and litellm those too.

A streamed conversation of two calls and an answer, whose first model breaks off behind a byte of one of its three replies, by number.
Counted are conversations that came to their answer, tools that ran twice, texts that were begun anew behind a part that had left (by one
that did not know of it), and refused requests.
`with_fallbacks` and `ModelFallbackMiddleware` wrap models of this package, so that nothing but the failover differs.
"""

import argparse
import json
import logging
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from langchain_core.messages import AIMessageChunk, HumanMessage
from openai import AsyncOpenAI

from langchain_autotools import ChatOpenAI
from tests.laws.ways import stop_loops, waited
from tests.support.http_server import Exchange
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Cut, Turn

TEXTS = ("Let me look at the first of both places now.", "And now at the other one of the two.", "It is 21 degrees in both of them.")
LONGEST = 2600
Way = Callable[[ChatOpenAI, ChatOpenAI, Any], Iterator[str]]
Pieces = Callable[[str], None]


def _ours(first: ChatOpenAI, second: ChatOpenAI, look: Any) -> Iterator[str]:
    model = first.model_copy(update={"fallbacks": [second]}).with_tools([look])
    yield from (chunk.text for chunk in model.stream([HumanMessage("Go.")]))


def _with_fallbacks(first: ChatOpenAI, second: ChatOpenAI, look: Any) -> Iterator[str]:
    model = first.with_tools([look]).with_fallbacks([second.with_tools([look])])
    yield from (chunk.text for chunk in model.stream([HumanMessage("Go.")]))


def _middleware(first: ChatOpenAI, second: ChatOpenAI, look: Any) -> Iterator[str]:
    from langchain.agents import create_agent
    from langchain.agents.middleware import ModelFallbackMiddleware

    agent = create_agent(first, [look], middleware=[ModelFallbackMiddleware(second)])
    for message, _ in agent.stream({"messages": [HumanMessage("Go.")]}, stream_mode="messages"):
        if isinstance(message, AIMessageChunk):
            yield message.text


async def _pydantic_ai(first: ChatOpenAI, second: ChatOpenAI, look: Any, take: Pieces) -> None:
    """pydantic-ai: an agent over a `FallbackModel` of its own models."""
    pydantic_ai, fallback = import_module("pydantic_ai"), import_module("pydantic_ai.models.fallback")
    openai, provider = import_module("pydantic_ai.models.openai"), import_module("pydantic_ai.providers.openai")
    clients = [AsyncOpenAI(base_url=model.openai_api_base, api_key="key", max_retries=0) for model in (first, second)]
    models = [
        openai.OpenAIChatModel(name, provider=provider.OpenAIProvider(openai_client=one))
        for name, one in zip(("one", "two"), clients, strict=True)
    ]
    agent = pydantic_ai.Agent(fallback.FallbackModel(*models), tools=[look])
    async with agent.run_stream_events("Go.") as events:
        async for event in events:
            part = getattr(event, {"part_start": "part", "part_delta": "delta"}.get(event.event_kind, ""), None)
            if "text" in (getattr(part, "part_kind", ""), getattr(part, "part_delta_kind", "")):
                take(getattr(part, "content", None) or getattr(part, "content_delta", ""))


async def _litellm(first: ChatOpenAI, second: ChatOpenAI, look: Any, take: Pieces) -> None:
    """litellm: its `Router`, in the plain loop of its documentation, since it has none of its own."""
    litellm = import_module("litellm")
    places = [
        {"model": f"openai/{one.model_name}", "api_base": one.openai_api_base, "api_key": "key", "max_retries": 0}
        for one in (first, second)
    ]
    listed = [{"model_name": name, "litellm_params": place} for name, place in zip(("one", "two"), places, strict=True)]
    router = litellm.Router(model_list=listed, fallbacks=[{"one": ["two"]}], num_retries=0)
    messages: list[Any] = [{"role": "user", "content": "Go."}]
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tools = [{"type": "function", "function": {"name": "look", "description": "Look at a city.", "parameters": schema}}]
    while True:
        chunks = []
        async for chunk in await router.acompletion(model="one", messages=messages, tools=tools, stream=True):
            chunks.append(chunk)
            take((chunk.choices[0].delta.content or "") if chunk.choices else "")
        message = litellm.stream_chunk_builder(chunks, messages=messages).choices[0].message
        messages.append({"role": "assistant", "content": message.content})
        if not message.tool_calls:
            return
        calls = [{"id": one.id, "type": "function", "function": dict(one.function)} for one in message.tool_calls]
        messages[-1]["tool_calls"] = calls
        for one in message.tool_calls:
            messages.append({"role": "tool", "tool_call_id": one.id, "content": look(**json.loads(one.function.arguments))})


def _asynchronous(talk: Any) -> Way:
    """A way that is asynchronous, as one that is not: its pieces come when it has ended, also by an error."""

    def way(first: ChatOpenAI, second: ChatOpenAI, look: Any) -> Iterator[str]:
        pieces: list[str] = []
        try:
            waited(talk(first, second, look, pieces.append))
        finally:
            yield from pieces

    return way


WAYS: dict[str, Way] = {"fallbacks=": _ours, "with_fallbacks": _with_fallbacks, "ModelFallbackMiddleware": _middleware}
OTHERS = {"pydantic_ai": ("FallbackModel of pydantic-ai", _pydantic_ai), "litellm": ("Router of litellm", _litellm)}
WAYS |= {name: _asynchronous(talk) for library, (name, talk) in OTHERS.items() if find_spec(library)}


def _half(whole: str, shown: str) -> str:
    """The beginning of a text that is in what was shown before that text begins again; empty if it is there once."""
    place = shown.find(whole)
    return next((whole[:end] for end in range(len(whole) - 1, 3, -1) if place > 0 and shown[:place].endswith(whole[:end])), "")


def play(way: Way, seed: int) -> Counter[str]:
    """Play one conversation; return what it adds to the counts."""
    chance = random.Random(seed)
    turn, byte, drop = chance.randrange(3), chance.randrange(LONGEST), chance.random() < 0.5
    ran: list[str] = []

    def look(city: str) -> str:
        """Look at a city."""
        ran.append(city)
        return "21"

    def whole(exchange: Exchange) -> Turn:
        number = sum(one["role"] == "tool" for one in exchange.json["messages"])
        return Turn(TEXTS[min(number, 2)], [Call("look", {"city": f"city {number}"})] if number < 2 else [])

    broken = [0]

    def breaking(exchange: Exchange) -> Any:
        broken[0] += 1
        return Cut(whole(exchange), byte, drop) if broken[0] == turn + 1 else whole(exchange)

    text, seen = "", Counter({"cases": 1})
    with OpenAIServer(breaking) as first, OpenAIServer(whole) as second:
        options: dict[str, Any] = {"api_key": "key", "max_retries": 0}
        models = [ChatOpenAI(model=name, base_url=one.url, **options) for name, one in (("one", first), ("two", second))]
        try:
            for piece in way(*models, look):
                text += piece
        except Exception:
            seen["error"] += 1
        seen["streamed requests"] = sum(bool(one.get("stream")) for one in (*first.requests, *second.requests))
        known = "".join(str(one.get("content")) for request in second.requests for one in request["messages"])
        shown = text.replace("\n", "")
        seen["wrote behind text that it did not know"] = int(any(_half(one, shown) and _half(one, shown) not in known for one in TEXTS))
        seen["refused requests"] = len(first.rejections) + len(second.rejections)
    seen["came to its answer"] = int(text.endswith(TEXTS[2]) and not seen["error"])
    seen["a tool ran twice"] = int(len(ran) > len(set(ran)))
    seen["lost its text"] = int(not all(one in text.replace("\n", "") for one in TEXTS))
    return seen


def main() -> None:
    """Print a row for each way."""
    parser = argparse.ArgumentParser(prog="python -m tests.failover.peers", description=__doc__)
    parser.add_argument("--cases", type=int, default=90)
    cases = parser.parse_args().cases
    logging.disable(logging.ERROR)
    for name, way in WAYS.items():
        total: Counter[str] = Counter()
        for seed in range(cases):
            total.update(play(way, seed))
        print(f"{name}: {dict(total)}")
    stop_loops()


if __name__ == "__main__":
    main()
    sys.exit(0)
