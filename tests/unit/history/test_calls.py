"""`repair`, `validate` and `explain`: calls and results of a history."""

import copy
import json
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    ToolMessageChunk,
)

from langchain_autotools.history import answer_dangling, drop_orphans, explain, merge_runs, order_results, repair, to_send, validate
from langchain_autotools.messages.calls import calls_of
from langchain_autotools.messages.metadata import KEY
from tests.support.histories import HI, ai, kinds, same, tool

VALID = {
    "empty": [],
    "text": [SystemMessage("Be brief."), HI, AIMessage("Hello"), HumanMessage("Bye")],
    "parallel calls": [HI, ai("a", "b"), tool("a"), tool("b"), AIMessage("done")],
    "ids that come back in a later turn": [HI, ai("a"), tool("a"), AIMessage("one"), HI, ai("a"), tool("a"), AIMessage("two")],
    "two turns without text between": [HI, ai("a"), tool("a"), ai("b"), tool("b"), AIMessage("done")],
    "consecutive roles": [HI, HumanMessage("again"), AIMessage("a"), AIMessage("b")],
    "a system message in the middle": [HI, AIMessage("Hello"), SystemMessage("Now rhyme."), HI],
    "other roles": [ChatMessage("note", role="developer"), HI],
    "an error result": [HI, ai("a"), tool("a", '{"error": "no"}', status="error")],
    "an empty human message": [HumanMessage("")],
    "reasoning without text": [HI, AIMessage("", additional_kwargs={"reasoning_content": "hm"}), HI],
    "a signature on an empty text": [HI, AIMessage([{"type": "text", "text": "", "signature": "c2ln"}]), HI],
    "chunks in the place of messages": [HI, AIMessageChunk("Hello", chunk_position="last"), HI],
    "a chunk of a result": [HI, ai("a"), ToolMessageChunk("ok", tool_call_id="a")],
}


@pytest.mark.parametrize("messages", VALID.values(), ids=VALID.keys())
def test_valid_history_is_untouched(messages: list[BaseMessage]) -> None:
    """A valid history comes back with the same objects, in a list of its own, and has no problems."""
    repaired = repair(messages)
    assert same(repaired, messages)
    assert repaired is not messages
    assert validate(messages) == []
    assert explain(messages) == f"Nothing to repair in {len(messages)} messages."


def test_notifications_are_messages() -> None:
    """What a harness adds (a summary, an update of a task) stays: only its marks are not for the model, its text is."""
    marks = {"lc_source": "summarization", "lc_data": {"turns": 3}}  # core's add_notification_metadata, which its first 1.7 lacks
    note = HumanMessage("Summary so far: ...", additional_kwargs=marks)
    assert same(repair([note, HI]), [note, HI])


# ---------------------------------------------------------------------------------------------- unanswered calls


def test_unanswered_call_is_answered_with_an_error() -> None:
    """A call without result gets an error result in its place that names what happened (wire quirk H-01)."""
    asked = ai("a")
    repaired = repair([HI, asked, HumanMessage("Well?")])
    answer = repaired[2]
    assert same([repaired[0], repaired[1]], [HI, asked])
    assert isinstance(answer, ToolMessage)
    assert (answer.tool_call_id, answer.name, answer.status, answer.id) == ("a", "look_up", "error", None)
    assert "interrupted" in json.loads(str(answer.content))["error"]
    assert kinds([HI, asked, HumanMessage("Well?")]) == ["unanswered_call"]


def test_some_calls_of_a_turn_are_answered() -> None:
    """Missing results are filled in between those that are there, in call order."""
    messages = [HI, ai("a", "b", "c"), tool("b")]
    assert [message.tool_call_id for message in repair(messages)[2:]] == ["a", "b", "c"]  # type: ignore[attr-defined]
    assert kinds(messages) == ["unanswered_call", "unanswered_call"]


def test_unparsable_call_needs_a_result_too() -> None:
    """A call that could not be executed is answered with why it did not run."""
    broken = {"type": "invalid_tool_call", "name": "look_up", "args": '{"q": "hel', "id": "a", "error": "cut off at 10 characters"}
    repaired = repair([HI, AIMessage("", invalid_tool_calls=[broken]), HI])
    assert "cut off at 10 characters" in json.loads(str(repaired[2].content))["error"]
    assert validate(repaired) == []


def test_results_of_parsable_and_unparsable_calls_stand_in_the_written_order() -> None:
    """The order of calls is the one the model wrote them in, across calls that can and cannot be executed."""
    record = {"calls": [{"id": "bad", "arguments": "{"}, {"id": "good", "arguments": '{"call":0}'}]}
    broken = {"type": "invalid_tool_call", "name": "look_up", "args": "!{", "id": "bad", "error": "not JSON"}
    asked = ai("good", invalid_tool_calls=[broken], response_metadata={KEY: record})
    right = [HI, asked, tool("bad"), tool("good")]
    assert same(repair(right), right)
    assert [message.tool_call_id for message in to_send([HI, asked, tool("good"), tool("bad")])[2:]] == ["bad", "good"]  # type: ignore[attr-defined]


def test_open_end_is_left_open_on_request() -> None:
    """With `open_end` the calls that the history ends in stay unanswered; earlier ones do not."""
    messages = [HI, ai("a"), HI, ai("b", "c"), tool("c")]
    repaired = repair(messages, open_end=True)
    assert [message.tool_call_id for message in repaired if isinstance(message, ToolMessage)] == ["a", "c"]
    assert same(repair(repaired, open_end=True), repaired)
    assert kinds(repaired, open_end=True) == []
    assert kinds(repaired) == ["unanswered_call"]


# ---------------------------------------------------------------------------------------------- results in the wrong place


def test_orphan_result_is_left_out() -> None:
    """A result that answers no call before it cannot be sent (wire quirk H-01)."""
    assert same(repair([tool("gone"), HI]), [HI])
    assert kinds([HI, tool("gone"), AIMessage("Hello")]) == ["orphan_result"]


def test_result_before_its_call_is_not_its_result() -> None:
    """Ids come back in later turns, so a result in front of a call may be an older one: it is left out, the call is answered."""
    early, asked = tool("a", "old"), ai("a")
    repaired = repair([HI, early, asked])
    assert early not in repaired
    assert "interrupted" in str(repaired[-1].content)
    assert kinds([HI, early, asked]) == ["orphan_result", "unanswered_call"]


def test_results_are_put_in_call_order() -> None:
    """Results behind their message in another order than its calls are valid, as two resumes leave them, and sent in call order (H-02)."""
    asked, first, second, third = ai("a", "b", "c"), tool("a"), tool("b"), tool("c")
    resumed = [HI, asked, second, third, first]
    assert same(repair(resumed), resumed) and kinds(resumed) == []
    assert same(to_send(resumed), [HI, asked, first, second, third]) and same(order_results(resumed), to_send(resumed))
    repaired = repair([HI, asked, third, first])
    assert same(repaired[:4], [HI, asked, third, first]) and kinds([HI, asked, third, first]) == ["unanswered_call"]
    assert [one.tool_call_id for one in to_send(repaired)[2:]] == ["a", "b", "c"]  # type: ignore[attr-defined]


def test_separated_results_move_to_their_call() -> None:
    """What comes between a call and its result comes after the result."""
    asked, first, second, words = ai("a", "b"), tool("a"), tool("b"), HumanMessage("hurry")
    later, answer = ai("c"), tool("c")
    assert same(repair([HI, asked, first, words, second]), [HI, asked, first, second, words])
    assert same(repair([HI, asked, words, later, answer, second, first]), [HI, asked, first, second, words, later, answer])


def test_first_of_several_results_counts() -> None:
    """A second result of one call is left out, so that what was sent before stays as it was."""
    asked, first = ai("a"), tool("a", "first")
    assert same(repair([HI, asked, first, tool("a", "second"), HI]), [HI, asked, first, HI])
    assert kinds([HI, asked, first, tool("a", "second"), HI]) == ["duplicate_result"]


def test_result_answers_the_latest_call_of_its_id() -> None:
    """Where two turns call with one id, a result belongs to the one right before it."""
    early, late, answer = ai("a", text="early"), ai("a", text="late"), tool("a")
    repaired = repair([HI, early, late, answer])
    assert same([repaired[1], repaired[3], repaired[4]], [early, late, answer])
    assert "interrupted" in str(repaired[2].content)


# ---------------------------------------------------------------------------------------------- ids and names of calls


@pytest.mark.parametrize("missing", [None, ""])
def test_calls_without_ids_get_some(missing: str | None) -> None:
    """Calls and results without ids are paired by position and get the same new ids, always the same ones."""
    messages = [HI, ai(missing, missing), tool("", "one"), tool("", "two"), AIMessage("done")]
    repaired = repair(messages)
    asked, first, second = repaired[1:4]
    assert isinstance(asked, AIMessage) and isinstance(first, ToolMessage) and isinstance(second, ToolMessage)
    ids = [call["id"] for call in asked.tool_calls]
    assert all(ids) and len(set(ids)) == 2
    assert [(first.tool_call_id, first.content), (second.tool_call_id, second.content)] == [(ids[0], "one"), (ids[1], "two")]
    assert repaired == repair(copy.deepcopy(messages))
    assert repair([*messages, HI])[:5] == repaired
    assert kinds(messages) == ["call_id", "call_id"]


def test_one_id_for_two_calls_of_a_turn() -> None:
    """The later call gets an id of its own; results are told apart by their tool's name, then by order."""
    calls = [{"name": name, "args": {}, "id": "same"} for name in ("look_up", "compute", "compute")]
    asked = AIMessage("", tool_calls=calls)
    results = [tool("same", "c1", name="compute"), tool("same", "l", name="look_up"), tool("same", "c2", name="compute")]
    repaired = to_send([HI, asked, *results])
    assert [message.content for message in repaired[2:]] == ["l", "c1", "c2"]
    assert len({message.tool_call_id for message in repaired[2:]}) == 3  # type: ignore[attr-defined]
    assert calls_of(repaired[1])[0].id == "same"  # type: ignore[arg-type]


def test_new_id_holds_wherever_the_message_tells_of_the_call() -> None:
    """Content blocks and the recorded arguments follow their call; a raw copy of the calls beside them is dropped."""
    asked = AIMessage(
        [
            {"type": "text", "text": "Looking."},
            {"type": "tool_use", "id": "same", "name": "look_up", "input": {"call": 0}},
            {"type": "function_call", "id": "item", "call_id": "same", "name": "look_up", "arguments": "{}"},
        ],
        tool_calls=[{"name": "look_up", "args": {"call": number}, "id": "same"} for number in range(2)],
        additional_kwargs={"tool_calls": [{"id": "same"}], "reasoning_content": "hm"},
        response_metadata={KEY: {"calls": [{"id": "same", "arguments": '{"call": 0}'}, {"id": "same", "arguments": '{"call": 1}'}]}},
    )
    before = asked.model_copy(deep=True)
    message = repair([HI, asked])[1]
    assert isinstance(message, AIMessage)
    first, second = (call["id"] for call in message.tool_calls)
    assert first == "same" != second
    assert [block.get("call_id", block.get("id")) for block in message.content[1:]] == [first, second]  # type: ignore[union-attr]
    assert message.content[2]["id"] == "item"  # type: ignore[index, call-overload]
    assert [call.arguments for call in calls_of(message)] == ['{"call": 0}', '{"call": 1}']
    assert message.additional_kwargs == {"reasoning_content": "hm"}
    assert asked == before


def test_nameless_call_gets_a_name() -> None:
    """No vendor takes a call without a name."""
    messages = [HI, ai("a", name=""), tool("a")]
    repaired = repair(messages)
    assert repaired[1].tool_calls[0]["name"] == "unnamed_tool"  # type: ignore[attr-defined]
    assert repaired[2] is messages[2]
    assert kinds(messages) == ["call_name"]


def test_chunk_with_bad_ids_becomes_a_message() -> None:
    """A chunk keeps its calls twice; when one must change, the chunk becomes a plain message."""
    chunk = AIMessageChunk("", tool_calls=[{"name": "look_up", "args": {}, "id": None}], chunk_position="last")
    message = repair([HI, chunk, tool("")])[1]
    assert type(message) is AIMessage
    assert validate([HI, message, tool(message.tool_calls[0]["id"] or "")]) == []


# ---------------------------------------------------------------------------------------------- telling


def test_explain_names_message_and_remedy() -> None:
    """Each problem is one line: which message, what is wrong, what becomes of it."""
    text = explain([HI, ai("a"), tool("b")])
    assert text.splitlines() == [
        "2 to repair in 3 messages:",
        "message 1 (AIMessage): call 'a' of 'look_up' has no result; it is answered with an error",
        "message 2 (ToolMessage): a result for call 'b', which nothing before it made; it is left out",
    ]


# ---------------------------------------------------------------------------------------------- the passes alone


def test_passes_do_one_thing_each() -> None:
    """Each pass mends its own kind of problem and leaves the others alone."""
    asked, first, second, orphan = ai("a", "b"), tool("a"), tool("b"), tool("x")
    assert same(drop_orphans([orphan, asked, second, first]), [asked, second, first])
    assert same(order_results([orphan, asked, second, first]), [orphan, asked, first, second])
    assert [message.tool_call_id for message in answer_dangling([orphan, asked, second])[2:]] == ["a", "b"]  # type: ignore[attr-defined]
    assert same(answer_dangling([asked, second], open_end=True), [asked, second])
    assert [type(message) for message in answer_dangling([asked, HI, second])] == [AIMessage, ToolMessage, HumanMessage, ToolMessage]


def test_merge_runs_joins_neighbours_of_one_role() -> None:
    """Human, system and AI messages are joined with their kind; messages alone stay the same objects."""
    alone = SystemMessage("alone")
    humans = [HumanMessage("a", id="1"), HumanMessage("b", id="2")]
    merged = merge_runs([*humans, AIMessage("c"), ai("x", text="d"), tool("x"), tool("y"), alone])
    assert [message.content for message in merged] == ["a\n\nb", "c\n\nd", "ok", "ok", "alone"]
    assert merged[0].id == "1"
    assert merged[1].tool_calls[0]["id"] == "x"  # type: ignore[attr-defined]
    assert merged[4] is alone
    assert same(merge_runs(merged), merged)


def test_merge_runs_joins_blocks() -> None:
    """Content blocks follow each other; an empty text adds none; results must follow their call, so it ends a run."""
    image = {"type": "image", "url": "https://example.org/a.png"}
    merged = merge_runs([HumanMessage("look", name="ann"), HumanMessage([image], name="bob"), HumanMessage("")])
    assert merged == [HumanMessage([{"type": "text", "text": "look"}, image])]
    assert len(merge_runs([ai("x"), AIMessage("a"), ChatMessage("b", role="critic"), ChatMessage("c", role="critic")])) == 4


@pytest.mark.parametrize("content", [["a", {"type": "text", "text": "b"}], [{"type": "text", "text": "a"}, "b"]])
def test_a_result_in_a_block_keeps_its_cache_mark_on_its_last_part(content: list[Any]) -> None:
    """What is before it is cached with it."""
    mark = {"type": "ephemeral"}
    asking = AIMessage([{"type": "tool_use", "id": "a", "name": "f", "input": {}}])
    block = {"type": "tool_result", "tool_use_id": "a", "content": content, "cache_control": mark}
    result = repair([HI, asking, HumanMessage([block])])[-1]
    assert isinstance(result, ToolMessage)
    assert result.content == [content[0], {"type": "text", "text": "b", "cache_control": mark}]


def test_a_result_without_content_keeps_its_cache_mark_too() -> None:
    """The mark is what the block says."""
    mark = {"type": "ephemeral", "ttl": "1h"}
    asking = AIMessage([{"type": "tool_use", "id": "a", "name": "f", "input": {}}])
    result = repair([HI, asking, HumanMessage([{"type": "tool_result", "tool_use_id": "a", "cache_control": mark}])])[-1]
    assert result.content == [{"type": "text", "text": "", "cache_control": mark}]


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_result_for_a_call_in_content_alone_becomes_a_users_block(wrapped: bool) -> None:
    """It says as what it is sent, and its call is there, in any vendor's form; else it answers nothing."""
    call = {"type": "robot_call", "call_id": "r", "action": "wave"}
    asking = AIMessage([{"type": "non_standard", "value": call} if wrapped else call])
    said, silent = (ToolMessage("waved", tool_call_id="r", additional_kwargs=extra) for extra in ({"type": "robot_output"}, {}))
    block = {"type": "robot_output", "call_id": "r", "output": "waved", "is_error": False}
    assert repair([HI, asking, said]) == [HI, asking, HumanMessage([block])]
    assert [problem.kind for problem in validate([HI, asking, said])] == ["vendor_result"]
    for history in ([HI, asking, silent], [HI, AIMessage("hm"), said]):
        assert [problem.kind for problem in validate(history)] == ["orphan_result"]


def test_a_call_without_an_id_is_given_one_beside_one_that_has_one() -> None:
    """Also where the calls that a history ends in may stay unanswered."""
    calls = [{"name": "f", "args": {}, "id": None}, {"name": "g", "args": {}, "id": "b"}]
    repaired = repair([HI, AIMessage("", tool_calls=calls)], open_end=True)
    first, second = repaired[1].tool_calls  # type: ignore[attr-defined]
    assert first["id"] and second["id"] == "b"
