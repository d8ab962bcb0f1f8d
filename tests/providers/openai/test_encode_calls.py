"""How the calls of a history go back: ids, names, arguments, and opaque state to the server it came from."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_autotools.messages.metadata import KEY
from langchain_autotools.providers.openai.mapper import ChatCompletionsMapper
from tests.support.strict import Rules
from tests.support.strict_openai import check_request

HOME = "endpoint and model"
LENIENT = Rules(message_keys=["reasoning_content", "reasoning", "reasoning_details"], call_keys=["extra_content"], longest_id=400)


def sent(*messages: BaseMessage, origin: str = "", rules: Rules = Rules(), **options: Any) -> list[dict[str, Any]]:  # noqa: B008 - frozen
    """The messages of a request, which the strict server has accepted."""
    body = ChatCompletionsMapper(origin=origin, **options).encode_request(messages, {"model": "any"})
    return check_request(body, rules)["messages"]


def turn(*records: dict[str, Any], origin: str | None = HOME, **fields: Any) -> list[BaseMessage]:
    """An AI message whose calls are recorded as `records`, and a result of each."""
    calls = [{"name": record.pop("name", "f"), "args": record.pop("args", {}), "id": record["id"]} for record in records]
    own = {"calls": list(records), **({"origin": origin} if origin else {})}
    message = AIMessage(fields.pop("content", ""), tool_calls=calls, response_metadata={KEY: own}, **fields)
    return [message, *(ToolMessage("r", tool_call_id=call["id"]) for call in calls)]


def arguments_of(message: AIMessage) -> list[str]:
    """The arguments that are sent for the calls of a message."""
    results = [ToolMessage("r", tool_call_id=call["id"] or "") for call in [*message.tool_calls, *message.invalid_tool_calls]]
    return [call["function"]["arguments"] for call in sent(message, *results)[0]["tool_calls"]]


@pytest.mark.parametrize(
    ("raw", "args", "text"),
    [
        ('{"a": 1.0,\n "b":"\\u00e9"}', {"a": 1.0, "b": "é"}, '{"a": 1.0,\n "b":"\\u00e9"}'),
        ('{"a": 1}', {"a": 2}, '{"a":2}'),
        ("", {}, "{}"),
        (None, {"a": "é"}, '{"a":"é"}'),
        ('{"a": "x\ny"}', {"a": "x\ny"}, '{"a":"x\\ny"}'),
        (None, {"a": [1.5, float("nan")]}, '{"a":[1.5,null]}'),
    ],
    ids=["verbatim", "edited", "none", "no record", "control character", "not a number"],
)
def test_arguments_go_back_as_the_model_wrote_them(raw: str | None, args: dict[str, Any], text: str) -> None:
    """The model's own text is sent while it says what the call says and every server can read it; else the call, written anew."""
    record = {"id": "c", **({} if raw is None else {"arguments": raw})}
    assert arguments_of(turn({**record, "args": args})[0]) == [text]  # type: ignore[arg-type]


@pytest.mark.parametrize(("raw", "text"), [('{"a": ', "{}"), ("[1]", "{}"), ("", "{}"), ('{"a": 1}', '{"a": 1}')])
def test_a_call_that_was_not_executable_is_sent_as_json(raw: str, text: str) -> None:
    """Arguments that are no JSON object are left out: strict servers refuse a history that holds them (wire quirk H-08)."""
    call = {"name": "f", "args": raw, "id": "c", "error": "bad", "type": "invalid_tool_call"}
    assert arguments_of(AIMessage("", invalid_tool_calls=[call])) == [text]


def test_names_are_made_legal() -> None:
    """A name that the model made up goes back without what the vendor refuses (wire quirk N-06)."""
    calls = [{"name": name, "args": {}, "id": name} for name in ("multi_tool_use.parallel", "ok", "é" * 70)]
    message = AIMessage("", tool_calls=calls)
    names = [
        call["function"]["name"]
        for call in sent(message, *(ToolMessage("r", tool_call_id=c["id"]) for c in calls), rules=LENIENT)[0]["tool_calls"]
    ]
    assert names == ["multi_tool_use_parallel", "ok", "_" * 64]


def test_ids_that_the_vendor_refuses_are_replaced_on_both_sides() -> None:
    """A long or an empty id becomes a derived one, the same in every request, on the call and on its result (wire quirk H-05)."""
    calls = [
        {"name": "f", "args": {}, "id": "x" * 41},
        {"name": "f", "args": {}, "id": ""},
        {"name": "f", "args": {}, "id": "functions.f:0"},
    ]
    history = [AIMessage("", tool_calls=calls), *(ToolMessage("r", tool_call_id=call["id"]) for call in calls)]
    first, again = sent(*history), sent(*history, HumanMessage("and?"))
    ids = [call["id"] for call in first[0]["tool_calls"]]
    assert ids[2] == "functions.f:0"
    assert [message["tool_call_id"] for message in first[1:]] == ids
    assert again[:4] == first


def test_calls_that_share_an_id_are_told_apart() -> None:
    """Two calls of one message with one id get two, and the results are dealt out in order."""
    calls = [{"name": "f", "args": {}, "id": "same"}, {"name": "g", "args": {}, "id": "same"}]
    wire = sent(AIMessage("", tool_calls=calls), ToolMessage("1", tool_call_id="same"), ToolMessage("2", tool_call_id="same"))
    ids = [call["id"] for call in wire[0]["tool_calls"]]
    assert ids[0] == "same" and ids[1] != "same"
    assert [message["tool_call_id"] for message in wire[1:]] == ids


def test_an_id_that_comes_again_in_a_history_is_sent_once() -> None:
    """A call with the id of an earlier turn's call gets another one, and its result too, at home and elsewhere; the bytes before it stay,
    and with a longer history it keeps the one that it got."""
    history = [*turn({"id": "same"}), *turn({"id": "same"}), *turn({"id": "same", "wire_id": "w"})]
    for origin in ("", HOME):
        wire = sent(*history, origin=origin)
        ids = [message["tool_calls"][0]["id"] for message in wire[::2]]
        assert ids[0] == "same" and len({*ids}) == 3
        assert [message["tool_call_id"] for message in wire[1::2]] == ids
        mapper = ChatCompletionsMapper(origin=origin)
        bodies = [mapper.encode_request(history[:end], {}) for end in (2, 4, 6)]
        assert all(later.startswith(earlier[:-2]) for earlier, later in pairwise(bodies))


def test_the_servers_own_ids_return_to_it_alone() -> None:
    """An id that was replaced on arrival is restored for its server; others get ours.

    Wire quirks H-06, H-07.
    """
    history = turn({"id": "ours", "arguments": "{}", "wire_id": "call_0"})
    at_home = sent(*history, origin=HOME)
    assert at_home[0]["tool_calls"][0]["id"] == at_home[1]["tool_call_id"] == "call_0"
    assert sent(*history, origin="elsewhere")[1]["tool_call_id"] == "ours"


def test_an_id_of_the_server_that_is_taken_in_its_message_is_not_restored() -> None:
    """Where a server gave one id to two calls, the second keeps ours: in one message ids are unique."""
    wire = sent(*turn({"id": "x"}, {"id": "ours", "wire_id": "x"}), origin=HOME)
    assert [call["id"] for call in wire[0]["tool_calls"]] == [message["tool_call_id"] for message in wire[1:]] == ["x", "ours"]


def test_a_long_id_returns_to_the_server_that_made_it() -> None:
    """What a server calls its own call is never rewritten for it."""
    wire = sent(*turn({"id": "x" * 60}), origin=HOME, rules=LENIENT)
    assert wire[1]["tool_call_id"] == "x" * 60


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_reasoning_returns_under_its_key_to_its_server_with_calls(key: str) -> None:
    """Reasoning goes back with calls, under the key it came in; to no other server, and not with a plain answer.

    Wire quirks R-02, R-03.
    """
    extra = {key: "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm", "signature": "s"}], "refusal": "", "x": 1}
    history = turn({"id": "c"}, additional_kwargs=extra)
    wire = sent(*history, origin=HOME, rules=LENIENT)[0]
    assert {name: wire[name] for name in wire.keys() & extra.keys()} == {key: "hm", "reasoning_details": extra["reasoning_details"]}
    assert not sent(*history, origin="elsewhere", rules=LENIENT)[0].keys() & extra.keys()
    assert not sent(*history, origin="", rules=LENIENT)[0].keys() & extra.keys()
    answer = AIMessage("hi", additional_kwargs=extra, response_metadata={KEY: {"origin": HOME}})
    assert not sent(answer, origin=HOME, rules=LENIENT)[0].keys() & extra.keys()
    assert key not in sent(*history, origin=HOME, rules=LENIENT, omit=[key])[0]


def test_reasoning_of_earlier_questions_stays_where_it_was() -> None:
    """A later question changes nothing of what was sent before: the requests share their beginning."""
    history = turn({"id": "c"}, additional_kwargs={"reasoning_content": "hm"})
    assert sent(*history, HumanMessage("next"), origin=HOME, rules=LENIENT)[:2] == sent(*history, origin=HOME, rules=LENIENT)


def test_reasoning_that_was_stored_as_a_v1_block_returns_too() -> None:
    """A message in v1 form gives its reasoning back under the key that v1 takes it from."""
    history = turn({"id": "c"}, content=[{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "So."}])
    wire = sent(*history, origin=HOME, rules=LENIENT)[0]
    assert (wire["reasoning_content"], wire["content"]) == ("hm", "So.")


def test_thinking_that_came_as_content_returns_as_content() -> None:
    """Thinking that arrived as a part of the content goes back as one, before the text."""
    message = turn({"id": "c"}, content="So.", additional_kwargs={"thinking_part": "hm"})[0]
    (wire,) = json.loads(ChatCompletionsMapper(origin=HOME).encode_request([message], {}))["messages"]
    (bare,) = json.loads(ChatCompletionsMapper(origin=HOME, omit=["thinking_part"]).encode_request([message], {}))["messages"]
    assert wire["content"] == [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "So."}]
    assert bare["content"] == "So."


def test_ids_belong_to_the_message_that_made_them() -> None:
    """What was restored for one message says nothing about the next one, also where results are missing."""
    first, second = turn({"id": "ours", "wire_id": "w"}), AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "ours"}])
    body = ChatCompletionsMapper(origin=HOME).encode_request([first[0], second, first[1]], {})
    wire = json.loads(body)["messages"]
    assert [wire[0]["tool_calls"][0]["id"], wire[1]["tool_calls"][0]["id"], wire[2]["tool_call_id"]] == ["w", "ours", "ours"]


def test_unknown_keys_of_a_call_return_to_its_server_alone() -> None:
    """A signature that came with a call goes back with it, verbatim; it cannot overwrite what the call says (wire quirk R-05)."""
    signature = {"google": {"thought_signature": "abc"}}
    history = turn({"id": "c", "arguments": "{}", "extra": {"extra_content": signature, "id": "evil", "function": {}}})
    call = sent(*history, origin=HOME, rules=LENIENT)[0]["tool_calls"][0]
    assert call == {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": signature}
    assert "extra_content" not in sent(*history)[0]["tool_calls"][0]


def test_a_call_of_a_custom_tool_returns_as_one() -> None:
    """A free-text call goes back to its server as it came, to others as a call with one argument."""
    history = turn({"id": "c", "name": "calc", "args": {"__arg1": "4 + 4"}, "arguments": '{"__arg1":"4 + 4"}', "extra": {"custom": True}})
    call = sent(*history, origin=HOME)[0]["tool_calls"][0]
    assert call == {"id": "c", "type": "custom", "custom": {"name": "calc", "input": "4 + 4"}}
    assert sent(*history)[0]["tool_calls"][0]["function"] == {"name": "calc", "arguments": '{"__arg1":"4 + 4"}'}


def test_an_empty_custom_beside_a_function_makes_no_custom_call() -> None:
    """A server that fills in every field it knows sends `custom: {}` with a function's call, which goes back as a function's."""
    history = turn({"id": "c", "name": "calc", "args": {"a": 1}, "arguments": '{"a":1}', "extra": {"custom": {"input": "", "name": ""}}})
    call = sent(*history, origin=HOME)[0]["tool_calls"][0]
    assert call == {"id": "c", "type": "function", "function": {"name": "calc", "arguments": '{"a":1}'}}


_CALLS = st.lists(
    st.tuples(st.text(max_size=50), st.text(max_size=70), st.dictionaries(st.text(), st.floats() | st.text())), min_size=1, max_size=4
)


@settings(max_examples=25)
@given(st.lists(_CALLS, max_size=4), st.booleans())
def test_the_strict_server_takes_any_turns(turns: list[list[tuple[str, str, dict[str, Any]]]], at_home: bool) -> None:
    """Whatever ids, names and arguments a history holds: each call is answered once, with ids and names that the vendor takes."""
    history: list[BaseMessage] = []
    for calls in turns:
        made = [{"name": name, "args": args, "id": identifier} for identifier, name, args in calls]
        own = {"calls": [{"id": call["id"], "wire_id": "call_0"} for call in made], "origin": HOME}
        history += [
            AIMessage("", tool_calls=made, response_metadata={KEY: own}),
            *(ToolMessage("r", tool_call_id=call["id"]) for call in made),
        ]
    history.append(HumanMessage("?"))
    sent(*history, origin=HOME if at_home else "", rules=LENIENT if at_home else Rules())


@pytest.mark.exhaustive
def test_the_strict_server_takes_many_turns() -> None:
    """The same of two hundred and fifty histories."""
    strategies = st.lists(_CALLS, max_size=4), st.booleans()
    settings(max_examples=250)(given(*strategies)(test_the_strict_server_takes_any_turns.hypothesis.inner_test))()  # type: ignore[attr-defined]
