"""Equal calls of one turn: whole ones with the same header are as many calls; one that comes again with less of it is the same."""

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage

from langchain_autotools import ChatOpenAI, new_messages
from langchain_autotools.testing import ScriptedChatModel
from langchain_autotools.tool_calls import ToolCallAssembler
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
    ("the list again in a later chunk", [[entry(ONE), entry(ONE)], [entry(ONE), entry(ONE)]], [{"q": 1}] * 4),
    ("no ids, later chunk", [entry(ONE), entry(ONE)], [{"q": 1}] * 2),
    ("no ids, three chunks", [entry(ONE), entry(ONE), entry(ONE)], [{"q": 1}] * 3),
    ("empty ids, one index, four chunks", [entry(text, "", 0) for text in (ONE, TWO, ONE, TWO)], [{"q": 1}, {"q": 2}] * 2),
    ("no arguments, three chunks", [entry("{}"), entry("{}"), entry("{}")], [{}] * 3),
]


@pytest.mark.parametrize(("lists", "expected"), [row[1:] for row in SEPARATE], ids=[row[0] for row in SEPARATE])
def test_equal_entries_are_as_many_calls(lists: list[Any], expected: list[Any]) -> None:
    """Each whole entry is a call of its own: of a list without ids or each with its own; without ids also of as many lists."""
    assert calls(*lists) == expected


THE_SAME: list[tuple[str, list[Any], list[dict[str, Any] | None]]] = [
    ("again without its type, later chunk", [{**entry(ONE), "type": "function"}, entry(ONE)], [{"q": 1}]),
    ("all again without index", [entry(ONE, "", 0), entry(TWO, "", 1), entry(ONE, ""), entry(TWO, "")], [{"q": 1}, {"q": 2}]),
    ("two, and both again without index", [entry(ONE, "", 0), entry(ONE, "", 0), entry(ONE), entry(ONE)], [{"q": 1}] * 2),
    (
        "one of two again without its type",
        [{**entry(ONE), "type": "x"}, {**entry(TWO), "type": "x"}, entry(ONE)],
        [{"q": 1}, {"q": 2}, REFUSED],
    ),
    ("again with more of a header", [entry(ONE), entry(ONE, "", 0)], [{"q": 1}, REFUSED]),
    ("own ids, later chunk", [entry(ONE, "a"), entry(ONE, "b")], [{"q": 1}, REFUSED]),
    ("again without its type, chunks put together", [[{**entry(ONE), "type": "function"}, entry(ONE)]], [{"q": 1}]),
    ("one id in a list", [[entry(ONE, "a"), entry(ONE, "a")]], [{"q": 1}]),
    ("one id at several indices (A-22)", [[entry(ONE, "a", 0), entry(ONE, "a", 1)]], [{"q": 1}]),
    ("only one has an id", [[entry(ONE, "a"), entry(ONE)]], [{"q": 1}]),
    ("header and fragment in one list (A-21)", [[entry("", "a", 0), entry(ONE, None, 0)]], [{"q": 1}]),
    (
        "headers without arguments, filled later",
        [[entry("{}"), entry("{}")], [entry(ONE), entry(TWO)]],
        [REFUSED, REFUSED, {"q": 1}, {"q": 2}],
    ),
]


@pytest.mark.parametrize(("lists", "expected"), [row[1:] for row in THE_SAME], ids=[row[0] for row in THE_SAME])
def test_what_may_be_one_call_twice_does_not_run_twice(lists: list[Any], expected: list[Any]) -> None:
    """A repetition with less of a header, under one id, or of a header alone is no call of its own."""
    assert calls(*lists) == expected


def test_an_unreadable_call_takes_none_of_other_ids_along() -> None:
    """Calls without an index whose ids differ are read by them, whatever one of them says."""
    broken = [entry('{"q":"Par', "a"), entry(ONE, "b"), entry(TWO, "c")]
    assert calls(broken) == calls(*broken) == [REFUSED, {"q": 1}, {"q": 2}]
    drifting = [entry('{"q":', "a"), entry(ONE, "b"), entry('"x"}}', "c")]
    assert calls(*drifting) == [REFUSED] * 3


@pytest.mark.parametrize("lists", [[[ONE, ONE]], [[ONE], [ONE]], [[ONE], [TWO], [ONE], [TWO]]])
def test_equal_calls_run_over_http(lists: list[list[str]]) -> None:
    """Chat completions as compatible servers stream them: all calls run, in order, each with an id of its own."""
    ran: list[int] = []

    def f(q: int) -> str:
        """Note a number."""
        ran.append(q)
        return f"{q}!"

    asked = Asked(0, "any", True, False)
    chunks = [chunk_of(asked, {"tool_calls": [entry(text, "", 0) for text in one]}) for one in lists]
    first = Events([*chunks, chunk_of(asked, {}, "tool_calls")])
    with OpenAIServer([first, Turn("done")]) as server:
        model = ChatOpenAI(model="any", base_url=server.url, api_key="key", max_retries=0, tools=[f], parallel=False)
        messages = [message for chunk in model.stream("go") for message in new_messages(chunk)]
    ids = [message.tool_call_id for message in messages if isinstance(message, ToolMessage)]
    meant = [json.loads(text)["q"] for one in lists for text in one]
    assert ran == meant and len(set(ids)) == len(meant)
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


@pytest.mark.parametrize("call_id", ["a", None])
@pytest.mark.parametrize("form", ["tool_call_chunks", "wire", "the same"])
def test_a_whole_message_after_its_pieces_says_them_again(call_id: str | None, form: str) -> None:
    """A model that streams a call and then hands over the message it makes: one call, with or without an id."""
    wire = entry(ONE, call_id)
    call = {"name": "f", "args": ONE, "id": call_id, "index": 0, "type": "tool_call_chunk"}
    piece = AIMessageChunk(
        "", **({"tool_call_chunks": [call]} if form == "tool_call_chunks" else {"additional_kwargs": {"tool_calls": [wire]}})
    )
    whole = AIMessage("", tool_calls=[{"name": "f", "args": {"q": 1}, "id": call_id}])
    if form == "the same":
        whole = AIMessage("", additional_kwargs={"tool_calls": [wire]})
    ran: list[int] = []

    def f(q: int) -> str:
        """Note a number."""
        ran.append(q)
        return "noted"

    ScriptedChatModel(tools=[f], replies=[[piece, whole], "done"]).invoke("go")
    assert ran == [1]
