"""Fragments that several calls could own: which calls are in doubt, where the text goes, and which calls run all the same."""

from tests.unit.tool_calls.test_tool_calls import REFUSED, assemble, fragment, meant


def test_text_that_two_calls_could_own_is_kept_with_the_latest() -> None:
    """Neither runs; the history says the text once, where a reader expects it."""
    calls = assemble(fragment(None, "a", "f"), fragment(None, "b", "g"), fragment(arguments='{"q":1}'))
    assert meant(calls) == [("f", REFUSED), ("g", REFUSED)]
    assert [call.arguments for call in calls] == ["", '{"q":1}']


def test_an_object_after_whole_calls_puts_the_last_in_doubt() -> None:
    """The others had been gone on from."""
    calls = assemble(fragment(None, "a", "f", '{"q":1}'), fragment(None, "b", "g", '{"q":2}'), fragment(arguments='{"q":9}'))
    assert meant(calls) == [("f", {"q": 1}), ("g", REFUSED)]
    assert [call.arguments for call in calls] == ['{"q":1}', '{"q":2}{"q":9}']


def test_a_call_that_all_readings_have_runs() -> None:
    """Where ids may drift, a call that is whole by its id and by its text is in no doubt, whatever becomes of the others."""
    calls = assemble(fragment(None, "a", "f", '{"q":1}'), fragment(None, "b", "g", '{"q":'), fragment(None, "c", "g", "x"))
    assert meant(calls) == [("f", {"q": 1}), ("g", REFUSED), ("g", REFUSED)]


def test_two_tools_under_one_id_are_two_calls() -> None:
    """Also where the first has no arguments yet, and nothing but its name to tell them apart."""
    calls = assemble(fragment(None, "a", "f"), fragment(None, "a", "g", '{"q":'), fragment(arguments="1}"))
    assert [call.name for call in calls] == ["f", "g"]


def test_a_name_in_parts_is_that_of_one_call() -> None:
    """Neither its last part nor the whole name begins another one when it comes once more; a part after arguments names another tool."""
    parts = [fragment(name="get_"), fragment(name="temp")]
    assert meant(assemble(*parts, fragment(name="get_temp"), declared=("get_temp",))) == [("get_temp", {})]
    again = assemble(*parts, fragment(name="temp", arguments='{"q":1}'), declared=("get_temp",))
    assert [(call.name, call.args, call.arguments) for call in again] == [("get_temp", REFUSED, '{"q":1}')]
