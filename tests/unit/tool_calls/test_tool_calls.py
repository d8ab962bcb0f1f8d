"""`ToolCallAssembler`: calls put together from fragments in every dialect that servers are known to speak."""

import copy
from collections.abc import Sequence
from typing import Any

import pytest

from langchain_autotools.messages.calls import ToolCallRecord
from langchain_autotools.tool_calls import ToolCallAssembler
from tests.support.quirks import Quirk, needs_quirks, quirks

Fragment = dict[str, Any]
REFUSED = None


def fragment(index: int | None = None, id: str | None = None, name: str | None = None, arguments: Any = "", **extra: Any) -> Fragment:
    """A fragment as on the wire; what is None is not there."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    outer = {key: value for key, value in (("index", index), ("id", id)) if value is not None}
    return {**outer, "function": function, **extra}


def assemble(*chunks: Any, declared: Sequence[str] = ("f", "g")) -> list[ToolCallRecord]:
    """The calls of a stream; each argument is what one chunk carries."""
    assembler = ToolCallAssembler(declared)
    for chunk in chunks:
        assembler.feed(chunk)
    return assembler.finish()


def meant(calls: list[ToolCallRecord]) -> list[tuple[str, dict[str, Any] | None]]:
    """Names and arguments; arguments of None where a call must not run."""
    assert all((call.why is None) == (call.args is not None) for call in calls)
    return [(call.name, call.args) for call in calls]


@needs_quirks
@pytest.mark.parametrize("quirk", quirks(), ids=lambda quirk: quirk.label)
@pytest.mark.parametrize("told", [True, False], ids=["tools declared", "tools unknown"])
def test_quirk(quirk: Quirk, told: bool) -> None:
    """Every hand-made stream of the catalogue comes out as it was meant, whether the tools are known or not."""
    calls = assemble(*quirk.chunks, declared=quirk.declared if told else ())
    assert meant(calls) == quirk.expect
    if quirk.ids:
        assert [call.id or None for call in calls] == quirk.ids


STREAMS: list[tuple[str, list[Any], list[tuple[str, dict[str, Any] | None]]]] = [
    (
        "A-09: one index for all calls, ids in the headers, no arguments at the end",
        [fragment(0, "a", "f"), fragment(0, arguments='{"q":1}'), fragment(0, "b", "g")],
        [("f", {"q": 1}), ("g", {})],
    ),
    (
        "A-11: an id spelled null is none",
        [fragment(0, "a", "f"), fragment(0, "null", arguments='{"q":'), fragment(0, "None", "null", "1}")],
        [("f", {"q": 1})],
    ),
    (
        "A-16: a new id on every fragment",
        [fragment(0, "a", "f"), fragment(0, "b", "", '{"q":'), fragment(0, "c", "", "1}")],
        [("f", {"q": 1})],
    ),
    (
        "A-20: the last fragment under the next index",
        [fragment(0, "a", "f", '{"q":'), fragment(1, arguments='"x"}'), fragment(1, "b", "g", "{}")],
        [("f", {"q": "x"}), ("g", {})],
    ),
    (
        "A-20: a fragment under a stray index while two calls are open",
        [fragment(0, "a", "f", '{"q":'), fragment(1, "b", "g", '{"q":'), fragment(2, arguments="1}"), fragment(0, arguments="1}")],
        [("f", REFUSED), ("g", REFUSED)],
    ),
    (
        "A-20: a copy under a stray index",
        [fragment(0, "a", "f", '{"q":1}'), fragment(1, "b", "g", '{"q":2}'), fragment(2, arguments='{"q": 1}'), fragment(3)],
        [("f", {"q": 1}), ("g", {"q": 2})],
    ),
    (
        "A-20: an object under a stray index belongs to nobody",
        [fragment(0, "a", "f", '{"q":1}'), fragment(1, "b", "g", '{"q":2}'), fragment(2, arguments='{"q":3}')],
        [("f", {"q": 1}), ("g", {"q": 2}), ("", REFUSED)],
    ),
    (
        "A-35: a call begins under the index of the one before it, its arguments come under the next",
        [fragment(0, "a", "f", '{"q":1}'), fragment(0, "b", "f"), fragment(1, arguments='{"q":'), fragment(1, arguments="2}")],
        [("f", {"q": 1}), ("f", {"q": 2})],
    ),
    (
        "A-35: or the arguments of the first once more",
        [fragment(0, "a", "f", '{"q":1}'), fragment(0, "b", "f"), fragment(1, arguments='{"q":1}')],
        [("f", {"q": 1}), ("f", REFUSED)],
    ),
    (
        "A-35: without its id the second call may be the first's repeated header, and the object anybody's",
        [fragment(0, "a", "f", '{"q":1}'), fragment(0, name="g"), fragment(1, arguments='{"q":2}')],
        [("f", {"q": 1}), ("g", REFUSED), ("", REFUSED)],
    ),
    (
        "arguments before any name belong to the name that follows",
        [fragment(0, arguments='{"q":'), fragment(0, "a", "f", "1}")],
        [("f", {"q": 1})],
    ),
    (
        "the index comes with the header alone",
        [fragment(0, "a", "f"), fragment(arguments='{"q":1}'), fragment(1, "b", "g"), fragment(arguments='{"q":2}')],
        [("f", {"q": 1}), ("g", {"q": 2})],
    ),
    (
        "the id alone goes on where the index is missing",
        [fragment(0, "a", "f"), fragment(1, "b", "g"), fragment(None, "a", arguments='{"q":1}'), fragment(None, "b", arguments='{"q":2}')],
        [("f", {"q": 1}), ("g", {"q": 2})],
    ),
    (
        "A-22: the halves of one call under two indices",
        [fragment(0, "a", "f", '{"q":'), fragment(1, "a", "f", "1}"), fragment(2, "b", "g")],
        [("f", {"q": 1}), ("g", {})],
    ),
    (
        "A-22: a header again under another index",
        [fragment(0, "a", "f", '{"q":1}'), fragment(1, "a", "f"), fragment(2, "b", "g")],
        [("f", {"q": 1}), ("f", {}), ("g", {})],
    ),
    (
        "A-22: only a header under the first index",
        [fragment(0, "a", "f"), fragment(1, "a", "f", '{"q":1}')],
        [("f", REFUSED), ("f", {"q": 1})],
    ),
    (
        "A-23: two calls with one id",
        [fragment(0, "a", "f", '{"q":1}'), fragment(1, "a", "f", '{"q":2}')],
        [("f", {"q": 1}), ("f", {"q": 2})],
    ),
    (
        "A-23: one id for all calls, fragmented, one index",
        [fragment(0, "x", "f"), fragment(0, "x", arguments='{"q":1}'), fragment(0, "x", "f"), fragment(0, "x", arguments='{"q":2}')],
        [("f", {"q": 1}), ("f", {"q": 2})],
    ),
    (
        "A-23: one id for all headers, and another tool",
        [fragment(0, "x", "f"), fragment(0, arguments='{"q":1}'), fragment(0, "x", "g"), fragment(0, arguments='{"q":2}')],
        [("f", {"q": 1}), ("g", {"q": 2})],
    ),
    (
        "A-25: two anonymous fragments in a chunk",
        [[fragment(None, "a", "f"), fragment(None, "b", "g")], [fragment(arguments='{"q":1}'), fragment(arguments='{"q":2}')]],
        [("f", REFUSED), ("g", REFUSED)],
    ),
    (
        "A-26: an index that is no number is none",
        [fragment(id="a", name="f", index="first"), fragment(arguments='{"q":1}', index=True)],  # type: ignore[arg-type]
        [("f", {"q": 1})],
    ),
    (
        "A-28: id and index inside the function; flat entries",
        [
            {"function": {"index": "0", "id": "a", "name": "f"}},
            {"index": 0, "args": '{"q":1}'},
            {"name": "g", "arguments": None, "index": 1},
        ],
        [("f", {"q": 1}), ("g", {})],
    ),
    (
        "A-31: the header again at the end, empty",
        [fragment(0, "a", "f", '{"q":1}'), fragment(0, "a", "f")],
        [("f", {"q": 1})],
    ),
    (
        "no id, no index: a header again at the end, and everything",
        [fragment(name="f", arguments='{"q"'), fragment(arguments=":1}"), fragment(name="f", arguments='{"q":1}')],
        [("f", {"q": 1}), ("f", REFUSED)],
    ),
    (
        "no id, no index: the name again on the last fragment",
        [fragment(name="f"), fragment(arguments='{"q"'), fragment(name="f", arguments=":1}"), fragment(name="g")],
        [("f", {"q": 1}), ("g", {})],
    ),
    (
        "no id, no index: names tell alternating calls apart",
        [
            fragment(name="f", arguments='{"q":'),
            fragment(name="g", arguments='{"q":'),
            fragment(name="f", arguments="1}"),
            fragment(name="g", arguments="2}"),
        ],
        [("f", {"q": 1}), ("g", {"q": 2})],
    ),
    (
        "no id, no index: an object inside the arguments is no new call",
        [fragment(name="f", arguments='{"a":'), fragment(name="f", arguments='{"b":2}'), fragment(name="f", arguments="}")],
        [("f", {"a": {"b": 2}})],
    ),
    (
        "no id, no index: an object inside the arguments that may be a new call",
        [fragment(name="f", arguments='{"a":['), fragment(name="f", arguments='{"b":2}'), fragment(name="f", arguments="]}")],
        [("f", REFUSED)],
    ),
    (
        "no id, no index: two calls of one tool, one inside the other",
        [fragment(name="f", arguments=text) for text in ('{"a":', '{"b":2', "1}", "}")],
        [("f", REFUSED)],
    ),
    (
        "no id, no index: the whole call again after each",
        [fragment(name="f", arguments=text) for text in ('{"a":', "1}", '{"a":1}', '{"b":', "2}", '{"b": 2}')],
        [("f", {"a": 1}), ("f", {"b": 2})],
    ),
    (
        "no id, no index: equal calls of one header",
        [fragment(name="f", arguments='{"a":1}'), fragment(name="f", arguments='{"a":1}'), fragment(name="g", arguments='{"a":1}')],
        [("f", {"a": 1}), ("f", {"a": 1}), ("g", {"a": 1})],
    ),
    (
        "no id, no index: no arguments, or a placeholder",
        [fragment(name="f", arguments="{}"), fragment(name="f", arguments='{"a":1}')],
        [("f", REFUSED), ("f", {"a": 1})],
    ),
    (
        "no id, no index: no placeholder, because another call has none",
        [fragment(name="f", arguments="{}"), fragment(name="f", arguments='{"a":1}'), fragment(name="g", arguments='{"a":1}')],
        [("f", {}), ("f", {"a": 1}), ("g", {"a": 1})],
    ),
    (
        "names on all fragments: text after a whole call is looked at with it",
        [
            fragment(name="f", arguments='{"a":1}'),
            fragment(name="f", arguments="]"),
            fragment(name="g"),
            fragment(name="g", arguments="oops"),
        ],
        [("f", {"a": 1}), ("g", REFUSED)],
    ),
    (
        "distinct ids, one index: no arguments, or the header of a call whose id drifts",
        [fragment(0, "a", "f", "{}"), fragment(0, "b", "f", '{"a":1}')],
        [("f", REFUSED), ("f", {"a": 1})],
    ),
    (
        "distinct ids, one index: the same call twice, or a copy under an id that drifts",
        [fragment(0, "a", "f", '{"a":1}'), fragment(0, "b", "f", '{"a":1}')],
        [("f", {"a": 1}), ("f", REFUSED)],
    ),
    (
        "ids drift and every fragment repeats the name",
        [fragment(0, "a", "f", '{"a":'), fragment(0, "z", "f", '{"b":1}'), fragment(0, "y", "f", "}")],
        [("f", {"a": {"b": 1}})],
    ),
    (
        "a header waits while another call begins: the arguments may be either's",
        [fragment(None, "a", "f"), fragment(None, "b", "g"), fragment(arguments='{"q":1}')],
        [("f", REFUSED), ("g", REFUSED)],
    ),
    (
        "two headers, and nothing more",
        [fragment(None, "a", "f"), fragment(None, "b", "g")],
        [("f", {}), ("g", {})],
    ),
    (
        "a nameless id before its name, after a whole call",
        [fragment(0, "a", "f"), fragment(0, arguments="{}"), fragment(0, "b"), fragment(0, name="g", arguments='{"q":1}')],
        [("f", {}), ("g", {"q": 1})],
    ),
    (
        "A-22: a broken copy under another index",
        [fragment(0, "a", "f", '{"q":1}'), fragment(1, "a", "f", '{"q"'), fragment(2, "b", "g")],
        [("f", {"q": 1}), ("f", REFUSED), ("g", {})],
    ),
    (
        "A-22: halves under two indices that are nothing together",
        [fragment(0, "a", "f", '{"q"'), fragment(1, "a", "f", "oops"), fragment(2, "b", "g")],
        [("f", REFUSED), ("f", REFUSED), ("g", {})],
    ),
    (
        "an index that tells some calls apart, and one of two calls",
        [fragment(0, "a", "f", '{"q":1}'), fragment(0, "b", "g", '{"q":2}'), fragment(1, "c", "f", '{"q":3}')],
        [("f", {"q": 1}), ("g", {"q": 2}), ("f", {"q": 3})],
    ),
    ("B-04: an object after its header", [fragment(0, "a", "f"), fragment(0, arguments={"q": 1})], [("f", {"q": 1})]),
    ("arguments without any name", [fragment(0, "a", arguments='{"q":1}')], [("", REFUSED)]),
    ("a fragment that says nothing", [fragment(0), fragment(0, "a")], []),
    ("two names under one id and one text", [fragment(0, "a", "f", '{"q":'), fragment(0, "a", "g", "1}")], [("f", REFUSED)]),
    (
        "B-12: two objects inside one text are two calls, unless another call lacks its arguments",
        [fragment(0, "a", "f", '{"q":1}{"q":2}'), fragment(1, "b", "g")],
        [("f", REFUSED), ("g", {})],
    ),
    (
        "anything for arguments",
        [fragment(0, "a", "f", [1]), fragment(1, "b", "g", 3), fragment(2, "c", "f", True)],
        [("f", REFUSED), ("g", REFUSED), ("f", REFUSED)],
    ),
]


@pytest.mark.parametrize(("chunks", "expected"), [row[1:] for row in STREAMS], ids=[row[0] for row in STREAMS])
def test_stream(chunks: list[Any], expected: list[tuple[str, dict[str, Any] | None]]) -> None:
    """A stream comes out as it was meant, or is refused where it can be read in two ways."""
    assert meant(assemble(*chunks)) == expected


def test_nothing_is_no_calls() -> None:
    """A stream without fragments has no calls."""
    assert assemble() == assemble([]) == []


NAMES: list[tuple[str, Sequence[str], list[Fragment], list[str]]] = [
    ("a name in parts", ("get_weather",), [fragment(0, "a", "get_"), fragment(0, name="weather", arguments="{}")], ["get_weather"]),
    ("its first part is a tool too", ("get", "get_weather"), [fragment(0, "a", "get"), fragment(0, name="_weather")], ["get_weather"]),
    (
        "a name in parts without ids",
        ("get_weather",),
        [fragment(name="get_"), fragment(name="weather"), fragment(arguments="{}")],
        ["get_weather"],
    ),
    ("a name in parts, whole", ("get_weather",), [fragment(name="get_"), fragment(name="weather", arguments="{}")], ["get_weather"]),
    (
        "a name in three parts",
        ("get_the_weather",),
        [fragment(0, "a", "get_"), fragment(0, name="the_"), fragment(0, name="weather")],
        ["get_the_weather"],
    ),
    ("two tools are not one", ("get", "weather"), [fragment(name="get"), fragment(name="weather", arguments="{}")], ["get", "weather"]),
    ("a name in parts, tools unknown", (), [fragment(0, "a", "get_"), fragment(0, name="weather", arguments="{}")], ["get_weather"]),
    ("white space around", ("f",), [fragment(0, "a", " f\n"), fragment(0, name=" f", arguments="{}")], ["f"]),
]


@pytest.mark.parametrize(("declared", "fragments", "expected"), [row[1:] for row in NAMES], ids=[row[0] for row in NAMES])
def test_names(declared: Sequence[str], fragments: list[Fragment], expected: list[str]) -> None:
    """A name in parts is joined if a declared tool comes of it (N-01), and is stripped (N-02)."""
    calls = assemble(*fragments, declared=declared)
    assert [(call.name, call.args is not None) for call in calls] == [(name, True) for name in expected]


def test_what_the_server_added_stays_with_its_call() -> None:
    """Unknown keys are kept per call, also when they come later, in parts, or with a fragment of their own (R-05)."""
    calls = assemble(
        fragment(0, "a", "f", '{"q":1}', extra_content={"google": {"thought_signature": "S"}}, type="function"),
        fragment(1, "b", "g", "{}", extra_content=None),
        {"index": 0, "extra_content": {"other": 1}, "caller": "x"},
        {"index": 1, "function": {}, "note": 1},
    )
    assert [call.extra for call in calls] == [
        {"extra_content": {"google": {"thought_signature": "S"}, "other": 1}, "caller": "x"},
        {"note": 1},
    ]
    assert [call.id for call in calls] == ["a", "b"]


def test_arguments_are_kept_as_written() -> None:
    """The text of the arguments is the model's own; an object on the wire becomes compact JSON, nothing becomes {}."""
    parts = [fragment(0, "a", "f", '{ "q" : 1.0,'), fragment(0, arguments=' "é": "\\u00e9" }')]
    calls = assemble(*parts, fragment(1, "b", "g", {"é": [1, None]}), fragment(2, "c", "f"))
    assert [call.arguments for call in calls] == ['{ "q" : 1.0, "é": "\\u00e9" }', '{"é":[1,null]}', "{}"]


def test_refusals_say_why() -> None:
    """The reason is one that a model can act on."""
    cut, mixed = (
        assemble(fragment(0, "a", "f", '{"q": "hel')),
        assemble(fragment(None, "a", "f", "{"), fragment(None, "b", "g", "{"), fragment(arguments="}")),
    )
    assert "cut off after 10 characters" in str(cut[0].why)
    assert "unclear which of the calls" in str(mixed[0].why)


def test_feeding_leaves_the_fragments_alone() -> None:
    """What was fed is not changed, and may be used again."""
    fragments = [fragment(0, "a", "f", {"q": [1]}, extra_content={"x": {}}), fragment(0, extra_content={"x": {"y": 1}})]
    before = copy.deepcopy(fragments)
    assert meant(assemble(fragments)) == meant(assemble(*fragments)) == [("f", {"q": [1]})]
    assert fragments == before
