"""What has been seen of runs, as HTML and as the plain text beside it."""

import re
from collections.abc import Iterable
from dataclasses import replace
from html import unescape
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_autotools import ToolCallRecord
from langchain_autotools.event_types import (
    CallDiscarded,
    CallReady,
    CallsPending,
    MessageDiscarded,
    ReasoningDelta,
    RunEnded,
    RunEvent,
    RunFailed,
    RunStarted,
    TextDelta,
)
from langchain_autotools.showing.page import part_html, part_text, waiting_text
from langchain_autotools.showing.view_model import EndView, TextView, ViewModel
from tests.support.seen_runs import INNER, OUTER, PAGE_TAG, USAGE, Read, answered, begun, pending, ready, record, reported, written

PARIS, ROME = record("1", "forecast", {"city": "Paris"}), record("2", "forecast", {"city": "Rome"})


def seen(*events: RunEvent | Iterable[RunEvent]) -> ViewModel:
    """What has been seen after these events."""
    runs = ViewModel()
    for one in events:
        for event in [one] if isinstance(one, RunEvent) else one:
            runs.apply(event)
    return runs


def page(runs: ViewModel) -> list[str]:
    """The HTML of each part."""
    return [part_html(part) for part in runs.parts]


def words(html: str) -> str:
    """What a reader reads of it."""
    return " ".join(re.sub(r"<[^>]*>", " ", html).replace("&quot;", '"').split())


def test_text_is_set_and_reasoning_is_folded() -> None:
    """Reasoning shows its last line until somebody opens it."""
    reasoning = ReasoningDelta(**OUTER, message_id="m", text="First this.\nThen that.")
    thought, text = page(seen(RunStarted(**OUTER, name="Weather"), reasoning, begun()))
    assert thought.count("<details") == 1 and " open>" not in thought and "<summary>" in thought
    assert words(thought) == "Reasoning Then that. First this. Then that."
    assert "<strong>look</strong>" in text


@pytest.mark.parametrize("pieces", [['{"city": "Par'], ['{"ci', 'ty": "P', "ar"]])
def test_arguments_are_shown_while_they_are_written(pieces: list[str]) -> None:
    """As far as they go, marked as unfinished."""
    call = page(seen(begun(), written(*pieces)))[1]
    assert words(call) == 'forecast(city="Par"… is being written city "Par"'


def test_a_long_call_stands_open_while_it_is_written() -> None:
    """So that a document can be read as it comes; once the call is whole it is folded."""
    piece = '{"text": "' + "one line\\n" * 20
    call = record("1", "forecast", {"text": "one line\n" * 20})
    assert " open>" in page(seen(begun(), written(piece)))[1]
    assert " open>" not in page(seen(begun(), written(piece), CallReady(**OUTER, message_id="m", call=call, index=0)))[1]


def test_calls_show_progress_results_and_errors() -> None:
    """The latest word of each is in its line, everything when it is opened; one that failed is open."""
    events = [*begun(), *ready(PARIS), *ready(ROME), *reported("1", "asking", {"share": 0.5}), *reported("2", "asking")]
    _, paris, rome = page(seen(events))
    assert words(paris) == 'forecast(city="Paris") {"share": 0.5} running city "Paris" Progress asking {"share": 0.5}'
    events += [answered(ROME, "no <b>station</b>", status="error"), answered(PARIS, "rain")]
    _, paris, rome = page(seen(events))
    assert words(paris) == 'forecast(city="Paris") rain 0.2 s city "Paris" Progress asking {"share": 0.5} Result rain'
    assert " open>" in rome and " open>" not in paris
    assert words(rome).endswith('failed 0.2 s city "Rome" Progress asking Error no &lt;b&gt;station&lt;/b&gt;')


def test_a_run_inside_a_tool_stands_under_its_call() -> None:
    """Also its own calls and its end; the outer run has no further part for it."""
    inner = [RunStarted(**INNER, name="Helper"), TextDelta(**INNER, message_id="n", text="I search."), *ready(ROME, INNER)]
    runs = seen(begun(), ready(PARIS), inner)
    _, call = page(runs)
    assert " open>" in call and 'class="at-run"' in call
    assert words(call) == 'forecast(city="Paris") running city "Paris" Helper I search. forecast(city="Rome") running city "Rome"'
    runs.changed.clear()
    for event in [answered(ROME, "sun", INNER), RunEnded(**INNER, stop_reason="complete", turns=2)]:
        runs.apply(event)
    assert list(runs.changed) == list(runs.parts)[1:]
    assert words(page(runs)[1]).endswith("Result sun 2 turns")


def test_calls_that_wait_say_what_can_be_done() -> None:
    """They are open with all of their arguments, however long; the end says how to go on."""
    call = record("1", "send_mail", {"to": "Anna", "text": "word " * 1000})
    declared = record("2", "book", {})
    waiting = [pending(call), pending(declared, "caller")]
    end = RunEnded(**OUTER, stop_reason="calls_pending", turns=1, usage=USAGE)  # type: ignore[arg-type]
    _, mail, book, last = page(seen(begun(), ready(call), ready(declared), CallsPending(**OUTER, calls=waiting), end))
    assert " open>" in mail and mail.count("word") > 1000 and "approve(), edit(...), reject(...) or respond(...)" in mail
    assert "run it yourself" in words(book)
    line = 'call.approve() if "approval" in call.kind else call.respond("...") for call in pending_calls(run)]))'
    assert "2 calls wait for you." in last and f"run = show(model.stream([*history, run], resume=[{line}" in unescape(last)
    assert last.endswith("1 turn · 1,000 tokens in, 20 out · stopped: calls_pending</p></div>")


def test_plain_text_of_a_call_that_waits_has_all_that_is_needed() -> None:
    """All of its arguments, what there is to decide, and the line that decides it."""
    call = record("1", "send_mail", {"to": "Anna", "text": "word " * 1000})
    end = RunEnded(**OUTER, stop_reason="calls_pending", turns=1)
    runs = seen(begun(), ready(call), CallsPending(**OUTER, calls=[pending(call)]), end)
    _, mail, last = map(part_text, runs.parts)
    assert mail.startswith('? send_mail(to="Anna", text="word word') and mail.count("word ") == 1000
    assert mail.endswith("May it run with these arguments? It has not run. Decide: approve(), edit(...), reject(...) or respond(...).")
    assert last.splitlines() == [
        "1 call waits for you. To go on, with pending_calls from langchain_autotools:",
        "run = show(model.stream([*history, run], resume=[call.approve() for call in pending_calls(run)]))",
        "[1 turn · stopped: calls_pending]",
    ]


@pytest.mark.parametrize(
    ("kinds", "decides"),
    [
        (["vendor_approval"], "call.approve() for call in pending_calls(run)]"),
        (["approval", "queued"], 'call.approve() for call in pending_calls(run) if call.kind != "queued"]'),
        (["caller"], 'call.respond("...") for call in pending_calls(run)]'),
        (["elicitation"], 'call.respond({"city": ..., "seats": ...}) for call in pending_calls(run)]'),
        (["elicitation", "elicitation"], "call.respond({...}) for call in pending_calls(run)]"),
    ],
)
@pytest.mark.further
def test_the_line_fits_what_the_calls_wait_for(kinds: list[Any], decides: str) -> None:
    """What to say differs from kind to kind; a question's fields are those of its schema."""
    asked = {"message": "Which?", "schema": {"properties": {"city": {}, "seats": {}}}}
    waiting = [replace(pending(record(str(number), "book", {}), kind), args=asked) for number, kind in enumerate(kinds)]
    text = waiting_text(EndView(RunEnded(**OUTER, stop_reason="calls_pending", turns=1), waiting, True))
    assert text.endswith(f"resume=[{decides}))")


def test_what_came_to_nothing_says_why() -> None:
    """A call that was begun and then discarded, and one whose arguments are no JSON."""
    broken = ToolCallRecord("2", "forecast", '{"city": ', None, "not JSON")
    discarded = CallDiscarded(**OUTER, message_id="m", call_id="1", reason="the reply broke off")
    _, gone, invalid = page(seen(begun(), written('{"ci'), discarded, ready(broken), answered(broken, "not JSON", status="error")))
    assert words(gone).startswith("forecast(… the reply broke off came to nothing")
    assert words(invalid).startswith('forecast({"city": ) not JSON failed')


@pytest.mark.parametrize(
    ("error", "said"),
    [(ValueError("a secret"), "failed: ValueError"), (KeyboardInterrupt(), "interrupted")],
)
@pytest.mark.parametrize("told", [True, False], ids=["an event says so", "no event says so"])
def test_a_run_that_breaks_off_says_so(error: BaseException, said: str, told: bool) -> None:
    """Its open calls too, and nothing of the exception's own text is shown."""
    inner = RunStarted(**INNER, name="Helper")
    runs = seen(begun(), ready(PARIS), inner, [RunFailed(**OUTER, error=error)] if told else [])
    runs.break_off(error)
    shown = page(runs)
    assert words(shown[1]).startswith('forecast(city="Paris") interrupted') and words(shown[-1]) == said
    assert "secret" not in "".join(shown) and len(shown) == 3
    assert f"[{said}]" == part_text(list(runs.parts)[-1])


def test_an_exception_before_any_event_is_shown_too() -> None:
    """A chain may fail before a model was asked."""
    runs = ViewModel()
    runs.break_off(KeyError("x"))
    assert [words(one) for one in page(runs)] == ["failed: KeyError"]


@given(st.lists(st.text(st.sampled_from("<>\"'&/ a=`*_|\n\\") | st.characters(), max_size=30), min_size=6, max_size=6))
def test_nothing_that_a_model_or_a_tool_says_is_markup(said: list[str]) -> None:
    """Names, arguments, progress, results and reasons: only the page's own tags, all of them closed."""
    name, key, value, progress, result, text = said
    call = record("1", name, {key: value, "more": [value, {key: value}]})
    waits = record("2", name, {key: value})
    runs = seen(
        begun(text),
        written(value, call_id="3", name=name),
        CallDiscarded(**OUTER, message_id="m", call_id="3", reason=result),
        ready(call),
        ready(waits),
        reported("1", progress, {progress: progress}),
        [RunStarted(**INNER, name=name), ReasoningDelta(**INNER, message_id="n", text=text)],
        CallsPending(**OUTER, calls=[pending(waits)]),
        answered(call, result),
    )
    read = Read("".join(page(runs)))
    assert read.balanced and all(map(PAGE_TAG.fullmatch, read.tags))
    assert {attribute for attribute, _ in read.attributes} <= {"class", "open", "href", "target", "rel", "start"}
    "".join(map(part_text, runs.parts)).encode()


def test_plain_text_stands_beside_the_html() -> None:
    """For where no HTML is shown: the text as it was written, calls with their results, the end."""
    end = RunEnded(**OUTER, stop_reason="complete", turns=2)
    runs = seen(begun(), ready(PARIS), answered(PARIS, "rain"), end)
    assert [part_text(part) for part in runs.parts] == ["Let me **look**.", '→ forecast(city="Paris")\n← rain', "[2 turns]"]


def test_a_reply_that_is_void_is_no_longer_shown() -> None:
    """The process that read it has died; what is written next takes its place."""
    runs = seen(begun("Half"), MessageDiscarded(**OUTER, message_id="m", attempt=1), TextDelta(**OUTER, message_id="m2", text="Whole"))
    assert [part.text for part in runs.parts if isinstance(part, TextView)] == ["", "Whole"]
