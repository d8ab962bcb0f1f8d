"""Failover inside a run: what is kept of a reply that was cut off, and who goes on with it."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.exceptions import ModelAPIError
from langchain_core.messages import AIMessageChunk, HumanMessage

from langchain_autotools import new_messages, run_usage, stop_reason
from langchain_autotools.event_types import MessageDiscarded, ModelChanged, ReasoningDelta, RunEnded, TextDelta, TurnUsage
from langchain_autotools.history import GO_ON, validate
from langchain_autotools.testing import ScriptedChatModel
from tests.laws.ways import WAYS, run
from tests.support.failing import (
    DOWN,
    ONE,
    STREAMS,
    THREE,
    TWO,
    First,
    Second,
    Third,
    called,
    collected,
    look,
    marks,
    pair,
    thought,
)

# ---------------------------------------------------------------------------------------------- before text


@pytest.mark.parametrize("way", WAYS)
def test_a_failure_before_text_is_not_noticed(way: str) -> None:
    """Another model makes the same turn: the answer is its own, and says which model has taken over."""
    model, other = pair([called(), DOWN], [called(2), "Done."])
    ran = run(way, model, [HumanMessage("Go.")])
    assert ran.error is None and ran.message is not None and ran.message.text == "Done."
    assert [type(one).__name__ for one in ran.new] == ["AIMessage", "ToolMessage", "AIMessage", "ToolMessage", "AIMessage"]
    assert marks(ran.new) == [None, {"from": ONE, "to": TWO, "after_text": False}, None]
    assert len(model.requests) == 2 and len(other.requests) == 2  # the one that took over stays
    assert other.requests[0].messages == model.requests[1].messages
    assert other.requests[0].tool_names == ["look"]


@pytest.mark.parametrize("space", ["", " ", "\n\n"])
def test_reasoning_and_white_space_are_no_text(space: str) -> None:
    """Nothing is stored of a reply of which only these had come, and nobody is asked to go on with it."""
    model, other = pair([[thought("Hm."), space, DOWN]], ["Done."])
    told, message = collected(model.stream("Go."))
    (request,) = other.requests
    assert GO_ON not in request.messages
    assert [one.text for one in new_messages(message)] == ["Done."]
    kinds = [type(one) for one in told if isinstance(one, ReasoningDelta | MessageDiscarded | ModelChanged | TextDelta)]
    assert kinds == [ReasoningDelta, MessageDiscarded, ModelChanged, TextDelta]
    discarded = next(one for one in told if isinstance(one, MessageDiscarded))
    assert discarded.message_id == next(one.message_id for one in told if isinstance(one, ReasoningDelta))
    assert discarded.message_id != next(one.message_id for one in told if isinstance(one, TextDelta))


@pytest.mark.parametrize("way", STREAMS)
def test_blocks_of_two_replies_never_merge(way: str) -> None:
    """The blocks of the reply that follows reasoning are numbered anew, though both models number theirs from zero."""
    thinking = AIMessageChunk([{"type": "thinking", "thinking": "Hm.", "index": 0}])
    text = AIMessageChunk([{"type": "text", "text": "Done.", "index": 0}])
    model, _ = pair([[thinking, DOWN]], [[text]])
    ran = run(way, model, [HumanMessage("Go.")])
    assert ran.message is not None
    assert [block["type"] for block in ran.message.content if isinstance(block, dict)] == ["thinking", "text"]
    assert ran.message.text == "Done."


def test_the_run_message_of_events_is_the_sum_of_the_stream() -> None:
    """Also where reasoning was cut off in the middle, and where text was."""
    thinking = AIMessageChunk([{"type": "thinking", "thinking": "Hm.", "index": 0}])
    begun = AIMessageChunk([{"type": "text", "text": "Let me ", "index": 1}])
    rest = AIMessageChunk([{"type": "text", "text": "see.", "index": 0}])
    for pieces in ([thinking, DOWN], [thinking, begun, DOWN]):
        model, _ = pair([called(), pieces], [[rest]])
        ran = run("stream", model, [HumanMessage("Go.")])
        _, message = collected(pair([called(), pieces], [[rest]])[0].stream("Go."))
        assert ran.message is not None
        assert without_numbers(message.content) == without_numbers(ran.message.content)


def without_numbers(content: Any) -> Any:
    """Content without the numbers of its blocks."""
    blocks = [block for block in content if block]
    return [{key: value for key, value in block.items() if key != "index"} if isinstance(block, dict) else block for block in blocks]


# ---------------------------------------------------------------------------------------------- after text


@pytest.mark.parametrize("way", STREAMS)
def test_after_text_another_model_goes_on(way: str) -> None:
    """The text that has left is a message, its call does not run, and the next model is asked to go on; nothing of that is stored."""
    fragment = {"index": 0, "id": "call_9", "name": "look", "args": '{"city": "No'}
    model, other = pair(
        [["Let me ", fragment, DOWN]], [["look.", [{"index": 0, "id": "1", "name": "look", "args": '{"city": "Oslo"}'}]], "Done."]
    )
    ran = run(way, model, [HumanMessage("Go.")])
    assert ran.message is not None and ran.message.text == "Let me look.\nDone."
    assert [one.text for one in ran.new] == ["Let me ", "look.", "Oslo: 21", "Done."]
    assert marks(ran.new) == [{"from": ONE, "to": TWO, "after_text": True}, None, None]
    assert validate(ran.new) == []
    first, second = other.requests
    assert [*first.messages[-2:]] == [ran.new[0], GO_ON]
    assert second.messages[: len(first.messages)] == first.messages
    assert stop_reason(ran.message) == "complete" and ran.message.response_metadata["autotools"]["turns"] == 2


def test_the_question_to_go_on_is_derived_from_a_stored_history() -> None:
    """For every model, whether the run message or its parts were stored; where the user has said something since, nothing is asked."""
    model, _ = pair([["Let me ", DOWN]], ["see."])
    ran = run("stream", model, [HumanMessage("Go.", id="q")])
    assert ran.message is not None
    sent = []
    for history in ([HumanMessage("Go.", id="q"), *ran.new], [HumanMessage("Go.", id="q"), ran.message]):
        later = ScriptedChatModel(replies=["Yes."])
        later.invoke([*history, HumanMessage("And?", id="r")])
        sent.append([(one.type, one.text) for one in later.requests[0].messages])
    assert sent[0] == sent[1] and [kind for kind, _ in sent[0]] == ["human", "ai", "human", "ai", "human"]
    later = ScriptedChatModel(replies=["Yes."])
    later.invoke([HumanMessage("Go."), ran.new[0], HumanMessage("Never mind.")])
    assert [one.text for one in later.requests[0].messages] == ["Go.", "Let me ", "Never mind."]


def test_a_forced_choice_that_was_not_served_is_asked_again() -> None:
    """Of the cut reply no call ran: the next model is asked for one."""
    model, other = pair([["Let me ", DOWN]], [called(), "Done."])
    list(model.stream("Go.", tool_choice="any"))
    assert [one.tool_choice for one in other.requests] == ["any", None]


def test_both_parts_count_but_for_the_turns() -> None:
    """Tokens of both count; of `max_turns` they are one turn."""
    usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    part = AIMessageChunk("Let me ", usage_metadata=usage)  # type: ignore[arg-type]
    cut = AIMessageChunk("", response_metadata={"finish_reason": "incomplete"})
    whole = AIMessageChunk("see.", usage_metadata=usage)  # type: ignore[arg-type]
    model, _ = pair([[part, cut]], [[whole]], max_turns=1)
    told, message = collected(model.stream("Go."))
    total = run_usage(message)
    assert total is not None and total["total_tokens"] == 14
    assert stop_reason(message) == "complete"
    assert [one.turn for one in told if isinstance(one, TurnUsage)] == [1, 1]
    assert [one.turns for one in told if isinstance(one, RunEnded)] == [1]


@pytest.mark.parametrize("way", STREAMS)
def test_three_pieces_of_one_reply_are_one_turn(way: str) -> None:
    """Whoever of three models had to go on with it."""
    second, third = Second(replies=[["two ", DOWN]]), Third(replies=["three."])
    ran = run(way, First(replies=[["one ", DOWN]], fallbacks=[second, third], tools=[look], max_turns=1), [HumanMessage("Go.")])
    assert ran.message is not None and ran.message.text == "one two three." and stop_reason(ran.message) == "complete"
    assert ran.message.response_metadata["autotools"]["turns"] == 1
    assert [one["to"] if one else None for one in marks(ran.new)] == [TWO, THREE, None]


def test_a_last_answer_at_a_limit_goes_on_too() -> None:
    """The request without tools that `on_limit="answer"` makes is one like any other."""
    model, other = pair([called(), ["It ", DOWN]], ["is 21."], max_turns=1)
    ran = run("stream", model, [HumanMessage("Go.")])
    assert ran.message is not None and ran.message.text == "It is 21." and stop_reason(ran.message) == "max_turns"
    assert other.requests[0].tool_choice == "none"


def test_after_text_the_error_is_raised_where_that_is_set() -> None:
    """`after_text="raise"`; before text it changes nothing."""
    model, other = pair([["Let me ", DOWN]], ["see."], after_text="raise")
    with pytest.raises(ModelAPIError):
        list(model.stream("Go."))
    assert other.requests == []
    model, _ = pair([DOWN], ["see."], after_text="raise")
    assert model.invoke("Go.").text == "see."


def test_each_model_is_asked_once_a_turn() -> None:
    """Where all have failed the last error is raised, with the names of those before; what has completed is in it."""
    second, third = Second(replies=[["more ", DOWN]]), Third(replies=[ModelAPIError("the last")])
    model = First(replies=[called(), ["Text, ", DOWN]], fallbacks=[second, third], tools=[look])
    with pytest.raises(ModelAPIError, match="the last") as caught:
        list(model.stream("Go."))
    assert len(model.requests) == 2 and len(second.requests) == 1 and len(third.requests) == 1
    model = First(replies=[DOWN], fallbacks=[Second(replies=[DOWN]), Third(replies=[ModelAPIError("the last")])])
    with pytest.raises(ModelAPIError, match="the last") as caught:
        model.invoke("Go.")
    assert caught.value.__notes__ == [f"{ONE} failed before: ModelAPIError", f"{TWO} failed before: ModelAPIError"]
