"""`strict_json`: what counts as one JSON value, and text that can be sent."""

from typing import Any

import pytest

from langchain_autotools.strict_json import mend_surrogates, read_json, read_object, same

READ: list[tuple[str, str, Any]] = [
    ("an object", '{"a":1}', {"a": 1}),
    ("white space around", ' \n{"a":1}\t', {"a": 1}),
    ("a key that stands twice", '{"a":1,"a":2}', {"a": 2}),
    ("the largest double", '{"a":1.7976931348623157e308}', {"a": 1.7976931348623157e308}),
    ("200 levels", '{"a":' * 200 + "1" + "}" * 200, ...),
    ("201 levels", '{"a":' * 201 + "1" + "}" * 201, None),
    ("many levels", "[" * 100_000, None),
    ("beyond a double", '{"a":1e999}', None),
    ("no number", '{"a":NaN}', None),
    ("infinity", '{"a":-Infinity}', None),
    ("two values", '{"a":1}{"a":2}', None),
    ("text behind it", '{"a":1} done', None),
    ("a list", "[1]", None),
    ("null", "null", None),
    ("nothing", "", None),
    ("cut off", '{"a":', None),
    ("a trailing comma", '{"a":1,}', None),
    ("single quotes", "{'a':1}", None),
]


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in READ], ids=[row[0] for row in READ])
@pytest.mark.parametrize("control_characters", [True, False])
def test_exactly_one_object_is_read(text: str, expected: Any, control_characters: bool) -> None:
    """Both readers agree on everything but control characters: one strictness for what models write and what servers get."""
    found = read_object(text, control_characters=control_characters)
    assert found is not None if expected is ... else found == expected


def test_control_characters_are_read_where_models_write_them() -> None:
    """A raw line end in a string is read from a model, and never taken for something that every server reads."""
    assert read_object('{"a":"b\nc"}') == {"a": "b\nc"}
    assert read_object('{"a":"b\nc"}', control_characters=False) is None


@pytest.mark.parametrize("text", ['{"a":1e999}', "[" * 100_000, "[" * 202 + "]" * 202, "nul"])
def test_what_is_refused_says_why(text: str) -> None:
    """Every refusal is a ValueError with words, whatever Python raises inside."""
    with pytest.raises(ValueError) as caught:
        read_json(text)
    assert str(caught.value)


@pytest.mark.parametrize(
    ("text", "mended"),
    [("Größe", "Größe"), ("\ud83d\ude00", "😀"), ("a\ud83d", "a\ufffd"), ("\ude00\ud83d", "\ufffd\ufffd"), ("\\ud83d", "\\ud83d")],
)
def test_halves_of_characters_are_joined_or_replaced(text: str, mended: str) -> None:
    """What UTF-8 cannot carry goes; a text about escapes is left as it is."""
    assert mend_surrogates(text) == mended
    assert mend_surrogates(mended).encode()


def test_same_tells_numbers_and_truth_apart() -> None:
    """Unlike in Python, true is not 1 and 1.0 is not 1; the order of keys says nothing."""
    assert same({"a": 1, "b": 2}, {"b": 2, "a": 1})
    assert not same(True, 1) and not same(1.0, 1)
