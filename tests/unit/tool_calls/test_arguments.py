"""`read_arguments`: the closed list of ways in which the text of a call's arguments is one JSON object."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_autotools.strict_json import read_json, same
from langchain_autotools.tool_calls.arguments import (
    JsonScanner,
    has_other_split,
    is_prefix,
    mend_json,
    read_arguments,
    spell_text,
    spelling,
)

REFUSED = None
BOUGHT = '"' + json.dumps({"q": 1}).replace('"', '\\"') + '"'

READ: list[tuple[str, list[str], Any]] = [
    ("nothing", [], {}),
    ("white space", [" ", "\n"], {}),
    ("null", ["nu", "ll"], {}),
    ("one object", ['{"q"', ":1}"], {"q": 1}),
    ("white space around", ["\n ", '{"q":1}', "\n\n"], {"q": 1}),
    ("an object as a string", [BOUGHT], {"q": 1}),
    ("an object as a string in a string", [json.dumps(BOUGHT)], {"q": 1}),
    ("wrapped once more", [json.dumps(json.dumps(BOUGHT))], REFUSED),
    ("a string that is no JSON", ['"q"'], REFUSED),
    ("a string that holds a list", ['"[1]"'], REFUSED),
    ("a list", ["[1]"], REFUSED),
    ("a number", ["3"], REFUSED),
    ("true", ["true"], REFUSED),
    ("cumulative text", ['{"q', '{"q":', '{"q":1}'], {"q": 1}),
    ("cumulative text after a placeholder", ["{}", '{"q', '{"q":', '{"q":1}'], {"q": 1}),
    ("cumulative text, unfinished", ['{"q', '{"q":', '{"q":1'], REFUSED),
    ("cumulative text, or an object in an object that is cut", ['{"q":', '{"q":1}'], REFUSED),
    ("the beginning repeats inside a string", ['{"q":"', '{"q":"', '"}'], REFUSED),
    ("pieces that repeat are not cumulative", ['{"q":"a', "a", 'aa"}'], {"q": "aaaa"}),
    ("a placeholder, then pieces", ["{}", '{"q"', ":1}"], {"q": 1}),
    ("a placeholder, then the whole", ["{}", '{"q":1}'], {"q": 1}),
    ("a placeholder, then nothing", ["{}", ""], {}),
    ("a placeholder twice", ["{}", "{}"], {}),
    ("a placeholder, then what is cut", ["{}", '{"q":"hel'], REFUSED),
    ("an object, then an empty one", ['{"q":1}', "{}"], REFUSED),
    ("the whole again", ['{"q"', ":1}", '{"q":1}'], {"q": 1}),
    ("the whole again in another layout", ['{"q"', ":1}", '{ "q": 1 }'], {"q": 1}),
    ("the whole again as a string", ['{"q"', ":1}", BOUGHT], {"q": 1}),
    ("the whole again, cut", ['{"q"', ":1}", '{"q"'], REFUSED),
    ("another object", ['{"q":1}', '{"q":2}'], REFUSED),
    ("another number of the same value", ['{"q":1}', '{"q":1.0}'], REFUSED),
    ("true is not one", ['{"q":1}', '{"q":true}'], REFUSED),
    ("what templates leave behind", ['{"q":1}', "</function>\n"], {"q": 1}),
    ("a bracket too many", ['{"q":1}]'], {"q": 1}),
    ("a code fence", ['{"q":1}\n```'], {"q": 1}),
    ("an end token", ['{"q":1}', "<|im", "_end|>"], {"q": 1}),
    ("end tokens behind a tag", ['{"q":1}\n</tool_call><|eot_id|></s>'], {"q": 1}),
    ("an end token in a string", ['{"q":"</s>"}</s>'], {"q": "</s>"}),
    ("a piece of an end token", ['{"q":1}<|im_en'], REFUSED),
    ("a token of no list", ['{"q":1}<|secret|>'], REFUSED),
    ("an end token before the end", ['{"q":1</s>}'], REFUSED),
    ("an end token and a brace too many", ['{"q":1}}</s>'], REFUSED),
    ("an end token alone", ["</s>"], REFUSED),
    ("a brace too many", ['{"q":1}}'], REFUSED),
    ("words after it", ['{"q":1} done'], REFUSED),
    ("cut in a string", ['{"q":"hel'], REFUSED),
    ("cut after a colon", ['{"q":'], REFUSED),
    ("cut in a word", ['{"q":tr'], REFUSED),
    ("Python", ["{'q': True}"], REFUSED),
    ("not a number", ['{"q":NaN}'], REFUSED),
    ("infinity", ['{"q":-Infinity}'], REFUSED),
    ("a number beyond all numbers", ['{"q":1e999}'], REFUSED),
    ("too many digits", ['{"q":' + "1" * 5000 + "}"], REFUSED),
    ("too deep", ['{"q":' * 20_000 + "1" + "}" * 20_000], REFUSED),
    ("too deep to be written and checked", ['{"q":' * 201 + "1" + "}" * 201], REFUSED),
    ("as deep as can be", ['{"q":' + "[" * 199 + "]" * 199 + "}"], {"q": json.loads("[" * 199 + "]" * 199)}),
    ("a key twice", ['{"q":1,"q":2}'], {"q": 2}),
    ("a line break in a string", ['{"q":"a\nb"}'], {"q": "a\nb"}),
    ("half a character as an escape", ['{"q":"\\ud83d"}'], {"q": "\ufffd"}),
    ("an escape in two pieces", ['{"q":"\\u00', 'e9\\ud83d', '\\ude00"}'], {"q": "é😀"}),
    ("a character in two halves", ['{"q":"\ud83d', '\ude00"}'], {"q": "😀"}),
    ("half a character", ['{"q":"\ude00"}'], {"q": "\ufffd"}),
    ("a string that looks like JSON", ['{"q":"{}{}"}'], {"q": "{}{}"}),
]  # fmt: skip


@pytest.mark.parametrize(("pieces", "expected"), [row[1:] for row in READ], ids=[row[0] for row in READ])
def test_reading(pieces: list[str], expected: Any) -> None:
    """Text comes to one object by one of the ways, or is refused with a reason; its raw text is that object, as written.

    Wire quirks B-14, B-16, B-17, B-18, B-22, B-34.
    """
    (found,) = read_arguments([piece for piece in pieces if piece])
    assert found.value == expected
    assert (found.why is None) == (expected is not None)
    if expected is not None:
        assert json.loads(found.raw, strict=False) == expected
        found.raw.encode()


def test_several_calls_in_one_text() -> None:
    """Different objects inside one piece are several calls; at the edges of pieces they are not."""
    assert [found.value for found in read_arguments(['{"q":1}{"q":2}{"q":2} {"q":3}'])] == [{"q": 1}, {"q": 2}, {"q": 3}]
    assert [found.value for found in read_arguments(['{"q":1}{"q"', ":2}"])] == [{"q": 1}, {"q": 2}]
    assert [found.value for found in read_arguments(['{"q":1}', '{"q"', ":2}"])] == [None]
    assert [found.value for found in read_arguments(['{}{"q":1}'])] == [None]
    assert [found.value for found in read_arguments(['{"q":1}[2]'])] == [None]


def test_what_known_cumulative_text_comes_to() -> None:
    """Text that may be cumulative says what it is then; text that can be nothing else says so."""
    (found,) = read_arguments(['{"q":', '{"q":1}'])
    assert found.otherwise is not None
    assert found.otherwise.value == {"q": 1}
    assert [one.cumulative for one in read_arguments(['{"q', '{"q":1}'])] == [True]


def test_spelling() -> None:
    """Equal arguments are spelled alike, whatever their layout; what is not whole has no spelling."""
    assert spell_text('{"b":1, "a":2}') == spell_text('{"a":2,"b":1}') == spelling(read_arguments(['{"b":1,', '"a":2}']))
    assert spell_text(BOUGHT) == spell_text('{"q":1}')
    assert [spell_text(text) for text in ("{}", '{"q"', "null", "", "[1]")] == ["{}", None, None, None, None]
    assert spelling(read_arguments(['{"q":1}{"q":2}'])) is None


APART: list[tuple[list[str], bool]] = [
    (['{"a":1}'], False),
    (['{"a":', '{"b":1}', "}"], False),
    (['{"a":[', '{"b":1}', "]}"], True),
    (['{"a":', '{"b":2', "1}", "}"], True),
    (['{"a":"', "{", '"}'], True),
    (['{"a":"x', "{y", '"}'], False),
    (['{"a', "{", "}", "b\\u", '00e9":1}'], True),
    (['{"a":', *(" " for _ in range(20)), "{}}"], True),
]


@pytest.mark.parametrize(("pieces", "expected"), APART)
def test_reading_apart(pieces: list[str], expected: bool) -> None:
    """Pieces can be read apart if they can be dealt out to objects that are each valid so far; too many are taken for such."""
    assert has_other_split(pieces) is expected


WORDS = st.text('ab"\\{}[]:,é😀\n ', max_size=4)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(WORDS, JSON, max_size=3), st.data())
def test_the_scanner_closes_with_the_object(value: dict[str, Any], data: st.DataObject) -> None:
    """Fed in any pieces, the scanner says closed at the end of an object and never before; every beginning is known as one."""
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans()))
    scanner = JsonScanner()
    at = 0
    while at < len(text):
        assert not scanner.closed
        size = data.draw(st.integers(1, 5))
        scanner.feed(text[at : at + size])
        at += size
    assert scanner.closed
    end = data.draw(st.integers(1, len(text) - 1))
    with pytest.raises(ValueError) as caught:
        read_json(text[:end])
    assert is_prefix(text[:end], caught.value)


@given(st.text(st.characters(codec=None) | st.sampled_from('\\u"dD89abABefF0{}'), max_size=30))
def test_mended_text_can_be_sent(text: str) -> None:
    """After mending, no half of a character is left, neither itself nor as an escape; the rest is as it was."""
    mended = mend_json(text)
    mended.encode()
    assert mend_json(mended) == mended
    assert len(mended) <= len(text)
    document = json.dumps(text)
    assert json.loads(mend_json(document)) == text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def test_same() -> None:
    """Values are compared as JSON, not as Python."""
    assert same({"a": [1, None]}, {"a": [1, None]})
    assert not same({"a": 1}, {"a": True})
    assert not same({"a": 1}, {"a": 1.0})


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": 1e999}'])
def test_a_value_that_no_json_has_is_not_a_text_that_was_cut_off(text: str) -> None:
    """The model reads what is wrong with it, not that it should write less."""
    (found,) = read_arguments([text])
    assert found.value is None and "they are not valid JSON" in str(found.why)
