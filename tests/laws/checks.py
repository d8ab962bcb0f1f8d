"""What is asked of every outcome: plain messages, calls answered once, and a next request that the vendor takes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage

from langchain_autotools.messages.metadata import KEY
from tests.laws.stories import Said, told
from tests.laws.ways import QUESTION, Ran, chat, run
from tests.support.calls import MADE_HERE
from tests.support.openai_server import OpenAIServer

_ASIDE = frozenset({"id", "generation_id", "index", "output_version"})  # a generation is named after its message, ids included


def data_of(message: BaseMessage, *, aside: frozenset[str] = _ASIDE) -> Any:
    """A message as data, without what two runs may differ in."""
    return _without(message.model_dump(), aside)


def _without(value: Any, aside: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {key: _without(inner, aside) for key, inner in value.items() if key not in aside}
    if isinstance(value, str) and MADE_HERE.fullmatch(value):
        return "an id made here"
    return [_without(inner, aside) for inner in value] if isinstance(value, list) else value


def differences(one: Any, other: Any, place: str = "") -> list[str]:
    """Where two pieces of data differ, in words; empty where they are the same."""
    if isinstance(one, dict) and isinstance(other, dict):
        found = [f"{place}/{key}: only in one: {(one | other)[key]!r}" for key in sorted(one.keys() ^ other.keys(), key=str)]
        return found + [text for key in one if key in other for text in differences(one[key], other[key], f"{place}/{key}")]
    if isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        return [text for number, pair in enumerate(zip(one, other, strict=True)) for text in differences(*pair, f"{place}/{number}")]
    return [] if one == other and type(one) is type(other) else [f"{place}: {one!r} != {other!r}"]


def check_plain(ran: Ran) -> None:
    """Nothing but LangChain's own classes leaves the package, and nothing of ours is in a new message but what it must remember."""
    assert {type(chunk) for chunk in ran.chunks} <= {AIMessageChunk}
    assert ran.message is None or type(ran.message) is AIMessage
    for message in ran.new:
        assert type(message) in (AIMessage, ToolMessage)
        assert set(message.response_metadata.get(KEY) or {}) <= {"calls", "origin"}


def check_answered(messages: Sequence[BaseMessage]) -> None:
    """Every call is answered exactly once, directly after its AI message, in call order."""
    waiting: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            assert waiting and message.tool_call_id == waiting.pop(0)
            continue
        assert not waiting
        assert isinstance(message, AIMessage)
        waiting = calls_in_order(message)
        assert len(set(waiting)) == len(waiting) and all(waiting)
    assert not waiting


def calls_in_order(message: AIMessage) -> list[str]:
    """The ids of a message's calls, executable or not, in the order in which they were written."""
    ids = [call["id"] for call in (*message.tool_calls, *message.invalid_tool_calls)]
    recorded = [entry["id"] for entry in (message.response_metadata.get(KEY) or {}).get("calls", ())]
    if not recorded:  # left out where the message itself says the order
        assert not (message.tool_calls and message.invalid_tool_calls)
        return [str(call_id) for call_id in ids]
    assert sorted(map(str, ids)) == sorted(map(str, recorded))
    return recorded


def check_told(messages: Sequence[BaseMessage], replies: Sequence[Said]) -> None:
    """The new messages are what the script says, results included."""
    wanted = told(replies)
    assert [message.type for message in messages] == [kind for kind, _ in wanted]
    for message, (_, text) in zip(messages, wanted, strict=True):
        if text is None:
            assert isinstance(message, ToolMessage) and message.status == "error"
            assert json.loads(message.text)["error"]
        else:
            assert message.text == text
            assert getattr(message, "status", "success") == "success"


def check_goes_on(server: OpenAIServer, messages: Sequence[BaseMessage], *, tools: Any = (), way: str = "invoke") -> None:
    """The strict server takes the next request after these messages, and after each of their prefixes."""
    model = chat(server, tools=list(tools))
    for end in range(len(messages) + 1):
        ran = run(way, model, [QUESTION, *messages[:end], HumanMessage("Go on.")])
        assert ran.error is None, ran.error
    assert server.rejections == []


def check_goes_on_at_once(server: OpenAIServer, messages: Sequence[BaseMessage], *, tools: Any) -> None:
    """The same without a word of the user's between."""
    model = chat(server, tools=list(tools))
    for end in range(len(messages) + 1):
        ran = run("stream", model, [QUESTION, *messages[:end]])
        assert ran.error is None, ran.error
    assert server.rejections == []
