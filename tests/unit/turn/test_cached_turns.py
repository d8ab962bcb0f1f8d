"""Turns from LangChain's cache."""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.globals import get_llm_cache, set_llm_cache
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_autotools import new_messages, run_cost, run_usage
from langchain_autotools.messages.metadata import CACHED_ID, KEY
from langchain_autotools.testing import ScriptedChatModel
from tests.contract.talk import run_in
from tests.contract.wires import WIRES, Wire
from tests.support.script import Call, Turn

ONE_OF_EACH = ("openai-chat", "openai-responses", "anthropic", "google", "ollama")
QUESTION, AGAIN, LAST = HumanMessage("How warm is it?"), HumanMessage("And again?"), HumanMessage("Thanks.")


def look(at: str) -> str:
    """Look."""
    return f"seen {at}"


def test_every_turn_of_a_cached_run_comes_from_the_cache_each_time() -> None:
    """Such a reply says that it has cost nothing, as of LangChain's models; sent on, that changes no key. Sums of a run are of tokens."""
    usage: Any = {"input_tokens": 5, "output_tokens": 1, "total_tokens": 6}
    calls: Any = [{"name": "look", "args": {"at": "Rome"}, "id": "1"}]
    replies = [AIMessage("", tool_calls=calls, usage_metadata=usage), AIMessage("Fine.", usage_metadata=usage), "Again."]
    model = ScriptedChatModel(tools=[look], replies=replies, cache=InMemoryCache())
    for cost in ({}, {"total_cost": 0}, {"total_cost": 0}):
        run = model.invoke("Hi")
        messages = new_messages(run)
        assert [message.usage_metadata for message in messages if isinstance(message, AIMessage)] == [{**usage, **cost}] * 2
        assert run.usage_metadata == {**usage, **cost} and run_usage(run) == {name: 2 * count for name, count in usage.items()}
        model.invoke(["Hi", *messages, "Hi"]), model.invoke(["Hi", run, "Hi"])
    assert len(model.requests) == 3


class Ends(BaseCallbackHandler):
    """The ids of a model's replies, as callbacks learn them."""

    def __init__(self) -> None:
        self.ids: list[str | None] = []

    def on_llm_end(self, response: Any, **kwargs: Any) -> None:
        """The whole reply."""
        self.ids.append(response.generations[0][0].message.id)


@pytest.fixture
def cache_of_all() -> Iterator[InMemoryCache]:
    """LangChain's cache of all models."""
    before, cache = get_llm_cache(), InMemoryCache()
    set_llm_cache(cache)
    yield cache
    set_llm_cache(before)


@pytest.mark.parametrize("tools", [[look], []], ids=["tools", "plain"])
@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire.name in ONE_OF_EACH], ids=lambda wire: wire.name)
async def test_a_cached_answer_is_another_message(wire: Wire, tools: list[Any], cache_of_all: InMemoryCache) -> None:
    """Its messages have ids of their own, in callbacks too, whoever's the cache is. Stored as a run message or as parts, it is sent
    beside the first one; and what follows on it comes from the cache as well."""
    turns = [Turn("Let me look.", [Call("look", {"at": "Rome"})]), Turn("21 °C.")][0 if tools else 1 :]
    follows = [Turn("You are welcome.")]
    with wire.serve([*turns, *follows, *follows]) as server:
        cache = InMemoryCache() if tools else cache_of_all
        model, ends = wire.model(server, tools=tools, cache=cache if tools else None), Ends()
        runs = [await run_in(way, model, [QUESTION], config={"callbacks": [ends]}) for way in ("invoke", "ainvoke", "invoke")]
        assert len(server.exchanges) == len(turns) == len(cache._cache)
        ids = [message.id for ran in runs for message in ran.new]
        replies = [message.id for ran in runs for message in ran.new if isinstance(message, AIMessage)]
        assert len({*ids}) == len(ids) == 3 * len(runs[0].new) and all(ids)
        assert ends.ids == replies and [ran.message.id for ran in runs] == replies[len(turns) - 1 :: len(turns)]
        assert all(CACHED_ID not in message.response_metadata.get(KEY, {}) for ran in runs for message in (ran.message, *ran.new))
        assert [_said(message) for message in runs[1].new] == [_said(message) for message in runs[0].new]
        for message in [runs[1].message, runs[2].message, *(one for one in runs[1].new if isinstance(one, AIMessage))]:
            assert message.usage_metadata["total_cost"] == 0
        cost = run_cost(runs[1].message, prices={})
        assert sum(turn.total for turn in cost.turns) == 0

        first, second = runs[0], runs[1]
        model.invoke([QUESTION, first.message, AGAIN, second.message, LAST])
        whole = wire.messages(server.exchanges[-1])
        assert whole.decode().count("21 °C.") == 2
        fresh = wire.model(server, tools=tools, cache=False)
        fresh.invoke([QUESTION, *first.new, AGAIN, *second.new, LAST])
        assert wire.messages(server.exchanges[-1]) == whole
        asked = len(server.exchanges)
        model.invoke([QUESTION, runs[1].message, AGAIN, runs[2].message, LAST])
        assert len(server.exchanges) == asked


def _said(message: BaseMessage) -> Any:
    return message.type, message.content, getattr(message, "tool_calls", None), message.response_metadata
