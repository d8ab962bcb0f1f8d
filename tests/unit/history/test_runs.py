"""What a model hands out, stored in any form, is the same history for its next request."""

import functools
import operator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from langchain_autotools.history import expand, repair, to_send, validate
from langchain_autotools.messages.run_messages import new_messages
from langchain_autotools.testing import ScriptedChatModel


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return f"{len(city)} °C"


@tool(return_direct=True)
def tell(city: str) -> str:
    """Tell about a city."""
    return f"{city} is fine."


def send(text: str) -> str:
    """Send a text."""
    return text


def ask(text: str, *calls: tuple[str, str]) -> AIMessage:
    """A reply that calls tools."""
    return AIMessage(text, tool_calls=[{"name": name, "args": {"city": city}, "id": f"call_{city}"} for name, city in calls])


BROKEN = [{"index": 0, "id": "call_x", "function": {"name": "get_temperature", "arguments": '{"city": '}}]
SCRIPTS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "one turn": (["Hello."], {}),
    "two turns": ([ask("Let me look.", ("get_temperature", "Rome"), ("get_temperature", "Oslo")), "4 °C each."], {}),
    "three turns": ([ask("One.", ("get_temperature", "Rome")), ask("", ("get_temperature", "Oslo")), "Both 4 °C."], {}),
    "other separator": ([ask("One.", ("get_temperature", "Rome")), "Two."], {"message_separator": "\n\n---\n"}),
    "no separator": ([ask("One.", ("get_temperature", "Rome")), "Two."], {"message_separator": ""}),
    "text that ends in white space": ([ask("One. ", ("get_temperature", "Rome")), "Two."], {}),
    "direct results": ([ask("See:", ("tell", "Rome"), ("tell", "Oslo"))], {}),
    "empty answer": ([ask("One.", ("get_temperature", "Rome")), ""], {}),
    "broken call": ([["Hm.", *BROKEN], "Sorry."], {}),
    "limit": ([ask("One.", ("get_temperature", "Rome")), "Two."], {"max_turns": 1}),
    "limit without answer": ([ask("One.", ("get_temperature", "Rome"))], {"max_turns": 1, "on_limit": "return"}),
    "content blocks": ([ask("One.", ("get_temperature", "Rome")), "Two."], {"output_version": "v1"}),
}

QUESTION = HumanMessage("How warm is it?")
NEXT = HumanMessage("Thanks.")


def model(replies: list[Any], fields: dict[str, Any]) -> ScriptedChatModel:
    """A model with both tools."""
    return ScriptedChatModel(tools=[get_temperature, tell], replies=[*replies, "You are welcome."], **fields)


def without_ids(messages: list[BaseMessage]) -> list[BaseMessage]:
    """Messages without what differs from run to run."""
    drop = {"generation_id"}
    return [
        message.model_copy(
            update={"id": None, "response_metadata": {key: value for key, value in message.response_metadata.items() if key not in drop}}
        )
        for message in messages
    ]


@pytest.mark.parametrize(("replies", "fields"), SCRIPTS.values(), ids=SCRIPTS.keys())
def test_run_message_and_its_parts_give_the_same_request(replies: list[Any], fields: dict[str, Any]) -> None:
    """Run message, parts, chunks, their sum: each of them makes the next request the same."""
    chat = model(replies, fields)
    run = chat.invoke([QUESTION])
    parts = new_messages(run)
    assert repair(expand([QUESTION, run])) == repair([QUESTION, *parts])
    assert expand([run]) == parts

    streaming = model(replies, fields)
    chunks = list(streaming.stream([QUESTION]))
    total = functools.reduce(operator.add, chunks)
    brought = [message for chunk in chunks for message in new_messages(chunk)]
    assert expand([total]) == brought
    assert repair([QUESTION, *chunks]) == repair([QUESTION, total])

    chat.invoke([QUESTION, run, NEXT])
    streaming.invoke([QUESTION, total, NEXT])
    assert without_ids(list(chat.requests[-1].messages)) == without_ids(list(streaming.requests[-1].messages))
    assert list(chat.requests[-1].messages) == to_send([QUESTION, *parts, NEXT])


@pytest.mark.parametrize(("replies", "fields"), SCRIPTS.values(), ids=SCRIPTS.keys())
def test_new_messages_need_no_repair(replies: list[Any], fields: dict[str, Any]) -> None:
    """What a run hands out is valid as it is; every prefix of it can be repaired by answering alone."""
    history = [QUESTION, *new_messages(model(replies, fields).invoke([QUESTION]))]
    assert validate(history) == []
    for end in range(1, len(history)):
        prefix = history[:end]
        assert {problem.kind for problem in validate(prefix)} <= {"unanswered_call"}
        assert repair(prefix)[:end] == prefix


def test_later_requests_start_with_earlier_ones() -> None:
    """Over several runs, whichever way each was stored, no message that was sent once changes."""
    chat = ScriptedChatModel(
        tools=[get_temperature],
        replies=lambda messages, **request: (
            "Fine." if isinstance(messages[-1], ToolMessage) else ask("Look.", ("get_temperature", messages[-1].text))
        ),
    )
    history: list[BaseMessage] = []
    for number, city in enumerate(["Rome", "Oslo", "Paris", "Rome"]):
        history.append(HumanMessage(city))
        run = chat.invoke(history)
        history += [run] if number % 2 else new_messages(run)
    for earlier, later in zip(chat.requests, chat.requests[1:], strict=False):
        assert later.messages[: len(earlier.messages)] == earlier.messages


def test_cut_stream_goes_on_where_it_was_cut() -> None:
    """The sum of what was heard until the caller stopped listening is a history: complete messages, then the words after them."""
    chat = model([ask("Look.", ("get_temperature", "Rome")), "Rome has 4 °C."], {})
    heard: Any = None
    for chunk in chat.stream([QUESTION]):
        heard = chunk if heard is None else heard + chunk
        if heard.text.endswith("has "):
            break
    repaired = repair([QUESTION, heard, NEXT])
    assert [(message.type, message.text) for message in repaired] == [
        ("human", QUESTION.text),
        ("ai", "Look."),
        ("tool", "4 °C"),
        ("ai", "Rome has "),
        ("human", NEXT.text),
    ]
    assert validate(repaired) == []


def test_results_of_the_caller_complete_the_run() -> None:
    """Calls left to the caller, answered by him, are answered in the stored run and in the stored parts alike."""
    chat = ScriptedChatModel(
        tools=[get_temperature],
        replies=[
            AIMessage(
                "",
                tool_calls=[
                    {"name": "send", "args": {"text": "hi"}, "id": "s"},
                    {"name": "get_temperature", "args": {"city": "Rome"}, "id": "t"},
                ],
            )
        ],
    )
    run = chat.bind_tools([send]).invoke([QUESTION])
    assert [call["id"] for call in run.tool_calls] == ["s"]
    sent = ToolMessage("sent", tool_call_id="s")
    repaired = repair([QUESTION, run, sent])
    assert repaired == repair([QUESTION, *new_messages(run), sent])
    assert [message.tool_call_id for message in to_send(repaired) if isinstance(message, ToolMessage)] == ["s", "t"]
