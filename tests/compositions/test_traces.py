"""What callback handlers and `generate` are told of a turn besides its message, as LangChain's own packages tell it."""

import asyncio
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from tests.contract.wires import WIRES, Wire
from tests.support.script import Call, Turn


class Ends(BaseCallbackHandler):
    """Keeps what `on_llm_end` is told."""

    def __init__(self) -> None:
        self.results: list[LLMResult] = []

    def on_llm_end(self, response: LLMResult, **_: Any) -> None:
        """Keep it."""
        self.results.append(response)


def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


def _counts(usage: Any) -> tuple[int, int, int]:
    return usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]


CHAT = next(wire for wire in WIRES if wire.name == "openai-chat")
SCRIPT = [Turn("look", [Call("shout", {"text": "x"})]), Turn("done")]


def _ran(model: Any, way: str, ends: Ends) -> None:
    config = {"callbacks": [ends]}

    async def waited() -> None:
        if way == "ainvoke":
            await model.ainvoke("?", config)
        else:
            [chunk async for chunk in model.astream("?", config)]

    if way.startswith("a"):
        asyncio.run(waited())
    else:
        model.invoke("?", config) if way == "invoke" else list(model.stream("?", config))


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_each_turn_of_a_run_says_its_tokens_and_model(way: str) -> None:
    """What cost handlers read of a whole reply: once for each turn, and nothing that the message lacks."""
    ends = Ends()
    with CHAT.serve(SCRIPT) as server:
        _ran(CHAT.model(server, tools=[shout]), way, ends)
    outputs = [result.llm_output or {} for result in ends.results]
    assert [_counts(output["token_usage"]) for output in outputs] == [(11, 7, 18)] * 2
    assert [(output["model_name"], output["model_provider"], output["system_fingerprint"]) for output in outputs] == [
        ("any", "openai", "fp_loopback")
    ] * 2
    assert [output["id"] for output in outputs] == ["chatcmpl-000000000000", "chatcmpl-000000000001"]
    assert [result.generations[0][0].generation_info for result in ends.results] == [
        {"finish_reason": "tool_calls"},
        {"finish_reason": "stop"},
    ]


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_streamed_turn_says_how_it_ended(way: str) -> None:
    """Core gives a stream no `llm_output`; model and finish reason are in `generation_info`, each once."""
    ends = Ends()
    with CHAT.serve(SCRIPT) as server:
        _ran(CHAT.model(server, tools=[shout]), way, ends)
    said = {"model_name": "any", "system_fingerprint": "fp_loopback", "service_tier": "default"}
    assert [result.generations[0][0].generation_info for result in ends.results] == [
        {"finish_reason": "tool_calls", **said},
        {"finish_reason": "stop", **said},
    ]
    assert [result.llm_output for result in ends.results] == [None, None]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_generate_adds_up_what_its_prompts_used(asynchronous: bool) -> None:
    """Tokens of all prompts, details too, and the model's name."""
    prompts = [[HumanMessage("one")], [HumanMessage("two")], [HumanMessage("three")]]
    with CHAT.serve([Turn("done", usage_details={"cached": 2})] * 3) as server:
        model = CHAT.model(server)
        result = asyncio.run(model.agenerate(prompts)) if asynchronous else model.generate(prompts)
    assert set(result.llm_output) == {"token_usage", "model_name", "system_fingerprint"}
    assert _counts(result.llm_output["token_usage"]) == (33, 21, 54)
    assert result.llm_output["token_usage"]["prompt_tokens_details"]["cached_tokens"] == 6


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_the_messages_stay_what_they_were(wire: Wire) -> None:
    """Core puts both back into the message's metadata: of a handler's message, a streamed and a generated one nothing differs."""
    ends = Ends()
    with wire.serve([Turn("done")] * 3) as server:
        model = wire.model(server)
        invoked = model.invoke("?", {"callbacks": [ends]})
        generated = model.generate([[HumanMessage("?")]]).generations[0][0]
        streamed = sum((chunks := list(model.stream("?")))[1:], chunks[0])
    told = ends.results[0]
    assert isinstance(generated, ChatGeneration) and isinstance(invoked, AIMessage)
    names = set(invoked.response_metadata)
    assert names == set(streamed.response_metadata) == set(generated.message.response_metadata)
    assert told.llm_output and set(told.llm_output) <= names and told.llm_output["model_name"] == invoked.response_metadata["model_name"]
    assert "finish_reason" in (told.generations[0][0].generation_info or {})
