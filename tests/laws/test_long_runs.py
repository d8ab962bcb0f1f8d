"""A run of a thousand turns: what is done for one turn does not grow with the history, except what goes over the wire."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from langchain_autotools import new_messages
from tests.laws.ways import chat, serving
from tests.support.counted import counting
from tests.support.http_server import Exchange
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Turn

TEN = 10
ENCODE = "/providers/_encode/encoder.py:MessageEncoder.encode"


@pytest.mark.parametrize("call_id", [None, ""], ids=["ids of the server", "ids made here"])
@pytest.mark.parametrize("turns", [100, pytest.param(1000, marks=pytest.mark.exhaustive)])
def test_a_long_run_does_the_same_work_in_every_turn(turns: int, call_id: str | None) -> None:
    """Late turns call as many of the package's functions as early ones: what looks at each message of the history has seen it before."""

    def count(number: int) -> int:
        """Count."""
        return number

    def reply(exchange: Exchange) -> Turn:
        number = exchange.number
        return Turn("Done.") if number == turns else Turn(f"Turn {number}.", [Call("count", {"number": number}, call_id)], characters=20)

    late = turns - 2 * TEN
    work: list[Counter[str]] = []
    with OpenAIServer(reply, rules=None) as server:
        results = (chunk for chunk in chat(server, tools=[count], max_turns=None).stream("Count.") if is_result(chunk))
        for number, _ in enumerate(results, 1):
            if number in (5 * TEN, late - TEN):  # `number` does not count the turns of the first look
                work.append(looked_at(results))
        assert len(server.exchanges) == turns + 1
    first, last = work
    grown = {name: (first[name], last[name]) for name in first | last if last[name] > first[name]}
    assert grown == {}
    assert {part[ENCODE] for part in work} == {2 * TEN}


def looked_at(results: Iterator[Any]) -> Counter[str]:
    """The work of the next ten turns."""
    calls: Counter[str] = Counter()
    with counting(calls):
        for _ in range(TEN):
            next(results)
    return calls


def is_result(chunk: Any) -> bool:
    """Whether a chunk brings a tool's result: the end of a turn."""
    return any(message.type == "tool" for message in new_messages(chunk))


@pytest.mark.further
def test_every_request_of_a_long_run_is_accepted() -> None:
    """A hundred turns with three calls each: the strict server takes every request."""

    def count(number: int) -> int:
        """Count."""
        return number

    def three(exchange: Exchange) -> Turn:
        calls = [Call("count", {"number": 3 * exchange.number + part}) for part in range(3)]
        return Turn("Done.") if exchange.number == 100 else Turn("", calls, style="no_ids")

    with serving(three) as server:
        run = chat(server, tools=[count], max_turns=None).invoke("Count.")
        assert run.text == "Done."
        assert len(new_messages(run)) == 401
        ids = [message["tool_call_id"] for message in server.messages[-1] if message["role"] == "tool"]
        assert len(set(ids)) == len(ids) == 300
