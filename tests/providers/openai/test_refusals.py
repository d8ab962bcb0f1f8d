"""Replies that refuse, on both of OpenAI's wires: what is handed out, and what goes back."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.messages.content import KNOWN_BLOCK_TYPES

from langchain_autotools import ChatOpenAI
from tests.contract.talk import WAYS, run_in
from tests.support.openai_itself import OpenAIItself
from tests.support.script import Turn
from tests.support.weather import get_temperature

QUESTION = [HumanMessage("How?")]
REFUSAL = {"type": "refusal", "refusal": "No, I cannot."}
REFUSED = AIMessage([REFUSAL], response_metadata={"model_provider": "another"})
pytestmark = pytest.mark.further


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("version", [None, "v1"])
@pytest.mark.parametrize("responses", [False, True])
async def test_a_refusal_is_a_block_and_goes_back_as_one(responses: bool, version: str | None, way: str) -> None:
    """With every output version and way, with and without tools that run; it is kept beside the content, too."""
    for tools in ([], [get_temperature]):
        script = [Turn(refusal="No, I cannot."), Turn("Fine.")]
        with OpenAIItself(chat=script, responses=script) as vendor:
            async with vendor.async_client() as client:
                clients = {"http_client": vendor.client(), "http_async_client": client}
                model = ChatOpenAI(
                    model="gpt-5", api_key="key", use_responses_api=responses, output_version=version, tools=tools, **clients
                )
                ran = await run_in(way, model, QUESTION)
                shown = [REFUSAL] if version or "refusal" in KNOWN_BLOCK_TYPES else []  # older releases of core know no such block
                assert [*map(plain, ran.message.content_blocks)] == [*map(plain, ran.new[0].content_blocks)] == shown
                assert ran.message.additional_kwargs["refusal"] == REFUSAL["refusal"]
                await run_in(way, model, [*QUESTION, *ran.new, HumanMessage("Please.")])
            _, message, _ = vendor.responses.requests[1]["input"] if responses else vendor.chat.requests[1]["messages"]
            assert (message["role"], [*map(plain, message["content"])]) == ("assistant", [REFUSAL])


def plain(block: Any) -> Any:
    """A block without what only says where it was."""
    return {name: value for name, value in block.items() if name not in ("index", "id")}


def test_a_refusal_of_another_vendor_is_one_to_openai_itself() -> None:
    """On both of its APIs; whoever wrote it."""
    history = [*QUESTION, REFUSED, HumanMessage("Please.")]
    with OpenAIItself(chat=[Turn("Fine.")], responses=[Turn("Fine.")]) as vendor:
        for responses in (False, True):
            ChatOpenAI(model="gpt-5", api_key="key", http_client=vendor.client(), use_responses_api=responses).invoke(history)
        sent = vendor.chat.requests[0]["messages"][1], vendor.responses.requests[0]["input"][1]
        assert [message["content"] for message in sent] == [[REFUSAL], [REFUSAL]]
