"""`repair` and `validate`: what is no message of its own, and calls and results that are where no vendor looks for them."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, FunctionMessage, HumanMessage, RemoveMessage, ToolMessage

from langchain_autotools.history import repair, to_send, validate
from langchain_autotools.messages.calls import calls_of
from tests.support.histories import HI, ai, kinds, same, tool


@pytest.mark.parametrize(
    "content", ["", [], [""], [{"type": "text", "text": ""}], [{"type": "text", "text": "", "index": 0, "id": "a", "annotations": []}]]
)
def test_empty_ai_message_is_not_sent(content: str | list[str | dict[str, Any]]) -> None:
    """An AI message that says nothing and calls nothing is a reply like others, which no request has."""
    empty = AIMessage(content, additional_kwargs={"refusal": None})
    assert same(repair([HI, empty, HI]), [HI, empty, HI]) and kinds([HI, empty]) == []
    asked, result = ai("a"), tool("a")
    assert same(to_send([HI, empty]), [HI]) and same(to_send([HI, asked, empty, result]), [HI, asked, result])


def test_loose_chunks_are_joined() -> None:
    """Chunks that were stored one by one become the messages that they are."""
    stream = [
        AIMessageChunk("Let me ", id="m1"),
        AIMessageChunk("look.", id="m1", tool_call_chunks=[{"index": 0, "id": "a", "name": "look_up", "args": '{"q"'}]),
        AIMessageChunk("", id="m1", tool_call_chunks=[{"index": 0, "id": None, "name": None, "args": ":1}"}], chunk_position="last"),
        AIMessageChunk("Next", id="m2"),
        AIMessageChunk("!", id="m3"),
    ]
    repaired = repair([HI, *stream])
    assert [type(message) for message in repaired] == [HumanMessage, AIMessage, ToolMessage, AIMessageChunk, AIMessageChunk]
    assert repaired[1].text == "Let me look."
    assert repaired[1].tool_calls[0]["args"] == {"q": 1}  # type: ignore[attr-defined]
    assert kinds([HI, *stream]) == ["loose_chunks", "unanswered_call"]


def test_loose_chunks_that_do_not_add_up_stand_alone() -> None:
    """Chunks of one id with metadata of two types, which core cannot add, become a message each."""
    stream = [AIMessageChunk(text, id="m", response_metadata={"a": value}) for text, value in (("Hi ", 1), ("there", "x"))]
    repaired = repair([HI, *stream])
    assert [type(message) for message in repaired[1:]] == [AIMessage, AIMessage]
    assert [message.content for message in repaired[1:]] == ["Hi ", "there"]
    assert validate(repaired) == []


def test_removals_are_carried_out() -> None:
    """A RemoveMessage is no message: what it names goes, and so does it."""
    first, second = HumanMessage("one", id="1"), HumanMessage("two", id="2")
    assert same(repair([first, second, RemoveMessage("1")]), [second])
    assert same(repair([first, RemoveMessage("__remove_all__"), second]), [second])
    assert same(repair([first, RemoveMessage("elsewhere")]), [first])
    assert kinds([first, RemoveMessage("1"), RemoveMessage("2")]) == ["removal", "removal"]


def test_chunks_on_both_sides_of_a_removal_are_one_message() -> None:
    """What was between two chunks of a message is gone: they are joined, at once and not only the next time."""
    repaired = repair([AIMessageChunk("Hi ", id="m"), RemoveMessage("elsewhere"), AIMessageChunk("there", id="m")])
    assert [(type(message), message.content) for message in repaired] == [(AIMessage, "Hi there")]
    assert same(repair(repaired), repaired)


def test_removed_ai_message_leaves_no_orphans() -> None:
    """Results of a removed AI message go with it."""
    assert same(repair([HI, ai("a", id="m"), tool("a"), RemoveMessage("m")]), [HI])


def test_former_function_form_is_rewritten() -> None:
    """A `function_call` and its FunctionMessage become a tool call and its result."""
    asked = AIMessage("", additional_kwargs={"function_call": {"name": "look_up", "arguments": '{"q": 1}'}})
    repaired = repair([HI, asked, FunctionMessage("ok", name="look_up"), AIMessage("done")])
    call, result = calls_of(repaired[1])[0], repaired[2]  # type: ignore[arg-type]
    assert (call.name, call.args) == ("look_up", {"q": 1})
    assert isinstance(result, ToolMessage)
    assert (result.tool_call_id, result.content, result.name) == (call.id, "ok", "look_up")
    assert "function_call" not in repaired[1].additional_kwargs
    assert validate(repaired) == []


def test_function_call_with_broken_arguments_is_not_executable() -> None:
    """Arguments in the former form are read as strictly as any others."""
    asked = AIMessage("", additional_kwargs={"function_call": {"name": "look_up", "arguments": '{"q": '}})
    repaired = repair([HI, asked])
    assert calls_of(repaired[1])[0].args is None  # type: ignore[arg-type]
    assert len(repaired) == 3


def test_function_result_without_call_is_left_out() -> None:
    """A FunctionMessage that answers nothing is an orphan."""
    assert same(repair([HI, FunctionMessage("ok", name="look_up")]), [HI])
    assert kinds([FunctionMessage("ok", name="look_up")]) == ["orphan_result"]


def test_calls_and_results_in_blocks_alone() -> None:
    """Calls and results that are in content blocks alone are read from there, once, whichever vendor's form the blocks have."""
    calls: list[dict[str, object]] = [
        {"type": "tool_use", "id": "a", "name": "f", "input": {"n": 1}},
        {"type": "function_call", "call_id": "b", "id": "fc_1", "name": "g", "arguments": '{"n": 2}'},
        {"type": "tool_call", "id": "c", "name": "h", "args": {}},
        {"type": "tool_use", "id": "d", "name": "i", "input": {}, "partial_json": '{"n":'},
    ]
    texts = [{"type": "text", "text": "well"}]
    mark = {"type": "ephemeral"}
    results: list[dict[str, object]] = [
        {"type": "tool_result", "tool_use_id": "a", "content": "1", "cache_control": mark},
        {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "2"}], "is_error": True},
        {"type": "tool_result", "tool_use_id": "c"},
    ]
    history: list[BaseMessage] = [HI, AIMessage(calls), HumanMessage([*results, *texts]), AIMessage("done")]
    assert kinds(history) == ["call_in_content", "unanswered_call", "result_in_content"]
    repaired = repair(history)
    assert [(call.id, call.name, call.args) for call in calls_of(repaired[1])] == [  # type: ignore[arg-type]
        *(("a", "f", {"n": 1}), ("b", "g", {"n": 2}), ("c", "h", {}), ("d", "i", None))
    ]
    answers = [(message.tool_call_id, message.status) for message in repaired if isinstance(message, ToolMessage)]
    assert answers == [("a", "success"), ("b", "error"), ("c", "success"), ("d", "error")]
    assert repaired[2].content == [{"type": "text", "text": "1", "cache_control": mark}]
    assert repaired[-2] == HumanMessage(texts)
    assert same(repair(repaired), repaired)
    wrapped = [HI, ai("a", "b"), ToolMessage([{**results[0], "content": []}, results[1]], tool_call_id="a")]
    marked = {"type": "text", "text": "", "cache_control": mark}
    assert [message.content for message in repair(wrapped)[2:]] == [[marked], [{"type": "text", "text": "2"}]]
    strange = AIMessage([{"type": "tool_use", "id": {"no": "id"}, "name": "f", "input": {}}, {"type": "tool_use", "id": [], "name": "f"}])
    assert len({message.tool_call_id for message in repair([HI, strange]) if isinstance(message, ToolMessage)}) == 2


@pytest.mark.parametrize("kind", ["server_tool_use", "mcp_tool_use", "server_tool_call"])
def test_a_call_that_the_vendor_answered_is_the_vendors_alone(kind: str) -> None:
    """Other packages list it among the calls too: it would be sent twice under one id, or wait for an answer. Other calls stay."""
    content: list[Any] = [{"type": kind, "id": "s1", "name": "web_search", "input": {}}, {"type": "text", "text": "It is warm."}]
    calls = [{"name": name, "args": {}, "id": call_id, "type": "tool_call"} for name, call_id in (("web_search", "s1"), ("look", "c1"))]
    said = AIMessage(content, id="m", tool_calls=calls)
    history = [HI, said, ToolMessage("Found.", tool_call_id="s1"), ToolMessage("Seen.", tool_call_id="c1")]
    assert [problem.kind for problem in validate(history)] == ["call_in_content", "orphan_result"]
    _, mended, result = repair(history)
    assert isinstance(mended, AIMessage) and [call["id"] for call in mended.tool_calls] == ["c1"] and mended.content == content
    assert result is history[-1] and repair(repair(history)) == repair(history)
