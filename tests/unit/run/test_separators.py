"""Events say what goes between the texts of two turns: a reader that joins the texts has the text of the run message."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk

from langchain_autotools import Agent, aevents, events
from langchain_autotools.encoders import ai_sdk, sse
from langchain_autotools.event_types import RunEvent, TextDelta
from langchain_autotools.testing import ScriptedChatModel


def look(place: str) -> str:
    """Look at a place."""
    return f"{place}: 21."


def asking(text: str, number: int) -> AIMessage:
    """A reply with a call."""
    return AIMessage(text, tool_calls=[{"name": "look", "args": {"place": "Rome"}, "id": f"call {number}"}])


def paused(text: str) -> AIMessage:
    """A reply that the server has interrupted."""
    return AIMessage(text, response_metadata={"finish_reason": "pause_turn"})


STORIES: dict[str, list[Any]] = {
    "one call": [asking("Let me look.", 1), ["It ", "is ", "21."]],
    "white space": [asking("Let me look. ", 1), "It is 21."],
    "no text before": [asking("", 1), "It is 21."],
    "no text between": [asking("Let me look.", 1), asking("", 2), "It is 21."],
    "interrupted": [paused("Let "), paused("me look"), asking(".", 1), paused("It is"), " 21."],
    "blocks": [
        asking("Let me look.", 1),
        [
            AIMessageChunk([{"type": "thinking", "thinking": "Hm.", "index": 0}]),
            AIMessageChunk([{"type": "text", "text": "It is 21.", "index": 1}]),
        ],
    ],
    "only invalid calls": [["Let me look.", {"index": 0, "id": "call 1", "name": "look", "args": '{"place'}], "It is 21."],
    "an answer": ["It is 21."],
}
JOINED = dict.fromkeys(STORIES, "Let me look.\nIt is 21.") | {
    "white space": "Let me look. It is 21.",
    "no text before": "It is 21.",
    "an answer": "It is 21.",
}
"""The text of each story's run message."""


@pytest.mark.further
def test_a_piece_whose_content_is_a_list_with_a_text_is_text() -> None:
    """LangChain allows texts among blocks; what nobody knows is no text."""
    piece: Any = [AIMessageChunk(["Fine."]), AIMessageChunk([{"type": "own", "text": "Hm."}])]
    told = list(events(ScriptedChatModel(replies=[piece]).stream("?")))
    assert [one.text for one in told if isinstance(one, TextDelta)] == ["Fine."]


def chat(story: str, **settings: Any) -> ScriptedChatModel:
    """A model that says this."""
    return ScriptedChatModel(tools=[look], replies=STORIES[story], **settings)


def text_of(seen: list[RunEvent]) -> str:
    """The texts as a reader joins them."""
    return "".join(event.separator + event.text for event in seen if isinstance(event, TextDelta) and event.parent_run_id is None)


def streamed(model: ScriptedChatModel) -> tuple[list[RunEvent], str]:
    """The events of a stream, and the text of its run message."""
    stream = events(model.stream("Go"))
    return list(stream), stream.message.text


def streamed_asynchronously(model: ScriptedChatModel) -> tuple[list[RunEvent], str]:
    """The same of an asynchronous stream."""

    async def read() -> tuple[list[RunEvent], str]:
        stream = aevents(model.astream("Go"))
        return [event async for event in stream], stream.message.text

    return asyncio.run(read())


def of_an_agent(model: ScriptedChatModel) -> tuple[list[RunEvent], str]:
    """The same of an agent's answer."""
    stream = events(Agent(model).run_stream("Go"))
    return list(stream), stream.message.text


@pytest.mark.parametrize("story", STORIES)
def test_one_separator_stands_after_calls(story: str) -> None:
    """Before the first text that follows them, where the text before it does not end in white space; in a stream as in a message."""
    assert chat(story).invoke("Go").text == JOINED[story]
    assert "".join(chunk.text for chunk in chat(story).stream("Go")) == JOINED[story]


@pytest.mark.parametrize("read", [streamed, streamed_asynchronously, of_an_agent])
@pytest.mark.parametrize("separator", ["\n", "", " -- "])
@pytest.mark.parametrize("story", STORIES)
def test_the_joined_texts_are_the_text_of_the_run(story: str, separator: str, read: Callable[..., Any]) -> None:
    """After tool calls, where there is no white space, and nowhere else."""
    seen, text = read(chat(story, message_separator=separator))
    assert text_of(seen) == text != ""


@pytest.mark.parametrize("read", [streamed, streamed_asynchronously, of_an_agent])
def test_it_stands_after_a_turn_whose_calls_are_all_invalid(read: Callable[..., Any]) -> None:
    """A call whose arguments cannot be read is answered, and the text after it does not run on in the text before it."""
    refused = AIMessage("Let me look.", invalid_tool_calls=[{"name": "look", "args": '{"place": "Ro', "id": "call 1", "error": None}])
    model = ScriptedChatModel(tools=[look], replies=[refused, "It is 21."])
    seen, text = read(model)
    assert text_of(seen) == text == "Let me look.\nIt is 21."
    assert ScriptedChatModel(tools=[look], replies=[refused, "It is 21."]).invoke("Go").text == text


def test_a_run_inside_a_tool_has_its_own() -> None:
    """It begins without one, and does not take that of the run around it."""
    inner = chat("one call")

    def ask() -> str:
        """Ask somebody."""
        return inner.invoke("Go").text

    outer = ScriptedChatModel(
        tools=[ask], replies=[AIMessage("I ask.", tool_calls=[{"name": "ask", "args": {}, "id": "a"}]), "Done."], message_separator=" | "
    )
    seen = list(events(outer.stream("Go")))
    inside = [event for event in seen if isinstance(event, TextDelta) and event.parent_run_id is not None]
    assert text_of(seen) == "I ask. | Done."
    assert "".join(event.separator + event.text for event in inside) == "Let me look.\nIt is 21."


def frames(data: bytes) -> list[dict[str, Any]]:
    """The data of server-sent events."""
    lines = [line.removeprefix("data: ") for line in data.decode().splitlines() if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


def test_pages_are_told_of_it() -> None:
    """In a `text` frame, and in the metadata of the AI SDK's part."""
    stream = events(chat("one call").stream("Go"))
    plain = frames(b"".join(sse(stream)))
    texts = [frame for frame in plain if "text" in frame and "message_id" in frame and "call_id" not in frame]
    assert "".join(frame.get("separator", "") + frame["text"] for frame in texts) == stream.message.text
    begun = [frame for frame in frames(b"".join(ai_sdk(events(chat("one call").stream("Go"))))) if frame["type"] == "text-start"]
    assert [frame.get("providerMetadata") for frame in begun] == [None, {"autotools": {"separator": "\n"}}]
