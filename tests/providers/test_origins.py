"""What is only a model's to read (thinking, signatures) goes back to that model and to no other, in partners' histories too."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_autotools import ChatAnthropic, ChatGoogleGenerativeAI
from tests.support.anthropic_server import AnthropicServer
from tests.support.google_server import GoogleServer
from tests.support.script import Turn

SIGNATURE = "c2lnbmF0dXJlLW9mLWFub3RoZXItbW9kZWw="

# asked, who wrote the history, whether they are one model
ANTHROPIC = [
    ("claude-opus-5", "claude-opus-5", True),
    ("claude-opus-5", "claude-opus-5-20260301", True),
    ("claude-opus-5-20260301", "claude-opus-5", True),
    ("claude-opus-5-latest", "claude-opus-5-20260301", True),
    ("claude-opus-5", "claude-opus-5@20260301", True),
    ("claude-opus-5", "claude-opus-5-5", False),
    ("claude-opus-5", "claude-opus-5-5-20260301", False),
    ("claude-opus-5-20260301", "claude-opus-5-20260601", False),
]
GOOGLE = [
    ("gemini-3.5-flash", "gemini-3.5-flash", True),
    ("gemini-3.5-flash", "models/gemini-3.5-flash", True),
    ("gemini-3.5-flash", "gemini-3.5-flash-001", True),
    ("gemini-3.5-flash-001", "gemini-3.5-flash", True),
    ("gemini-3.5-flash", "gemini-3.5-flash-lite", False),
    ("gemini-3.5-flash", "gemini-3.5-flash-preview-09-2026", False),
]


def history(provider: str, model: str) -> list[Any]:
    """What a partner package keeps of a turn that thought and called a tool."""
    thought = {"type": "thinking", "thinking": "Hm.", "signature": SIGNATURE}
    said = AIMessage(
        [thought, {"type": "text", "text": "Let me look."}],
        tool_calls=[{"id": "call_1", "name": "get_temperature", "args": {"city": "Paris"}}],
        response_metadata={"model_provider": provider, "model_name": model},
    )
    return [HumanMessage("How warm?"), said, ToolMessage("21 °C", tool_call_id="call_1"), HumanMessage("And now?")]


@pytest.mark.parametrize(("asked", "wrote", "same"), ANTHROPIC)
def test_thinking_goes_back_to_its_model_only(asked: str, wrote: str, same: bool) -> None:
    """A name that only begins like another's is another's."""
    with AnthropicServer([Turn("21 °C.")], signed=False) as server:
        ChatAnthropic(model=asked, base_url=server.url, api_key="key").invoke(history("anthropic", wrote))
        assert (SIGNATURE in str(server.requests[0])) is same


@pytest.mark.parametrize(("asked", "wrote", "same"), GOOGLE)
def test_signatures_go_back_to_their_model_only(asked: str, wrote: str, same: bool) -> None:
    """As thinking does."""
    with GoogleServer([Turn("21 °C.")], signed=False) as server:
        ChatGoogleGenerativeAI(model=asked, base_url=server.url, api_key="key").invoke(history("google_genai", wrote))
        assert (SIGNATURE in str(server.exchanges[0].json)) is same
