"""A user's own model with nothing but `raw_stream` gets the whole interface, tools that run included."""

import asyncio
import copy
import json
import pickle
import threading
from collections.abc import Iterator
from functools import reduce
from operator import add
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import message_chunk_to_message
from langchain_core.tools import tool

from langchain_autotools import (
    ConfigurationError,
    LimitReachedError,
    ToolCallResult,
    ToolsAndMessagesMixin,
    final_message,
    new_messages,
    run_usage,
)


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return f"{len(city)} °C"


class ChatWords(ToolsAndMessagesMixin):
    """Replies from a list, chosen by how many AI messages the history has."""

    replies: list[Any]

    @property
    def _llm_type(self) -> str:
        return "words"

    def raw_stream(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
        """One reply: words as chunks, then the fragments of calls."""
        turn = sum(isinstance(message, AIMessage) for message in messages)
        text, calls = self.replies[min(turn, len(self.replies) - 1)]
        if kwargs.get("tool_choice") == "none":
            text, calls = "That is all I know.", []
        for word in text.split(" ") if text else []:
            yield AIMessageChunk(content=word + " ", id=f"msg_{turn:012d}")
        for index, (call_id, name, arguments) in enumerate(calls):
            for start in range(0, len(arguments), 5):
                yield AIMessageChunk(
                    content="",
                    tool_call_chunks=[
                        {
                            "name": None if start else name,
                            "args": arguments[start : start + 5],
                            "id": None if start else call_id,
                            "index": index,
                            "type": "tool_call_chunk",
                        }
                    ],
                )
        usage = {"input_tokens": 10 * (turn + 1), "output_tokens": 5, "total_tokens": 10 * (turn + 1) + 5}
        yield AIMessageChunk(content="", id=f"msg_{turn:012d}", usage_metadata=usage, response_metadata={"finish_reason": "stop"})


TWO_CITIES = [
    ("Let me look.", [("a", "get_temperature", '{"city": "Paris"}'), ("b", "get_temperature", '{"city":"Rome"}')]),
    ("Paris 5, Rome 4.", []),
]


def chat(replies: list[Any] = TWO_CITIES, **fields: Any) -> ChatWords:
    """A model with the temperature tool."""
    return ChatWords(replies=replies, **({"tools": [get_temperature]} | fields))


def shape(messages: list[BaseMessage]) -> list[tuple[str, str]]:
    """Types and texts."""
    return [(message.type, message.text) for message in messages]


QUESTION = [HumanMessage("How warm is it in Paris and in Rome?")]
ANSWERED = [("ai", "Let me look. "), ("tool", "5 °C"), ("tool", "4 °C"), ("ai", "Paris 5, Rome 4. ")]


def test_invoke_is_the_whole_conversation() -> None:
    """Text of all turns, no calls left, and every new message in order."""
    run = chat().invoke(QUESTION)
    assert run.text == "Let me look. Paris 5, Rome 4. "
    assert type(run) is AIMessage and run.tool_calls == [] and run.invalid_tool_calls == []
    assert shape(new_messages(run)) == ANSWERED
    assert run.response_metadata["autotools"]["stop_reason"] == "complete"
    assert run.usage_metadata is not None and run.usage_metadata["input_tokens"] == 20
    usage = run_usage(run)
    assert usage is not None and usage["input_tokens"] == 30
    assert final_message(run).text == "Paris 5, Rome 4. "


def test_stream_sums_to_invoke_and_hands_messages_over_as_they_complete() -> None:
    """The sum of the chunks is the run message; each message comes once, in order, as plain message types."""
    chunks = list(chat().stream(QUESTION))
    streamed = message_chunk_to_message(reduce(add, chunks))
    assert streamed == chat().invoke(QUESTION)
    handed = [message for chunk in chunks for message in new_messages(chunk)]
    assert shape(handed) == ANSWERED and [type(message) for message in handed] == [AIMessage, ToolMessage, ToolMessage, AIMessage]
    assert handed == new_messages(streamed)


async def test_async_says_the_same() -> None:
    """`ainvoke` and `astream` give what `invoke` gives."""
    model = chat()
    chunks = [chunk async for chunk in model.astream(QUESTION)]
    assert message_chunk_to_message(reduce(add, chunks)) == await model.ainvoke(QUESTION) == model.invoke(QUESTION)


def test_messages_say_where_they_stand() -> None:
    """Order indices restart with each generation; results name their call's position."""
    messages = new_messages(chat().invoke(QUESTION))
    marks = [message.response_metadata for message in messages]
    assert [mark["message_order_idx"] for mark in marks] == [0, 1, 2, 0]
    assert [mark.get("tool_call_idx") for mark in marks] == [None, 0, 1, None]
    assert marks[0]["generation_id"] == marks[2]["generation_id"] != marks[3]["generation_id"]


def test_run_message_and_parts_are_the_same_input() -> None:
    """A history that stored the run message sends what a history that stored its parts sends."""
    seen: list[list[BaseMessage]] = []

    class Spy(ChatWords):
        def raw_stream(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
            """Note what is sent."""
            seen.append(messages)
            return super().raw_stream(messages, stop, **kwargs)

    model = Spy(replies=TWO_CITIES, tools=[get_temperature])
    run = model.invoke(QUESTION)
    more = HumanMessage("And in Oslo?")
    seen.clear()
    model.invoke([*QUESTION, run, more])
    model.invoke([*QUESTION, *new_messages(run), more])
    assert seen[0] == seen[1]


def test_separator_stands_between_texts_that_do_not_end_in_white_space() -> None:
    """One separator, only where needed; none when switched off."""

    class Tight(ChatWords):
        def raw_stream(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
            """Text without trailing spaces."""
            for chunk in super().raw_stream(messages, stop, **kwargs):
                yield chunk.model_copy(update={"content": str(chunk.content).rstrip()})

    model = Tight(replies=TWO_CITIES, tools=[get_temperature])
    assert model.invoke(QUESTION).text == "Letmelook.\nParis5,Rome4."
    assert model.invoke(QUESTION, message_separator="").text == "Letmelook.Paris5,Rome4."


def test_without_tools_it_is_a_plain_model() -> None:
    """No carrier, no loop; the last chunk and the message bring the message itself."""
    model = chat(tools=[])
    run = model.invoke(QUESTION)
    assert [call["id"] for call in run.tool_calls] == ["a", "b"]
    assert "messages" not in run.response_metadata["autotools"]
    assert new_messages(run) == [run]
    chunks = list(model.stream(QUESTION))
    handed = [message for chunk in chunks for message in new_messages(chunk)]
    assert len(handed) == 1 and handed[0].tool_calls == run.tool_calls and handed[0].text == run.text


def test_bound_tools_are_never_executed() -> None:
    """A call of a declared tool is left to the caller, even when a constructor tool has the same name."""
    run = chat().bind_tools([get_temperature]).invoke(QUESTION)
    assert [call["args"] for call in run.tool_calls] == [{"city": "Paris"}, {"city": "Rome"}]
    assert run.response_metadata["autotools"]["stop_reason"] == "calls_pending"
    assert [message.type for message in new_messages(run)] == ["ai"]


def test_a_limit_ends_in_an_answer_a_return_or_an_error() -> None:
    """`on_limit` decides; the error still brings every message."""
    endless = [TWO_CITIES[0]]
    answered = chat(endless, max_turns=2).invoke(QUESTION)
    assert answered.text.endswith("That is all I know. ") and answered.response_metadata["autotools"]["stop_reason"] == "max_turns"
    returned = chat(endless).invoke(QUESTION, max_turns=2, on_limit="return")
    assert [message.type for message in new_messages(returned)] == ["ai", "tool", "tool"] * 2
    with pytest.raises(LimitReachedError) as caught:
        chat(endless, max_turns=1, on_limit="raise").invoke(QUESTION)
    assert caught.value.stop_reason == "max_turns"
    assert [message.type for message in new_messages(caught.value)] == ["ai", "tool", "tool"]


def test_no_progress_is_noticed() -> None:
    """The same calls with the same results end the run at the third time."""
    run = chat([TWO_CITIES[0]]).invoke(QUESTION)
    assert run.response_metadata["autotools"]["stop_reason"] == "no_progress" and run.response_metadata["autotools"]["turns"] == 4


def test_interrupted_calls_are_answered_and_resume_executes_them() -> None:
    """Calls found in the input are not executed unless the caller says so."""
    calls = [{"name": "get_temperature", "args": {"city": city}, "id": city} for city in ("Paris", "Rome", "Oslo", "Bern")]
    history = [*QUESTION, AIMessage("", tool_calls=calls)]
    model = chat()
    messages = new_messages(model.invoke(history))
    assert [message.type for message in messages] == ["tool"] * 4 + ["ai"]
    assert all(message.status == "error" and "interrupted" in message.text for message in messages[:4])
    decisions = {"Paris": True, "Rome": {"city": "Roma"}, "Oslo": "not today"}
    results = new_messages(model.resume(history, decisions))
    edited = 'The arguments of this call were changed before it ran. It ran with: {"city": "Roma"}\n\n4 °C'
    assert [result.text for result in results] == ["5 °C", edited, '{"error": "not today"}']
    with pytest.raises(ConfigurationError):
        chat(tools=[]).resume(history)


@pytest.mark.parametrize("decisions", [["Paris"], "Paris", 1, {"Paris": 1}, {"Paris": ["city"]}, {"Paris": {1: "Roma", "city": "Roma"}}])
def test_what_decides_nothing_is_refused(decisions: Any) -> None:
    """A decision of another kind is an error before anything runs, not a denial, a crash, or a call of the tool."""
    call = {"name": "get_temperature", "args": {"city": "Paris"}, "id": "Paris"}
    ran: list[Any] = []
    with pytest.raises(ConfigurationError):
        chat(on_executed=ran.append).resume([*QUESTION, AIMessage("", tool_calls=[call])], decisions)
    assert ran == []


def test_a_denial_without_words_is_a_denial() -> None:
    """An empty reason is none; the model is not told that its arguments were at fault."""
    call = {"name": "get_temperature", "args": {"city": "Paris"}, "id": "Paris"}
    result = new_messages(chat().resume([*QUESTION, AIMessage("", tool_calls=[call])], {"Paris": ""}))[0]
    assert json.loads(result.text) == {"error": "This call was denied and did not run."}


def test_an_error_brings_what_had_completed() -> None:
    """Of `stream` it is what no chunk delivered; of `invoke` everything."""

    class Failing(ChatWords):
        def raw_stream(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
            """The second turn fails."""
            if any(isinstance(message, AIMessage) for message in messages):
                raise ConnectionError("gone")
            return super().raw_stream(messages, stop, **kwargs)

    model = Failing(replies=TWO_CITIES, tools=[get_temperature])
    with pytest.raises(ConnectionError) as caught:
        model.invoke(QUESTION)
    assert shape(new_messages(caught.value)) == ANSWERED[:3]
    handed: list[BaseMessage] = []
    with pytest.raises(ConnectionError) as caught:
        for chunk in model.stream(QUESTION):
            handed += new_messages(chunk)
    assert shape(handed + new_messages(caught.value)) == ANSWERED[:3]


def test_copies_and_pickles_work() -> None:
    """A copied, deep-copied or pickled model runs like the first; new tools are seen."""
    model = chat()
    model.invoke(QUESTION)
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), model.model_copy(update={"tools": [get_temperature]})):
        assert twin.invoke(QUESTION) == model.invoke(QUESTION)


@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
def test_events_of_a_run_tell_one_message() -> None:
    """v3 events: the run's text, no calls left, the carrier in place."""
    output = chat().stream_events(QUESTION, version="v3").output
    assert output.text == "Let me look. Paris 5, Rome 4. " and output.tool_calls == []
    assert shape(new_messages(output)) == ANSWERED


@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
async def test_async_events_of_a_run_tell_one_message() -> None:
    """The same, asynchronously."""
    stream = await chat().astream_events(QUESTION, version="v3")
    output = await stream.output
    assert output.text == "Let me look. Paris 5, Rome 4. " and shape(new_messages(output)) == ANSWERED


def test_many_runs_share_one_model() -> None:
    """Concurrent runs do not see each other."""
    model = chat()

    async def all_runs() -> list[AIMessage]:
        return await asyncio.gather(*(model.ainvoke([HumanMessage(f"question {number}")]) for number in range(20)))

    assert {run.text for run in asyncio.run(all_runs())} == {"Let me look. Paris 5, Rome 4. "}


@pytest.mark.parametrize("field", [{"max_turns": 0}, {"on_limit": "stop"}, {"tools": "get_temperature"}, {"tools": [3]}])
def test_bad_settings_are_refused_at_once(field: dict[str, Any]) -> None:
    """A setting that cannot work is an error when the model is made, not in the middle of a run."""
    with pytest.raises(ValueError):
        chat(**field)


def test_an_error_brings_results_that_came_out_of_order() -> None:
    """A call that ended while an earlier one broke the run is answered with what it gave, the earlier one as interrupted."""
    ended = threading.Event()

    def first() -> str:
        """Breaks the run, after the second call has ended."""
        assert ended.wait(30)
        raise KeyboardInterrupt

    def second() -> str:
        """Ends at once."""
        return "done"

    def executed(result: ToolCallResult) -> None:
        if result.call.name == "second":
            ended.set()

    model = chat([("", [("a", "first", "{}"), ("b", "second", "{}")])], tools=[first, second], on_executed=executed)
    with pytest.raises(KeyboardInterrupt) as caught:
        model.invoke(QUESTION)
    kinds = [(message.type, getattr(message, "status", None), message.text) for message in new_messages(caught.value)]
    assert [kind for kind, *_ in kinds] == ["ai", "tool", "tool"]
    assert kinds[1][1] == "error" and "interrupted" in kinds[1][2] and kinds[2][1:] == ("success", "done")


def test_a_fragment_in_the_wires_own_form_counts_once() -> None:
    """Core makes `tool_call_chunks` of a message's wire dicts when it is built; the fragment is still one."""

    class Wire(ChatWords):
        def raw_stream(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
            """A call that is cut off."""
            call = {"index": 0, "id": "a", "function": {"name": "get_temperature", "arguments": '{"city": "Ro'}}
            yield AIMessageChunk("", additional_kwargs={"tool_calls": [call]})

    (call,) = Wire(replies=[]).invoke(QUESTION).invalid_tool_calls
    assert call["args"] == '{"city": "Ro'


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_an_artifact_that_cannot_be_carried_ends_no_run(way: str) -> None:
    """One that holds itself, or is nested without end, is marked in a sum like any other that is no plain data; `invoke` gives it."""
    endless: dict[str, Any] = {}
    endless["again"] = [endless]
    live: list[Any] = []

    @tool(response_format="content_and_artifact")
    def look() -> tuple[str, Any]:
        """Look."""
        return "seen", endless

    model = ChatWords(
        tools=[look],
        replies=[("", [("call_1", "look", "{}")]), ("Done.", [])],
        on_executed=lambda result: live.append(result.message.artifact),
    )
    run = model.invoke("Look.") if way == "invoke" else reduce(add, model.stream("Look."))
    _, result, answer = new_messages(run)
    assert isinstance(result, ToolMessage)
    marked = {"autotools": "artifact not carried", "type": "dict"}
    assert result.content == "seen" and (result.artifact is endless if way == "invoke" else result.artifact == marked)
    assert answer.text == "Done. "
    assert live[0] is endless
