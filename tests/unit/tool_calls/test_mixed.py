"""`ToolCallAssembler` on fragments that may belong to more than one call: what is unclear never runs, what is clear does."""

from typing import Any

import pytest

from tests.unit.tool_calls.test_tool_calls import REFUSED, assemble, fragment, meant

STREAMS: list[tuple[str, list[Any], list[tuple[str, dict[str, Any] | None]]]] = [
    (
        "a text said twice is no cumulative text, whatever follows it",
        [fragment(0, "a", "f", "x"), fragment(0, arguments="x"), fragment(0, arguments='{"q":1}')],
        [("f", REFUSED)],
    ),
    (
        "two objects for the first of two calls, when both seem whole",
        [fragment(0, name="g"), fragment(0, "a", "f", '{"q":1}'), fragment(0, name="g", arguments='{"q":1}{"q":2}')],
        [("g", REFUSED), ("f", {"q": 1})],
    ),
    (
        "a header that comes twice and then arguments without its id",
        [fragment(id="a", name="f"), fragment(id="a", name="f"), fragment(name="f", arguments='{"q":1}')],
        [("f", REFUSED)],
    ),
    (
        "a call without arguments, and an id without a name under no index",
        [fragment(0, name="f", arguments="{}"), fragment(id="b", arguments=" ")],
        [("f", REFUSED), ("", REFUSED)],
    ),
    (
        "three headers of one tool and then two objects at once",
        [fragment(name="f"), fragment(name="f"), fragment(name="f"), fragment(name="f", arguments='{"q":1}{"q":2}')],
        [("f", REFUSED)],
    ),
    (
        "an id among texts that nothing names is one call",
        [fragment(0, arguments='{"q":1}'), fragment(0, "a", arguments="1}"), fragment(0)],
        [("", REFUSED)],
    ),
    (
        "text that grows under one index, beside a call that is said twice",
        [fragment(0, arguments='{"q":'), *[fragment(1, name="g", arguments='{"q":2}')] * 2, fragment(0, name="g", arguments='{"q":2}')],
        [("g", {"q": 2}), ("g", {"q": 2})],
    ),
    (
        "one id for two tools: the call before them keeps what follows it",
        [fragment(id="a", name="f", arguments="}"), fragment(id="b", name="f", arguments=" "), fragment(id="b", name="g", arguments=" ")],
        [("f", REFUSED), ("g", {})],
    ),
    (
        "a fragment without text inside arguments that make no sense",
        [fragment(name="f", arguments='"x"}'), fragment(name="f"), fragment(name="f", arguments="{}}")],
        [("f", REFUSED), ("f", REFUSED)],
    ),
    (
        "an empty object after text that makes no sense, and once more",
        [fragment(name="f", arguments="x"), fragment(name="f", arguments="x")] + [fragment(name="f", arguments="{}")] * 2,
        [("f", REFUSED), ("f", REFUSED)],
    ),
    (
        "stray text goes to the call that was begun last, whatever its index",
        [fragment(0, "a", "f", '{"q":1}'), fragment(1, "b", "g", '{"q":2}'), fragment(0, "c", "f", '{"q":3}'), fragment(2, arguments="x")],
        [("f", REFUSED), ("g", {"q": 2})],
    ),
    (
        "a text under no index goes on with the only call there is",
        [fragment(1, name="f", arguments='{"q":1'), fragment(1, arguments="}"), fragment(arguments="}")],
        [("f", REFUSED)],
    ),
    (
        "an empty object before the name, with it and after it",
        [fragment(0, "b", arguments="{}"), fragment(0, "a", "f", "{}"), fragment(0, "a", arguments="{}")],
        [("f", REFUSED)],
    ),
    (
        "a call without arguments after one that makes no sense: those may be its own",
        [fragment(id="a", name="g", arguments="{}}"), fragment(id="b", name="g")],
        [("g", REFUSED), ("g", REFUSED)],
    ),
    (
        "a name in parts after a call that is whole",
        [fragment(arguments="x"), fragment(id="b", name="g", arguments='{"q":1}'), fragment(name="ge")],
        [("", REFUSED), ("g", {"q": 1}), ("ge", REFUSED)],
    ),
    (
        "a header, an empty object and one with arguments: a server that begins each call with a header made two",
        [fragment(name="f"), fragment(name="f", arguments="{}"), fragment(name="f", arguments='{"q":2}')],
        [("f", {}), ("f", {"q": 2})],
    ),
    (
        "two whole calls under one index, and one under another",
        [fragment(index, name="f", arguments=text) for index, text in ((0, '{"q":2}'), (1, '{"q":1}'), (0, '{"q":1}'))],
        [("f", {"q": 2}), ("f", {"q": 1}), ("f", {"q": 1})],
    ),
    (
        "ids that drift over text that grows",
        [fragment(id="a", name="g", arguments='{"q":1'), fragment(id="b", name="g", arguments='{"q":1}')],
        [("g", {"q": 1})],
    ),
]


@pytest.mark.parametrize(("chunks", "expected"), [row[1:] for row in STREAMS], ids=[row[0] for row in STREAMS])
def test_what_is_unclear_never_runs(chunks: list[Any], expected: list[tuple[str, dict[str, Any] | None]]) -> None:
    """The calls that each of these makes; None where one must not run."""
    assert meant(assemble(*chunks)) == expected


def test_a_copy_is_told_as_one_even_where_its_tool_made_no_sense_before() -> None:
    """The first reason for a doubt stays: it is the one that the model can do something about."""
    pieces = ['{"q":2}', '1,"r":2}', '{"q":2}', '{"q":2}']
    calls = assemble(*(fragment(name="f", arguments=piece) for piece in pieces))
    assert ["sent once more" in (call.why or "") for call in calls] == [False, True]


def test_an_id_or_a_name_may_be_a_number() -> None:
    """A server that numbers its calls or tools is understood; a truth value names nothing."""
    (call,) = assemble({"index": 0, "id": 7, "function": {"name": 8, "arguments": "{}"}}, declared=("8",))
    assert (call.id, call.name, call.args) == ("7", "8", {})
    (call,) = assemble({"index": 0, "id": True, "function": {"name": "f", "arguments": "{}"}})
    assert call.id == ""
