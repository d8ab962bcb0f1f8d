"""Texts of a reply that are no blocks, beside parts that are."""

from collections.abc import Iterator
from functools import reduce
from operator import add
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk, BaseMessage

from langchain_autotools import ToolsAndMessagesMixin
from tests.support.vendor_replies import PIXEL

pytestmark = pytest.mark.further


class ChatPainter(ToolsAndMessagesMixin):
    """Says something, draws something, and says something more."""

    vendor: str = ""

    @property
    def _llm_type(self) -> str:
        return "painter"

    def raw_stream(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
        """The parts in one piece, as of a server that does not stream."""
        parts = ["Let me draw. ", {"type": "image", "base64": PIXEL, "mime_type": "image/png"}, "There it is."]
        metadata = {"finish_reason": "stop", **({"model_provider": self.vendor} if self.vendor else {})}
        yield AIMessageChunk(parts, response_metadata=metadata)


@pytest.mark.parametrize("version", [None, "v0", "v1"])
@pytest.mark.parametrize("vendor", ["", "openai", "anthropic", "google_genai", "bedrock_converse", "somebody"])
def test_no_text_is_lost_beside_a_block(vendor: str, version: str | None) -> None:
    """Whole and streamed. (LangChain's readers of vendors' contents pass over texts that are no blocks; that of Groq's over all lists.)"""
    model = ChatPainter(vendor=vendor, output_version=version)
    for message in (model.invoke("hi"), reduce(add, model.stream("hi"))):
        assert message.text == "Let me draw. There it is."
