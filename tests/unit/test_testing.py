"""`ScriptedChatModel`: every kind of reply, the record of requests, and that it is a model like any other."""

import asyncio
import copy
import pickle
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage

from langchain_autotools import AutoToolsError, final_message, new_messages
from langchain_autotools.testing import Request, ScriptedChatModel, ScriptError


def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return f"{len(city)} °C"


ASK = AIMessage("Let me look.", tool_calls=[{"name": "get_temperature", "args": {"city": "Rome"}, "id": "call_1"}])
FRAGMENTS = [
    {"index": 0, "id": "call_1", "function": {"name": "get_temperature", "arguments": ""}},
    {"index": 0, "function": {"arguments": '{"city":'}},
    {"index": 0, "function": {"arguments": ' "Rome"}'}},
]


def answer_by_history(messages: list[BaseMessage], **request: Any) -> Any:
    """A reply that depends on the request: asks for a tool first, then tells its result."""
    if isinstance(messages[-1], ToolMessage):
        return f"It has {messages[-1].content}."
    city = str(messages[-1].content)
    return AIMessage("", tool_calls=[{"name": "get_temperature", "args": {"city": city}, "id": f"call_{city}"}])


def shape(messages: list[BaseMessage]) -> list[tuple[str, str]]:
    """Types and texts."""
    return [(message.type, message.text) for message in messages]


# ---------------------------------------------------------------------------------------------- kinds of reply


@pytest.mark.parametrize(
    "ask",
    [
        ASK,
        ["Let me look.", *FRAGMENTS],
        ["Let me ", "look.", [FRAGMENTS[0], *FRAGMENTS[1:]]],
        [AIMessageChunk("Let me look.", additional_kwargs={"tool_calls": FRAGMENTS})],
        [AIMessageChunk("Let me look."), {"index": 0, "id": "call_1", "name": "get_temperature", "args": {"city": "Rome"}}],
        lambda messages, **request: ASK,
        lambda messages, **request: iter(["Let me look.", *FRAGMENTS]),
    ],
    ids=["message", "fragments", "fragments in one chunk", "chunk", "flat object", "function", "function of pieces"],
)
def test_every_way_to_write_a_call_runs_the_tool(ask: Any) -> None:
    """A message, raw fragments of any style, chunks and functions all make the model call its tool."""
    model = ScriptedChatModel(tools=[get_temperature], replies=[ask, "Rome has 4 °C."])
    run = model.invoke("How warm is Rome?")
    assert run.text == "Let me look.\nRome has 4 °C."
    assert shape(new_messages(run)) == [("ai", "Let me look."), ("tool", "4 °C"), ("ai", "Rome has 4 °C.")]
    assert new_messages(run)[0].tool_calls[0]["args"] == {"city": "Rome"}  # type: ignore[attr-defined]


def test_text_streams_word_by_word() -> None:
    """A text reply streams as several chunks that sum to the very text."""
    text = " Rome has\n4 °C.  "
    pieces = [chunk.text for chunk in ScriptedChatModel(replies=[text]).stream("hi") if chunk.text]
    assert len(pieces) == 4
    assert "".join(pieces) == text


def test_empty_text_is_a_reply() -> None:
    """A model may say nothing."""
    assert ScriptedChatModel(replies=[""]).invoke("hi").text == ""


def test_message_brings_its_usage_and_metadata() -> None:
    """What a scripted message says of tokens, reasoning and finish reason is what the caller sees."""
    usage = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    reply = AIMessage(
        "Hm",
        id="0123456789ab",
        usage_metadata=usage,
        response_metadata={"finish_reason": "stop"},
        additional_kwargs={"reasoning_content": "?"},
    )
    message = ScriptedChatModel(replies=[reply]).invoke("hi")
    assert (message.text, message.id, message.usage_metadata) == ("Hm", "0123456789ab", usage)
    assert message.response_metadata["finish_reason"] == "stop"
    assert message.additional_kwargs == {"reasoning_content": "?"}


def test_cut_arguments_are_not_executed() -> None:
    """A turn that a length limit ended calls nothing, as with a vendor."""
    cut = [FRAGMENTS[0], FRAGMENTS[1], AIMessageChunk("", response_metadata={"finish_reason": "length"})]
    run = ScriptedChatModel(tools=[get_temperature], replies=[cut, "Sorry."]).invoke("How warm is Rome?")
    assert [message.status for message in new_messages(run) if isinstance(message, ToolMessage)] == ["error"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("error", [ConnectionError("down"), ConnectionError])
def test_errors_are_raised(error: Any) -> None:
    """An exception as reply fails the request; the next request takes the next reply."""
    model = ScriptedChatModel(replies=[error, "back"])
    with pytest.raises(ConnectionError):
        model.invoke("hi")
    assert model.invoke("hi").text == "back"


def test_error_in_mid_stream_comes_after_the_text_before_it() -> None:
    """An exception among the pieces breaks the reply at that point."""
    model = ScriptedChatModel(tools=[get_temperature], replies=[ASK, ["Rome ", ConnectionError("down"), "never"]])
    texts = []
    with pytest.raises(ConnectionError, match="down"):
        for chunk in model.stream("How warm is Rome?"):
            texts.append(chunk.text)
    assert "".join(texts) == "Let me look.\nRome "


# ---------------------------------------------------------------------------------------------- the record


def test_every_request_is_recorded() -> None:
    """A request has the messages as a vendor gets them, the declared tools, tool choice, stop and other keywords."""
    model = ScriptedChatModel(tools=[get_temperature], replies=[ASK, "4 °C"])
    model.invoke([HumanMessage("How warm is Rome?")], stop=["END"], temperature=0.5)
    first, second = model.requests
    assert first == Request(
        messages=(HumanMessage("How warm is Rome?"),), tools=first.tools, tool_choice=None, stop=("END",), kwargs={"temperature": 0.5}
    )
    assert first.tool_names == ["get_temperature"]
    assert shape(list(second.messages)) == [("human", "How warm is Rome?"), ("ai", "Let me look."), ("tool", "4 °C")]
    assert second.tools == first.tools


def test_bound_tools_and_choice_are_recorded() -> None:
    """`bind_tools` declares: the request tells of it, and the call comes back."""
    model = ScriptedChatModel(replies=[ASK])
    message = model.bind_tools([get_temperature], tool_choice="any").invoke("How warm is Rome?")
    assert message.tool_calls[0]["id"] == "call_1"
    assert (model.requests[0].tool_names, model.requests[0].tool_choice) == (["get_temperature"], "any")


def test_requests_cannot_be_changed() -> None:
    """The record is a copy of frozen entries."""
    model = ScriptedChatModel(replies=["a", "b"])
    model.invoke("hi")
    model.requests.clear()
    assert len(model.requests) == 1
    with pytest.raises(AttributeError):
        model.requests[0].stop = ()  # type: ignore[misc]


def test_failed_requests_are_recorded_too() -> None:
    """Also what failed was asked."""
    model = ScriptedChatModel(replies=[ConnectionError("down")])
    with pytest.raises(ConnectionError):
        model.invoke("hi")
    assert len(model.requests) == 1


def test_shallow_copies_share_script_and_record() -> None:
    """A copy with other settings goes on in the script; a deep copy has its own."""
    model = ScriptedChatModel(replies=["a", "b", "c"])
    model.invoke("hi")
    assert model.model_copy(update={"max_turns": 1}).invoke("hi").text == "b"
    deep = copy.deepcopy(model)
    assert deep.invoke("hi").text == "c"
    assert (len(model.requests), len(deep.requests)) == (2, 3)


def test_pickles_with_its_place_in_the_script() -> None:
    """A pickled model goes on where it was, with a record of its own."""
    model = ScriptedChatModel(replies=["a", ASK])
    model.invoke("hi")
    loaded = pickle.loads(pickle.dumps(model))
    assert loaded.invoke("hi").text == "Let me look."
    assert (len(model.requests), len(loaded.requests)) == (1, 2)


# ---------------------------------------------------------------------------------------------- mistakes


def test_end_of_script_is_a_clear_error() -> None:
    """A request that the script does not foresee fails the test, and says which one it was."""
    model = ScriptedChatModel(tools=[get_temperature], replies=[ASK])
    with pytest.raises(ScriptError, match=r"the script has 1 replies, but there was request 2, which ends in ToolMessage '4 °C'"):
        model.invoke("How warm is Rome?")
    assert issubclass(ScriptError, AssertionError) and issubclass(ScriptError, AutoToolsError)


@pytest.mark.parametrize("replies", ["text", 5, [5], [{"index": 0}], [None], [b"x"]])
def test_bad_replies_are_refused_at_once(replies: Any) -> None:
    """What can be no reply is refused by the constructor."""
    with pytest.raises(ValueError, match=r"replies must be a list|reply 1 is of type"):
        ScriptedChatModel(replies=replies)


@pytest.mark.parametrize("reply", [5, {"index": 0}, [5], [[5]]])
def test_bad_reply_of_a_function_is_a_clear_error(reply: Any) -> None:
    """A function that returns something else fails with what was wrong."""
    with pytest.raises(ScriptError, match="of type"):
        ScriptedChatModel(replies=lambda messages, **request: reply).invoke("hi")


# ---------------------------------------------------------------------------------------------- many at once

CITIES = ["Rome", "Paris", "Athens", "Tallinn", "Amsterdam"] * 4
ANSWERS = [f"It has {len(city)} °C." for city in CITIES]


def test_one_function_serves_many_threads() -> None:
    """Runs in threads share one model without mixing."""
    model = ScriptedChatModel(tools=[get_temperature], replies=answer_by_history)
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(model.invoke, CITIES))
    assert [final_message(run).text for run in runs] == ANSWERS
    assert len(model.requests) == 2 * len(CITIES)


async def test_one_function_serves_many_tasks() -> None:
    """So do runs in tasks, natively asynchronous."""
    model = ScriptedChatModel(tools=[get_temperature], replies=answer_by_history)
    runs = await asyncio.gather(*(model.ainvoke(city) for city in CITIES))
    assert [final_message(run).text for run in runs] == ANSWERS


async def test_asynchronous_streams_take_turns() -> None:
    """Two streams read at the same time interleave chunk by chunk."""
    model = ScriptedChatModel(replies=["a a a a", "b b b b"])
    heard: list[str] = []

    async def listen() -> None:
        async for chunk in model.astream("hi"):
            heard.append(chunk.text.strip())

    await asyncio.gather(listen(), listen())
    heard = [text for text in heard if text]
    assert sorted(heard) == ["a"] * 4 + ["b"] * 4
    assert heard != sorted(heard)


def test_each_request_takes_one_reply_in_threads() -> None:
    """No reply is played twice, whoever asks."""
    model = ScriptedChatModel(replies=[str(number) for number in range(40)])
    with ThreadPoolExecutor(8) as pool:
        texts = [message.text for message in pool.map(model.invoke, ["hi"] * 40)]
    assert sorted(texts, key=int) == [str(number) for number in range(40)]


def test_function_may_wait_between_pieces() -> None:
    """A reply written as a generator runs as its chunks are read, and is closed with the stream."""
    steps: list[str] = []

    def reply(messages: list[BaseMessage], **request: Any) -> Iterator[str]:
        try:
            for word in ("one ", "two ", "three "):
                steps.append(word)
                yield word
        finally:
            steps.append("closed")

    stream = ScriptedChatModel(replies=reply).stream("hi")
    next(stream)
    assert steps == ["one "]
    stream.close()  # type: ignore[attr-defined]
    assert steps == ["one ", "closed"]


# ---------------------------------------------------------------------------------------------- its page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "testing.md"
NAMES: dict[str, Any] = {"__name__": "page"}
for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
    exec(compile(block, str(PAGE), "exec"), NAMES)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("test_")])
def test_the_tests_of_the_page_pass(name: str) -> None:
    """Every test that docs/testing.md shows is a passing test."""
    NAMES[name]()


def test_a_turn_does_not_write_out_the_whole_script() -> None:
    """Replies are described once, for caches and traces, and again only where the script has changed."""
    described = []

    class Counted(AIMessage):
        def __repr__(self) -> str:
            described.append(self.content)
            return super().__repr__()

    model = ScriptedChatModel(replies=[Counted(str(number)) for number in range(5)])
    said = [model.invoke("Hi").content for _ in range(4)]
    assert said == ["0", "1", "2", "3"]
    assert described == ["0", "1", "2", "3", "4"]
    model.replies[4] = Counted("new")
    assert model.invoke("Hi").content == "new"
    assert described[5:] == ["0", "1", "2", "3", "new"]


def test_a_reply_may_be_the_text_of_a_message() -> None:
    """LangChain's `message.text` is a text that can be called as well: it is what the model says."""
    model = ScriptedChatModel(replies=lambda messages, **_: messages[-1].text)
    assert model.invoke("Hello").text == "Hello"
