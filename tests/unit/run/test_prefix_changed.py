"""`PrefixChanged`: at which message a request leaves the prefix of the one before, and why."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, messages_from_dict, messages_to_dict

from langchain_autotools import Compaction, NextTurn, events, new_messages
from langchain_autotools.event_types import ContextCompacted, PrefixChanged, RunStarted, TextDelta
from langchain_autotools.run import event_emitter
from langchain_autotools.testing import ScriptedChatModel
from tests.contract.wires import WIRES, Wire
from tests.support.random_runs import conversation
from tests.support.script import Call, Turn

pytestmark = pytest.mark.further

Change = Callable[[NextTurn], NextTurn | None]
SYSTEM, QUESTION = SystemMessage("Be brief."), HumanMessage("How warm is it?")


def look(at: str = "") -> str:
    """Look."""
    return f"seen {at}"


def listen() -> str:
    """Listen."""
    return "heard"


def calling(number: int) -> AIMessage:
    """A turn with a call."""
    return AIMessage("", tool_calls=[{"name": "look", "args": {"at": str(number)}, "id": f"call {number}"}])


def model_of(turns: int, change: Change | None = None, **fields: Any) -> ScriptedChatModel:
    """A model that calls a tool in so many turns, and then answers."""
    replies = [*map(calling, range(turns)), "Warm."]
    return ScriptedChatModel(tools=[look, listen], replies=replies, before_turn=change, **fields)


def told(model: Any, messages: Sequence[BaseMessage] = (SYSTEM, QUESTION)) -> list[tuple[str, int, int]]:
    """The changes of a run, each with its message and its turn."""
    return [(one.reason, one.index, one.turn) for one in events(model.stream([*messages])) if isinstance(one, PrefixChanged)]


def with_message(place: int, message: BaseMessage) -> Callable[[NextTurn], NextTurn]:
    """A change of one message."""
    return lambda turn: replace(turn, messages=[*turn.messages[:place], message, *turn.messages[place + 1 :]])


def marked(turn: NextTurn) -> NextTurn:
    """Put a cache mark on the last message, as middleware for Anthropic's cache does."""
    last = turn.messages[-1]
    block = {"type": "text", "text": last.text, "cache_control": {"type": "ephemeral"}}
    return replace(turn, messages=[*turn.messages[:-1], last.model_copy(update={"content": [block]})])


CHANGES: dict[str, tuple[Callable[[NextTurn], NextTurn], int]] = {
    "tools_changed": (lambda turn: replace(turn, tools=["look"]), 0),
    "system_changed": (with_message(0, SystemMessage("Be polite.")), 0),
    "messages_changed": (with_message(1, HumanMessage("How cold is it?")), 1),
}


@pytest.mark.parametrize("reason", CHANGES)
@pytest.mark.parametrize("wire", [wire for wire in WIRES if "azure" not in wire.name], ids=lambda wire: wire.name)
def test_each_reason_is_a_change_of_what_is_sent(wire: Wire, reason: str) -> None:
    """Told once, at the request that changes, where the wire's own bytes leave the prefix; and again where it changes back."""
    change, index = CHANGES[reason]
    script = [Turn(calls=[Call("look", {"at": str(number)})]) for number in range(4)]
    with wire.serve([*script, Turn("Fine.")]) as server:
        model = wire.model(server, tools=[look, listen], before_turn=lambda turn: change(turn) if turn.number in (3, 4) else None)
        assert told(model) == [(reason, index, 3), (reason, index, 5)]
        assert [number + 2 for number in range(4) if leaves(wire, *server.exchanges[number : number + 2])] == [3, 5]


def leaves(wire: Wire, before: Any, after: Any) -> bool:
    """Whether the bytes of a request leave the prefix of another one: its tools and system prompt, then its messages."""
    heads = []
    for exchange in (before, after):
        messages = wire.messages(exchange)
        heads.append({key: value for key, value in exchange.json.items() if value != json.loads(messages) and key != "tool_choice"})
    return heads[0] != heads[1] or not wire.messages(after).startswith(wire.messages(before)[:-1])


@pytest.mark.parametrize("change", [None, marked], ids=["nothing", "a cache mark that moves"])
def test_nothing_is_told_where_each_request_begins_with_the_one_before(change: Change | None) -> None:
    """Cache marks are no part of the prefix."""
    assert told(model_of(4, change)) == []


def test_a_message_that_is_removed_or_inserted_changes_the_history() -> None:
    """The message that is there now is named by its id, if it has one; a system message behind the start is one of the history."""
    note = SystemMessage("Now it rains.", id="note")
    changes: dict[int, Change] = {
        2: lambda turn: replace(turn, messages=[*turn.messages[:2], note, *turn.messages[2:]]),
        3: lambda turn: replace(turn, messages=[*turn.messages[:2], *turn.messages[4:]]),
        4: lambda turn: replace(turn, messages=turn.messages[:2]),
    }
    model = model_of(4, lambda turn: changes.get(turn.number, lambda turn: turn)(turn))
    found = [one for one in events(model.stream([SYSTEM, QUESTION])) if isinstance(one, PrefixChanged)]
    assert [(one.reason, one.index, one.turn) for one in found] == [("messages_changed", 2, 3)]
    model = model_of(2, lambda turn: changes[2](turn) if turn.number == 3 else None)
    (one,) = [one for one in events(model.stream([SYSTEM, QUESTION])) if isinstance(one, PrefixChanged)]
    assert (one.reason, one.index, one.message_id) == ("messages_changed", 2, "note")


def test_each_model_has_a_cache_of_its_own() -> None:
    """A request to another model is compared with the last one to that model."""
    other = model_of(0)
    other.replies = [calling(1), calling(3), "Warm."]

    def change(turn: NextTurn) -> NextTurn | None:
        to_other = replace(turn, model=other) if turn.number % 2 else turn
        return with_message(1, HumanMessage("How cold is it?"))(to_other) if turn.number == 5 else to_other

    known = {id(other): {"ls_provider": "scripted", "ls_model_name": "other"}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScriptedChatModel, "_get_ls_params", lambda self, *_, **__: known.get(id(self), {}))
        assert told(model_of(2, change)) == [("messages_changed", 1, 5)]


@pytest.mark.parametrize("stored", [False, True], ids=["as they are", "stored as JSON"])
def test_the_next_run_is_compared_with_the_one_before(stored: bool) -> None:
    """Over its history, with its run message or its parts: a system prompt that holds the time of day is told."""
    history: list[BaseMessage] = [SYSTEM, QUESTION]
    stream = events(model_of(2).stream(history))
    assert not [one for one in stream if isinstance(one, PrefixChanged)]
    history += [*new_messages(stream.message), HumanMessage("And now?")]
    if stored:
        history = messages_from_dict(json.loads(json.dumps(messages_to_dict(history))))
    assert told(model_of(0), history) == []
    assert told(model_of(0), [SYSTEM, QUESTION, stream.message, HumanMessage("And now?")]) == []
    assert told(model_of(0), [SystemMessage("It is 9:41."), *history[1:]]) == [("system_changed", 0, 1)]
    assert told(model_of(0), [SYSTEM, HumanMessage("How cold is it?"), *history[2:]]) == [("messages_changed", 1, 1)]
    assert told(ScriptedChatModel(tools=[look], replies=["Warm."]), history) == [("tools_changed", 0, 1)]


def test_runs_that_end_with_one_id_are_not_taken_for_one_another() -> None:
    """Some servers number their replies anew: then nothing is known of the run before."""
    wire, histories = WIRES[0], list[list[BaseMessage]]()
    for question in ("One?", "Two?", "Three?"):
        with wire.serve([Turn("Yes.")]) as server:
            stream = events(wire.model(server, tools=[look]).stream([HumanMessage(question)]))
            assert not [one for one in stream if isinstance(one, PrefixChanged)]
            histories.append([HumanMessage(question), *new_messages(stream.message), HumanMessage("Sure?")])
    assert len({history[1].id for history in histories}) == 1
    with wire.serve([Turn("Yes.")] * 3) as server:
        assert [told(wire.model(server, tools=[look]), history) for history in histories] == [[], [], []]


def test_what_is_kept_of_runs_is_bounded() -> None:
    """Of the oldest run nothing is known any more."""
    for number in range(event_emitter._MOST_CONVERSATIONS + 10):
        event_emitter._keep_prefixes(f"run {number}", {})
    assert len(event_emitter._prefixes) <= event_emitter._MOST_CONVERSATIONS and "run 0" not in event_emitter._prefixes


def test_it_comes_before_the_reply_of_its_request() -> None:
    """Directly before the first piece of the reply."""
    model = model_of(0)
    model.replies = [calling(1), "Warm."]
    model.before_turn = lambda turn: CHANGES["system_changed"][0](turn) if turn.number == 2 else None
    kinds = [type(one) for one in events(model.stream([SYSTEM, QUESTION]))]
    assert kinds[0] is RunStarted and kinds[kinds.index(PrefixChanged) + 1] is TextDelta


def test_a_turn_reads_only_the_new_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each message once, however long the run."""
    read: list[BaseMessage] = []
    record = event_emitter._message_record
    monkeypatch.setattr(event_emitter, "_message_record", lambda message: read.append(message) or record(message))  # type: ignore[func-returns-value]
    assert told(model_of(20, max_turns=30), [SystemMessage("Be brief."), HumanMessage("How warm is it?")]) == []
    assert len(read) == 2 + 2 * 20


@pytest.mark.parametrize("seed", range(40))
def test_no_random_run_leaves_its_prefix(seed: int) -> None:
    """Law 7, as it is told: with limits, approvals, inner runs and all; in runs that go on with decisions, too."""
    for one in conversation(seed):
        assert not [event for event in one.events if isinstance(event, PrefixChanged)]


@pytest.mark.parametrize("wire", [wire for wire in WIRES if "azure" not in wire.name], ids=lambda wire: wire.name)
def test_what_is_compacted_leaves_the_prefix_at_the_cut(wire: Wire) -> None:
    """Told directly behind the event of the cut; the shorter requests begin with one another again."""
    numbers = count()

    def script(exchange: Any) -> Turn:
        number, usage = next(numbers), (len(exchange.body) // 4, 20)
        return Turn(calls=[Call("read", {"number": number})], usage=usage) if number < 12 else Turn("Fine.", usage=usage)

    with wire.serve(script) as server:
        model = wire.model(server, tools=[read], compact=Compaction(keep=1), context_window=6_000)
        found = [one for one in events(model.stream([SYSTEM, QUESTION])) if isinstance(one, PrefixChanged | ContextCompacted)]
        broken = [number + 2 for number in range(12) if leaves(wire, *server.exchanges[number : number + 2])]
    assert [type(one) for one in found] == [ContextCompacted, PrefixChanged] * (len(found) // 2)
    changes = [one for one in found if isinstance(one, PrefixChanged)]
    assert broken and [(one.turn, one.reason) for one in changes] == [(turn, "compacted") for turn in broken]
    assert changes[0].index == 3 and changes[0].message_id


def read(number: int) -> str:
    """Read a page."""
    return f"Page {number}. " + "All is well here. " * 150
