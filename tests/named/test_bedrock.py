"""What of runs the contract does not show over Bedrock's wires: limits, choices, output, endings, errors in a stream, other models."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from pydantic import BaseModel

from langchain_autotools import ChatOpenAI, init_chat_model, new_messages, run_usage, stop_reason
from tests.contract.talk import WAYS, run_in
from tests.contract.wires import PRESETS, WIRES
from tests.named.bedrock import MODEL, ROWS
from tests.support.aws_event_stream import event_frame
from tests.support.bedrock_server import BedrockServer, broken_stream
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Failure, Turn

QUESTION = HumanMessage("How warm are Paris and Rome?")
LOOK = Turn("Let me look.", [Call("warmth", {"city": "Paris"}), Call("warmth", {"city": "Rome"})], usage=(20, 5))

rows = pytest.mark.parametrize("row", ROWS)


def warmth(city: str) -> str:
    """Current temperature of a city."""
    return f"{city}: 21 °C"


class Weather(BaseModel):
    """The weather."""

    text: str


def choice_of(request: dict[str, Any]) -> Any:
    """The choice of a request, on either wire."""
    return request.get("tool_choice", request.get("toolConfig", {}).get("toolChoice"))


@rows
async def test_limits(start: Any, way: str) -> None:
    """At the limit of turns one more request is made, whose calls do not run; the run's usage is the sum."""
    talk = start([LOOK, Turn("Both are warm.", usage=(40, 3))], tools=[warmth], max_turns=1)
    ran = await run_in(way, talk.model, [QUESTION])
    assert (stop_reason(ran.message), len(talk.server.requests)) == ("max_turns", 2)
    assert (run_usage(ran.message) or {})["total_tokens"] == 68
    again = start([LOOK, LOOK], tools=[warmth], max_turns=1)
    ran = await run_in(way, again.model, [QUESTION])
    assert sum(message.type == "tool" and "error" not in message.text for message in ran.new) == 2


@rows
@pytest.mark.parametrize("choice", ["any", "warmth", True])
def test_a_forced_choice_holds_for_the_first_turn(start: Any, choice: Any) -> None:
    """In the words of the wire."""
    talk = start([LOOK, Turn("Both are warm.")], tools=[warmth])
    assert stop_reason(talk.model.invoke([QUESTION], tool_choice=choice)) == "complete"
    first, second = map(choice_of, talk.server.requests)
    assert first in ({"any": {}}, {"tool": {"name": "warmth"}}, {"type": "any"}, {"type": "tool", "name": "warmth"})
    assert second in (None, {"auto": {}}, {"type": "auto"})


@rows
def test_structured_output(start: Any) -> None:
    """Beside tools that run, and without any."""
    end = Turn(calls=[Call("Weather", {"text": "fine"})])
    assert start([LOOK, end], tools=[warmth]).model.with_structured_output(Weather).invoke([QUESTION]) == Weather(text="fine")
    assert start([end]).model.with_structured_output(Weather).invoke([QUESTION]) == Weather(text="fine")


@rows
@pytest.mark.parametrize(
    ("finish", "ended"),
    [("length", "length"), ("content_filter", "refused"), ("model_context_window_exceeded", "length"), (None, "complete")],
)
async def test_endings(start: Any, way: str, finish: str | None, ended: str) -> None:
    """How a reply ended is the stop reason, with tools and without."""
    for more in ({"tools": [warmth]}, {}):
        ran = await run_in(way, start([Turn("Bo", finish=finish)], **more).model, [QUESTION])
        assert stop_reason(ran.message) == ended


@pytest.mark.parametrize("row", ["converse"])
@pytest.mark.parametrize("finish", ["guardrail_intervened", "malformed_tool_use", "malformed_model_output"])
async def test_a_call_that_bedrock_finds_malformed_does_not_run(start: Any, way: str, finish: str) -> None:
    """Nor one beside which a guardrail has intervened."""
    ran: list[str] = []

    def warmth(city: str) -> str:
        """Current temperature of a city."""
        ran.append(city)
        return city

    talk = start([Turn("Let me look.", LOOK.calls, finish=finish), Turn("Sorry.")], tools=[warmth])
    await run_in(way, talk.model, [QUESTION])
    assert ran == []


@pytest.mark.parametrize("way", ["stream", "astream"])
async def test_an_error_event_in_a_stream_is_an_error_and_runs_nothing(way: str) -> None:
    """AWS says it after a status of 200; what was known is in the error."""
    with BedrockServer([broken_stream(0, LOOK, "throttlingException", "Too many requests")]) as server:
        model = ROWS["converse"].model(server, tools=[warmth])
        with pytest.raises(Exception, match="Too many requests"):
            await run_in(way, model, [QUESTION])


def test_a_frame_may_be_cut_anywhere() -> None:
    """And botocore checks its sums."""
    frames = event_frame("messageStart", {"role": "assistant"})
    assert len(frames) == int.from_bytes(frames[:4], "big")
    broken = bytearray(frames)
    broken[-1] ^= 1
    from botocore.eventstream import ChecksumMismatch, EventStreamBuffer

    for data, fails in ((frames, False), (bytes(broken), True)):
        buffer = EventStreamBuffer()
        for place in range(len(data)):
            buffer.add_data(data[place : place + 1])
        if fails:
            with pytest.raises(ChecksumMismatch):
                next(buffer)
        else:
            assert next(buffer).headers[":event-type"] == "messageStart"


@rows
async def test_failover_from_and_to_a_model_of_this_package(start: Any, way: str) -> None:
    """A turn whose model fails is made by the next one, in either direction; the next takes the history of the first."""
    with OpenAIServer([Turn("Both are warm.")]) as other:
        spare = ChatOpenAI(model="any", base_url=other.url, api_key="key", max_retries=0)
        talk = start([LOOK, Failure(503, "Busy")], tools=[warmth], fallbacks=[spare])
        ran = await run_in(way, talk.model, [QUESTION])
        assert (ran.message.text, stop_reason(ran.message)) == ("Let me look.\nBoth are warm.", "complete")
        assert other.rejections == [] and [one["role"] for one in other.messages[0]] == ["user", "assistant", "tool", "tool"]
    with OpenAIServer([LOOK, Failure(503, "Busy")]) as other:
        talk = start([Turn("Both are warm.")])
        first = ChatOpenAI(model="any", base_url=other.url, api_key="key", max_retries=0, tools=[warmth], fallbacks=[talk.model])
        ran = await run_in(way, first, [QUESTION])
        assert (ran.message.text, other.rejections) == ("Let me look.\nBoth are warm.", [])
        assert [text for _, text in talk.results()] == ["Paris: 21 °C", "Rome: 21 °C"]


@rows
@pytest.mark.parametrize("origin", [wire.name for wire in (*WIRES, *PRESETS)])
async def test_a_history_of_another_vendor(start: Any, origin: str) -> None:
    """A conversation that a model of this package had goes on here: messages with calls, results and text."""
    wire = next(one for one in (*WIRES, *PRESETS) if one.name == origin)
    with wire.serve([LOOK, Turn("Both are warm.")]) as server:
        run = wire.model(server, tools=[warmth]).invoke([QUESTION])
    talk = start([Turn("They are.")], tools=[warmth])
    ran = await run_in(WAYS[len(origin) % 4], talk.model, [QUESTION, *new_messages(run), HumanMessage("Sure?")])
    assert ran.message.text == "They are."


@rows
async def test_its_history_goes_on_elsewhere(start: Any, way: str) -> None:
    """What Bedrock's class has stored is taken by chat completions."""
    ran = await run_in(way, start([LOOK, Turn("Both are warm.")], tools=[warmth]).model, [QUESTION])
    with OpenAIServer([Turn("They are.")]) as server:
        model = ChatOpenAI(model="any", base_url=server.url, api_key="key", tools=[warmth])
        assert model.invoke([QUESTION, *ran.new, HumanMessage("Sure?")]).text == "They are." and server.rejections == []


def test_keys_stay_hidden() -> None:
    """As of the class itself."""
    secret = "a" * 40
    keys = {"aws_access_key_id": "nobodys", "aws_secret_access_key": secret, "region_name": "us-east-1"}
    assert secret not in repr(init_chat_model(f"bedrock_converse:{MODEL}", endpoint_url="http://127.0.0.1:9", tools=[warmth], **keys))
