"""Servers, gateways and own models that give several replies one id: every message of a conversation has an id of its own."""

import json
from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_autotools import events, new_messages, repair
from langchain_autotools.encoders import ai_sdk
from langchain_autotools.event_types import MessageDone, TextDelta
from langchain_autotools.testing import ScriptedChatModel
from tests.contract.talk import WAYS, run_in
from tests.contract.wires import WIRES, Wire
from tests.support import anthropic_wire, google_wire, openai_wire, responses_wire
from tests.support.script import Call, Early, Turn

add_messages: Any = pytest.importorskip("langgraph.graph.message").add_messages
ONE_OF_EACH = ("openai-chat", "openai-responses", "anthropic", "google", "ollama")
SAME = "the-same-id-for-every-reply"
QUESTION = HumanMessage("Go", id="question")


def look(place: int) -> str:
    """Look at a place."""
    return f"{place}!"


def asking(text: str, place: int) -> list[AIMessage | dict[str, Any]]:
    """A reply under the id of all others, in pieces."""
    call = {"index": 0, "id": f"call {place}", "function": {"name": "look", "arguments": json.dumps({"place": place})}}
    return [AIMessageChunk(text, id=SAME), AIMessageChunk("", id=SAME, additional_kwargs={"tool_calls": [call]})]


def chat() -> ScriptedChatModel:
    """A model whose three replies have one id."""
    last = [AIMessageChunk("Do", id=SAME), AIMessageChunk("ne.", id=SAME)]
    return ScriptedChatModel(tools=[look], replies=[asking("One.", 1), asking("Two.", 2), last])


def streamed(model: ScriptedChatModel) -> BaseMessage:
    """The sum of the stream's chunks."""
    return reduce(add, model.stream([QUESTION]))  # type: ignore[return-value]


@pytest.mark.parametrize("run_of", [lambda model: model.invoke([QUESTION]), streamed], ids=["invoke", "stream"])
def test_every_message_has_an_id_of_its_own(run_of: Callable[[ScriptedChatModel], BaseMessage]) -> None:
    """The first reply keeps the server's; LangGraph's history, and a repair of it, lose nothing."""
    run = run_of(chat())
    messages = new_messages(run)
    assert [message.text for message in messages] == ["One.", "1!", "Two.", "2!", "Done."]
    assert messages[0].id == SAME and len({message.id for message in messages}) == 5 and all(message.id for message in messages)
    assert run.id == messages[-1].id
    state: list[AnyMessage] = add_messages([QUESTION], messages)
    assert len(state) == 6 and repair(state) == state
    assert [message.id for message in repair([QUESTION, run])] == [message.id for message in state]


def test_later_questions_of_the_conversation_get_new_ids_too() -> None:
    """Also of a whole message, and of a model without tools of its own."""
    history: list[BaseMessage] = [QUESTION, AIMessage("Yes.", id=SAME), HumanMessage("And now?", id="next")]
    whole = ScriptedChatModel(replies=[AIMessage("No.", id=SAME)] * 2)
    for reply in (whole.invoke(history), streamed_reply(whole, history)):
        assert reply.id and reply.id != SAME


def streamed_reply(model: Any, history: list[BaseMessage]) -> BaseMessage:
    """What the model's stream sums to."""
    return reduce(add, model.stream(history))  # type: ignore[return-value]


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire.name in ONE_OF_EACH], ids=lambda wire: wire.name)
def test_every_wire_s_replies_have_ids_of_their_own(wire: Wire) -> None:
    """Two servers that count their replies from the start: the second reply of a conversation does not take the id of the first."""
    history: list[BaseMessage] = [QUESTION]
    for stream in (False, True, False):
        with wire.serve([Turn("Yes.")]) as server:
            model = wire.model(server)
            history += [streamed_reply(model, history) if stream else model.invoke(history), HumanMessage("And now?")]
    assert len({message.id for message in history if isinstance(message, AIMessage)}) == 3


def test_events_name_each_message_by_its_own_id() -> None:
    """From the first piece of its text on."""
    seen = list(events(chat().stream([QUESTION])))
    done = [event.message_id for event in seen if isinstance(event, MessageDone) and isinstance(event.message, AIMessage)]
    written = list(dict.fromkeys(event.message_id for event in seen if isinstance(event, TextDelta)))
    assert len(set(done)) == 3 and written == done


def test_a_page_shows_three_turns() -> None:
    """The AI SDK's stream has a step of each."""
    frames = b"".join(ai_sdk(events(chat().stream([QUESTION])))).decode().split("\n\n")
    assert sum('"start-step"' in frame for frame in frames) == 3


def test_no_reader_misses_a_result() -> None:
    """The results are behind the calls that they answer."""
    results = [message for message in new_messages(chat().invoke([QUESTION])) if isinstance(message, ToolMessage)]
    assert [result.tool_call_id for result in results] == ["call 1", "call 2"]


# ---------------------------------------------------------------------------------------------- ids that may be drawn twice

DRAWN = {
    "openai-chat": (openai_wire, "chatcmpl-412"),
    "openai-responses": (responses_wire, "resp_104729"),
    "anthropic": (anthropic_wire, "msg_12345678901"),
    "google": (google_wire, "A1b2C3"),
}


class Heard(BaseCallbackHandler):
    """The ids of a model's replies, as callbacks learn them: of each piece, and of the whole."""

    def __init__(self) -> None:
        self.pieces: list[str | None] = []
        self.whole: list[str | None] = []

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, **kwargs: Any) -> None:
        """A piece."""
        self.pieces.append(chunk.message.id)

    def on_llm_end(self, response: Any, **kwargs: Any) -> None:
        """The whole reply."""
        self.whole.append(response.generations[0][0].message.id)


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire.name in DRAWN], ids=lambda wire: wire.name)
async def test_an_id_that_may_come_twice_is_none(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """Core's run id is in its place from the first piece on, whichever way and whoever listens; the server's is in the metadata.

    Wire quirk E-18.
    """
    place, drawn = DRAWN[wire.name]
    monkeypatch.setattr(place.Asked, "id", drawn)
    known: list[str | None] = []
    for tools in ([look], []):
        for way in WAYS:
            heard = Heard()
            turns = [Turn("Let me look.", [Call("look", {"place": 1})]), Turn("Here it is.")][0 if tools else 1 :]
            with wire.serve(turns) as server:
                ran = await run_in(way, wire.model(server, tools=tools), [QUESTION], config={"callbacks": [heard]})
            replies = [message for message in ran.new if isinstance(message, AIMessage)]
            assert [message.response_metadata["id"] for message in replies] == [drawn] * len(turns)
            assert heard.whole == [message.id for message in replies] and ran.message.id == heard.whole[-1]
            assert set(heard.pieces) <= {*heard.whole}
            known += [message.id for message in ran.new]
    assert len({*known}) == len(known) and all(known) and drawn not in known
    with wire.serve([Turn("Here it is.", characters=3)]) as server:
        chunks = list(wire.model(server).stream([QUESTION]))
        assert len({chunk.id for chunk in chunks}) == 1 and str(chunks[0].id).startswith("lc_run-")
    with wire.serve([Turn("Let me look.", [Call("look", {"place": 1})]), Turn("Here it is.")]) as server:
        seen = list(events(wire.model(server, tools=[look]).stream([QUESTION])))
    done = [event.message_id for event in seen if isinstance(event, MessageDone) and isinstance(event.message, AIMessage)]
    assert list(dict.fromkeys(event.message_id for event in seen if isinstance(event, TextDelta))) == done and drawn not in done


@pytest.mark.parametrize(
    ("given", "stays"),
    [
        ("chatcmpl-12345678901", False),
        ("chatcmpl-123456789012", True),
        ("chat_completion-412", False),
        ("koboldcpp", False),
        ("0123456789ab", True),
        ("mAitaLmkHPPlz-vtfUqQ4w", True),
        ("abcdefghijklmnop-qr_st", True),
        ("msg_bdrk_01XY45678901234", True),
    ],
)
def test_a_long_id_stays(given: str, stays: bool) -> None:
    """Words are followed by at least 12 characters; 22 in all are always enough, since base64 holds dashes and what looks like words."""
    model = ScriptedChatModel(replies=[AIMessage("Hi.", id=given), [AIMessageChunk(content="Hi.", id=given)]])
    for reply in (model.invoke([QUESTION]), streamed_reply(model, [QUESTION])):
        assert (reply.id == given) is stays
        assert stays or reply.response_metadata["id"] == given


def test_a_reply_that_another_model_goes_on_with_has_an_id_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two servers that draw the same id, of which one breaks off: what it said and what the fallback says are two messages."""
    monkeypatch.setattr(openai_wire.Asked, "id", "chatcmpl-412")
    (wire,) = [wire for wire in WIRES if wire.name == "openai-chat"]
    with wire.serve([Early(Turn("Let me tell you: "), text="tell")]) as first, wire.serve([Turn("it is warm.")]) as second:
        model = wire.model(first, fallbacks=[wire.model(second)])
        messages = [message for chunk in model.stream([QUESTION]) for message in new_messages(chunk)]
    assert len(messages) == 2 and len(add_messages([QUESTION], messages)) == 3
    assert {message.response_metadata["id"] for message in messages} == {"chatcmpl-412"}
