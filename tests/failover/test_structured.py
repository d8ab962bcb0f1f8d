"""Structured output whose first vendor breaks off: the next one makes it again, from its beginning, in the form of its own wire."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from langchain_core.exceptions import ModelError
from pydantic import BaseModel

from langchain_autotools import ChatOpenAI, ConfigurationError
from langchain_autotools.testing import ScriptedChatModel
from tests.failover.vendors import VENDORS, model_of
from tests.laws.ways import waited
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call as ToolCall
from tests.support.script import Cut, Failure, Turn

QUESTION = "Go, in JSON."
NOTE = "it is a town by the sea"
METHODS = ("json_schema", "function_calling")
WAYS = ("stream", "astream", "invoke", "ainvoke")
LONGEST = 1800
"""Bytes behind which no reply of these is cut any more."""


class City(BaseModel):
    """A city."""

    name: str
    note: str = ""


def turn(method: str, name: str) -> Turn:
    """A reply that holds a city."""
    city = {"name": name, "note": NOTE}
    return Turn(calls=[ToolCall("City", city)]) if method == "function_calling" else Turn(json.dumps(city))


async def _alist(stream: Any) -> list[Any]:
    return [one async for one in stream]


def outputs(way: str, runnable: Any) -> list[Any]:
    """What a runnable gives in a way to run it."""
    if way == "stream":
        return list(runnable.stream(QUESTION))
    if way == "astream":
        made: list[Any] = waited(_alist(runnable.astream(QUESTION)))
        return made
    return [runnable.invoke(QUESTION) if way == "invoke" else waited(runnable.ainvoke(QUESTION))]


def play(first: str, second: str, method: str, way: str, byte: int) -> list[Any]:
    """Ask for a city of a vendor that breaks off behind a byte, and check what comes."""
    broken, whole = Cut(turn(method, "Paris"), byte, drop=byte % 2 == 0), turn(method, "Oslo")
    with VENDORS[first][0](lambda _: broken) as down, VENDORS[second][0](lambda _: whole) as other:
        model = model_of(first, down, fallbacks=[model_of(second, other)])
        made = outputs(way, model.with_structured_output(City, method=method))
        assert down.rejections == other.rejections == []
        assert len(other.exchanges) == (made[-1].name == "Oslo")
    assert made[-1] in (City(name="Paris", note=NOTE), City(name="Oslo", note=NOTE))
    halves = [one for one in made if one is not None]
    assert all("Paris".startswith(one.name) or "Oslo".startswith(one.name) for one in halves)
    assert all(NOTE.startswith(one.note) for one in halves)
    return made


RING = list(zip(VENDORS, [*list(VENDORS)[1:], "openai"], strict=True))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pair", RING, ids="-".join)
def test_each_vendor_is_followed_by_another(pair: tuple[str, str], method: str) -> None:
    """In the middle of its output, streamed and whole."""
    number = RING.index(pair) + METHODS.index(method)
    play(*pair, method, WAYS[number % 2], 500)
    play(*pair, method, WAYS[2 + number % 2], 80)


@pytest.mark.exhaustive
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pair", list(itertools.product(VENDORS, VENDORS)), ids="-".join)
def test_all_pairs_cut_anywhere(pair: tuple[str, str], method: str) -> None:
    """Also where both are of one vendor, in every way."""
    for number, byte in enumerate(range(0, LONGEST, 29)):
        play(*pair, method, WAYS[number % 4], byte)


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_snapshots_begin_anew(way: str) -> None:
    """What a reader gets of a stream: the one's output as far as it came, then the other's from its beginning."""
    names = [one.name for one in play("openai", "anthropic", "json_schema", way, 1500) if one is not None]
    change = next(number for number, name in enumerate(names) if "Oslo".startswith(name))
    assert change > 0 and names[change - 1] == "Paris" and all("Oslo".startswith(name) for name in names[change:])


@pytest.mark.parametrize("at_call", [True, False])
def test_raw_text_of_a_form_is_held_back(at_call: bool) -> None:
    """Two halves are no object: a parser reads the run, whoever asks for the form, so another model makes it."""
    broken = Cut(Turn('{"name": "Paris", "note": ""}'), 1100)
    form = {"response_format": {"type": "json_object"}}
    fields, keywords = ({}, form) if at_call else (form, {})
    with OpenAIServer([broken, Failure(503)]) as down, OpenAIServer([Turn('{"name": "Oslo"}')] * 2) as other:
        model = model_of("openai", down, fallbacks=[model_of("openai", other, model="two")], **fields)
        assert "".join(chunk.text for chunk in model.stream(QUESTION, **keywords)) == '{"name": "Oslo"}'
        assert model.invoke(QUESTION, **keywords).text == '{"name": "Oslo"}'


def test_a_form_in_the_words_of_one_vendor_is_not_gone_on_with() -> None:
    """Whatever keyword of a call asks for it."""
    broken = Cut(Turn('{"name": "Paris", "note": ""}'), 420)
    with VENDORS["ollama"][0]([broken]) as down, VENDORS["ollama"][0]([Turn("{}")]) as other:
        model = model_of("ollama", down, fallbacks=[model_of("ollama", other, model="two")])
        with pytest.raises(ModelError):
            list(model.stream(QUESTION, format="json"))
        assert other.exchanges == []


def test_what_a_fallback_cannot_give_is_refused_by_name() -> None:
    """Where the output is asked for, not when the first model has failed."""
    model = ChatOpenAI(model="gpt-5", api_key="key", fallbacks=[ScriptedChatModel(replies=[])])
    with pytest.raises(ConfigurationError, match="ScriptedChatModel has no method 'json_schema'"):
        model.with_structured_output(City, method="json_schema")
    other = model_of("anthropic", type("Nowhere", (), {"url": "http://127.0.0.1:9"}))
    model = ChatOpenAI(model="gpt-5", api_key="key", fallbacks=[other])
    with pytest.raises(ConfigurationError, match="the fallback ChatAnthropic cannot take"):
        model.with_structured_output(method="json_mode")
