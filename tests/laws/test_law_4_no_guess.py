"""Law 4, never act on a guess: a call runs only if the model wrote it whole and its turn ended normally."""

import json
from typing import Any

from hypothesis import strategies as st
from langchain_core.messages import ToolMessage

from tests.laws.checks import check_answered, check_plain
from tests.laws.outcomes import Breaks, stopped
from tests.laws.stories import (
    BROKEN,
    OPEN_CELLS,
    Planned,
    Said,
    Script,
    by_name_and_arguments,
    canonical,
    good_calls,
    objects,
    replies,
    texts,
)
from tests.laws.ways import LISTENERS, QUESTION, WAYS, chat, law, run, serving
from tests.laws.workshop import Workshop
from tests.support.script import Call, Turn
from tests.support.wire_styles import STYLES

listeners = st.sampled_from(sorted(LISTENERS))
ways = st.sampled_from(WAYS)


def meant(said: Said) -> list[tuple[str, str]]:
    """What the model asked to run."""
    return sorted((planned.call.name, canonical(planned.args)) for planned in said.calls if planned.runs)


def is_part(some: list[tuple[str, str]], every: list[tuple[str, str]]) -> bool:
    """Whether `some` are among `every`, none more often."""
    return all(some.count(one) <= every.count(one) for one in some)


@law(6)
def test_law_4_a_cut_stream_runs_nothing_that_was_not_meant(data: st.DataObject) -> None:
    """Cut at any byte, torn or just ended: no call runs unless its reply had come to its end; what runs was meant, word for word."""
    said: Said = data.draw(replies(styles="open"))
    broken = Breaks(said, data.draw(st.floats(0, 1)), data.draw(st.booleans()))
    shop = Workshop()
    with serving(Script([broken])) as server:
        ran = run(data.draw(ways), chat(server, tools=shop.tools()), [QUESTION], listeners=data.draw(listeners))
    assert is_part(shop.ran, meant(said))
    check_answered(ran.new)
    if ran.error is not None:
        assert (ran.new, shop.ran) == ([], [])


@law(5)
def test_law_4_a_turn_that_was_stopped_runs_nothing(data: st.DataObject) -> None:
    """After `length` or `content_filter` complete calls do not run either; each is answered with an error that says so."""
    said = data.draw(stopped())
    shop = Workshop()
    with serving(Script([said])) as server:
        ran = run(data.draw(ways), chat(server, tools=shop.tools()), [QUESTION], listeners=data.draw(listeners))
    assert (ran.error, shop.ran) == (None, [])
    check_plain(ran)
    results = [message for message in ran.new if isinstance(message, ToolMessage)]
    assert len(results) == len(said.calls)
    assert all(result.status == "error" and "error" in json.loads(result.text) for result in results)
    assert ran.new[0].tool_calls == []  # type: ignore[attr-defined]


@law(6)
def test_law_4_in_every_wire_style_nothing_runs_that_was_not_meant(data: st.DataObject) -> None:
    """In every cell of the grid whose streams say enough, what runs is what was meant; all else is answered with an error."""
    calls = data.draw(st.lists(good_calls(), min_size=1, max_size=4, unique_by=by_name_and_arguments))
    said = Said(
        "", calls, data.draw(st.one_of(st.sampled_from(OPEN_CELLS), st.sampled_from(sorted(STYLES)))), seed=data.draw(st.integers(0, 99))
    )
    shop = Workshop()
    with serving(Script([said])) as server:
        ran = run(data.draw(ways), chat(server, tools=shop.tools(), streaming=True), [QUESTION], listeners=data.draw(listeners))
    assert ran.error is None, ran.error
    assert is_part(shop.ran, meant(said))
    check_answered(ran.new)


scraps = st.one_of(
    st.sampled_from(BROKEN),
    st.lists(
        st.sampled_from(["{", "}", '"text"', ":", '"a"', ",", "[", "]", "1", " ", "nul", "\\", "NaN", "{}", '{"text":"a"}']), max_size=7
    ).map("".join),
    texts,
    objects.map(canonical),
    objects.map(lambda value: json.dumps(canonical(value))),
)


@law(8)
def test_law_4_only_one_complete_object_runs(data: st.DataObject) -> None:
    """Whatever text comes in place of arguments: what runs is one JSON object that the text holds as it is."""
    raw: str = data.draw(scraps)
    shop = Workshop()
    turn = Turn("", [Call("anything", raw)], style=data.draw(st.sampled_from(["standard", "whole", "interleaved"])))
    with serving(Script([turn])) as server:
        ran = run(data.draw(ways), chat(server, tools=shop.tools()), [QUESTION], listeners=data.draw(listeners))
    assert ran.error is None, ran.error
    check_answered(ran.new)
    allowed = [canonical(value) for value in held(raw)] or ["{}"] * (raw.strip() in ("", "null"))
    assert is_part(shop.ran, [("anything", args) for args in allowed]), (raw, shop.ran)
    if isinstance(read(raw), dict):
        assert [args for _, args in shop.ran] == allowed


def read(raw: str) -> Any:
    """The JSON value that a text is, nothing around it."""
    try:
        return json.loads(raw, strict=False, parse_constant=_no_constant)
    except ValueError:
        return None


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def held(raw: str) -> list[Any]:
    """The objects that a text holds one after another; also inside the JSON string that it may be."""
    value = read(raw)
    if isinstance(value, str):
        return held(value)
    if value is not None and not isinstance(value, dict):
        return []
    decoder = json.JSONDecoder(strict=False, parse_constant=_no_constant)
    found: list[Any] = []
    start = raw.find("{")
    while start >= 0:
        end = start + 1
        try:
            value, end = decoder.raw_decode(raw, start)
            found.append(value)
        except ValueError:
            pass
        start = raw.find("{", end)
    return found


def test_law_4_every_prefix_of_a_call_is_refused_or_whole() -> None:
    """Core's repair of partial JSON would complete each of these texts; none of them runs."""
    whole = '{"text": "a\\"b", "more": [1, {"x": null}]}'
    for end in range(1, len(whole)):
        shop = Workshop()
        with serving(Script([Said("", [Planned(Call("anything", whole[:end]), None, False, None)])])) as server:
            run("stream", chat(server, tools=[shop.anything()]), [QUESTION])
        assert shop.ran == [], whole[:end]
