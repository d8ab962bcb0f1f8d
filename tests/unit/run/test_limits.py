"""`Limits`, `Progress` and `stop_reason_of`: what ends a run, in which order, and what each limit counts. No I/O, no clock."""

from typing import Any

import pytest

from langchain_autotools import ConfigurationError
from langchain_autotools.messages.run_messages import AT_TOKEN_LIMIT, REFUSALS, stop_reason_of
from langchain_autotools.run.loop import Limits, Progress
from langchain_autotools.run.settings import call_settings
from langchain_autotools.testing import ScriptedChatModel


def progress(**limits: Any) -> Progress:
    """A run with nothing but these limits, begun at second 100."""
    return Progress(Limits(**{"max_turns": None, "no_progress": None, **limits}), 100.0)


def read(**keywords: Any) -> dict[str, Any]:
    """The settings of a call with these keywords, by name."""
    return call_settings(ScriptedChatModel(replies=[]), keywords)[0]


def usage(given: int, written: int) -> Any:
    """Usage as a vendor reports it."""
    return {"input_tokens": given, "output_tokens": written, "total_tokens": given + written}


def all_hit() -> Progress:
    """A run that has reached every limit at once."""
    limits = Limits(max_turns=1, max_tool_calls=0, token_budget=1, context_window=1, deadline=5, no_progress=2)
    run = Progress(limits, 100.0)
    run.count_turn(usage(3, 4))
    run.admit(1)
    for _ in range(2):
        run.count_results([("f", "{}", "1")])
    return run


# ---------------------------------------------------------------------------------------------- the order of reasons

ORDER = ["deadline", "max_tool_calls", "no_progress", "token_budget", "context_window", "max_turns"]


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_of_several_limits_the_first_of_the_order_is_named(first: int) -> None:
    """What the user can change least comes first; the number of turns, which is nearly always a symptom, last."""
    run = all_hit()
    lifted = dict.fromkeys(name for name in ORDER[:first] if name != "max_tool_calls")
    run.limits = Limits(**{**vars(run.limits), **lifted})
    if first > ORDER.index("max_tool_calls"):
        run._refused_calls = False
    assert run.reached(105.0) == ORDER[first]


def test_without_limits_nothing_is_reached() -> None:
    """None switches each of them off, however much a run has used."""
    run = all_hit()
    run.limits = Limits(max_turns=None, no_progress=None)
    run._refused_calls = False
    assert run.reached(1e9) is None


# ---------------------------------------------------------------------------------------------- one limit at a time


@pytest.mark.parametrize(("given", "written", "full"), [(60, 39, False), (60, 40, True), (100, 0, True), (0, 100, True), (99, 0, False)])
def test_the_context_holds_what_was_read_and_what_was_written(given: int, written: int, full: bool) -> None:
    """The next request brings the last reply too: input and output both count against the window."""
    run = progress(context_window=100)
    run.count_turn(usage(given, written))
    assert run.reached(100.0) == ("context_window" if full else None)


def test_the_context_is_that_of_the_last_turn() -> None:
    """It is the size of a request, not a sum; a turn without usage leaves it as it was."""
    run = progress(context_window=100)
    run.count_turn(usage(40, 20))
    run.count_turn(usage(30, 20))
    run.count_turn(None)
    assert run.context == 50
    assert run.turns == 3
    assert run.reached(100.0) is None


def test_the_budget_is_of_all_turns_together() -> None:
    """Each turn adds what it used; a budget that is used up to the last token is used up."""
    run = progress(token_budget=100)
    assert run.reached(100.0) is None
    run.count_turn(usage(40, 19))
    assert run.reached(100.0) is None
    run.count_turn(usage(30, 11))
    assert run.usage is not None and run.usage["total_tokens"] == 100
    assert run.reached(100.0) == "token_budget"


@pytest.mark.parametrize(("now", "over"), [(100.0, False), (104.9, False), (105.0, True), (200.0, True)])
def test_the_deadline_counts_from_the_start(now: float, over: bool) -> None:
    """At the very second it is over."""
    run = progress(deadline=5)
    assert run.overdue(now) is over
    assert run.reached(now) == ("deadline" if over else None)
    assert not progress().overdue(now)


@pytest.mark.parametrize(("turns", "reached"), [(1, None), (2, "max_turns"), (3, "max_turns")])
def test_turns_are_counted(turns: int, reached: str | None) -> None:
    """The limit is how many may ask for tools."""
    run = progress(max_turns=2)
    for _ in range(turns):
        run.count_turn(None)
    assert run.reached(100.0) == reached


# ---------------------------------------------------------------------------------------------- tool calls


def test_calls_are_admitted_up_to_the_limit() -> None:
    """Of a turn's calls the first ones; reaching the number alone ends nothing, a call beyond it does."""
    run = progress(max_tool_calls=3)
    assert run.admit(2) == 2
    assert run.admit(1) == 1
    assert run.reached(100.0) is None
    assert run.admit(2) == 0
    assert run.tool_calls == 3
    assert run.reached(100.0) == "max_tool_calls"


def test_a_refused_call_is_not_forgotten() -> None:
    """A later turn that asks for nothing, or for no more than there is, does not take it back."""
    run = progress(max_tool_calls=1)
    assert run.admit(2) == 1
    assert run.admit(0) == 0
    assert run.reached(100.0) == "max_tool_calls"


def test_without_a_limit_all_calls_are_admitted() -> None:
    """And counted."""
    run = progress()
    assert [run.admit(2), run.admit(5)] == [2, 5]
    assert run.tool_calls == 7
    assert run.reached(100.0) is None


# ---------------------------------------------------------------------------------------------- standing still

ONE, OTHER, POLL = ("f", "{}", "1"), ("f", "{}", "2"), ("poll", "{}", "wait")


def test_the_same_calls_with_the_same_results_are_counted_in_a_row() -> None:
    """The limit is reached with that many equal turns, not before; something else in between starts anew."""
    run = progress(no_progress=3)
    for results in ([ONE], [ONE], [OTHER], [ONE], [ONE]):
        run.count_results(results)
    assert run.reached(100.0) is None
    run.count_results([ONE])
    assert run.reached(100.0) == "no_progress"


def test_polling_is_no_standing_still() -> None:
    """Calls of the named tools say nothing, alone or beside others; the others still count."""
    run = progress(no_progress=2, polling_tools=["poll"])
    for _ in range(5):
        run.count_results([POLL])
    assert run.reached(100.0) is None
    run.count_results([ONE, POLL])
    run.count_results([("poll", "{}", "still"), ONE])
    assert run.reached(100.0) == "no_progress"


def test_a_turn_of_polling_alone_ends_the_row() -> None:
    """What came before it and what comes after it are not in a row."""
    run = progress(no_progress=2, polling_tools=["poll"])
    for results in ([ONE], [POLL], [ONE]):
        run.count_results(results)
    assert run.reached(100.0) is None


def test_without_polling_tools_each_call_counts() -> None:
    """The same tool, not named, is standing still."""
    run = progress(no_progress=2)
    run.count_results([POLL])
    run.count_results([POLL])
    assert run.reached(100.0) == "no_progress"


def test_interrupted_turns_that_bring_the_same_stand_still() -> None:
    """They are counted like results, and are none: text that equals a result's is something else."""
    run = progress(no_progress=2)
    run.count_pause("a")
    run.count_pause("b")
    assert run.reached(100.0) is None
    run.count_pause("b")
    assert run.reached(100.0) == "no_progress"


# ---------------------------------------------------------------------------------------------- how a reply ended


@pytest.mark.parametrize(
    ("blocked", "reason"),
    [
        (None, "complete"),
        ("", "complete"),
        *((word, "refused") for word in sorted(REFUSALS)),
        *((word.upper(), "length") for word in sorted(AT_TOKEN_LIMIT)),
        ("error", "incomplete"),
        ("stream cut", "incomplete"),
    ],
)
def test_the_end_of_a_reply_is_the_end_of_the_run(blocked: str | None, reason: str) -> None:
    """A refusal, a cut at the token limit and any other break have names of their own, in any case of letters."""
    assert stop_reason_of(blocked) == reason


# ---------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("name", "least", "too_small"),
    [
        ("max_turns", 1, 0),
        ("token_budget", 1, 0),
        ("context_window", 1, 0),
        ("deadline", 0.1, 0),
        ("max_tool_calls", 0, -1),
        ("no_progress", 2, 1),
    ],
)
def test_a_limit_has_a_least_value(name: str, least: float, too_small: float) -> None:
    """None lifts it; what is smaller, a truth value or a text is refused by name."""
    assert read(**{name: least})[name] == least
    assert read(**{name: None})[name] is None
    for wrong in (too_small, True, "3"):
        with pytest.raises(ConfigurationError, match=f"{name} must be"):
            read(**{name: wrong})


def test_words_and_names_are_checked() -> None:
    """`on_limit` is one of three words, `polling_tools` a list of names and not one text."""
    for word in ("answer", "return", "raise"):
        assert read(on_limit=word)["on_limit"] == word
    with pytest.raises(ConfigurationError, match="on_limit must be one of answer, return, raise"):
        read(on_limit="stop")
    for wrong in ("poll", 3):
        with pytest.raises(ConfigurationError, match="polling_tools must be a list"):
            read(polling_tools=wrong)


def test_a_run_has_bounds_by_default() -> None:
    """25 turns and three times the same; everything else is the user's to set. The model's fields say the same."""
    limits = Limits()
    assert (limits.max_turns, limits.no_progress, limits.on_limit) == (25, 3, "answer")
    assert (limits.max_tool_calls, limits.token_budget, limits.context_window, limits.deadline) == (None,) * 4
    assert {name: read()[name] for name in vars(limits)} == vars(limits)
