"""Replies of chat completions with text, pictures and a call, as content blocks."""

import pytest

from langchain_autotools import ChatOpenAI
from tests.support.openai_server import OpenAIServer
from tests.support.vendor_replies import chat
from tests.surface.replied import WAYS

pytestmark = pytest.mark.further


@pytest.mark.parametrize("version", [None, "v1"])
@pytest.mark.parametrize("way", WAYS)
def test_blocks_have_the_text_the_picture_and_the_call(way: str, version: str | None) -> None:
    """In every way. (LangChain's reading of a list passes over bare texts and over calls.)"""
    with OpenAIServer([chat()]) as server:
        model = ChatOpenAI(model="any", base_url=server.url, api_key="key", max_retries=0, output_version=version)
        message = WAYS[way](model)
        assert [block["type"] for block in message.content_blocks] == ["text", "image", "tool_call"]
        assert message.text == "Oslo."
