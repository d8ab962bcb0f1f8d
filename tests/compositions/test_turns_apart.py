"""The texts of two turns in events and graphs: the page on messages says how to tell them apart."""

import re
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk

from langchain_autotools import new_messages
from tests.compositions.test_langgraph import QUESTION, THREAD, graph
from tests.contract.wires import WIRES, Wire
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Turn

PAGE = Path(__file__).resolve().parents[2] / "docs" / "messages.md"
ANSWER = [Turn("Let me look.", [Call("get_temperature", {"city": "Paris"})]), Turn("Paris 21 °C.")]


def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return "21 °C"


def _by_message(chunks: list[Any]) -> list[str]:
    """The texts of neighbours with one id."""
    return ["".join(chunk.text for chunk in same) for _, same in groupby(chunks, lambda chunk: chunk.id)]


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_all_chunks_of_a_turn_have_its_messages_id(wire: Wire) -> None:
    """In v2 events, whatever the wire says of ids and when."""
    with wire.serve(ANSWER) as server:
        model = wire.model(server, tools=[get_temperature])
        events = [event async for event in model.astream_events("?", version="v2")]
    chunks: list[Any] = [event["data"]["chunk"] for event in events if event["event"] == "on_chat_model_stream"]
    assert _by_message(chunks) == ["Let me look.", "Paris 21 °C."]
    brought = new_messages(events[-1]["data"]["output"])  # type: ignore[typeddict-item]
    assert [message.id for message in brought if message.type == "ai"] == list(dict.fromkeys(chunk.id for chunk in chunks))


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_results_come_last_where_a_graph_streams_messages(wire: Wire) -> None:
    """A node that returns the new messages: both turns by id, then the result, and no AI message again."""
    with wire.serve(ANSWER) as server:
        parts = graph(wire.model(server, tools=[get_temperature]), new_messages).stream(
            {"messages": [QUESTION]}, THREAD, stream_mode="messages"
        )
        messages = [message for message, _ in parts]
    kinds = [kind for kind, _ in groupby(messages, type)]
    assert [kind.__name__ for kind in kinds] == ["AIMessageChunk", "ToolMessage"]
    assert _by_message([message for message in messages if isinstance(message, AIMessageChunk)]) == ["Let me look.", "Paris 21 °C."]


def test_the_pages_example(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It prints each turn on a line of its own."""
    (example,) = [
        code for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL) if "astream_events" in code
    ]
    with OpenAIServer(lambda exchange: ANSWER[min(exchange.number, 1)]) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        exec(compile(example, str(PAGE), "exec"), {})
    assert capsys.readouterr().out == "Let me look.\nParis 21 °C."
