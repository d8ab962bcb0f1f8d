"""What the vendor says of a part besides its content (`partMetadata`) goes back with that part."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from langchain_autotools import ChatGoogleGenerativeAI
from tests.contract.talk import run_in
from tests.support.google_server import GoogleServer
from tests.support.script import Events, Turn
from tests.support.weather import get_temperature

QUESTION = [HumanMessage("How warm is it?")]
META = {"partMetadata": {"source": "x"}}
PARTS: list[dict[str, Any]] = [
    {"text": "Hm.", "thought": True, **META},
    {"text": "Look.", **META},
    {"functionCall": {"name": "get_temperature", "args": {"city": "Paris"}, "id": "c1"}, "thoughtSignature": "c2ln", **META},
]


@pytest.mark.parametrize("version", [None, "v1"])
@pytest.mark.parametrize("way", ["invoke", "stream"])
async def test_the_metadata_of_parts_goes_back(way: str, version: str | None) -> None:
    """On thoughts, texts and calls, in the loop and in later runs."""
    candidate = {"content": {"role": "model", "parts": PARTS}, "finishReason": "STOP", "index": 0}
    event = {"candidates": [candidate], "modelVersion": "any", "usageMetadata": {"promptTokenCount": 1, "totalTokenCount": 1}}
    with GoogleServer([Events([event], event), Turn("21 °C"), Turn("Yes.")]) as server:
        settings = {"model": "any", "base_url": server.url, "api_key": "key", "max_retries": 0, "tools": [get_temperature]}
        model = ChatGoogleGenerativeAI(**settings, output_version=version)
        ran = await run_in(way, model, QUESTION)
        await run_in(way, model, [*QUESTION, ran.message, HumanMessage("Sure?")])
        for request in server.messages[1:]:
            assert request[1]["parts"] == PARTS
        assert server.rejections == []
