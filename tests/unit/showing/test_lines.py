"""Runs as plain text while they happen."""

import io

import pytest
from langchain_core.messages import AIMessage

from langchain_autotools.event_types import CallDiscarded, CallsPending, MessageDone, RunEnded, RunFailed, RunStarted, TextDelta
from langchain_autotools.showing.view_model import Lines
from tests.support.seen_runs import INNER, OUTER, USAGE, answered, begun, pending, ready, record, reported

PARIS, ROME = record("1", "forecast", {"city": "Paris"}), record("2", "forecast", {"city": "Rome"})
END = RunEnded(**OUTER, stop_reason="complete", turns=2, usage=USAGE)  # type: ignore[arg-type]
ANSWER = TextDelta(**OUTER, message_id="m2", text="Take a coat.")


def shown(*events: object) -> str:
    """What these events print."""
    output = io.StringIO()
    lines = Lines(output, output)
    for one in events:
        for event in one if hasattr(one, "__iter__") else [one]:
            lines.show(event)
    return output.getvalue()


def test_text_calls_progress_and_results_stand_on_lines() -> None:
    """In the order in which they happen; two calls of one tool are told apart by their arguments."""
    calls = [*ready(PARIS), *ready(ROME), *reported("1", "asking", {"share": 0.5})]
    said = shown(begun("Let me look."), calls, answered(ROME, "sun\nall day"), answered(PARIS, "no station", status="error"), ANSWER, END)
    assert said.splitlines() == [
        "Let me look.",
        '→ forecast(city="Paris")',
        '→ forecast(city="Rome")',
        '… forecast(city="Paris"): asking',
        '… forecast(city="Paris"): {"share":0.5}',
        '← forecast(city="Rome"): sun all day',
        '← forecast(city="Paris"): no station',
        "Take a coat.",
        "[2 turns · 1,000 tokens in, 20 out]",
    ]


def test_what_runs_inside_a_tool_is_indented() -> None:
    """Its text line by line, so that it can come between what others say."""
    pieces = [TextDelta(**INNER, message_id="n", text=text) for text in ("I se", "arch.\nA lot", " of it.")]
    done = [MessageDone(**INNER, message=AIMessage("...", id="n")), RunEnded(**INNER, stop_reason="complete", turns=1)]
    inner = [RunStarted(**INNER, name="Helper"), *pieces[:2], *ready(ROME), pieces[2], *ready(record("3", "search", {}), INNER), *done]
    assert shown(begun("Let me look."), ready(PARIS), inner).splitlines() == [
        "Let me look.",
        '→ forecast(city="Paris")',
        "  I search.",
        '→ forecast(city="Rome")',
        "  A lot of it.",
        "  → search()",
        "  [1 turn]",
    ]


def test_what_waits_fails_or_comes_to_nothing_says_so() -> None:
    """A call that waits with its arguments; of an exception its class alone."""
    gone = CallDiscarded(**OUTER, message_id="m", call_id="9", reason="the reply broke off")
    waits = CallsPending(**OUTER, calls=[pending(PARIS)])
    said = shown(begun("So"), gone, waits, RunFailed(**OUTER, error=ValueError("a secret")), RunFailed(**OUTER, error=KeyboardInterrupt()))
    assert said.splitlines() == [
        "So",
        "(a call came to nothing: the reply broke off)",
        '? forecast(city="Paris") waits',
        "[failed: ValueError]",
        "[interrupted]",
    ]


def test_the_texts_of_two_turns_are_set_apart() -> None:
    """As in the run message: also where calls and results go to another place."""
    call = AIMessage("One.", id="m", tool_calls=[{"name": "forecast", "args": {}, "id": "1"}])
    answers = io.StringIO()
    lines = Lines(answers, io.StringIO())
    for event in [*begun("One."), *ready(PARIS), MessageDone(**OUTER, message=call), answered(PARIS, "rain"), ANSWER]:
        lines.show(event)
    assert answers.getvalue() == "One.\nTake a coat."


@pytest.mark.parametrize("steering", ["\x1b[2J", "\x07", "\u202e", "\x9b2J"])
def test_nothing_steers_the_terminal(steering: str) -> None:
    """Whatever a model or a tool says; nor does half a surrogate pair break the output."""
    bad = f"{steering}\ud83d"
    call = record("1", bad, {bad: bad})
    said = shown(begun(bad), ready(call), reported("1", bad, {bad: bad}), answered(call, bad), CallsPending(**OUTER, calls=[pending(call)]))
    assert steering[0] not in said
    said.encode()
