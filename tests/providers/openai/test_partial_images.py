"""Images that are not complete (Responses): they leave with the stream, and no message keeps them."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk, HumanMessage

from langchain_autotools import ChatOpenAI, new_messages
from tests.contract.talk import summed
from tests.support.responses_server import ResponsesServer
from tests.support.script import Events, Turn

QUESTION = [HumanMessage("Draw a cat.")]
TOOL = {"type": "image_generation", "partial_images": 2}
IMAGE = {"id": "ig_1", "type": "image_generation_call", "status": "completed", "result": "ZG9uZQ==", "output_format": "png"}
PARTIAL = ["b25l", "dHdv"]


def drawing() -> Events:
    """A reply that draws: two images that are not complete, then the one that is."""
    whole = {"id": "resp_1", "object": "response", "status": "completed", "model": "any", "output": [IMAGE]}
    of_image = {"type": "response.image_generation_call.partial_image", "item_id": "ig_1", "output_index": 0, "output_format": "png"}
    begun = {"id": "ig_1", "type": "image_generation_call", "status": "in_progress"}
    partial = [{**of_image, "partial_image_index": number, "partial_image_b64": data} for number, data in enumerate(PARTIAL)]
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": begun},
        *partial,
        {"type": "response.output_item.done", "output_index": 0, "item": IMAGE},
        {"type": "response.completed", "response": whole},
    ]
    return Events(events, whole)


def images(message: Any) -> list[str]:
    """The data of the images in a message."""
    return [block["base64"] for block in message.content_blocks if block["type"] == "image"]


@pytest.mark.parametrize("version", [None, "v1"])
@pytest.mark.parametrize("own", [True, False], ids=["a tool of its own", "no tool of its own"])
def test_they_are_streamed_and_not_kept(own: bool, version: str | None) -> None:
    """Each comes as a chunk of its own while the image is drawn; the stored message, and what is sent back, has the last one, once."""
    with ResponsesServer([drawing(), drawing(), *[Turn("A cat.")] * 3]) as server:
        known = {"model": "any", "base_url": server.url, "api_key": "key", "max_retries": 0, "output_version": version}
        model: Any = ChatOpenAI(**known, tools=[TOOL]) if own else ChatOpenAI(**known).bind_tools([TOOL])
        chunks: list[AIMessageChunk] = list(model.stream(QUESTION))
        seen = [data for chunk in chunks for data in images(chunk)]
        assert seen[:2] == PARTIAL and seen.count(IMAGE["result"]) == 1
        [stored] = [message for chunk in chunks for message in new_messages(chunk)]
        assert images(stored) == [IMAGE["result"]]
        [whole] = new_messages(model.invoke(QUESTION))
        assert whole.content == stored.content
        for history in ([stored], [summed(chunks)], [whole]):
            model.invoke([*QUESTION, *history, HumanMessage("What is it?")])
            assert "b25l" not in server.exchanges[-1].body.decode()
            assert [item.get("type") for item in server.exchanges[-1].json["input"]].count("image_generation_call") == 1
        assert server.rejections == []
