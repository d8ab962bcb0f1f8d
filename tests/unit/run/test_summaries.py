"""`compact=`: where cutting results is not enough, a summary of the model's stands for the oldest turns."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from itertools import count, islice, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage, messages_from_dict, messages_to_dict
from pydantic import BaseModel

from langchain_autotools import (
    Agent,
    ChatAnthropic,
    ChatOllama,
    ChatOpenAI,
    Compaction,
    ConfigurationError,
    events,
    new_messages,
    run_cost,
    run_usage,
)
from langchain_autotools.deadline import Deadline
from langchain_autotools.event_types import ContextCompacted, TextDelta
from langchain_autotools.history import validate
from langchain_autotools.history.cuts import Reading
from langchain_autotools.run.summaries import asking as asking_for_summary
from langchain_autotools.run.turn_wrappers import TurnRequest, WireForm
from langchain_autotools.testing import Request, ScriptedChatModel
from tests.contract.wires import ROWS, Wire
from tests.laws.checks import data_of, differences
from tests.laws.ways import LISTENERS, WAYS, run
from tests.support.desk import asking, call
from tests.support.script import Call, Turn

pytestmark = pytest.mark.further
RULES, QUESTION = SystemMessage("Be good."), HumanMessage("Read the pages.")
WINDOW = 2500
SUMMED = "The pages were read; their facts are multiples of seven."


def page(number: int) -> str:
    """Return a page."""
    return f"Page {number} of the book. The fact is {number * 7}. " + "lorem ipsum dolor sit amet " * 20


def is_asked(messages: Sequence[BaseMessage]) -> bool:
    """Whether a request asks for a summary."""
    return is_quoted(messages) or "asks for a summary" in messages[-1].text


def is_quoted(messages: Sequence[BaseMessage]) -> bool:
    """Whether it quotes the conversation."""
    return "<conversation>" in messages[-1].text


class Reader:
    """A model's replies: it reads so many pages, one after another, and sums up when it is asked to.

    Args:
        pages: How many.
        summary: The reply to a request for a summary, or a function that makes it of the request.
        usage: Whether replies tell what they have used.
    """

    def __init__(self, pages: int, summary: Any = SUMMED, *, usage: bool = False) -> None:
        self.pages, self.summary, self.usage = pages, summary, usage
        self.read = count()

    def __call__(self, messages: Sequence[BaseMessage], **keywords: Any) -> Any:
        """Reply."""
        reply = self.reply(messages, **keywords)
        if not self.usage or not isinstance(reply, str | AIMessage):
            return reply
        made = AIMessage(reply) if isinstance(reply, str) else reply
        used = ScriptedChatModel()._estimated_tokens(messages, keywords.get("tools") or ())
        usage = {"input_tokens": used, "output_tokens": 20, "total_tokens": used + 20}
        return made.model_copy(update={"usage_metadata": usage, "response_metadata": {"finish_reason": "stop", "model_name": "m"}})

    def reply(self, messages: Sequence[BaseMessage], **keywords: Any) -> Any:
        """Return a page's call, a summary or the end."""
        if is_asked(messages):
            return self.summary(messages, **keywords) if callable(self.summary) else self.summary
        number = next(self.read)
        if number >= self.pages or keywords.get("tool_choice") == "none":
            return "Done."
        return asking(call("page", f"call_{number}", number=number))


def model_of(replies: Any, **fields: Any) -> ScriptedChatModel:
    """A model with the tool, a small window and no limit of turns."""
    given = {"tools": [page], "compact": True, "context_window": WINDOW, "max_turns": None}
    return ScriptedChatModel(replies=replies, **{**given, **fields})


def parted(model: ScriptedChatModel) -> tuple[list[Request], list[Request]]:
    """The requests of a model's turns, and those for summaries."""
    requests = model.requests
    return [one for one in requests if not is_asked(one.messages)], [one for one in requests if is_asked(one.messages)]


def tokens(request: Request) -> int:
    """The estimated tokens of a request."""
    return ScriptedChatModel()._estimated_tokens(request.messages, request.tools)


def contents(request: Request) -> list[Any]:
    """What a request says."""
    return [(one.type, one.content) for one in request.messages]


def summaries(messages: Sequence[BaseMessage]) -> list[str]:
    """The texts of the messages that stand for summaries."""
    return [one.text for one in messages if one.type == "human" and one.text.startswith("[Summary of the conversation")]


def record(message: BaseMessage) -> Any:
    """The record of what was cut of a reply's request."""
    return message.response_metadata.get("autotools", {}).get("compacted", {})


# ---------------------------------------------------------------------------------------------- what is sent


@pytest.mark.parametrize("way", WAYS)
def test_a_summary_stands_for_the_oldest_turns_and_the_history_stays_whole(way: str) -> None:
    """Rules and the user's message stay as they are; each request is valid and under the limit; every page is in the new messages."""
    model = model_of(Reader(60))
    ran = run(way, model, [RULES, QUESTION])
    assert ran.error is None
    turns, asked = parted(model)
    assert [one.text for one in ran.new if one.type == "tool"] == [page(number) for number in range(60)]
    assert len(turns) == 61 and 1 <= len(asked) <= 8 and ran.new[-1].text == "Done."
    assert all(tokens(request) <= 0.8 * WINDOW and validate(request.messages) == [] for request in turns)
    assert sum(list(later.messages[: len(one.messages)]) != list(one.messages) for one, later in pairwise(turns)) < 20
    sent = turns[-1].messages
    assert [one.content for one in sent[:2]] == [RULES.content, QUESTION.content] and len(summaries(sent)) == 1
    assert sent[2].text.endswith(f"\n\n{SUMMED}") and sent[3].type == "ai" and sent[4].type == "tool"


def test_it_is_asked_for_with_the_last_request_in_front() -> None:
    """The messages are those of the request before, which the server's cache holds; tools are the same, nothing is forced."""
    model = model_of(Reader(60))
    model.invoke([RULES, QUESTION])
    before: Request | None = None
    for request in model.requests:
        if before is not None and is_asked(request.messages):
            assert list(before.messages[: len(request.messages) - 1]) == list(request.messages[:-1])
            assert request.tools == before.tools and request.tool_choice is None
        before = request


def test_the_next_summary_covers_the_former_one() -> None:
    """The model is shown it, and one is in each request."""
    texts = iter(f"Summary {number}." for number in range(99))
    model = model_of(Reader(60, lambda *_, **__: next(texts)))
    new = new_messages(model.invoke([QUESTION]))
    turns, asked = parted(model)
    assert len(asked) > 1 and summaries(asked[1].messages)[0].endswith("Summary 0.")
    assert summaries(turns[-1].messages)[0].endswith(f"Summary {len(asked) - 1}.")
    found = [one["summary"] for message in new if "summary" in (one := record(message))]
    assert [one["text"] for one in found] == [f"Summary {number}." for number in range(len(asked))]
    assert [one["messages"] for one in found] == sorted({one["messages"] for one in found})


def test_what_it_covers_can_be_read_by_the_handles_that_it_names() -> None:
    """From the first one to the last."""
    known: list[str] = []

    class Looking(Reader):
        def reply(self, messages: Sequence[BaseMessage], **keywords: Any) -> Any:
            """Look at two results after the pages."""
            if not is_asked(messages) and next(self.read) >= self.pages and len(known) < 2:
                said = summaries(messages)[0]
                known.append(said.split('handle="')[1 + len(known)].partition('"')[0])
                return asking(call("read_result", f"read_{len(known)}", handle=known[-1]))
            if is_asked(messages):
                return SUMMED
            done = any(one.name == "read_result" for one in messages if isinstance(one, ToolMessage))
            number = next(self.read) // 2
            return "Done." if done else asking(call("page", f"call_{number}", number=number))

    model = model_of(Looking(80))
    new = new_messages(model.invoke([QUESTION]))
    found = [one.text for one in new if isinstance(one, ToolMessage) and one.name == "read_result"]
    pages = [one.text for one in new if isinstance(one, ToolMessage) and one.name == "page"]
    assert known[0] == "r1" and found == [pages[0], pages[int(known[1][1:]) - 1]]


def test_the_users_messages_stay_while_they_fit() -> None:
    """Short ones all; of long ones the newest."""

    def history(size: int) -> list[BaseMessage]:
        return [one for number in range(40) for one in (HumanMessage(f"Question {number} " + "x" * size), AIMessage("An answer. " * 24))]

    for size, all_stay in ((4, True), (400, False)):
        model = model_of([SUMMED, "Fine."], context_window=4000)
        model.invoke([RULES, *history(size), HumanMessage("And now?")])
        (turn,), (asked,) = parted(model)
        assert tokens(turn) <= 0.8 * 4000 and summaries(turn.messages) and is_quoted(asked.messages) is not all_stay
        asks = [one.text.split(" x")[0] for one in turn.messages if one.text.startswith("Question")]
        assert (len(asks) == 40) is all_stay and asks == [f"Question {number}" for number in range(40)][-len(asks) :]


def test_a_model_with_room_is_never_asked() -> None:
    """Results are enough, it is switched off, or there is nothing but what stays."""
    for fields in ({"context_window": 100_000}, {"compact": Compaction(summary=False)}, {"compact": None, "context_window": 10**6}):
        model = model_of(Reader(60), **fields)
        model.invoke([QUESTION])
        assert not parted(model)[1]
    model = model_of(["Fine."])
    model.invoke([HumanMessage("x" * 9000)])
    assert len(model.requests) == 1
    with pytest.raises(ConfigurationError, match="summary of a Compaction"):
        Compaction(summary=1)  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------- what is no summary


NO_SUMMARIES: dict[str, Any] = {
    "calls": asking(call("page", "c", number=1)),
    "text and a call": AIMessage("Wait.", tool_calls=[call("page", "c", number=1)]),
    "no text": "",
    "cut off": AIMessage("The pages", response_metadata={"finish_reason": "length"}),
    "refused": AIMessage("No.", response_metadata={"finish_reason": "content_filter"}),
    "a refusal": AIMessage("", additional_kwargs={"refusal": "No."}),
    "longer": "x" * 40_000,
}


@pytest.mark.parametrize("way", ["invoke", "astream"])
@pytest.mark.parametrize("reply", NO_SUMMARIES.values(), ids=NO_SUMMARIES)
def test_what_is_no_summary_is_asked_for_once_more_as_a_transcript(way: str, reply: Any) -> None:
    """Without tools; nothing that it calls runs; then a summary is taken."""
    model = model_of(Reader(20, lambda messages, **_: SUMMED if is_quoted(messages) else reply))
    ran = run(way, model, [RULES, QUESTION])
    _, asked = parted(model)
    assert ran.error is None and [one.text for one in ran.new if one.type == "tool"] == [page(number) for number in range(20)]
    if reply != NO_SUMMARIES["longer"]:
        assert [is_quoted(one.messages) for one in asked][:2] == [False, True] and summaries(model.requests[-1].messages)
        assert not asked[1].tools and asked[1].tool_choice is None and len(asked[1].messages) == 1
        assert "Assistant:\n(calls page with" in asked[1].messages[0].text and "Be good." not in asked[1].messages[0].text


@pytest.mark.parametrize("way", ["stream", "ainvoke"])
@pytest.mark.parametrize("reply", [*NO_SUMMARIES.values(), ContextOverflowError()], ids=[*NO_SUMMARIES, "an overflow"])
def test_without_a_summary_results_are_cut_until_the_next_step(way: str, reply: Any) -> None:
    """The model is not asked again in each turn; the record says what was tried, and other processes know."""
    model = model_of(Reader(24, reply))
    ran = run(way, model, [RULES, QUESTION])
    turns, asked = parted(model)
    assert ran.error is None and len(turns) == 25 and not summaries(turns[-1].messages)
    assert 2 <= len(asked) <= 10 and [one.text for one in ran.new if one.type == "tool"] == [page(number) for number in range(24)]
    again = model_of(Reader(0, reply))
    again.invoke([RULES, QUESTION, *ran.new[:-1]])
    assert contents(again.requests[-1]) == contents(turns[-1]) and len(parted(again)[1]) <= 2


def test_a_run_ends_at_the_window_where_no_summary_is_made() -> None:
    """Results alone are not enough then, and `context_window` judges what is sent."""
    assert model_of(Reader(60, "")).invoke([RULES, QUESTION]).response_metadata["autotools"]["stop_reason"] == "context_window"


def test_a_run_that_is_cancelled_meanwhile_ends() -> None:
    """Nothing is sent after that."""
    now: list[bool] = []

    def cancel(*_: Any, **__: Any) -> str:
        now.append(True)
        return ""

    model = model_of(Reader(60, cancel))
    message = model.invoke([QUESTION], cancel=lambda: bool(now))
    assert message.response_metadata["autotools"]["stop_reason"] == "cancelled" and is_asked(model.requests[-1].messages) and len(now) == 1


def test_an_error_of_the_request_for_a_summary_is_one_of_the_turn() -> None:
    """As of any request; the messages so far are not lost (law 8)."""
    model = model_of(Reader(60, ConnectionError("gone")))
    with pytest.raises(ConnectionError) as caught:
        model.invoke([QUESTION])
    made = new_messages(caught.value)
    assert made and isinstance(made[-1], ToolMessage)
    again = model_of(Reader(1))
    again.invoke([QUESTION, *made])
    assert len(parted(again)[1]) == 1 and summaries(again.requests[-1].messages)


# ---------------------------------------------------------------------------------------------- what leaves


@pytest.mark.parametrize("streamed", [False, True])
def test_nothing_of_it_reaches_the_callers_stream(streamed: bool) -> None:
    """Neither chunks nor text events; the run message is that of `invoke` (law 2); an event tells of it, tracing sees an LLM run."""
    runs: list[Any] = []

    class Tracer(BaseCallbackHandler):
        def on_chat_model_start(self, serialized: Any, messages: Any, **more: Any) -> None:
            """Note one."""
            runs.append((more.get("name"), "nostream" in (more.get("tags") or ())))

    model = model_of(Reader(30, AIMessage(SUMMED)))
    if streamed:
        text = "".join(chunk.text for chunk in model.stream([QUESTION], {"callbacks": [Tracer()]}))
        assert SUMMED not in text and text.endswith("Done.")
    else:
        told = list(events(model.stream([QUESTION], {"callbacks": [Tracer()]})))
        assert SUMMED not in "".join(one.text for one in told if isinstance(one, TextDelta))
        found = [one for one in told if isinstance(one, ContextCompacted) and one.what == "summary"]
        assert len(found) == len(parted(model)[1]) and all(one.results > 0 and one.to_tokens < one.from_tokens for one in found)
    assert [name for name, is_apart in runs if is_apart] == ["summary"] * len(parted(model)[1])


@pytest.mark.parametrize("listeners", LISTENERS)
def test_all_ways_give_the_same_whoever_listens(listeners: str) -> None:
    """Law 2: the run message and the new messages, with records and what was paid, but for ids."""
    found = []
    for way in WAYS:
        ran = run(way, model_of(Reader(24, usage=True)), [RULES, QUESTION], listeners=listeners)
        assert ran.error is None and ran.message is not None and any("summary" in record(one) for one in ran.new)
        found.append([data_of(ran.message), *map(data_of, ran.new)])
    assert [differences(found[0], one) for one in found[1:]] == [[], [], []]


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_lost_wherever_a_request_fails(way: str) -> None:
    """Law 8: what had completed is in the chunks and the error, also where the request for a summary fails; another run goes on."""
    whole = [one.content for one in run(way, model_of(Reader(20)), [QUESTION]).new]
    for failing in range(9, 20, 2):
        numbers, plain = count(), Reader(20)
        model = model_of(lambda *given, n=numbers, r=plain, at=failing, **more: ValueError("no") if next(n) == at else r(*given, **more))
        ran = run(way, model, [QUESTION])
        assert isinstance(ran.error, ValueError)
        rest = Reader(20)
        rest.read = count(sum(isinstance(one, ToolMessage) for one in ran.new))
        again = run(way, model_of(rest), [QUESTION, *ran.new])
        assert [one.content for one in (*ran.new, *again.new)] == whole


def test_a_form_of_replies_that_the_model_has_itself_is_left_out() -> None:
    """As a field, or among the keywords of each call."""
    models = [
        ChatOllama(model="m", tools=[page], format="json"),
        ChatOpenAI(model="m", api_key="k", tools=[page], model_kwargs={"response_format": {"type": "json_object"}}),
        ChatAnthropic(model="m", api_key="k", tools=[page], model_kwargs={"output_config": {"format": {"type": "x"}, "effort": "low"}}),
    ]
    for model in models:
        request = TurnRequest(model, [QUESTION], "requested", {}, Deadline(None), form=WireForm(model, [{"name": "page"}]))
        asked = next(asking_for_summary(request, [QUESTION], [QUESTION], 100, 1000, []))
        assert "json" not in str(getattr(asked.model, "format", "")) and "format" not in str(getattr(asked.model, "model_kwargs", ""))
        assert asked.form.model is asked.model and asked.form.tools == request.form.tools and not asked.streams
    assert asked.model.model_kwargs == {"output_config": {"effort": "low"}}


def test_its_usage_counts_and_it_is_no_turn() -> None:
    """`run_usage`, `run_cost`, `token_budget` and `max_cost` know it, also where it was no summary; `max_turns` does not."""
    prices = {"m": {"input_mtok": "1", "output_mtok": "1"}}
    for reply in (SUMMED, AIMessage("")):
        model = model_of(Reader(30, reply, usage=True))
        ran = model.invoke([QUESTION])
        turns, asked = parted(model)
        used = sum(tokens(one) for one in model.requests) + 20 * len(model.requests)
        usage = run_usage(ran)
        assert asked and usage is not None and usage["total_tokens"] == used
        assert ran.response_metadata["autotools"]["turns"] == len(turns)
        assert len(run_cost(ran, prices=prices).turns) == len(model.requests)
    assert asked and model_of(Reader(30, usage=True), max_turns=31).invoke([QUESTION]).text.endswith("Done.")


def test_a_budget_in_money_counts_the_request_for_a_summary_before_it_is_made() -> None:
    """A run ends before it where both requests together would exceed the limit."""
    prices = {"scripted": {"input_mtok": "1000000", "output_mtok": "1000000"}, "m": {"input_mtok": "1000000", "output_mtok": "1000000"}}

    class Named(ScriptedChatModel):
        def _get_ls_params(self, **more: Any) -> Any:
            return {**super()._get_ls_params(**more), "ls_model_name": "m", "ls_provider": "p"}

    def spent(limit: int) -> tuple[int, int, Any]:
        given = {"tools": [page], "compact": True, "context_window": WINDOW, "max_turns": None, "prices": prices, "max_cost": limit}
        model = Named(replies=Reader(30, usage=True), **given)
        message = model.invoke([QUESTION])
        usage = run_usage(message)
        return len(parted(model)[1]), 0 if usage is None else usage["total_tokens"], message

    for limit in range(4000, 40_000, 1500):
        asked, used, message = spent(limit)
        assert used <= limit + 40 * (asked + 1) and message.response_metadata["autotools"]["stop_reason"] in ("max_cost", "complete")


# ---------------------------------------------------------------------------------------------- same bytes


@pytest.mark.parametrize("usage", [False, True])
def test_a_run_cut_short_anywhere_goes_on_with_the_same_request(usage: bool) -> None:
    """Each request of a run is made again from the history up to there, by a process that knows nothing else."""
    model = model_of(Reader(40, usage=usage))
    new = new_messages(model.invoke([RULES, QUESTION]))
    turns, asked = parted(model)
    ends = [number for number, one in enumerate(new) if isinstance(one, AIMessage)]
    assert asked
    for end, request in zip(ends, turns, strict=True):
        again = model_of(Reader(0, usage=usage))
        again.invoke(messages_from_dict(messages_to_dict([RULES, QUESTION, *new[:end]])))
        assert contents(parted(again)[0][0]) == contents(request)


@pytest.mark.parametrize("usage", [False, True])
def test_any_split_of_a_history_sends_the_same(usage: bool) -> None:
    """Parts, the run message, both read back from JSON; another day's system message; and no second summary."""
    run_message = model_of(Reader(40, usage=usage)).invoke([RULES, QUESTION])
    parts = [RULES, QUESTION, *new_messages(run_message)]
    kept: list[Sequence[BaseMessage]] = [parts, [RULES, QUESTION, run_message]]
    kept += [messages_from_dict(json.loads(json.dumps(messages_to_dict(one)))) for one in kept[:2]]
    kept += [pickle.loads(pickle.dumps(parts)), [SystemMessage("Another day."), *parts[1:]]]
    sent = []
    for history in kept:
        model = model_of(["Fine."])
        model.invoke([*history, HumanMessage("And now?")])
        sent.append(contents(model.requests[0])[1:])
    assert summaries(model.requests[0].messages) and all(one == sent[0] for one in sent)


def test_where_metadata_was_dropped_or_edited_it_is_made_anew() -> None:
    """Valid and under the limit; a record that does not fit says nothing, nor does a forged one."""
    new = new_messages(model_of(Reader(40)).invoke([QUESTION]))
    place = next(number for number, one in enumerate(new) if "summary" in record(one))
    bare = [one.model_copy(update={"response_metadata": {}}) for one in new]
    histories: list[list[BaseMessage]] = [[QUESTION, *bare], [HumanMessage("Read them all."), *new], [QUESTION, *new[10:]]]
    own = record(new[place])
    for forged in (
        {"summary": 3},
        {"summary": {**own["summary"], "messages": own["summary"]["messages"] + 1}},
        {"summary": {**own["summary"], "text": ""}},
        {"summary": {**own["summary"], "dropped": 99}},
        {"summary": {**own["summary"], "digest": "0"}},
        {"tried": -1},
        {"tried": "many"},
    ):
        metadata = {"autotools": {**new[place].response_metadata["autotools"], "compacted": {**own, **forged}}}
        histories.append([QUESTION, *new[:place], new[place].model_copy(update={"response_metadata": metadata})])
    for history in histories:
        model = model_of(Reader(0, "Another."))
        model.invoke([*history, HumanMessage("And now?")])
        sent = parted(model)[0][0]
        assert tokens(sent) <= 0.8 * WINDOW and validate(sent.messages) == []
        assert summaries(sent.messages)[0].endswith("\n\nAnother.")


def test_a_summary_whose_turn_was_made_again_is_not_made_again() -> None:
    """Another model goes on with it, and its usage counts once."""
    failing = iter([True] * 1)

    class First(Reader):
        def reply(self, messages: Sequence[BaseMessage], **keywords: Any) -> Any:
            """Fail once, in the turn of the first summary."""
            if summaries(messages) and not is_asked(messages) and next(failing, False):
                return ConnectionError("gone")
            return super().reply(messages, **keywords)

    second = ScriptedChatModel(replies=Reader(5, "The other model's.", usage=True), context_window=None)
    model = model_of(First(60, usage=True), fallbacks=[second])
    ran = model.invoke([QUESTION])
    assert second.requests and not is_asked(second.requests[0].messages) and SUMMED in summaries(second.requests[0].messages)[0]
    made = [*model.requests, *second.requests]
    assert len(run_cost(ran, prices={"m": {"input_mtok": "1", "output_mtok": "1"}}).turns) == len(made) - 1  # the one that failed


# ---------------------------------------------------------------------------------------------- the server's error


class TooLongError(ContextOverflowError):
    """A server's error."""


@pytest.mark.parametrize("way", WAYS)
def test_after_the_servers_error_a_summary_is_made_where_results_are_not_enough(way: str) -> None:
    """Once; where that fails too, the error is raised."""

    def replies(summary: Any) -> Callable[..., Any]:
        def reply(messages: Sequence[BaseMessage], **keywords: Any) -> Any:
            if ScriptedChatModel()._estimated_tokens(messages, keywords.get("tools") or ()) > 2000:
                return TooLongError("This model's maximum context length is 2000 tokens.")
            return summary if is_asked(messages) else "Fine."

        return reply

    turns = [one for number in range(60) for one in (HumanMessage(f"Question {number}?"), AIMessage("An answer. " * 30))]
    model = model_of(replies(SUMMED), context_window=None)
    ran = run(way, model, [*turns, QUESTION])
    assert ran.error is None and ran.new[-1].text == "Fine." and summaries(model.requests[-1].messages)
    assert len(parted(model)[0]) == 2
    model = model_of(replies(""), context_window=None)
    assert isinstance(run(way, model, [*turns, QUESTION]).error, TooLongError) and len(parted(model)[0]) == 1


# ---------------------------------------------------------------------------------------------- other features


class Found(BaseModel):
    """What was found."""

    fact: int


def test_structured_output_asks_for_plain_text() -> None:
    """A forced choice and a response format are the turns' own."""
    final = asking(call("Found", "f", fact=7))

    class Finding(Reader):
        def reply(self, messages: Sequence[BaseMessage], **keywords: Any) -> Any:
            """End in the schema's call."""
            made = super().reply(messages, **keywords)
            return final if made == "Done." else made

    model = model_of(Finding(30))
    assert model.with_structured_output(Found, method="function_calling").invoke([QUESTION]) == Found(fact=7)
    turns, asked = parted(model)
    assert asked and {one.tool_choice for one in turns} == {"any"} and {one.tool_choice for one in asked} == {None}
    model = model_of(Reader(30))
    model.invoke([QUESTION], response_format={"type": "json_object"}, stop=["x"])
    turns, asked = parted(model)
    assert asked and all("response_format" in one.kwargs and one.stop for one in turns)
    assert not any("response_format" in one.kwargs or one.stop for one in asked)


def test_an_agents_questions_go_on_from_the_summary() -> None:
    """What is in one question's requests is in the next one's."""
    model = model_of(Reader(40))
    agent = Agent(model)
    agent.run("Read.")
    turns, asked = parted(model)
    agent.run("And now?")
    later = parted(model)[0][len(turns)]
    assert asked and summaries(later.messages) == summaries(turns[-1].messages)


@pytest.mark.parametrize("wire", ROWS, ids=lambda wire: wire.name)
def test_every_wires_strict_server_accepts_each_request(wire: Wire) -> None:
    """Turns, requests for summaries, transcripts: nothing that is sent is refused."""
    numbers, played = count(), count()

    def script(exchange: Any) -> Any:
        next(played)
        usage = (len(exchange.body) // 4, 20)
        if b"conversation>" in exchange.body:
            return Turn(SUMMED, usage=usage)
        if b"asks for a summary" in exchange.body:
            return Turn(calls=[Call("page", {"number": 99})], usage=usage)
        pair = [*islice(numbers, 2)]
        calls = [Call("page", {"number": number}) for number in pair if number < 28]
        return Turn(calls=calls, usage=usage) if calls else Turn("Done.", usage=usage)

    with wire.serve(script) as server:
        model = wire.model(server, tools=[page], compact=True, context_window=WINDOW, max_turns=None)
        new = new_messages(model.invoke([QUESTION]))
        bodies = [exchange.body for exchange in server.exchanges]
    assert next(played) == len(bodies)
    assert [one.text for one in new if one.type == "tool"] == [page(number) for number in range(28)] and new[-1].text == "Done."
    assert sum(b"conversation>" in body for body in bodies) > 0 and SUMMED.encode() in bodies[-1]


# ---------------------------------------------------------------------------------------------- long runs


def test_a_run_of_two_thousand_turns_stays_under_the_limit() -> None:
    """After the first cut no request passes it."""
    model = model_of(Reader(2000), context_window=16_000, carry_messages=False)
    ran = model.invoke([RULES, QUESTION])
    turns, asked = parted(model)
    assert ran.response_metadata["autotools"]["stop_reason"] == "complete" and len(turns) == 2001
    assert max(map(tokens, turns[::10])) <= 0.8 * 16_000 and 1 < len(asked) < 60


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.integers(0, 3000), min_size=5, max_size=40), st.integers(0, 4), st.integers(1200, 4000), st.floats(0.4, 1.0), st.booleans()
)
def test_properties_of_random_runs(sizes: list[int], keep: int, window: int, at: float, usage: bool) -> None:
    """Every request is valid; what is covered stays covered; a new process sends the same."""

    def work(number: int) -> str:
        """Work."""
        return f"{number} " + "x " * (sizes[number] // 2)

    class Working(Reader):
        def reply(self, messages: Sequence[BaseMessage], **keywords: Any) -> Any:
            """Call `work`."""
            if is_asked(messages):
                return SUMMED
            number = next(self.read)
            free = number < len(sizes) and keywords.get("tool_choice") != "none"
            return asking(call("work", f"call_{number}", number=number)) if free else "Done."

    fields: dict[str, Any] = {"tools": [work], "compact": Compaction(at=at, keep=keep), "context_window": window}
    model = model_of(Working(0, usage=usage), **fields)
    new = new_messages(model.invoke([QUESTION]))
    turns, _ = parted(model)
    ends = [number for number, one in enumerate(new) if isinstance(one, AIMessage)]
    covered = [one["summary"]["messages"] for message in new if "summary" in (one := record(message))]
    assert covered == sorted(set(covered))
    for end, request in zip(ends, turns, strict=True):
        assert validate(request.messages) == [] and len(summaries(request.messages)) <= 1
        again = model_of(Working(0, usage=usage), **fields)
        again.invoke(messages_from_dict(messages_to_dict([QUESTION, *new[:end]])))
        assert contents(parted(again)[0][0]) == contents(request)


KEPT: dict[str, Callable[[Any], list[BaseMessage]]] = {
    "parts": new_messages,
    "run message": lambda message: [message],
    "parts as JSON": lambda message: messages_from_dict(json.loads(json.dumps(messages_to_dict(new_messages(message))))),
    "run message as JSON": lambda message: messages_from_dict(json.loads(json.dumps(messages_to_dict([message])))),
    "both": lambda message: [*new_messages(message), message],
}


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 12), *[st.sampled_from(sorted(KEPT))] * 2), min_size=2, max_size=5),
    st.integers(0, 3),
    st.floats(0.5, 1.0),
    st.booleans(),
    st.booleans(),
)
def test_however_its_runs_are_stored_a_conversation_makes_the_same_requests(
    asked: list[tuple[int, str, str]], keep: int, at: float, usage: bool, summary: bool
) -> None:
    """Several questions, each a run that is kept in any way, in two programs alike. A request made again is the same (idempotent)."""
    compact = Compaction(at=at, keep=keep, summary=summary)
    stored: list[list[BaseMessage]] = [[], []]
    sent: list[list[Any]] = [[], []]
    for number, (pages, *ways) in enumerate(asked):
        for place, way in enumerate(ways):
            model = model_of(Reader(pages, usage=usage), compact=compact, context_window=6000)
            history = [*stored[place], HumanMessage(f"Question {number}?")]
            message = model.invoke(history)
            sent[place] += [contents(one) for one in model.requests]
            repeated = model_of(Reader(pages, usage=usage), compact=compact, context_window=6000)
            repeated.invoke(messages_from_dict(messages_to_dict(history)))
            assert [contents(one) for one in repeated.requests] == [contents(one) for one in model.requests]
            stored[place] = [*history, *KEPT[way](message)]
    assert sent[0] == sent[1]


def test_a_reading_goes_on_from_where_it_was() -> None:
    """A fold over a history in two pieces is that over the whole."""
    new = [QUESTION, *new_messages(model_of(Reader(30)).invoke([QUESTION]))]
    whole, half = Reading(lambda one: len(one.text)), Reading(lambda one: len(one.text))
    whole.read(new)
    half.read(new[:31])
    rest = half.copy()
    rest.read(new[31:])
    assert rest.cut == whole.cut and rest.outline.ends == whole.outline.ends and half.outline.places[-1] == 31
