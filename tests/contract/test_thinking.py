"""Models that think: what they thought is told, goes back as their server wants it, and is the same however a run is read."""

from itertools import pairwise
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool

from tests.contract.talk import Run, Start, run_in, summed
from tests.support.script import Call, Reply, Turn

QUESTION = [HumanMessage("How warm is it in Paris and in Rome?")]


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return f"{city}: 21 °C"


def turns() -> list[Reply]:
    """Two turns that think and call, one of them without a word, and one that thinks and answers."""
    return [
        Turn("Let me look.", [Call("get_temperature", {"city": city}) for city in ("Paris", "Rome")], reasoning="Two cities."),
        Turn(calls=[Call("get_temperature", {"city": "Oslo"})], reasoning="A third?"),
        Turn("All warm.", reasoning="That is all."),
    ]


def thoughts(message: AIMessage) -> str:
    """What a message says that its model thought."""
    blocks: list[Any] = message.content_blocks
    told = "".join(block["reasoning"] for block in blocks if block["type"] == "reasoning")
    return told or str(message.additional_kwargs.get("reasoning_content", ""))


async def test_a_model_that_thinks_between_its_calls(start: Start, run: Run) -> None:
    """Thoughts of every turn are told, apart from the text; the server takes what goes back to it, and request n begins request n+1."""
    talk = start(turns(), tools=[get_temperature])
    ran = await run(talk.model, QUESTION)
    assert ran.message.text == "Let me look.\nAll warm."
    assert [thoughts(message) for message in ran.new if isinstance(message, AIMessage)] == ["Two cities.", "A third?", "That is all."]
    assert thoughts(ran.message) == "Two cities.A third?That is all."
    sent = [talk.wire.messages(exchange) for exchange in talk.server.exchanges]
    assert (len(sent), talk.server.left) == (3, 0)
    assert all(later.startswith(earlier[:-1]) for earlier, later in pairwise(sent))


async def test_thoughts_are_the_same_input_however_they_are_stored(start: Start, run: Run) -> None:
    """The run message, its parts, and both with standard blocks give the server that wrote them the same messages."""
    talk = start(turns(), tools=[get_temperature])
    ran = await run(talk.model, QUESTION)
    talk.server.extend([Turn("Yes."), Turn("Yes.")])
    for middle in ([ran.message], ran.new):
        await run(talk.model, [*QUESTION, *middle, HumanMessage("Really?")])
    first, second = talk.server.exchanges[-2:]
    assert first.body == second.body


@pytest.mark.further
@pytest.mark.parametrize("version", [None, "v1"])
async def test_content_blocks_have_the_thoughts(start: Start, run: Run, version: str | None) -> None:
    """The blocks of a message have its thoughts before its text and its calls, with each output version, and where tools run."""
    for tools in ([], [get_temperature]):
        talk = start([turns()[0]] if not tools else turns(), tools=tools, output_version=version)
        ran = await run(talk.model if tools else talk.model.bind_tools([get_temperature]), QUESTION)
        expected = ["Two cities.", "A third?", "That is all."] if tools else ["Two cities."]
        blocks: list[list[Any]] = [message.content_blocks for message in ran.new if isinstance(message, AIMessage)]
        assert [own[0]["type"] for own in blocks] == ["reasoning"] * len(expected)
        assert ["".join(block.get("reasoning", "") for block in own) for own in blocks] == expected
        whole: list[Any] = ran.message.content_blocks
        assert "".join(block.get("reasoning", "") for block in whole) == "".join(expected)


async def test_thoughts_leave_before_the_text(start: Start) -> None:
    """Thoughts are streamed as they come: the first chunks hold them and no text yet; the sum is what `invoke` gives."""
    reply = Turn("All warm.", reasoning="That is all there is.")
    chunks = list(start([reply], tools=[get_temperature]).model.stream(QUESTION))
    first_text = next(number for number, chunk in enumerate(chunks) if chunk.text)
    before = summed(chunks[:first_text])
    assert thoughts(before) == "That is all there is."
    ran = await run_in("ainvoke", start([reply], tools=[get_temperature]).model, QUESTION)
    assert thoughts(ran.message) == thoughts(summed(chunks))
