"""Law 3, repair: any history becomes acceptable, always in the same way, and a valid one is left alone."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    ToolMessageChunk,
)

from langchain_autotools.history import answer_dangling, drop_orphans, expand, explain, merge_runs, order_results, repair, to_send, validate
from langchain_autotools.messages.calls import call_ids, calls_of
from langchain_autotools.messages.metadata import KEY
from langchain_autotools.messages.run_messages import serialize_messages

# Few different ids, so that they collide; few texts, so that edits and separators meet.
CALL_IDS = st.sampled_from(["a", "b", "c", "", None])
MESSAGE_IDS = st.sampled_from(["m1", "m2", "m3", None])
TEXTS = st.sampled_from(["", "x", "y ", "x\ny", "z"])
NAMES = st.sampled_from(["f", "g", ""])
BLOCKS = st.lists(
    st.sampled_from([{"type": "text", "text": ""}, {"type": "text", "text": "x"}, {"type": "reasoning", "reasoning": "r"}]), max_size=2
)
EXTRAS = st.sampled_from([{}, {"reasoning_content": "r"}, {"refusal": None}, {"function_call": {"name": "f", "arguments": '{"q": '}}])


def made(cls: type[BaseMessage], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Messages of a class with these fields (`builds` would invent values for all the others)."""
    return st.fixed_dictionaries(fields).map(lambda values: cls(**values))


@st.composite
def ai_messages(draw: st.DrawFn) -> AIMessage:
    """AI messages with any calls, ids, content; sometimes as a chunk."""
    calls = [{"name": draw(NAMES), "args": {"q": number}, "id": draw(CALL_IDS)} for number in range(draw(st.integers(0, 3)))]
    broken = [{"name": draw(NAMES), "args": '{"q', "id": draw(CALL_IDS), "error": None} for _ in range(draw(st.integers(0, 1)))]
    written = draw(st.permutations([*calls, *broken]))
    record = {KEY: {"calls": [{"id": call["id"], "arguments": '{"q": 0}'} for call in written]}} if draw(st.booleans()) else {}
    cls = draw(st.sampled_from([AIMessage, AIMessage, AIMessage, AIMessageChunk]))
    return cls(
        draw(st.one_of(TEXTS, BLOCKS)),
        id=draw(MESSAGE_IDS),
        tool_calls=calls,
        invalid_tool_calls=broken,
        additional_kwargs=draw(EXTRAS),
        response_metadata=record,
    )


def results() -> st.SearchStrategy[ToolMessage]:
    """Results of any call."""
    fields: dict[str, st.SearchStrategy[Any]] = {
        "content": TEXTS,
        "tool_call_id": CALL_IDS.map(lambda call_id: call_id or ""),
        "id": MESSAGE_IDS,
        "name": NAMES,
    }
    return st.one_of(made(ToolMessage, **fields), made(ToolMessageChunk, **fields))


def others() -> st.SearchStrategy[BaseMessage]:
    """Messages that are neither calls nor results."""
    return st.one_of(
        made(HumanMessage, content=TEXTS, id=MESSAGE_IDS),
        made(SystemMessage, content=TEXTS),
        made(ChatMessage, content=TEXTS, role=st.just("critic")),
        made(FunctionMessage, content=TEXTS, name=st.sampled_from(["f", "g"])),
        made(RemoveMessage, id=st.sampled_from(["m1", "m2", "nowhere", "__remove_all__"])),
    )


def loose_messages() -> st.SearchStrategy[list[BaseMessage]]:
    """Messages in any order, without run messages."""
    return st.lists(st.one_of(ai_messages(), results(), others()), max_size=8)


@st.composite
def run_messages(draw: st.DrawFn) -> AIMessage:
    """Run messages that carry anything, with a text of their own making."""
    parts = [part for part in draw(loose_messages()) if not isinstance(part, RemoveMessage)]
    record: dict[str, Any] = {"messages": serialize_messages(parts)}
    if draw(st.booleans()):
        record["stop_reason"] = draw(st.sampled_from(["complete", "return_direct", "calls_pending"]))
    return AIMessage(draw(st.one_of(TEXTS, BLOCKS)), id=draw(MESSAGE_IDS), response_metadata={KEY: record})


def histories() -> st.SearchStrategy[list[BaseMessage]]:
    """Messages in any order, run messages among them."""
    return st.lists(st.one_of(ai_messages(), results(), others(), run_messages()), max_size=8)


@st.composite
def valid_histories(draw: st.DrawFn) -> list[BaseMessage]:
    """Whole conversations: every call answered at once, in any order; replies that say nothing. Call ids come back in later turns."""
    history: list[BaseMessage] = []
    for _ in range(draw(st.integers(0, 5))):
        history.append(HumanMessage(draw(TEXTS)))
        for _ in range(draw(st.integers(0, 2))):
            ids = draw(st.lists(st.sampled_from(["a", "b", "c"]), unique=True, max_size=3))
            said = draw(st.sampled_from(["text", ""]))
            history.append(AIMessage(said, tool_calls=[{"name": "f", "args": {}, "id": call_id} for call_id in ids]))
            history += [ToolMessage("ok", tool_call_id=call_id) for call_id in draw(st.permutations(ids))]
    return history


def same(left: list[BaseMessage], right: list[BaseMessage]) -> bool:
    """Whether two lists hold the very same objects."""
    return [id(message) for message in left] == [id(message) for message in right]


def assert_accepted(messages: list[BaseMessage], *, open_end: bool = False, sent: bool = False) -> None:
    """What every vendor asks for, written down apart from the code under test; with `sent` what only some ask for, too."""
    waiting: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            assert message.tool_call_id in waiting, "a result without its call in front of it"
            assert not sent or message.tool_call_id == waiting[0], "a result out of call order"
            waiting.remove(message.tool_call_id)
            continue
        assert not waiting, "an unanswered call"
        assert not isinstance(message, FunctionMessage | RemoveMessage)
        if isinstance(message, AIMessage):
            calls = calls_of(message)
            waiting = [call_id or "" for call_id in call_ids(message)]
            assert all(waiting) and len(set(waiting)) == len(waiting), "calls that ids do not tell apart"
            assert all(call.name for call in calls), "a call without name"
            assert not sent or calls or message.content or message.additional_kwargs, "an empty message"
            assert "messages" not in (message.response_metadata.get(KEY) or {}), "a run message"
    assert open_end or not waiting, "an unanswered call at the end"


@given(histories())
def test_law_3_every_history_becomes_valid(messages: list[BaseMessage]) -> None:
    """What `repair` returns is accepted, and `validate` agrees; what is sent is the same before and after."""
    repaired = repair(messages)
    assert_accepted(repaired)
    assert validate(repaired) == []
    assert_accepted(to_send(messages), sent=True)
    assert to_send(repaired) == to_send(messages)


@given(histories())
def test_law_3_open_end_leaves_only_the_end_open(messages: list[BaseMessage]) -> None:
    """With `open_end` the same holds, except for the calls that the history ends in."""
    repaired = repair(messages, open_end=True)
    assert validate(repaired, open_end=True) == []
    assert repair(repaired) == repair(messages)
    end = max((place for place, message in enumerate(repaired) if not isinstance(message, ToolMessage)), default=0)
    assert_accepted(repaired[:end])


@given(histories())
def test_law_3_passes_are_pure(messages: list[BaseMessage]) -> None:
    """Neither the list nor a message in it changes; the same history gives the same result; a second time changes nothing."""
    before = copy.deepcopy(messages)
    given_objects = list(messages)
    for change in (repair, expand, drop_orphans, answer_dangling, order_results, merge_runs):
        changed = change(messages)
        assert messages == before, change
        assert same(messages, given_objects), change
        assert change(before) == changed, change
        assert same(change(changed), changed), change


@given(histories())
def test_law_3_validate_and_repair_agree(messages: list[BaseMessage]) -> None:
    """No problems: repair only expands. Problems: it changes something, and explain has a line for each."""
    problems = validate(messages)
    assert all(0 <= problem.index < len(messages) for problem in problems)
    assert len(explain(messages).splitlines()) == 1 + len(problems)
    if problems:
        assert not same(repair(messages), messages)
    else:
        assert repair(messages) == expand(messages)


@given(valid_histories(), st.data())
def test_law_3_valid_histories_are_left_alone(messages: list[BaseMessage], data: st.DataObject) -> None:
    """A valid history comes back with the same objects; every prefix of it becomes valid, and keeps what it has in its order. Where results
    came in another order than their calls, one that is missing takes its call's place among them."""
    assert same(repair(messages), messages)
    assert validate(messages) == []
    prefix = messages[: data.draw(st.integers(0, len(messages)))]
    repaired = repair(prefix)
    assert_accepted(repaired)
    assert same([one for one in repaired if any(one is known for known in prefix)], prefix)


@given(valid_histories(), st.data())
def test_law_3_shuffled_results_are_sent_in_call_order(messages: list[BaseMessage], data: st.DataObject) -> None:
    """Results shuffled within their turn stay as they are, and are sent in call order, the very same objects."""
    shuffled: list[BaseMessage] = []
    turn: list[BaseMessage] = []
    for message in [*messages, None]:
        if isinstance(message, ToolMessage):
            turn.append(message)
            continue
        shuffled += data.draw(st.permutations(turn))
        turn = []
        shuffled += [message] if message else []
    assert same(repair(shuffled), shuffled) and same(order_results(shuffled), order_results(messages))
    assert same(to_send(shuffled), to_send(messages))


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[BaseMessage], AIMessage]:
    """The messages of a run, as a model hands them out, and the run message of them."""
    number = draw(st.integers(1, 10**9))
    parts: list[BaseMessage] = []
    separator, text, due = draw(st.sampled_from(["\n", "", " -- ", "\n\n"])), "", False
    for turn in range(draw(st.integers(1, 3))):
        said = draw(st.text(st.sampled_from("xyz \n"), max_size=6))
        text += (separator if due and said and text and not text[-1].isspace() else "") + said
        ids = draw(st.lists(st.sampled_from(["a", "b"]), unique=True, max_size=2))
        parts.append(AIMessage(said or [], id=f"{number}-{turn}", tool_calls=[{"name": "f", "args": {}, "id": i} for i in ids]))
        parts += [ToolMessage("ok", tool_call_id=call_id) for call_id in ids]
        due = bool(ids) or (due and not said)  # a turn that was interrupted has no calls, and the next one goes on with its text
    ids_of_ai = [part.id for part in parts if isinstance(part, AIMessage)]
    return parts, AIMessage(
        text, id=ids_of_ai[-1], response_metadata={KEY: {"messages": serialize_messages(parts), "stop_reason": "complete"}}
    )


@given(st.lists(st.tuples(runs(), st.sampled_from(["run", "parts", "both", "parts, then the rest"])), max_size=4))
def test_law_7_stored_runs_and_stored_parts_are_one_history(stored: list[tuple[tuple[list[BaseMessage], AIMessage], str]]) -> None:
    """However a caller stores each run, the history is the same list of equal messages."""
    once = {id(parts): parts[0].id for (parts, _), _ in stored}
    if len(set(once.values())) < len(stored):
        return  # two runs with one id: not two runs
    history: list[BaseMessage] = []
    plain: list[BaseMessage] = []
    for (parts, run), how in stored:
        question = HumanMessage("?")
        some = {"run": [], "parts": parts, "both": parts, "parts, then the rest": parts[:1]}[how]
        history += [question, *some, *([] if how == "parts" else [run])]
        plain += [question, *parts]
    assert expand(history) == plain
    assert repair(history) == repair(plain)
