"""Conversations with every preset's strict server: state goes back where it came from, and histories of others are accepted."""

from typing import Any

import pytest
from langchain_core.exceptions import ModelInvalidRequestError
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_autotools import ChatOpenAI, new_messages
from tests.providers.presets.conftest import Start
from tests.support.script import Call, Events, Failure, Raw, Turn
from tests.support.vendors import VENDORS, Vendor
from tests.support.weather import get_temperature

QUESTION = [HumanMessage("How warm is it in Paris and in Rome?")]
THOUGHT = "Two cities, two calls."


def thinking_turns() -> list[Turn]:
    """Thoughts and two calls, a call without a thought, and an answer."""
    pair = [Call("get_temperature", {"city": "Paris"}), Call("get_temperature", {"city": "Rome"})]
    return [Turn(calls=pair, reasoning=THOUGHT), Turn(calls=[Call("get_temperature", {"city": "Oslo"})]), Turn("Warm.")]


def rejections(server: Any) -> list[str]:
    """What the server refused."""
    return [rejection.message for rejection in server.rejections]


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_thoughts_go_back_as_the_vendor_wants_them(start: Start, vendor: Vendor, way: str) -> None:
    """A loop with thoughts is accepted: returned, unchanged, to those that want them; not sent to those that refuse them.

    Wire quirks R-02, R-03.
    """
    model, server = start(vendor, thinking_turns(), tools=[get_temperature])
    if way == "invoke":
        new = new_messages(model.invoke(QUESTION))
    else:
        new = [message for chunk in model.stream(QUESTION) for message in new_messages(chunk)]
    assert rejections(server) == []
    assert [message.text for message in new if isinstance(message, ToolMessage)] == ["Paris: 21 °C", "Rome: 21 °C", "Oslo: 21 °C"]
    assert new[-1].text == "Warm."
    assert new[0].additional_kwargs["reasoning_content"] == THOUGHT
    assert {"type": "reasoning", "reasoning": THOUGHT} in new[0].content_blocks
    assert (THOUGHT.encode() in server.exchanges[2].body) is (vendor.name != "cohere")
    assert [message.response_metadata["model_provider"] for message in new if isinstance(message, AIMessage)] == [vendor.name] * 3


def test_state_stays_with_its_endpoint(start: Start, vendor: Vendor) -> None:
    """A history with one vendor's state is accepted by every other, which is not sent it."""
    model, _ = start(vendor, thinking_turns(), tools=[get_temperature])
    history = [*QUESTION, *new_messages(model.invoke(QUESTION)), HumanMessage("And now?")]
    for other in VENDORS:
        there, server = start(other, [Turn("Fine.")], tools=[get_temperature])
        assert there.invoke(history).text == "Fine."
        assert rejections(server) == []
        assert THOUGHT.encode() not in server.exchanges[0].body


FOREIGN: dict[str, list[BaseMessage]] = {
    "anthropic": [
        HumanMessage("Look."),
        AIMessage(
            [
                {"type": "thinking", "thinking": THOUGHT, "signature": "c2ln"},
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "toolu_01AbCdEf", "name": "get_temperature", "input": {"city": "Paris"}},
            ],
            tool_calls=[{"name": "get_temperature", "args": {"city": "Paris"}, "id": "toolu_01AbCdEf"}],
            response_metadata={"model_provider": "anthropic"},
        ),
        ToolMessage([{"type": "text", "text": "21"}], tool_call_id="toolu_01AbCdEf"),
        AIMessage("21 °C."),
    ],
    "google": [
        HumanMessage("Look."),
        AIMessage(
            "",
            tool_calls=[
                {"name": "get_temperature", "args": {"city": city}, "id": f"9f0c1b52-6f0e-4b1c-8a4e-{city}"} for city in ("Oslo", "Rome")
            ],
            additional_kwargs={"__gemini_function_call_thought_signatures__": {"9f0c1b52-6f0e-4b1c-8a4e-Oslo": "c2ln"}},
            response_metadata={"model_provider": "google_genai"},
        ),
        ToolMessage("1", tool_call_id="9f0c1b52-6f0e-4b1c-8a4e-Oslo"),
        ToolMessage("2", tool_call_id="9f0c1b52-6f0e-4b1c-8a4e-Rome"),
        AIMessage("Cold."),
    ],
    "kimi": [
        HumanMessage("Look."),
        AIMessage("", tool_calls=[{"name": "get_temperature", "args": {"city": "Rome"}, "id": "functions.get_temperature:0"}]),
        ToolMessage("", tool_call_id="functions.get_temperature:0", status="error"),
        AIMessage("It failed.", name="weather man", additional_kwargs={"reasoning_content": THOUGHT}),
    ],
    "interrupted": [
        SystemMessage("Be brief."),
        HumanMessage("Look.", name="Anna"),
        AIMessage("", tool_calls=[{"name": "get_temperature", "args": {"city": "Rome"}, "id": "call_1"}]),
        ToolMessage("21", tool_call_id="call_1"),
    ],
    "system later": [HumanMessage("Hi."), AIMessage("Hello."), SystemMessage("Be brief from now on."), HumanMessage("So?")],
}


@pytest.mark.parametrize("origin", FOREIGN)
def test_histories_of_others_are_accepted(start: Start, vendor: Vendor, origin: str) -> None:
    """Whatever wrote a history, it can be gone on with; no foreign state is sent."""
    model, server = start(vendor, [Turn("Fine.")], tools=[get_temperature])
    assert model.invoke([*FOREIGN[origin], HumanMessage("And now?")]).text == "Fine."
    assert rejections(server) == []
    assert b"c2ln" not in server.exchanges[0].body and THOUGHT.encode() not in server.exchanges[0].body


def test_a_refusal_has_the_vendors_words(start: Start, vendor: Vendor) -> None:
    """An error in the vendor's form is raised typed, with its message."""
    model, _ = start(vendor, [], tools=[])
    with pytest.raises(ModelInvalidRequestError, match=r"temperature"):
        model.invoke("Hi", temperature=9)


def test_a_model_without_a_preset_learns_what_a_server_misses(start: Start) -> None:
    """`ChatOpenAI` on a server that demands state sends it, empty, once that has been said, and from then on at once (wire quirk R-02)."""
    _, server = start("deepseek", [Turn("Fine."), Turn("Fine.")])
    model = ChatOpenAI(model="any", base_url=server.url, api_key="key", max_retries=0)
    for _ in range(2):
        assert model.invoke([*FOREIGN["interrupted"], HumanMessage("And now?")]).text == "Fine."
    assert [message["tool_calls"][0]["id"] for message in server.messages[-1] if message.get("reasoning_content") == ""] == ["call_1"]
    assert len(rejections(server)) == 1


# ---------------------------------------------------------------------------------------------- Groq


FAILED = {
    "message": "tool call validation failed: parameters for tool get_temperature did not match schema: missing properties: 'city'",
    "type": "invalid_request_error",
    "code": "tool_use_failed",
}


def failure(written: str) -> Raw:
    """A refusal of what the model wrote."""
    import json

    body = json.dumps({"error": {**FAILED, "failed_generation": written}}).encode()
    return Raw([body], "application/json", 400, framing="length")


@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream"])
@pytest.mark.parametrize(
    ("written", "name"),
    [
        ('{"name": "get_temperature", "arguments": {"town": "Paris"}}', "get_temperature"),
        ('[{"name": "get_temperature", "parameters": {"town": "Paris"}}]', "get_temperature"),
        ('<function=get_temperature{"city": "Par</function>', "get_temperature"),
        ('{"name": "get_temperature", "arguments": {"city": "Pa', "get_temperature"),
        ("I would look", "unreadable_call"),
    ],
    ids=["object", "list", "tag", "cut", "text"],
)
async def test_groqs_failed_calls_are_told_to_the_model(start: Start, way: str, written: str, name: str) -> None:
    """A call that the vendor refuses to read runs nothing; the model is told what was wrong and goes on (wire quirk T-07)."""
    script = [failure(written), Turn(calls=[Call("get_temperature", {"city": "Paris"})]), Turn("21 °C.")]
    model, server = start("groq", script, tools=[get_temperature])
    if way in ("invoke", "ainvoke"):
        new = new_messages(await model.ainvoke(QUESTION) if way == "ainvoke" else model.invoke(QUESTION))
    else:
        chunks: list[AIMessageChunk] = [chunk async for chunk in model.astream(QUESTION)] if way == "astream" else [*model.stream(QUESTION)]
        new = [message for chunk in chunks for message in new_messages(chunk)]
    assert rejections(server) == []
    [failed] = new[0].invalid_tool_calls
    assert (failed["name"], new[0].tool_calls) == (name, [])
    assert "did not match schema" in new[1].text and new[1].status == "error"
    assert (new[3].text, new[-1].text) == ("Paris: 21 °C", "21 °C.")


def test_groqs_failure_inside_a_stream(start: Start) -> None:
    """The same, where the refusal comes after the model's first thoughts."""
    thought = {"id": "x", "model": "m", "choices": [{"index": 0, "delta": {"reasoning": "Hm."}}]}
    written = '{"name": "get_temperature", "arguments": {"town": "Paris"}}'
    script = [Events([thought, {"error": {**FAILED, "failed_generation": written}}]), Turn("Sorry.")]
    model, server = start("groq", script, tools=[get_temperature])
    new = [message for chunk in model.stream(QUESTION) for message in new_messages(chunk)]
    assert [message.type for message in new] == ["ai", "tool", "ai"]
    assert new[0].additional_kwargs["reasoning_content"] == "Hm."
    assert "did not match schema" in new[1].text
    assert server.left == 0


def test_groqs_failure_without_an_attempt_is_an_error(start: Start) -> None:
    """Where there is nothing that the model wrote, or no tools that it could have called, the refusal is raised."""
    model, _ = start("groq", [Failure(400, "no", code="tool_use_failed")], tools=[get_temperature])
    with pytest.raises(ModelInvalidRequestError, match="no"):
        model.invoke(QUESTION)
    model, _ = start("groq", [failure("{}")])
    with pytest.raises(ModelInvalidRequestError, match="did not match"):
        model.invoke(QUESTION)


# ---------------------------------------------------------------------------------------------- Mistral


def test_mistral_gets_its_order_and_ids(start: Start) -> None:
    """Nine-character ids on calls and results; words of the assistant before a user after a tool; no system message in the middle.

    Wire quirks H-05, H-09.
    """
    model, server = start("mistralai", [Turn("Fine.")], tools=[get_temperature])
    middle = [*FOREIGN["interrupted"], SystemMessage("Careful."), HumanMessage("And now?")]
    model.invoke(middle)
    sent = server.messages[0]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "assistant", "user"]
    identifier = sent[2]["tool_calls"][0]["id"]
    assert (len(identifier), sent[3]["tool_call_id"]) == (9, identifier)
    assert sent[5]["content"] == "Careful.\n\nAnd now?"


def test_mistral_goes_on_with_a_reply(start: Start) -> None:
    """A history that ends in words of the assistant asks for the rest of them."""
    model, server = start("mistralai", [Turn(" upon a time")])
    model.invoke([HumanMessage("Begin."), AIMessage("Once")])
    assert server.messages[0][-1] == {"role": "assistant", "content": "Once", "prefix": True}
