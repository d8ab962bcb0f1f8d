"""Equal calls of one turn: two in one list are two; one that comes again in a later chunk may be the same."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage

from langchain_autotools import ChatOpenAI, new_messages
from langchain_autotools.testing import ScriptedChatModel
from langchain_autotools.tool_calls.assembler import ToolCallAssembler
from tests.support.openai_server import OpenAIServer
from tests.support.openai_wire import Asked, chunk_of
from tests.support.script import Events, Turn

ONE, TWO = '{"q":1}', '{"q":2}'
REFUSED = None


def entry(arguments: str, id: str | None = None, index: int | None = None, name: str = "f") -> dict[str, Any]:
    """A whole call as on the wire; what is None is not there."""
    told = {key: value for key, value in (("index", index), ("id", id)) if value is not None}
    return {**told, "function": {"name": name, "arguments": arguments}}


def calls(*lists: Any) -> list[dict[str, Any] | None]:
    """The arguments of the calls that a stream of these lists makes, None of one that must not run."""
    assembler = ToolCallAssembler(["f", "g"])
    for one in lists:
        assembler.feed(one)
    return [call.args for call in assembler.finish()]


SEPARATE: list[tuple[str, list[Any], list[dict[str, Any] | None]]] = [
    ("empty ids, one index", [[entry(ONE, "", 0), entry(ONE, "", 0)]], [{"q": 1}] * 2),
    ("no ids, no index", [[entry(ONE), entry(TWO), entry(ONE)]], [{"q": 1}, {"q": 2}, {"q": 1}]),
    ("own ids, no index", [[entry(ONE, "a"), entry(ONE, "b"), entry(ONE, "c")]], [{"q": 1}] * 3),
    ("own ids, one index", [[entry(ONE, "a", 0), entry(ONE, "b", 0)]], [{"q": 1}] * 2),
    ("other spelling", [[entry('{"a":1,"b":2}'), entry('{ "b": 2, "a": 1 }')]], [{"a": 1, "b": 2}] * 2),
    ("no arguments", [[entry("{}"), entry("{}"), entry("{}")]], [{}] * 3),
    ("no arguments, own ids", [[entry("{}", "a"), entry("{}", "b")]], [{}] * 2),
    ("the list again in a later chunk", [[entry(ONE), entry(ONE)], [entry(ONE), entry(ONE)]], [{"q": 1}] * 2),
]


@pytest.mark.parametrize(("lists", "expected"), [row[1:] for row in SEPARATE], ids=[row[0] for row in SEPARATE])
def test_equal_entries_of_one_list_are_as_many_calls(lists: list[Any], expected: list[Any]) -> None:
    """Each whole entry of a list is a call of its own, without ids or each with its own."""
    assert calls(*lists) == expected


THE_SAME: list[tuple[str, list[Any], list[dict[str, Any] | None]]] = [
    ("no ids, later chunk", [entry(ONE), entry(ONE)], [{"q": 1}]),
    ("own ids, later chunk", [entry(ONE, "a"), entry(ONE, "b")], [{"q": 1}, REFUSED]),
    ("again without its type, chunks put together", [[{**entry(ONE), "type": "function"}, entry(ONE)]], [{"q": 1}]),
    ("one id in a list", [[entry(ONE, "a"), entry(ONE, "a")]], [{"q": 1}]),
    ("one id at several indices (A-22)", [[entry(ONE, "a", 0), entry(ONE, "a", 1)]], [{"q": 1}]),
    ("only one has an id", [[entry(ONE, "a"), entry(ONE)]], [{"q": 1}]),
    ("header and fragment in one list (A-21)", [[entry("", "a", 0), entry(ONE, None, 0)]], [{"q": 1}]),
    ("headers without arguments, filled later", [[entry("{}"), entry("{}")], [entry(ONE), entry(TWO)]], [REFUSED, {"q": 1}, {"q": 2}]),
]


@pytest.mark.parametrize(("lists", "expected"), [row[1:] for row in THE_SAME], ids=[row[0] for row in THE_SAME])
def test_what_may_be_one_call_twice_does_not_run_twice(lists: list[Any], expected: list[Any]) -> None:
    """A repetition in a later chunk, under one id, or of a header is no call of its own."""
    assert calls(*lists) == expected


def test_an_unreadable_call_takes_none_of_other_ids_along() -> None:
    """Calls without an index whose ids differ are read by them, whatever one of them says."""
    broken = [entry('{"q":"Par', "a"), entry(ONE, "b"), entry(TWO, "c")]
    assert calls(broken) == calls(*broken) == [REFUSED, {"q": 1}, {"q": 2}]
    drifting = [entry('{"q":', "a"), entry(ONE, "b"), entry('"x"}}', "c")]
    assert calls(*drifting) == [REFUSED] * 3


def test_equal_calls_of_one_list_both_run_over_http() -> None:
    """Chat completions as compatible servers stream them: both calls run, in order, each with an id of its own."""
    ran: list[int] = []

    def f(q: int) -> str:
        """Note a number."""
        ran.append(q)
        return f"{q}!"

    asked = Asked(0, "any", True, False)
    fragments = [entry(ONE, "", 0), entry(ONE, "", 0)]
    first = Events([chunk_of(asked, {"tool_calls": fragments}), chunk_of(asked, {}, "tool_calls")])
    with OpenAIServer([first, Turn("done")]) as server:
        model = ChatOpenAI(model="any", base_url=server.url, api_key="key", max_retries=0, tools=[f])
        messages = [message for chunk in model.stream("go") for message in new_messages(chunk)]
    ids = [message.tool_call_id for message in messages if isinstance(message, ToolMessage)]
    assert ran == [1, 1] and len(set(ids)) == 2
    assert isinstance(messages[0], AIMessage) and [call["id"] for call in messages[0].tool_calls] == ids


@pytest.mark.parametrize("ids", [("", ""), ("a", "b")])
@pytest.mark.parametrize("args", [{}, {"q": 1}])
def test_equal_calls_of_a_whole_message_both_run(ids: tuple[str, str], args: dict[str, Any]) -> None:
    """A model that answers in whole messages: each of its calls is one."""
    ran: list[int] = []

    def f(q: int = 0) -> str:
        """Note a number."""
        ran.append(q)
        return "noted"

    asking = AIMessage("", tool_calls=[{"name": "f", "args": args, "id": call_id} for call_id in ids])
    for way in ("invoke", "stream"):
        model = ScriptedChatModel(tools=[f], replies=[asking, "done"])
        messages = new_messages(model.invoke("go")) if way == "invoke" else [m for c in model.stream("go") for m in new_messages(c)]
        assert [message.content for message in messages if isinstance(message, ToolMessage)] == ["noted", "noted"]
    assert len(ran) == 4


def test_a_whole_message_after_its_pieces_says_them_again() -> None:
    """A model that streams a call and then hands over the message it makes: one call."""
    piece = AIMessageChunk("", tool_call_chunks=[{"name": "f", "args": ONE, "id": "a", "index": 0, "type": "tool_call_chunk"}])
    whole = AIMessage("", tool_calls=[{"name": "f", "args": {"q": 1}, "id": "a"}])
    ran: list[int] = []

    def f(q: int) -> str:
        """Note a number."""
        ran.append(q)
        return "noted"

    ScriptedChatModel(tools=[f], replies=[[piece, whole], "done"]).invoke("go")
    assert ran == [1]
