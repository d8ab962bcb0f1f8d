"""Streams made of given tool-call fragments, served over HTTP and read through the real model class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import add
from typing import Any, Literal

from langchain_core.messages import AIMessage, message_chunk_to_message

from langchain_autotools import ChatOpenAI
from langchain_autotools.messages.calls import calls_of
from tests.support.http_server import Exchange
from tests.support.openai_server import OpenAIServer
from tests.support.openai_wire import Asked, chunk_of
from tests.support.script import Events

Calls = Sequence[tuple[str, dict[str, Any] | None]]
Verdict = Literal["exact", "flagged", "wrong"]


def tool_named(name: str) -> dict[str, Any]:
    """A declared tool that takes anything."""
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}


class FragmentReader:
    """A model whose server streams the fragments that are set."""

    def __init__(self, model: ChatOpenAI, streams: dict[str, list[Any]]) -> None:
        self._model = model
        self._streams = streams

    def read(self, chunks: list[Any], declared: Sequence[str]) -> AIMessage:
        """The message that LangChain makes of the stream of these fragments."""
        key = str(len(self._streams))
        self._streams[key] = chunks
        bound = self._model.bind_tools([tool_named(name) for name in declared])
        return message_chunk_to_message(reduce(add, bound.stream("x", model=key)))  # type: ignore[return-value]


@contextmanager
def fragment_reader() -> Iterator[FragmentReader]:
    """A reader and its server."""
    streams: dict[str, list[Any]] = {}

    def answer(exchange: Exchange) -> Events:
        key = exchange.json["model"]
        asked = Asked(exchange.number, key, True, False)
        events = [chunk_of(asked, {"tool_calls": fragments}) for fragments in streams[key]]
        return Events([chunk_of(asked, {"role": "assistant", "content": None}), *events, chunk_of(asked, {}, "tool_calls")])

    with OpenAIServer(answer) as server:
        yield FragmentReader(ChatOpenAI(model="any", base_url=server.url, api_key="k", max_retries=0), streams)


def told(message: AIMessage) -> list[tuple[str, dict[str, Any] | None]]:
    """The calls of a message in order; arguments of None for those that must not run. `tool_calls` says the same."""
    calls = [(call.name, call.args) for call in calls_of(message)]
    assert [call for call in calls if call[1] is not None] == [(call["name"], call["args"]) for call in message.tool_calls]
    return calls


def verdict(message: AIMessage, meant: Calls) -> Verdict:
    """Exact; or flagged, with calls missing or marked as not to be run; or wrong, with a call to be run that nobody made."""
    calls = told(message)
    if calls == list(meant):
        return "exact"
    ran = Counter(repr(call) for call in calls if call[1] is not None)
    return "wrong" if ran - Counter(map(repr, meant)) else "flagged"
