"""`Slot`: what a call in the making tells of itself."""

from typing import Any

import pytest

from langchain_autotools.tool_calls.slot import Progress, Slot, read_fragment


def fragment(text: str = "", **fields: Any) -> Any:
    """A fragment as the wire's reader makes it."""
    return read_fragment({"index": 0, "args": text, **fields})


def slot(*texts: str, **fields: Any) -> Slot:
    """A call of these fragments."""
    made = Slot()
    for number, text in enumerate(texts):
        made.add(fragment(text, **(fields if not number else {})))
    return made


def test_a_little_surplus_is_harmless() -> None:
    """Sixteen fragments after the end are borne, one more is a doubt; an earlier doubt keeps its words."""
    for number in (16, 17):
        made = slot('{"a": 1}', name="f", id="call_1")
        for _ in range(number):
            made.add_surplus(fragment(), ())
        assert (made.ambiguity is None) is (number == 16)
    doubtful = slot("{}")
    doubtful.ambiguity = "first"
    for _ in range(17):
        doubtful.add_surplus(fragment(), ())
    assert doubtful.ambiguity == "first"


@pytest.mark.parametrize(
    ("texts", "progress"),
    [
        ([], Progress.EMPTY),
        (["{}"], Progress.BARE),
        (["null"], Progress.BARE),
        (["{", "}"], Progress.BARE),
        (["{}", "{}"], Progress.CLOSED),
        (['{"a"'], Progress.OPEN),
        (['{"a"', ": 1}"], Progress.CLOSED),
        (["{", '{"a"', '{"a": 1}'], Progress.CLOSED),
        (["{", " ", "}"], Progress.CLOSED),
    ],
)
def test_progress(texts: list[str], progress: Progress) -> None:
    """From the text alone: nothing, a placeholder, a beginning, or whole; also of text that is sent again and longer each time."""
    assert slot(*texts).progress is progress


def test_the_first_id_stays_and_another_name_is_noted() -> None:
    """A call with two names is not known to be either."""
    made = slot('{"a": 1}', name="f", id="call_1")
    made.add(fragment(name="f", id="call_2"))
    assert (made.id, made.name, made.misnamed) == ("call_1", "f", False)
    assert made.arguments is not None
    made.add(fragment(name="g"))
    assert (made.name, made.misnamed, made.arguments) == ("f", True, None)


def test_a_name_may_come_in_parts() -> None:
    """As long as there are no arguments, and a declared name comes of it."""
    made = slot("", name="get_")
    assert made.may_be_named_on("temperature", ["get_temperature"])
    assert made.may_be_named_on("temp", ["get_temperature"])
    assert made.may_be_named_on("anything", [])
    assert not made.may_be_named_on("x", ["get_temperature"])
    assert not made.may_be_named_on("temperature", ["get_temperature", "temperature"])
    assert not slot("{}", name="get_").may_be_named_on("temperature", ["get_temperature"])
    made.add(fragment(name="temperature"), ["get_temperature"])
    assert (made.name, made.misnamed) == ("get_temperature", False)


def test_unknown_keys_are_merged_one_level_deep() -> None:
    """The last value of each; objects come in parts."""
    made = slot("{}", name="f", signature="a", google={"x": 1})
    made.add(fragment(signature="b", google={"y": 2}))
    assert made.extra == {"signature": "b", "google": {"x": 1, "y": 2}}


@pytest.mark.parametrize(
    ("texts", "more", "grows"),
    [
        (["{"], '{"a', True),
        (["{", '{"a'], '{"a": 1}', True),
        (["{"], "{", False),
        (["{"], '"a"', False),
        (["{", '"a"'], '"a": 1}', False),
        ([], "{", True),
    ],
)
def test_cumulative_text_is_known_by_its_beginning(texts: list[str], more: str, grows: bool) -> None:
    """All that came so far and more; not what only goes on."""
    made = slot(*texts)
    assert made.progress is not None
    assert made.grows_to(more) is grows


def test_an_absorbed_call_is_the_next_part() -> None:
    """Text and unknown keys; what was read before is read again."""
    made = slot('{"a":', name="f")
    assert made.arguments is None
    made.absorb(slot(" 1}", signature="s"))
    assert made.arguments is not None and made.arguments.value == {"a": 1}
    assert (made.text, made.extra) == ('{"a": 1}', {"signature": "s"})
