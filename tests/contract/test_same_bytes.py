"""The same history is the same bytes: prompt caches of servers hit, whatever listens and however long tools take."""

import random
import time
from itertools import pairwise

import pytest
from langchain_core.callbacks import BaseCallbackHandler, UsageMetadataCallbackHandler
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool

from tests.contract.talk import Run, Start, run_in
from tests.support.script import Call, Reply, Turn

QUESTION = [HumanMessage("Count.")]


def ten_turns() -> list[Reply]:
    """Nine turns with two calls each, in different styles, and an answer."""
    styles = ("standard", "whole", "no_ids", "empty_ids", "index_zero", "id_repeated", "objects", "placeholder", "one_chunk")
    turns: list[Reply] = [
        Turn("So. " * (number % 3), [Call("count", f'{{ "number":{number} }}'), Call("count", {"number": -number})], style=style)
        for number, style in enumerate(styles, 1)
    ]
    return [*turns, Turn("Done.")]


class Silent(BaseCallbackHandler):
    """A handler that listens to nothing in particular."""

    def on_llm_new_token(self, token: str, **_: object) -> None:
        """Hear a token."""


async def test_each_request_begins_with_the_one_before(start: Start, run: Run) -> None:
    """Over ten turns the messages of request n are a byte-identical prefix of those of request n+1."""

    @tool
    def count(number: int) -> int:
        """Count."""
        return number

    talk = start(ten_turns(), tools=[count])
    ran = await run(talk.model, QUESTION)
    sent = [talk.wire.messages(exchange) for exchange in talk.server.exchanges]
    assert (len(sent), ran.message.text.split()[-1]) == (10, "Done.")
    for earlier, later in pairwise(sent):
        assert later.startswith(earlier[:-1])


@pytest.mark.parametrize("times", ["many", "few", pytest.param("ten", marks=pytest.mark.exhaustive)])
async def test_requests_do_not_depend_on_delays_or_listeners(start: Start, times: str) -> None:
    """Repetitions with shuffled tool delays, handlers and ways to run send the same bytes."""
    chance = random.Random(11)

    @tool
    def count(number: int) -> int:
        """Count."""
        time.sleep(chance.random() / 1000)
        return number

    bodies = set()
    for repetition in range({"ten": 10, "many": 6, "few": 2}[times]):
        talk = start(ten_turns(), tools=[count])
        handlers = [[], [Silent()], [UsageMetadataCallbackHandler()]][repetition % 3]
        way = ("stream", "astream")[repetition % 2]
        await run_in(way, talk.model, QUESTION, config={"callbacks": handlers, "tags": [str(repetition)]})
        bodies.add(tuple(exchange.body for exchange in talk.server.exchanges))
    assert len(bodies) == 1
