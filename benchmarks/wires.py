"""Every wire beside its vendor's SDK, in a process of its own: `python -m benchmarks.wires WIRE PEER TASK SIZE PORT`.

Prints one JSON object: CPU and wall seconds per chunk or fragment. A task is one streamed reply read to its end; of `arguments` both
peers give the call with its parsed arguments. The same task, once before, is the warm-up.
"""

import asyncio
import gc
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .peers import SCHEMAS, Result, timed

__all__ = ["WIRES", "Wire"]

Run = Callable[[str], Any]


@dataclass(frozen=True)
class Wire:
    """What is measured of a wire.

    Attributes:
        sdk: Reads a reply with the vendor's SDK: `sdk(port)` gives a function of the model's name.
        model: This package's class, by the port.
        whole: Reads a reply with the SDK's own helper that also gives the whole message at the end, as this package does, if there is one.
        arguments: Whether the wire streams arguments in fragments.
    """

    sdk: Callable[[int], Run]
    model: Callable[[int], Any]
    arguments: bool = False
    whole: Callable[[int], Run] | None = None


def anthropic_sdk(port: int) -> Run:
    """`messages.create(stream=True)`: the SDK's raw events."""
    from anthropic import Anthropic

    client = Anthropic(api_key="x", base_url=f"http://127.0.0.1:{port}", max_retries=0)

    def run(model: str) -> Any:
        texts, arguments = [], []
        for event in client.messages.create(model=model, max_tokens=9, messages=[{"role": "user", "content": "hello"}], stream=True):
            if event.type == "content_block_delta":
                if event.delta.type == "text_delta":
                    texts.append(event.delta.text)
                elif event.delta.type == "input_json_delta":
                    arguments.append(event.delta.partial_json)
        return "".join(texts), json.loads("".join(arguments) or "null")

    return run


def anthropic_helper(port: int) -> Run:
    """`messages.stream()`: the texts as they come, and the message that they make."""
    from anthropic import Anthropic

    client = Anthropic(api_key="x", base_url=f"http://127.0.0.1:{port}", max_retries=0)

    def run(model: str) -> Any:
        with client.messages.stream(model=model, max_tokens=9, messages=[{"role": "user", "content": "hello"}]) as stream:
            return [event.type for event in stream], stream.get_final_message().content

    return run


def responses_sdk(port: int) -> Run:
    """`responses.create(stream=True)`: the SDK's raw events."""
    from openai import OpenAI

    client = OpenAI(api_key="x", base_url=f"http://127.0.0.1:{port}/v1", max_retries=0)

    def run(model: str) -> Any:
        texts, call = [], None
        for event in client.responses.create(model=model, input="hello", stream=True):
            if event.type == "response.output_text.delta":
                texts.append(event.delta)
            elif event.type == "response.output_item.done" and event.item.type == "function_call":
                call = json.loads(event.item.arguments)
        return "".join(texts), call

    return run


def google_sdk(port: int) -> Run:
    """`models.generate_content_stream`."""
    from google import genai
    from google.genai import types

    options = types.HttpOptions(base_url=f"http://127.0.0.1:{port}", api_version="v1beta")
    client = genai.Client(api_key="x", http_options=options)
    return lambda model: "".join(chunk.text or "" for chunk in client.models.generate_content_stream(model=model, contents="hello"))


def ollama_sdk(port: int) -> Run:
    """`Client.chat(stream=True)`."""
    from ollama import Client

    client = Client(f"http://127.0.0.1:{port}")
    messages = [{"role": "user", "content": "hello"}]
    return lambda model: "".join(part.message.content or "" for part in client.chat(model, messages, stream=True))


def _anthropic(port: int) -> Any:
    from langchain_autotools import ChatAnthropic

    return ChatAnthropic(model="m", api_key="x", base_url=f"http://127.0.0.1:{port}")


def _responses(port: int) -> Any:
    from langchain_autotools import ChatOpenAI

    return ChatOpenAI(model="m", api_key="x", base_url=f"http://127.0.0.1:{port}/v1", use_responses_api=True)


def _google(port: int) -> Any:
    from langchain_autotools import ChatGoogleGenerativeAI

    return ChatGoogleGenerativeAI(model="m", api_key="x", base_url=f"http://127.0.0.1:{port}")


def _ollama(port: int) -> Any:
    from langchain_autotools import ChatOllama

    return ChatOllama(model="m", base_url=f"http://127.0.0.1:{port}")


WIRES = {
    "Anthropic": Wire(
        anthropic_sdk,
        _anthropic,
        arguments=True,
        whole=anthropic_helper,
    ),
    "Responses": Wire(
        responses_sdk,
        _responses,
        arguments=True,
    ),
    "Google": Wire(
        google_sdk,
        _google,
    ),
    "Ollama": Wire(
        ollama_sdk,
        _ollama,
    ),
}


def _raw(wire: Wire, port: int, task: str) -> Run:
    """This package's reading of the wire alone, without LangChain's `stream` around it."""
    from langchain_core.messages import HumanMessage

    chat, messages = wire.model(port), [HumanMessage("hello")]
    tools = [chat.format_tool(schema) for schema in SCHEMAS] if task == "arguments" else None
    return lambda name: [chunk.content or chunk.additional_kwargs for chunk in chat.raw_stream(messages, model=name, tools=tools)]


def _autotools(wire: Wire, port: int, task: str) -> Run:
    """`stream`: like the SDKs' readers, the texts as they come and the calls with their parsed arguments."""
    chat = wire.model(port)
    model = chat.bind_tools(SCHEMAS) if task == "arguments" else chat

    def run(name: str) -> Any:
        texts, calls = [], []
        for chunk in model.stream("hello", model=name):
            texts.append(chunk.content)
            if chunk.tool_calls:
                calls += chunk.tool_calls
        return calls or "".join(texts)

    return run


def _autotools_async(wire: Wire, port: int, task: str) -> Run:
    """`astream`, likewise."""
    chat = wire.model(port)
    model = chat.bind_tools(SCHEMAS) if task == "arguments" else chat
    loop = asyncio.new_event_loop()

    async def consume(name: str) -> Any:
        texts, calls = [], []
        async for chunk in model.astream("hello", model=name):
            texts.append(chunk.content)
            if chunk.tool_calls:
                calls += chunk.tool_calls
        return calls or "".join(texts)

    return lambda name: loop.run_until_complete(consume(name))


def measure(name: str, peer: str, task: str, size: int, port: int) -> Result:
    """Read one reply and return its costs per chunk or fragment."""
    wire = WIRES[name]
    makers: dict[str, Callable[[], Run]] = {
        "sdk": lambda: wire.sdk(port),
        "whole": lambda: (wire.whole or wire.sdk)(port),
        "raw": lambda: _raw(wire, port, task),
        "autotools": lambda: _autotools(wire, port, task),
        "autotools_async": lambda: _autotools_async(wire, port, task),
    }
    run = makers[peer]()
    assert run(f"{task}-{size}"), "the peer read nothing"
    gc.collect()
    with timed(size) as result:
        run(f"{task}-{size}")
    return result


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))))
