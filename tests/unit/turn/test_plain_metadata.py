"""Models without tools of their own: what the package remembers of a message is in it only where something needs it."""

import json
from functools import reduce
from operator import add
from typing import Any

import pytest
from langchain_core.load import dumpd
from langchain_core.load.load import load
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage, message_chunk_to_message

from langchain_autotools import ToolExecutor, new_messages
from langchain_autotools.messages.metadata import KEY
from langchain_autotools.testing import ScriptedChatModel
from tests.contract.wires import WIRES, Wire
from tests.laws.ways import LISTENERS
from tests.support.script import Turn

ASK = HumanMessage("How warm is it?")


def get_temperature(city: str) -> str:
    """The temperature in a city."""
    return f"21 in {city}"


def fragment(arguments: str, id: str = "call_1", index: int = 0) -> dict[str, Any]:
    """A whole call, raw."""
    return {"index": index, "id": id, "function": {"name": "get_temperature", "arguments": arguments}}


END = AIMessageChunk("", response_metadata={"finish_reason": "stop"})
CUT = AIMessageChunk("", response_metadata={"finish_reason": "length"})
PLAIN, SPACED, BROKEN = '{"city":"Rome"}', '{"city": "Rome"}', '{"city":"Ro'
REPLIES: dict[str, tuple[list[Any], Any]] = {
    "text": (["Warm", " it is.", END], None),
    "cut text": (["Warm", " it", CUT], None),
    "call": (["Let me look.", fragment(PLAIN), END], None),
    "spaced call": ([fragment(SPACED), END], [{"id": "call_1", "arguments": SPACED}]),
    "broken call": ([fragment(BROKEN), END], None),
    "cut call": ([fragment(PLAIN), CUT], None),
    "broken before whole": ([fragment(BROKEN), fragment(PLAIN, "call_2", 1), END], [{"id": "call_1"}, {"id": "call_2"}]),
}


@pytest.mark.parametrize(("reply", "kept"), REPLIES.values(), ids=list(REPLIES))
def test_all_ways_give_the_same_message_with_no_more_than_it_needs(reply: list[Any], kept: Any) -> None:
    """`invoke`, the last chunk, and the sum of the chunks, also as data: one message."""
    model = ScriptedChatModel(replies=[reply, reply]).bind_tools([get_temperature])
    invoked, chunks = model.invoke([ASK]), list(model.stream([ASK]))
    assert (invoked.response_metadata.get(KEY) or {}).get("calls") == kept
    assert (KEY in invoked.response_metadata) is (kept is not None)
    total = reduce(add, chunks)
    ways: list[list[BaseMessage]] = [
        [message for chunk in chunks for message in new_messages(chunk)],
        new_messages(total),
        new_messages(AIMessageChunk(**json.loads(json.dumps(total.model_dump(exclude={"type"}))))),
    ]
    for messages in ways:
        assert [message.model_copy(update={"id": None}) for message in messages] == [invoked.model_copy(update={"id": None})]


def test_what_must_not_run_does_not_run_later() -> None:
    """Calls of a caller's own loop are refused with the reason, from the message and from the sum of the chunks."""
    executor = ToolExecutor([get_temperature])
    for reply, why in (("broken call", "cut off"), ("cut call", "length")):
        model = ScriptedChatModel(replies=[REPLIES[reply][0]] * 2).bind_tools([get_temperature])
        for message in (model.invoke([ASK]), message_chunk_to_message(reduce(add, model.stream([ASK])))):
            assert isinstance(message, AIMessage)
            (result,) = executor.execute_all(message)
            answer = result if isinstance(result, ToolMessage) else result.message
            assert answer.status == "error" and why in answer.text


def test_generate_marks_no_text_that_was_cut() -> None:
    """The finish reason says it: nothing of ours is added."""
    model = ScriptedChatModel(replies=[REPLIES["cut text"][0]])
    message = model.generate([[ASK]]).generations[0][0].message  # type: ignore[union-attr]
    assert message.response_metadata == {"finish_reason": "length"}


@pytest.mark.filterwarnings("ignore:The function `load` is in beta")
def test_a_last_chunk_that_was_stored_alone_is_no_message() -> None:
    """It has none of the text: it brings nothing, instead of an empty message."""
    *_, last = ScriptedChatModel(replies=["Warm it is."]).stream([ASK])
    assert [message.text for message in new_messages(last)] == ["Warm it is."]
    assert new_messages(load(dumpd(last), allowed_objects="all")) == []


@pytest.mark.parametrize("listeners", ["nobody", "a tap"])
@pytest.mark.parametrize("finish", ["content_filter", "stop"])
@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire.name.startswith("openai")], ids=lambda wire: wire.name)
def test_an_empty_reply_is_one_message_whole_in_chunks_and_as_their_sum(wire: Wire, finish: str, listeners: str) -> None:
    """Also where a filter emptied it, and the server says so in objects and lists."""
    config: Any = {"callbacks": LISTENERS[listeners]()}
    with wire.serve([Turn("", finish=finish)] * 2) as server:
        model = wire.model(server)
        chunks = list(model.stream([ASK], config))
        (whole,) = new_messages(model.invoke([ASK], config))
    (of_chunks,) = [message for chunk in chunks for message in new_messages(chunk)]
    (of_sum,) = new_messages(reduce(add, chunks))
    assert of_chunks == of_sum and whole.text == of_sum.text == ""
    assert whole.response_metadata["finish_reason"] == of_sum.response_metadata["finish_reason"]


def test_metadata_without_content_leaves_with_the_next_that_has_any() -> None:
    """Lists are joined in their order."""
    pieces = [
        AIMessageChunk("", response_metadata={"seen": [1], "filter": {"hate": False}}),
        AIMessageChunk("", response_metadata={"seen": [2]}),
        AIMessageChunk("Warm"),
        AIMessageChunk(" it is.", response_metadata={"seen": [3]}),
        AIMessageChunk("", response_metadata={"seen": [4]}),
    ]
    model = ScriptedChatModel(replies=[pieces] * 2)
    chunks = list(model.stream([ASK]))
    assert [chunk.text for chunk in chunks] == ["Warm", " it is.", ""]
    for message in (message_chunk_to_message(reduce(add, chunks)), model.invoke([ASK])):
        assert message.response_metadata == {"seen": [1, 2, 3, 4], "filter": {"hate": False}}
