"""What random changes have found, one by one."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, messages_to_dict

from langchain_autotools import ChatOllama, ConfigurationError, PendingCall, new_messages, run_cost, run_usage
from langchain_autotools.history import repair
from langchain_autotools.tool_calls import ToolCallAssembler
from tests.laws.ways import run
from tests.support.ollama_server import OllamaServer
from tests.support.script import Raw

WHOLE = messages_to_dict([AIMessage("It is 21.")])
SHOWN = {"id": "c", "name": "wipe", "args": {}, "kind": "approval", "uuid": "u", "digest": "d", "toolset": None, "path": []}


@pytest.mark.parametrize("entries", [{}, "text", 5, [{}], ["text"], [None], [{"type": "ai"}], [{"type": "ai", "data": {"content": 5}}]])
def test_a_carrier_that_cannot_be_read_brings_what_can_be(entries: Any, caplog: pytest.LogCaptureFixture) -> None:
    """With a warning for what is left out; a carrier that is no list is none."""
    mixed = [*entries, *WHOLE] if isinstance(entries, list) else entries
    message = AIMessage("It is 21.", response_metadata={"autotools": {"messages": mixed, "stop_reason": "complete"}})
    with caplog.at_level(logging.WARNING):
        assert [one.text for one in new_messages(message)] == ["It is 21."]
    assert [one.text for one in repair([HumanMessage("Go."), message])] == ["Go.", "It is 21."]
    assert ("left out" in caplog.text) == isinstance(entries, list)


@pytest.mark.parametrize("record", [5, {"rejected": 5, "turns": [1]}, {"rejected": [5, {"content": 5}]}])
def test_records_of_replies_that_are_none_do_not_count(record: Any) -> None:
    """Of a message and of a result."""
    message = AIMessage("It is 21.", response_metadata={"autotools": record})
    assert run_usage(message) is None and len(run_cost(message, prices={}).turns) == 1
    result = ToolMessage("x", tool_call_id="c", response_metadata={"autotools": {"used_inside": record}})
    assert run_cost(AIMessage("", response_metadata={"autotools": {"messages": messages_to_dict([result])}}), prices={}).turns == []


@pytest.mark.parametrize("change", [{"path": 5}, {"path": None}, {"path": {"a": 1}}, {"toolset": float("nan")}, {"toolset": 5}])
def test_a_pending_call_is_refused_by_name(change: Any) -> None:
    """Where its path is no list, or its toolset no text."""
    with pytest.raises(ConfigurationError, match=next(iter(change))):
        PendingCall.from_dict({**SHOWN, **change})


@pytest.mark.parametrize("count", ["1e308", "1e999", "NaN", "9007199254740993", "7.5", '"many"'])
@pytest.mark.parametrize("way", ["invoke", "astream"])
def test_a_count_that_is_none_is_unknown(count: str, way: str) -> None:
    """Of tokens: beyond all numbers, absurd, with a fraction, or a text: the reply counts, and nobody takes it for a free one."""
    said = '{"model": "one", "message": {"role": "assistant", "content": "Y"}, "done": true, "prompt_eval_count": COUNT, "eval_count": 7}'
    with OllamaServer([Raw([said.replace("COUNT", count).encode() + b"\n"], "application/x-ndjson")]) as server:
        ran = run(way, ChatOllama(model="one", base_url=server.url, max_retries=0), [HumanMessage("Go.")])
    assert ran.error is None and ran.message.text == "Y" and ran.message.usage_metadata is None


def test_an_index_beyond_all_numbers_is_none() -> None:
    """`1e999` is JSON for servers that do not look."""
    assembler = ToolCallAssembler(("f",))
    assembler.feed({"index": float("inf"), "id": "a", "function": {"name": "f", "arguments": "{}"}})
    (call,) = assembler.finish()
    assert call.args == {}
