"""`stop_reason`, `max_turns_reached` and `results_of`: how a run ended and what its tools gave, read from its message."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage

from langchain_autotools import new_messages, results_of, stop_reason
from langchain_autotools.messages import max_turns_reached
from langchain_autotools.testing import ScriptedChatModel
from tests.support.calls import call

CALLS = AIMessage("", tool_calls=[call("add", "1", one=1, other=2)])


def add(one: int, other: int) -> int:
    """Add."""
    return one + other


def test_a_run_says_why_it_ended() -> None:
    """What is in its metadata, of the message and of the last chunk; other chunks say nothing."""
    model = ScriptedChatModel(replies=lambda messages, **_: CALLS, tools=[add], max_turns=1, on_limit="return")
    run = model.invoke("?")
    assert (stop_reason(run), max_turns_reached(run)) == ("max_turns", True)
    assert [stop_reason(chunk) for chunk in model.stream("?")][-1] == "max_turns"
    assert {stop_reason(chunk) for chunk in model.stream("?")} == {None, "max_turns"}


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (AIMessage("Hi."), "complete"),
        (AIMessage("Hi.", response_metadata={"finish_reason": "stop"}), "complete"),
        (AIMessage("H", response_metadata={"finish_reason": "MAX_TOKENS"}), "length"),
        (AIMessage("H", response_metadata={"finish_reason": "length"}, tool_calls=CALLS.tool_calls), "length"),
        (AIMessage("", response_metadata={"finish_reason": "SAFETY"}), "refused"),
        (AIMessage("", additional_kwargs={"refusal": "No."}), "refused"),
        (AIMessage("H", response_metadata={"finish_reason": "incomplete"}), "incomplete"),
        (AIMessage("", response_metadata={"finish_reason": "pause_turn"}), "incomplete"),
        (AIMessage("", response_metadata={"finish_reason": "tool_calls"}, tool_calls=CALLS.tool_calls), "calls_pending"),
        (AIMessage("", response_metadata={"autotools": {"awaits": [{"id": "1", "answer": "shell_call_output"}]}}), "calls_pending"),
    ],
)
def test_a_reply_of_a_model_without_tools_is_a_run(reply: AIMessage, reason: str) -> None:
    """Its finish reason says how it ended, its calls that they wait; whichever model of LangChain's it comes from."""
    assert (stop_reason(reply), max_turns_reached(reply)) == (reason, False)


def test_models_without_tools_say_it_of_their_streams() -> None:
    """The last chunk and the sum say it."""
    chunks = list(ScriptedChatModel(replies=["Hi there."]).stream("?"))
    assert [stop_reason(chunk) for chunk in chunks][-1] == "complete"
    assert stop_reason(AIMessageChunk("Hi")) is None
    assert stop_reason(AIMessageChunk("H", response_metadata={"stop_reason": "max_tokens"})) == "length"


def test_nobody_can_make_up_a_reason() -> None:
    """What a client writes into the metadata counts only if it is a reason."""
    assert stop_reason(AIMessage("Hi.", response_metadata={"autotools": {"stop_reason": ["approved"]}})) == "complete"


@pytest.mark.parametrize("function", [stop_reason, max_turns_reached])
def test_what_is_no_reply_has_no_end(function: Any) -> None:
    """Another message is refused."""
    with pytest.raises(ValueError, match="not a HumanMessage"):
        function(HumanMessage("?"))


def test_results_are_the_tool_messages_of_a_run() -> None:
    """Of the run message, of each chunk that brings one, of an error; none of a model without tools."""

    def reply(messages: list[Any], **kwargs: Any) -> Any:
        return "3." if messages[-1].type == "tool" else CALLS

    model = ScriptedChatModel(replies=reply, tools=[add])
    (result,) = results_of(model.invoke("?"))
    assert isinstance(result, ToolMessage) and (result.content, result.tool_call_id) == ("3", "1")
    assert [one.content for chunk in model.stream("?") for one in results_of(chunk)] == ["3"]
    assert results_of(ScriptedChatModel(replies=["Hi."]).invoke("?")) == []
    broken = ScriptedChatModel(replies=lambda messages, **_: OSError("gone") if messages[-1].type == "tool" else CALLS, tools=[add])
    with pytest.raises(OSError, match="gone") as caught:
        broken.invoke("?")
    assert [one.content for one in results_of(caught.value)] == ["3"]
    assert [message.type for message in new_messages(caught.value)] == ["ai", "tool"]
