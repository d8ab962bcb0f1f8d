"""`compact=`: old results are left out of requests that would outgrow the window, and read again by a tool of ours."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage, messages_from_dict, messages_to_dict

from langchain_autotools import (
    Agent,
    ChatGoogleGenerativeAI,
    ChatOpenAI,
    Compaction,
    ConfigurationError,
    NextTurn,
    ToolPolicy,
    aevents,
    events,
    new_messages,
    pending_calls,
)
from langchain_autotools.event_types import CallResult, ContextCompacted
from langchain_autotools.history import validate
from langchain_autotools.history.cuts import handle_of
from langchain_autotools.testing import Request, ScriptedChatModel
from tests.contract.wires import ROWS, Wire
from tests.laws.ways import WAYS, run
from tests.support.desk import asking, call
from tests.support.script import Call, Failure, Turn

pytestmark = pytest.mark.further
QUESTION = HumanMessage("Read the pages.")
WINDOW = 6000
"""Tokens: about six pages fill it to four fifths."""


def page(number: int) -> str:
    """Return a page."""
    return f"Page {number} of the book\nThe fact is {number * 7}.\n" + "lorem ipsum dolor sit amet\n" * 120


def handles(messages: Sequence[BaseMessage]) -> list[str]:
    """The handles that lines name, in order."""
    return [one.text.rpartition('handle="')[2].partition('"')[0] for one in messages if one.type == "tool" and "Left out: " in one.text]


def results(messages: Sequence[BaseMessage]) -> list[str]:
    """The texts of results."""
    return [one.text for one in messages if one.type == "tool"]


def reader(pages: int, then: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """A model that reads so many pages, one after another, and then does something else."""

    def reply(messages: Sequence[BaseMessage], **keywords: Any) -> Any:
        number = sum(isinstance(one, ToolMessage) and one.name == "page" for one in messages)
        if number < pages and keywords.get("tool_choice") != "none":
            return asking(call("page", f"call_{number}", number=number))
        return "Done." if then is None else then(messages, **keywords)

    return reply


def model_of(replies: Any, **fields: Any) -> ScriptedChatModel:
    """A model with the tool, a small window and no limit of turns."""
    settings = {"tools": [page], "compact": Compaction(summary=False), "context_window": WINDOW, "max_turns": None}
    return ScriptedChatModel(replies=replies, **{**settings, **fields})


def breaks(requests: Sequence[Request]) -> int:
    """How often a request does not begin with the one before."""
    return sum(list(later.messages[: len(one.messages)]) != list(one.messages) for one, later in pairwise(requests))


def tokens(request: Request) -> int:
    """The estimated tokens of a request."""
    return ScriptedChatModel()._estimated_tokens(request.messages, request.tools)


# ---------------------------------------------------------------------------------------------- what is sent


@pytest.mark.parametrize("way", WAYS)
def test_old_results_become_lines_and_the_history_stays_whole(way: str) -> None:
    """No request passes the limit; cuts are made in steps; the new messages have every page."""
    model = model_of(reader(30), context_window=2 * WINDOW)
    ran = run(way, model, [QUESTION])
    assert results(ran.new) == [page(number) for number in range(30)] and ran.message is not None and ran.message.text == "Done."
    assert all(tokens(request) <= 0.8 * 2 * WINDOW for request in model.requests)
    assert 0 < breaks(model.requests) < 5
    for request in model.requests:
        assert validate(request.messages) == []
        assert results(request.messages)[-4:] == [page(number) for number in range(30)][: len(results(request.messages))][-4:]
    left = results(model.requests[-1].messages)[0]
    length = len(page(0))
    handle = handle_of(next(one for one in ran.new if isinstance(one, ToolMessage)), 0)
    beginning = "Page 0 of the book The fact is 0. lorem ipsum dolor sit amet"
    assert left == f'[Left out: {length:,} characters, beginning "{beginning}". Read it with read_result(handle="{handle}").]'


def test_what_was_cut_stays_cut_and_the_declared_tools_never_change() -> None:
    """Each request has the lines of the one before; `read_result` is declared from the first one on, behind the model's own."""
    model = model_of(reader(30))
    model.invoke([QUESTION])
    for one, later in pairwise(model.requests):
        known = handles(one.messages)
        assert handles(later.messages)[: len(known)] == known
    assert {tuple(request.tool_names) for request in model.requests} == {("page", "read_result")}


def test_short_results_and_messages_of_the_user_stay() -> None:
    """A line saves nothing there."""
    model = model_of(["Done."], context_window=400)
    long = "x" * 9000
    history = [SystemMessage(long), HumanMessage(long), asking(call("page", "1", number=1)), ToolMessage("short", tool_call_id="1")]
    model.invoke([*history, HumanMessage("Go on.")])
    assert results(model.requests[0].messages) == ["short"] and [one.text for one in model.requests[0].messages[:2]] == [long, long]


def test_pictures_become_lines_and_a_cache_mark_stays() -> None:
    """Of the user none; a mark on a cut result stays on its line."""
    picture = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
    marked = {"type": "text", "text": page(1), "cache_control": {"type": "ephemeral"}}
    asked = HumanMessage([{"type": "text", "text": "Look."}, picture])
    calls = asking(*(call("page", str(number), number=number) for number in range(6)))
    contents: list[Any] = [[picture, picture], [{"type": "text", "text": "A text."}, picture], [marked], *map(page, range(3))]
    answers = [ToolMessage(content, tool_call_id=str(number)) for number, content in enumerate(contents)]
    model = model_of(["Done."], compact=Compaction(keep=1, summary=False), context_window=1200)
    model.invoke([asked, calls, *answers, AIMessage("I see."), HumanMessage("Go on.")])
    sent = model.requests[0].messages
    assert sent[0].content == asked.content
    assert sent[2].text.startswith("[Left out: 2 pictures. Read it with")
    assert sent[3].text.startswith('[Left out: 7 characters, 1 picture, beginning "A text."')
    assert isinstance(sent[4].content, list) and sent[4].content[0]["cache_control"] == {"type": "ephemeral"}  # type: ignore[index]
    assert sent[4].text.startswith("[Left out: ")


def test_results_of_vendors_items_stay() -> None:
    """They have a form of their own, and blocks that mean more than they show do too."""
    item = ToolMessage(page(1), tool_call_id="1", additional_kwargs={"type": "shell_call_output"})
    found = ToolMessage([{"type": "tool_reference", "tool_name": "x" * 400}], tool_call_id="2")
    model = model_of(["Done."], context_window=300, compact=Compaction(keep=0, summary=False))
    model.invoke([QUESTION, asking(call("page", "1"), call("page", "2")), item, found, AIMessage("So."), HumanMessage("Go on.")])
    assert [one.content for one in model.requests[0].messages if one.type == "tool"] == [item.content, found.content]


def test_the_model_sees_a_result_before_it_is_cut() -> None:
    """More calls in one turn than results are kept: all of them reach the model first."""
    model = model_of([asking(*(call("page", str(number), number=number) for number in range(7))), "Done.", "Done."], context_window=7500)
    history = [QUESTION, *new_messages(model.invoke([QUESTION])), HumanMessage("And?")]
    assert results(model.requests[1].messages) == [page(number) for number in range(7)]
    model.invoke([*history[:-1], HumanMessage("x" * 4000)])
    assert len(handles(model.requests[-1].messages)) == 3


def test_a_result_larger_than_the_window_is_cut_before_it_is_sent() -> None:
    """It is read in parts of at most a quarter of the window."""

    def big() -> str:
        """Return a big text."""
        return "\n".join(f"line {number} of a big text" for number in range(4000))

    def read(messages: Sequence[BaseMessage], **_: Any) -> Any:
        if len(results(messages)) < 2:
            return asking(call("read_result", "2", handle=handles(messages)[0], start=2000, lines=3))
        if len(results(messages)) < 3:
            return asking(call("read_result", "3", handle=handles(messages)[0]))
        return "Done."

    model = model_of([asking(call("big", "1")), read, read, read], tools=[big])
    new = new_messages(model.invoke([QUESTION]))
    assert all(tokens(request) < WINDOW for request in model.requests)
    assert results(new)[1].splitlines()[1:] == [f"line {number} of a big text" for number in (1999, 2000, 2001)]
    assert results(new)[1].startswith("[Lines 2,000 to 2,002 of 4,000 of r1-") and "Go on with start=2003" in results(new)[1]
    assert len(results(new)[2]) // 4 < WINDOW / 4 and "Go on with start=" in results(new)[2]


# ---------------------------------------------------------------------------------------------- the record


def sent_of(history: Sequence[BaseMessage], **fields: Any) -> list[dict[str, Any]]:
    """What a new model sends of a history."""
    model = model_of(["Fine."], **fields)
    model.invoke([*history, HumanMessage("And now?")])
    return [one.model_dump(include={"content", "type"}) for one in model.requests[0].messages]


def with_usage(reply: Any) -> Any:
    """The same replies with the tokens that they would report."""

    def told(messages: Sequence[BaseMessage], **keywords: Any) -> Any:
        made = reply(messages, **keywords)
        made = AIMessage(made) if isinstance(made, str) else made
        used = ScriptedChatModel()._estimated_tokens(messages, keywords.get("tools") or ())
        usage = {"input_tokens": used, "output_tokens": 20, "total_tokens": used + 20}
        return made.model_copy(update={"usage_metadata": usage, "response_metadata": {"finish_reason": "stop", "model_name": "m"}})

    return told


@pytest.mark.parametrize("reply", [reader(20), with_usage(reader(20))], ids=["no usage", "usage"])
def test_any_split_of_a_history_sends_the_same(reply: Any) -> None:
    """Parts, the run message, both read back from JSON: the record decides, and the next request is the same."""
    run_message = model_of(reply).invoke([QUESTION])
    parts = [QUESTION, *new_messages(run_message)]
    kept: list[Sequence[BaseMessage]] = [parts, [QUESTION, run_message]]
    kept += [messages_from_dict(messages_to_dict(one)) for one in kept[:2]] + [pickle.loads(pickle.dumps(parts))]
    first, *others = [sent_of(one) for one in kept]
    assert all(one == first for one in others) and any("Left out" in str(one["content"]) for one in first)


@pytest.mark.parametrize("reply", [reader(20), with_usage(reader(20))], ids=["no usage", "usage"])
def test_a_run_cut_short_anywhere_goes_on_with_the_same_request(reply: Any) -> None:
    """Each request of a run is made again from the history up to there, by a process that knows nothing else."""
    model = model_of(reply)
    new = new_messages(model.invoke([QUESTION]))
    ends = [number for number, one in enumerate(new) if isinstance(one, AIMessage)]
    for end, request in zip(ends, model.requests, strict=True):
        again = model_of(["Fine."])
        again.invoke(messages_from_dict(messages_to_dict([QUESTION, *new[:end]])))
        assert [one.content for one in again.requests[0].messages] == [one.content for one in request.messages]


def test_a_record_of_an_edited_or_trimmed_history_says_nothing() -> None:
    """Other bytes then, but valid ones, under the window; so where metadata was dropped."""
    new = new_messages(model_of(with_usage(reader(20))).invoke([QUESTION]))
    bare = [one.model_copy(update={"response_metadata": {}}) for one in new]
    edited = [HumanMessage("Read them all."), *new]
    for history in ([QUESTION, *bare], edited, [QUESTION, *new[10:]]):
        model = model_of(["Fine."])
        model.invoke([*history, HumanMessage("And now?")])
        assert tokens(model.requests[0]) <= 0.8 * WINDOW and validate(model.requests[0].messages) == []


@pytest.mark.parametrize(
    "record", [3, {}, {"messages": 999, "digest": "", "results": 1}, {"messages": -1, "digest": "", "results": 0}, {"messages": "1"}]
)
def test_a_forged_record_is_none(record: Any) -> None:
    """A history may come from anywhere."""
    forged = AIMessage("Hello.", response_metadata={"autotools": {"compacted": record}})
    model = model_of(["Fine."])
    model.invoke([QUESTION, forged, HumanMessage("And now?")])
    assert len(model.requests) == 1


def test_a_system_message_written_anew_changes_nothing() -> None:
    """The date of the day breaks the prefix, and not the record."""
    new = new_messages(model_of(reader(20)).invoke([SystemMessage("Monday"), QUESTION]))
    one, other = (sent_of([SystemMessage(day), QUESTION, *new])[1:] for day in ("Monday", "Tuesday"))
    assert one == other and any("Left out" in str(each["content"]) for each in one)


def test_a_reminder_at_the_end_of_each_request_changes_nothing() -> None:
    """A record covers no more than it must, so that what `before_turn` adds behind does not void it."""

    def remind(turn: NextTurn) -> NextTurn:
        return replace(turn, messages=[*turn.messages, HumanMessage("Be brief.")])

    model = model_of(reader(20), before_turn=remind, context_window=2 * WINDOW)
    model.invoke([QUESTION])
    sent = [[one.content for one in request.messages[:-1]] for request in model.requests]
    assert 0 < sum(later[: len(one)] != one for one, later in pairwise(sent)) < 4


def test_a_run_without_it_leaves_no_record() -> None:
    """And no window known: nothing is cut."""
    for fields in ({"compact": None}, {"compact": False}, {"context_window": None}):
        model = model_of(reader(8), **{"context_window": None, **fields})
        new = new_messages(model.invoke([QUESTION]))
        assert "compacted" not in str([one.response_metadata for one in new]) and not handles(model.requests[-1].messages)


# ---------------------------------------------------------------------------------------------- reading again


def reading(*calls: dict[str, Any], **fields: Any) -> list[str]:
    """The results of calls of `read_result` after twelve pages."""

    def then(messages: Sequence[BaseMessage], **_: Any) -> Any:
        asked = sum(isinstance(one, ToolMessage) and one.name == "read_result" for one in messages)
        if asked == len(calls):
            return "Done."
        known = dict(enumerate(handles(messages)))
        given = {**calls[asked], **({"handle": known[calls[asked]["handle"]]} if isinstance(calls[asked].get("handle"), int) else {})}
        return asking(call("read_result", f"read_{asked}", **given))

    new = new_messages(model_of(reader(12, then), **fields).invoke([QUESTION]))
    return [one.text for one in new if one.type == "tool" and one.name == "read_result"]


def test_what_was_left_out_is_read_whole_in_lines_or_by_a_text() -> None:
    """From the history, which is whole."""
    whole, part, found, nothing, past = reading(
        {"handle": 0}, {"handle": 1, "start": 2, "lines": 1}, {"handle": 2, "find": "the FACT"}, {"handle": 2, "find": "zebra"},
        {"handle": 2, "start": 900},
    )  # fmt: skip
    assert whole == page(0)
    assert part.splitlines()[1:] == ["The fact is 7."] and "Go on with start=3" in part
    assert found.splitlines()[1:] == ["2: The fact is 14."] and found.startswith("[1 of 123 lines of r3-")
    assert nothing.startswith("[No line of the 123 lines") and "there is no line 900" in past


def test_a_handle_is_known_without_its_digest_and_in_quotes() -> None:
    """Models copy inexactly."""
    first, second = reading({"handle": "r1", "find": "fact"}, {"handle": '"R2"', "find": "fact"})
    assert "The fact is 0." in first and "The fact is 7." in second


@pytest.mark.parametrize("given", [{"handle": "nonsense"}, {"handle": "r99"}, {"handle": "r1-000000"}, {}, {"handle": "r1", "start": 0}])
def test_a_wrong_handle_is_an_error_that_the_model_can_act_on(given: dict[str, Any]) -> None:
    """It says what one looks like."""
    (said,) = reading(given)
    assert said.startswith('{"error": ') and ("looks like 'r1-" in said or "arguments" in said)


def test_a_long_line_is_several_and_what_is_read_is_cut_like_others() -> None:
    """JSON in one line can be read in parts."""
    text = "{" + "0123456789" * 900 + "}"

    def data() -> str:
        """Return data."""
        return text

    read = [lambda messages, **_: asking(call("read_result", "2", handle="r1", start=3, lines=2)), *["Done."] * 3]
    model = model_of([asking(call("data", "1")), *read], tools=[data])
    found = results(new_messages(model.invoke([QUESTION])))[1]
    assert "".join(found.splitlines()[1:]) == text[2000:4000]


def test_the_same_part_read_again_and_again_is_no_progress() -> None:
    """Three times since the last cut, also with other calls between."""
    place = iter(range(99))

    def again(messages: Sequence[BaseMessage], **keywords: Any) -> Any:
        number = next(place)
        if keywords.get("tool_choice") == "none":
            return "Done."
        other = call("page", f"other_{number}", number=number)
        return asking(call("read_result", f"read_{number}", handle="r1", find="fact") if number % 2 else other)

    model = model_of(again, context_window=10**6)
    run_message = model.invoke([QUESTION])
    assert run_message.response_metadata["autotools"]["stop_reason"] == "no_progress"
    assert sum(one.name == "read_result" for one in new_messages(run_message) if isinstance(one, ToolMessage)) == 3


def test_it_is_no_call_of_the_users() -> None:
    """Not counted, not asked for approval, not told to the user's functions, touched by no policy; `max_turns` counts its turns."""
    told: list[str] = []
    fields: dict[str, Any] = {
        "max_tool_calls": 12,
        "requires_approval": lambda one: told.append(f"judged {one.name}") or False,
        "on_executing": lambda one: told.append(f"executing {one.name}"),
        "on_executed": lambda one: told.append(f"executed {one.call.name}"),
        "default_policy": ToolPolicy(max_output=200),
    }
    assert reading({"handle": 0}, **{**fields, "default_policy": None}) == [page(0)]
    history = [
        QUESTION,
        asking(call("page", "0", number=0)),
        ToolMessage(page(0), tool_call_id="0"),
        AIMessage("Read."),
        HumanMessage("Go."),
    ]
    short = model_of([asking(call("read_result", "1", handle="r1")), "Done."], default_policy=fields["default_policy"])
    assert results(new_messages(short.invoke(history))) == [page(0)]
    assert {one.partition(" ")[2] for one in told} == {"page"}
    assert model_of(reader(3), requires_approval=True).invoke([QUESTION]).response_metadata["autotools"]["stop_reason"] == "calls_pending"
    read = asking(call("read_result", "1", handle="r1"))
    model = model_of([read, "Done."], requires_approval=True, approve=lambda one: told.append("approve"))
    assert not pending_calls(model.invoke([QUESTION])) and "approve" not in told
    limited = model_of(lambda *_, **keywords: "Done." if keywords.get("tool_choice") == "none" else read, max_turns=2, no_progress=None)
    assert limited.invoke([QUESTION]).response_metadata["autotools"]["stop_reason"] == "max_turns"


def test_a_read_beside_waiting_calls_and_inside_a_bundle() -> None:
    """Its sibling waits, it does not; a bundle has its result too."""
    model = model_of([asking(call("page", "1", number=1), call("read_result", "2", handle="r1"))], requires_approval=["page"])
    history = [
        QUESTION,
        asking(call("page", "0", number=0)),
        ToolMessage(page(0), tool_call_id="0"),
        AIMessage("Read."),
        HumanMessage("Go."),
    ]
    new = new_messages(model.invoke(history))
    assert [one.text for one in new if one.type == "tool"] == [page(0)]
    uses = [{"recipient_name": "functions.read_result", "parameters": {"handle": "r1", "find": "fact"}}]
    bundled = model_of([asking(call("multi_tool_use.parallel", "1", tool_uses=uses)), "Done."])
    assert "The fact is 0." in results(new_messages(bundled.invoke(history)))[0]


def test_a_queued_read_is_answered_when_the_run_is_resumed() -> None:
    """One after another: it waits behind a call that waits for approval."""
    calls = asking(call("page", "1", number=1), call("read_result", "2", handle="r1", find="fact"))
    model = model_of([calls, "Done."], requires_approval=["page"], parallel=False)
    history = [
        QUESTION,
        asking(call("page", "0", number=0)),
        ToolMessage(page(0), tool_call_id="0"),
        AIMessage("Read."),
        HumanMessage("Go."),
    ]
    waiting = model.invoke(history)
    resumed = model.resume([*history, waiting], [one.approve() for one in pending_calls(waiting) if one.name == "page"])
    assert "The fact is 0." in results(new_messages(resumed))[-1]


def test_only_what_was_sent_can_be_read() -> None:
    """Where `before_turn` hides something of a result, the tool does not bring it back."""

    def hide(turn: NextTurn) -> NextTurn:
        changed = [one.model_copy(update={"content": one.text.replace("fact", "****")}) for one in turn.messages if one.type == "tool"]
        others = iter(changed)
        return replace(turn, messages=[next(others) if one.type == "tool" else one for one in turn.messages])

    (said,) = reading({"handle": 0}, before_turn=hide)
    assert "fact" not in said and "The **** is 0." in said


def test_choices_forbid_it_and_never_mean_it() -> None:
    """A choice that names tools forbids it; a forced one asks again where the model has only read; none may name it."""
    read, allowed = (
        asking(call("read_result", "1", handle="r1")),
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "page"}]},
    )
    for choice in (allowed, "none"):
        model = model_of([read, "Done."])
        (said,) = results(new_messages(model.invoke([QUESTION], tool_choice=choice)))
        assert "not allowed" in said and model.requests[0].tool_names == ["page", "read_result"]
    model = model_of([read, asking(call("page", "2", number=1)), "Done."])
    model.invoke([QUESTION], tool_choice="any")
    assert [one.tool_choice for one in model.requests] == ["any", "any", None]
    for choice in ("read_result", {"type": "function", "function": {"name": "read_result"}}):
        with pytest.raises(ConfigurationError, match="cannot ask for 'read_result'"):
            model.invoke([QUESTION], tool_choice=choice)


# ---------------------------------------------------------------------------------------------- the server's error


class TooLongError(ContextOverflowError):
    """A server's error."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("words", "window"),
    [
        ("This model's maximum context length is 4096 tokens. However, your messages resulted in 9000 tokens.", 4096),
        ("prompt is too long: 9,000 tokens > 4,000 maximum", 4000),
        ("The input token count (9000) exceeds the maximum number of tokens allowed (4000).", 4000),
        ("too long", None),
    ],
)
def test_the_servers_error_shortens_once_more_and_tells_the_window(way: str, words: str, window: int | None) -> None:
    """No window is known before; the request is made once more, and the next ones stay below what was learnt."""
    sizes: list[int] = []
    plain = reader(20)

    def reply(messages: Sequence[BaseMessage], **keywords: Any) -> Any:
        sizes.append(ScriptedChatModel()._estimated_tokens(messages, keywords.get("tools") or ()))
        return TooLongError(words) if sizes[-1] > 5000 else plain(messages, **keywords)

    model = model_of(reply, context_window=None)
    ran = run(way, model, [QUESTION])
    assert ran.error is None and results(ran.new) == [page(number) for number in range(20)]
    assert sum(size > 5000 for size in sizes) == 1
    records = [one.response_metadata["autotools"].get("compacted") for one in ran.new if "autotools" in one.response_metadata]
    (learned,) = {next(iter(one["windows"].values())) for one in records if one}
    assert learned == window if window else 4000 < learned < 6500
    again = model_of(["Fine."], context_window=None)
    again.invoke([QUESTION, *ran.new, HumanMessage("x" * 12000)])
    assert len(handles(again.requests[0].messages)) > 10


@pytest.mark.parametrize("way", WAYS)
def test_an_error_that_no_cut_helps_is_raised(way: str) -> None:
    """Nothing can be cut, or the server says so again: two requests at most."""
    model = model_of(lambda *_, **__: TooLongError("too long"))
    assert isinstance(run(way, model, [QUESTION]).error, TooLongError) and len(model.requests) == 1
    history = [QUESTION, asking(call("page", "1", number=1)), ToolMessage(page(1), tool_call_id="1"), AIMessage("Read."), QUESTION]
    model = model_of(lambda *_, **__: TooLongError("too long"))
    assert isinstance(run(way, model, history).error, TooLongError) and len(model.requests) == 2


# ---------------------------------------------------------------------------------------------- limits, models, refusals


def test_limits_judge_what_is_sent() -> None:
    """`context_window` ends no run whose next request fits, and `max_cost` counts the shortened one."""
    model = model_of(with_usage(reader(20)))
    assert model.invoke([QUESTION]).response_metadata["autotools"]["stop_reason"] == "complete"
    whole = model_of(with_usage(reader(20)), compact=None)
    assert whole.invoke([QUESTION]).response_metadata["autotools"]["stop_reason"] == "context_window"
    full = model_of(with_usage(reader(40)), context_window=700, compact=Compaction(keep=0, summary=False))
    assert full.invoke([HumanMessage("x" * 2800)]).response_metadata["autotools"]["stop_reason"] == "context_window"


def test_max_cost_judges_the_shortened_request() -> None:
    """A run that could not pay for its whole history goes on."""

    class Priced(ScriptedChatModel):
        """A model that has a name, and so a price."""

        model: str = "m"
        max_tokens: int = 10

    prices = {"m": {"input_mtok": 1, "output_mtok": 1}}
    turns = []
    for compact in (True, None):
        fields: dict[str, Any] = {"max_cost": 1.6, "prices": prices, "context_window": 16_000 if compact else None, "compact": compact}
        model = Priced(replies=with_usage(reader(100)), tools=[page], max_turns=None, **fields)
        known = model.invoke([QUESTION]).response_metadata["autotools"]
        turns.append((known["stop_reason"], known["turns"]))
    assert turns[0] == ("complete", 101) and turns[1][0] == "max_cost" and turns[1][1] < 70


def test_another_models_window_is_another_cut() -> None:
    """A fallback with a smaller window gets less."""

    class Small(ScriptedChatModel):
        """Another model."""

        profile: Any = {"max_input_tokens": 3000}

    small = Small(replies=reader(9))
    replies = reader(5)
    model = model_of(
        lambda messages, **more: ConnectionError() if len(results(messages)) == 5 else replies(messages, **more), fallbacks=[small]
    )
    new = new_messages(model.invoke([QUESTION]))
    assert results(new) == [page(number) for number in range(9)]
    assert max(map(tokens, model.requests)) > 2400 and small.requests and max(map(tokens, small.requests)) <= 2400


def test_events_tell_of_cuts_and_of_reads() -> None:
    """Each cut before its request, with the sizes; a read is told with its result."""
    then = [call("read_result", "read", handle="r1", find="fact")]
    reply = reader(12, lambda messages, **_: asking(then.pop()) if then else "Done.")
    told = list(events(model_of(reply).stream([QUESTION])))
    cuts = [one for one in told if isinstance(one, ContextCompacted)]
    assert cuts and all(one.to_tokens < one.from_tokens and one.window == WINDOW and one.results > 0 for one in cuts)
    assert [one.call.name for one in told if isinstance(one, CallResult)][-1] == "read_result"

    async def heard() -> list[Any]:
        return [one async for one in aevents(model_of(reader(12)).astream([QUESTION]))]

    turns = [one.turn for one in asyncio.run(heard()) if isinstance(one, ContextCompacted)]
    assert turns == [one.turn for one in cuts]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ScriptedChatModel(replies=["x"], compact=True).invoke("Hi"), "tools of its own"),
        (lambda: ScriptedChatModel(replies=["x"]).invoke("Hi", compact=True), "tools of its own"),
        (lambda: ScriptedChatModel(replies=["x"], compact=True).bind_tools([page]).invoke("Hi"), "tools of its own"),
        (lambda: ScriptedChatModel(replies=["x"], compact=True, before_turn=lambda turn: None).invoke("Hi"), "tools of its own"),
        (lambda: model_of(["x"]).generate([[QUESTION]], compact=True), "here it has no effect"),
        (lambda: model_of(["x"], tools={"read_result": page}), r"Compaction\(tool_name="),
        (lambda: model_of(["x"]).bind_tools([{**TOOL, "name": "read_result"}]).invoke("Hi"), r"Compaction\(tool_name="),
        (lambda: model_of(["x"], compact="yes"), "True, False or a Compaction"),
        (lambda: Compaction(at=0), "at of a Compaction"),
        (lambda: Compaction(at=True), "at of a Compaction"),
        (lambda: Compaction(keep=-1), "keep of a Compaction"),
        (lambda: Compaction(tool_name="a b"), "tool_name of a Compaction"),
        (lambda: ChatOpenAI(model="m", api_key="k", tools=[page], compact=True, use_previous_response_id=True), "server keeps the history"),
        (lambda: ChatOpenAI(model="m", api_key="k", tools=[page], compact=True).invoke("Hi", conversation="c"), "server keeps the history"),
        (lambda: ChatGoogleGenerativeAI(model="m", api_key="k", tools=[page], compact=True, cached_content="c"), "refuses declared tools"),
    ],
)
def test_what_cannot_work_is_refused_in_words(make: Callable[[], Any], words: str) -> None:
    """Law 11."""
    with pytest.raises(ValueError, match=words):  # pydantic's, of a constructor, or ours
        make()


TOOL = {"type": "function", "name": "page", "description": "", "parameters": {"type": "object", "properties": {}}}


def test_another_name_and_agents() -> None:
    """The tool has the name that it is given; an agent's conversation has it from question to question."""
    model = model_of(reader(12), compact=Compaction(tool_name="look_back", summary=False), tools={"page": page, "read_result": page})
    agent = Agent(model)
    agent.run("Read.")
    assert "look_back(handle=" in results(model.requests[-1].messages)[0] and model.requests[0].tool_names[-1] == "look_back"
    agent.run("And now?")
    assert handles(model.requests[-1].messages)[:6] == handles(model.requests[-2].messages)[:6]


# ---------------------------------------------------------------------------------------------- wires


TOO_LONG = Failure(400, message="The request exceeds maximum context length of 6000 tokens.")


@pytest.mark.parametrize("wire", ROWS, ids=lambda wire: wire.name)
def test_every_wires_strict_server_accepts_each_request(wire: Wire) -> None:
    """Parallel calls, cuts, a read, the server's error: what is sent is valid, and the prefix breaks at cuts alone."""
    numbers = count()

    def script(exchange: Any) -> Any:
        number, usage = next(numbers), (len(exchange.body) // 4, 20)
        if number < 8:
            return Turn(calls=[Call("page", {"number": 2 * number + place}) for place in range(2)], usage=usage)
        if number == 8:
            return Turn(calls=[Call("read_result", {"handle": "r1", "find": "fact"})], usage=usage)
        return TOO_LONG if number == 9 else Turn("Done.", usage=usage)

    with wire.serve(script) as server:
        model = wire.model(server, tools=[page], compact=True, context_window=2 * WINDOW, max_turns=None)
        new = new_messages(model.invoke([QUESTION]))
        bodies = [exchange.body for exchange in server.exchanges]
    assert next(numbers) == len(bodies) == 11
    assert "The fact is 0." in results(new)[-1] and new[-1].text == "Done." and results(new)[:16] == [page(number) for number in range(16)]
    lines = [body.count(b"Left out: ") for body in bodies]
    assert lines == sorted(lines) and len(set(lines)) <= 4 and lines[9] < lines[10]


# ---------------------------------------------------------------------------------------------- properties


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 9000), min_size=1, max_size=25), st.integers(0, 5), st.integers(1500, 9000), st.floats(0.3, 1.0), st.booleans()
)
def test_properties_of_random_runs(sizes: list[int], keep: int, window: int, at: float, usage: bool) -> None:
    """Idempotent, monotone, valid at every prefix; the history stays whole; a new process sends the same."""

    def work(number: int) -> str:
        """Work."""
        return f"{number} " + "x " * (sizes[number] // 2)

    def reply(messages: Sequence[BaseMessage], **keywords: Any) -> Any:
        number = len(results(messages))
        free = number < len(sizes) and keywords.get("tool_choice") != "none"
        return (
            asking(*(call("work", str(one), number=one) for one in range(number, min(number + 1 + number % 3, len(sizes)))))
            if free
            else "Done."
        )

    fields: dict[str, Any] = {"tools": [work], "compact": Compaction(at=at, keep=keep, summary=False), "context_window": window}
    model = model_of(with_usage(reply) if usage else reply, **fields)
    new = new_messages(model.invoke([QUESTION]))
    texts = results(new)
    assert texts == [work(number) for number in range(len(texts))]
    ends = [number for number, one in enumerate(new) if isinstance(one, AIMessage)]
    before: list[str] = []
    for end, request in zip(ends, model.requests, strict=True):
        assert validate(request.messages) == []
        assert handles(request.messages)[: len(before)] == before or set(before) <= set(handles(request.messages))
        before = handles(request.messages)
        again = model_of(["Fine."], **fields)
        again.invoke(messages_from_dict(messages_to_dict([QUESTION, *new[:end]])))
        assert [one.content for one in again.requests[0].messages] == [one.content for one in request.messages]


def test_the_arguments_of_calls_count_beside_a_list_of_blocks_too() -> None:
    """Core's counter takes calls to be among the blocks of such a message."""
    calls = [call("write", "c", text="0123456789" * 400)]
    blocks = [[{"type": "text", "text": "Look."}], [{"type": "text", "text": "Look."}, {"type": "shell_call", "id": "s"}]]
    sizes = [ScriptedChatModel()._estimated_tokens([AIMessage(content, tool_calls=calls)], ()) for content in ("Look.", *blocks)]
    assert min(sizes) >= 1000 and max(sizes) < 1.2 * min(sizes)
    written = [{"type": "tool_use", "id": "c", "name": "write", "input": calls[0]["args"]}]
    assert ScriptedChatModel()._estimated_tokens([AIMessage(written, tool_calls=calls)], ()) < 1.2 * min(sizes)
