"""What each peer does for each task, in a process of its own: `python -m benchmarks.peers PEER TASK SIZE PORT`.

Prints one JSON object: CPU and wall seconds, and how many units (chunks, fragments, turns) they were spent on. Every peer
reads the same bytes from the same server; the same task, once before, is the warm-up.
"""

import asyncio
import gc
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

Result = dict[str, float]
_marks: list[tuple[float, float]] = []


def now() -> tuple[float, float]:
    """CPU and wall seconds."""
    return time.process_time(), time.perf_counter()


@contextmanager
def timed(units: int) -> Iterator[Result]:
    """Measure the body."""
    result: Result = {}
    cpu, wall = now()
    yield result
    cpu_end, wall_end = now()
    result |= {"cpu": (cpu_end - cpu) / units, "wall": (wall_end - wall) / units}


def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    _marks.append(now())
    return "21 °C"


def note(text: str) -> str:
    """Note a text."""
    return str(len(text))


FUNCTIONS = {"get_temperature": get_temperature, "note": note}
SCHEMAS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": function.__doc__,
            "parameters": {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]},
        },
    }
    for (name, function), key in zip(FUNCTIONS.items(), ("city", "text"), strict=True)
]


# ---------------------------------------------------------------------------------------------- clients, by peer


def floor(port: int) -> Callable[..., int]:
    """httpx and jiter: read the bytes, split the events, parse them; nothing else."""
    import httpx
    import jiter

    client = httpx.Client(base_url=f"http://127.0.0.1:{port}/v1")

    def run(model: str, messages: list[Any]) -> int:
        count = 0
        with client.stream("POST", "/chat/completions", json={"model": model, "messages": messages, "stream": True}) as response:
            tail = b""
            for piece in response.iter_raw():
                *events, tail = (tail + piece).split(b"\n\n")
                for event in events:
                    if event != b"data: [DONE]":
                        jiter.from_json(event[6:])
                        count += 1
        return count

    return run


def sdk(port: int) -> Callable[..., int]:
    """The vendor's SDK and the shortest correct tool loop over it."""
    from openai import OpenAI

    return _loop(OpenAI(api_key="x", base_url=f"http://127.0.0.1:{port}/v1", max_retries=0).chat.completions.create)


def litellm(port: int) -> Callable[..., int]:
    """litellm's `completion`, whose chunks are those of the vendor's SDK, and the same loop over it."""
    import litellm as library

    url = f"http://127.0.0.1:{port}/v1"
    return _loop(lambda model, **options: library.completion(f"openai/{model}", api_key="x", api_base=url, max_retries=0, **options))


def _loop(create: Callable[..., Any]) -> Callable[..., int]:
    def run(model: str, messages: list[Any]) -> int:
        messages = list(messages)
        count = 0
        while True:
            calls: dict[int, dict[str, Any]] = {}
            options: Any = {"stream": True, "stream_options": {"include_usage": True}}
            for chunk in create(model=model, messages=messages, tools=SCHEMAS, **options):
                count += 1
                for delta in (chunk.choices[0].delta.tool_calls or ()) if chunk.choices else ():
                    call = calls.setdefault(delta.index, {"id": delta.id, "name": delta.function.name, "arguments": []})
                    call["arguments"].append(delta.function.arguments or "")
            if not calls:
                return count
            entries = [(call["id"], call["name"], "".join(call["arguments"])) for call in calls.values()]
            wire = [{"id": id_, "type": "function", "function": {"name": name, "arguments": text}} for id_, name, text in entries]
            messages.append({"role": "assistant", "content": None, "tool_calls": wire})
            for id_, name, text in entries:
                messages.append({"role": "tool", "tool_call_id": id_, "content": FUNCTIONS[name](**json.loads(text))})

    return run


def _consume(chunks: Iterator[Any]) -> int:
    return sum(1 for _ in chunks)


def _chat(port: int, *, tools: bool = True) -> Callable[[str], Any]:
    from langchain_autotools import ChatOpenAI

    fields: dict[str, Any] = {"tools": list(FUNCTIONS.values()), "max_turns": None} if tools else {}
    return cache(lambda model: ChatOpenAI(model=model, api_key="x", base_url=f"http://127.0.0.1:{port}/v1", **fields))


def autotools(port: int, *, tools: bool = True) -> Callable[..., int]:
    """This package."""
    chat = _chat(port, tools=tools)

    def run(model: str, messages: list[Any], wrap: Any = lambda model: model, config: Any = None) -> int:
        return _consume(wrap(chat(model)).stream(messages, config))

    return run


def autotools_traced(port: int) -> Callable[..., int]:
    """This package with a callback handler attached."""
    from langchain_core.callbacks import BaseCallbackHandler

    run = autotools(port)
    return lambda model, messages: run(model, messages, config={"callbacks": [BaseCallbackHandler()]})


def autotools_chain(port: int) -> Callable[..., int]:
    """This package as `prompt | model`."""
    from langchain_core.runnables import RunnablePassthrough

    run = autotools(port)
    return lambda model, messages: run(model, messages, wrap=lambda chat: RunnablePassthrough() | chat)


def autotools_events(port: int) -> Callable[..., int]:
    """This package, read as events."""
    from langchain_autotools import events

    chat = _chat(port)
    return lambda model, messages: _consume(events(chat(model).stream(messages)))


def autotools_events_async(port: int) -> Callable[..., int]:
    """This package, read as events asynchronously."""
    from langchain_autotools import aevents

    chat = _chat(port)
    loop = asyncio.new_event_loop()

    async def consume(model: Any, messages: list[Any]) -> int:
        return len([None async for _ in aevents(model.astream(messages))])

    return lambda model, messages: loop.run_until_complete(consume(chat(model), messages))


def autotools_events_chain(port: int) -> Callable[..., int]:
    """This package as `prompt | model`, read as events."""
    from langchain_core.runnables import RunnablePassthrough

    from langchain_autotools import events

    chat = _chat(port)
    return lambda model, messages: _consume(events((RunnablePassthrough() | chat(model)).stream(messages)))


def autotools_async(port: int, *, tools: bool = True) -> Callable[..., int]:
    """This package, asynchronously."""
    chat = _chat(port, tools=tools)
    loop = asyncio.new_event_loop()

    async def consume(model: Any, messages: list[Any]) -> int:
        return len([None async for _ in model.astream(messages)])

    return lambda model, messages: loop.run_until_complete(consume(chat(model), messages))


def langchain(port: int) -> Callable[..., int]:
    """langchain-openai, its chunks summed as its documentation shows, and the shortest tool loop over it."""
    from langchain_core.messages import ToolMessage
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    tools = [tool(function) for function in FUNCTIONS.values()]
    by_name = {item.name: item for item in tools}
    url = f"http://127.0.0.1:{port}/v1"
    make: Any = cache(lambda model: ChatOpenAI(model=model, api_key="x", base_url=url, max_retries=0, stream_usage=True).bind_tools(tools))

    def run(model: str, messages: list[Any]) -> int:
        chat = make(model)
        messages = list(messages)
        count = 0
        while True:
            full: Any = None
            for chunk in chat.stream(messages):
                count += 1
                if model.startswith("text"):
                    continue
                full = chunk if full is None else full + chunk
            if full is None or not full.tool_calls:
                return count
            messages.append(full)
            for call in full.tool_calls:
                messages.append(ToolMessage(by_name[call["name"]].invoke(call["args"]), tool_call_id=call["id"]))

    return run


def create_agent(port: int) -> Callable[..., int]:
    """langchain's create_agent over langchain-openai."""
    from langchain.agents import create_agent as make
    from langchain_openai import ChatOpenAI

    url = f"http://127.0.0.1:{port}/v1"
    tools = list(FUNCTIONS.values())
    agents: Any = cache(lambda model: make(ChatOpenAI(model=model, api_key="x", base_url=url, max_retries=0), tools=tools))

    def run(model: str, messages: list[Any]) -> int:
        return _consume(agents(model).stream({"messages": messages}, {"recursion_limit": 10_000}, stream_mode="messages"))

    return run


def pydantic_ai(port: int) -> Callable[..., int]:
    """pydantic-ai."""
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.usage import UsageLimits

    loop = asyncio.new_event_loop()
    provider = OpenAIProvider(base_url=f"http://127.0.0.1:{port}/v1", api_key="x")

    async def consume(model: str, messages: list[Any]) -> int:
        agent = Agent(OpenAIChatModel(model, provider=provider), tools=list(FUNCTIONS.values()))
        count = 0
        async with agent.iter(messages[0][1], usage_limits=UsageLimits(request_limit=None)) as run:
            async for node in run:
                if Agent.is_model_request_node(node):
                    async with node.stream(run.ctx) as stream:
                        async for _ in stream:
                            count += 1
        return count

    return lambda model, messages: loop.run_until_complete(consume(model, messages))


PEERS: dict[str, Callable[[int], Callable[..., int]]] = {
    "floor": floor,
    "sdk": sdk,
    "litellm": litellm,
    "langchain": langchain,
    "create_agent": create_agent,
    "pydantic_ai": pydantic_ai,
    "autotools": autotools,
    "autotools_async": autotools_async,
    "autotools_events": autotools_events,
    "autotools_events_async": autotools_events_async,
    "autotools_events_chain": autotools_events_chain,
    "autotools_traced": autotools_traced,
    "autotools_chain": autotools_chain,
    "autotools_plain": partial(autotools, tools=False),
    "autotools_plain_async": partial(autotools_async, tools=False),
}


# ---------------------------------------------------------------------------------------------- tasks


def measure(peer: str, task: str, size: int, port: int) -> Result:
    """Run one task once and return its costs per unit."""
    run = PEERS[peer](port)
    messages: list[Any] = [("user", "hello")]
    if peer in ("floor", "sdk", "litellm"):
        messages = [{"role": "user", "content": "hello"}]
    run(f"{task}-{size}", messages)  # builds clients, models and agents: none of the figures is about that
    gc.collect()  # as every peer's heap begins alike, none pays for a collection that its imports and warm-up have brought near
    if task != "turns":
        with timed(size) as result:
            run(f"{task}-{size}", messages)
        return result
    _marks.clear()
    run(f"turns-{size}", messages)
    firsts = _marks[::2][-max(3, size // 4) :]  # one mark a call, two calls a turn: the last turns of the run
    pairs = list(itertools.pairwise(firsts))
    return {
        "cpu": statistics.median(b[0] - a[0] for a, b in pairs),
        "wall": statistics.median(b[1] - a[1] for a, b in pairs),
    }


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
