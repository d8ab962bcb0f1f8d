"""What is special about OpenRouter: who gave a reply, how that provider says that it ended, and the roles that are sent."""

from __future__ import annotations

import pytest
from langchain_core.messages import ChatMessage, HumanMessage

from langchain_autotools import ChatOpenRouter
from tests.contract.talk import WAYS, run_in
from tests.support.openai_server import OpenAIServer
from tests.support.script import Events, Turn
from tests.support.weather import get_temperature

QUESTION = [HumanMessage("How warm is it?")]


@pytest.mark.parametrize("way", WAYS)
async def test_provider_and_native_finish_reason_are_kept(way: str) -> None:
    """Both are in `response_metadata`, once."""
    said = {"id": "gen-1", "model": "any", "provider": "Azure"}
    end = {"index": 0, "finish_reason": "stop", "native_finish_reason": "completed"}
    chunks = [
        {**said, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "Warm."}, "native_finish_reason": None}]},
        {**said, "object": "chat.completion.chunk", "choices": [{**end, "delta": {"content": ""}}]},
    ]
    whole = {**said, "object": "chat.completion", "choices": [{**end, "message": {"role": "assistant", "content": "Warm."}}]}
    with OpenAIServer([Events(chunks, whole)]) as server:
        model = ChatOpenRouter(model="any", base_url=server.url, api_key="key", max_retries=0, tools=[get_temperature])
        ran = await run_in(way, model, QUESTION)
        for message in (ran.message, ran.new[0]):
            metadata = message.response_metadata
            assert (metadata["provider"], metadata["native_finish_reason"], metadata["finish_reason"]) == ("Azure", "completed", "stop")


def test_developers_are_sent_as_the_system() -> None:
    """OpenRouter's reference knows no role `developer`, and some vendors behind it refuse it."""
    with OpenAIServer([Turn("Hi.")]) as server:
        ChatOpenRouter(model="any", base_url=server.url, api_key="key").invoke([ChatMessage("Be kind.", role="developer"), *QUESTION])
        assert [message["role"] for message in server.requests[0]["messages"]] == ["system", "user"]
