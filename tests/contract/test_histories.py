"""What a history brings along: thoughts go back where they came from, and conversations of any other class go on here."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool

from tests.contract.talk import Run, Start, run_in
from tests.contract.wires import WIRES
from tests.support.script import Call, Turn

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
QUESTION = [HumanMessage("What does Paris look like, and how warm is it?")]
THOUGHT = "Both at once."


@tool
def look(city: str) -> list[dict[str, Any]]:
    """Take a picture."""
    return [{"type": "text", "text": f"{city} from above"}, {"type": "image", "base64": PIXEL, "mime_type": "image/png"}]


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    raise ValueError(f"no thermometer in {city}")


def conversation() -> list[Turn]:
    """A turn that thinks, talks and calls two tools, and an answer."""
    calls = [Call("look", {"city": "Paris"}), Call("get_temperature", {"city": "Paris"})]
    return [Turn("Let me look.", calls, reasoning=THOUGHT), Turn("Grey. I do not know.")]


def thoughts(message: AIMessage) -> str:
    """The reasoning of a message, in LangChain's standard blocks or where it stood before there were these."""
    blocks = "".join(str(block.get("reasoning")) for block in message.content_blocks if block["type"] == "reasoning")
    return blocks or str(message.additional_kwargs.get("reasoning_content"))


@pytest.mark.parametrize("version", ["v0", "v1"])
async def test_thinking_stays_apart_and_goes_back(start: Start, run: Run, version: str) -> None:
    """What a model thought is no text of the run, stands in its message as reasoning, and goes back beside its calls."""
    talk = start(conversation(), tools=[look, get_temperature], output_version=version)
    ran = await run(talk.model, QUESTION)
    assert ran.message.text == "Let me look.\nGrey. I do not know."
    assert thoughts(ran.new[0]) == THOUGHT
    assert talk.wire.thought(talk.server.exchanges[1], THOUGHT)


async def test_conversations_of_every_other_class_go_on(start: Start, way: str) -> None:
    """A history with thoughts, calls, pictures and failures that any class made is taken by the strict server of this one."""
    for other in WIRES:
        with other.serve(conversation()) as server:
            model = other.model(server, tools=[look, get_temperature])
            made = (await run_in(way, model, QUESTION)).new
        assert [message.type for message in made] == ["ai", "tool", "tool", "ai"]
        talk = start([Turn("As I said.")], tools=[look, get_temperature])
        ran = await run_in(way, talk.model, [*QUESTION, *made, HumanMessage("Sure?")])
        assert ran.message.text == "As I said."
        sent = talk.server.exchanges[0].body.decode()
        words = ("Let me look.", "Paris from above", PIXEL, "no thermometer in Paris", "I do not know.")
        assert [word for word in words if word not in sent] == [], other.name
