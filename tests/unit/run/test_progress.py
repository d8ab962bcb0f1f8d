"""The progress of a batch on request: a bar on standard error, the same results in the same order, refused where it has no effect."""

import asyncio
import importlib.util
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate

from langchain_autotools import ConfigurationError
from langchain_autotools.run import binding
from langchain_autotools.testing import ScriptedChatModel

INPUTS = [str(number) for number in range(9)]


def double(number: int) -> int:
    """Twice a number."""
    return 2 * number


def reply(messages: Any, **_: Any) -> Any:
    """Ask for the tool, then say what it said; of 7 an error."""
    text = messages[-1].text
    if text == "7":
        raise ValueError("seven")
    return (
        f"It is {text}."
        if messages[-1].type == "tool"
        else AIMessage("", tool_calls=[{"name": "double", "args": {"number": text}, "id": "1"}])
    )


def scripted(**more: Any) -> ScriptedChatModel:
    """A model with a tool that answers any input."""
    return ScriptedChatModel(replies=reply, tools=[double], **more)


def said(results: list[Any]) -> list[str]:
    """The text of each answer, or the error."""
    return [repr(one) if isinstance(one, Exception) else one.text for one in results]


async def gathered(model: Any, **more: Any) -> list[Any]:
    """What `abatch_as_completed` gives, in the order of the inputs."""
    found = [one async for one in model.abatch_as_completed(INPUTS, return_exceptions=True, **more)]
    return [answer for _, answer in sorted(found, key=lambda pair: int(pair[0]))]


WAYS: dict[str, Callable[..., list[Any]]] = {
    "batch": lambda model, **more: model.batch(INPUTS, {"max_concurrency": 3}, return_exceptions=True, **more),
    "abatch": lambda model, **more: asyncio.run(model.abatch(INPUTS, {"max_concurrency": 3}, return_exceptions=True, **more)),
    "batch_as_completed": lambda model, **more: [
        answer for _, answer in sorted(model.batch_as_completed(INPUTS, return_exceptions=True, **more), key=lambda pair: int(pair[0]))
    ],
    "abatch_as_completed": lambda model, **more: asyncio.run(gathered(model, **more)),
}


@pytest.mark.parametrize("bound", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_bar_counts_every_input_and_changes_nothing(way: str, bound: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Answers and errors alike, in each way to ask for several; without it nothing is written."""
    model: Any = scripted().bind(stop=["."]) if bound else scripted()
    plain = WAYS[way](model)
    assert capsys.readouterr().err == ""
    assert said(WAYS[way](model, show_progress=True)) == said(plain)
    shown = capsys.readouterr()
    assert "9/9" in shown.err and shown.out == ""
    assert said(plain)[6:] == ["It is 12.", "ValueError('seven')", "It is 16."]


def test_without_tqdm_the_bar_is_that_of_rich(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """And without both it is refused, before anything runs."""
    monkeypatch.setattr(binding, "find_spec", lambda name: None if name == "tqdm" else importlib.util.find_spec(name))
    model = scripted()
    model.batch(INPUTS[:3], show_progress=True)
    assert "3/3" in capsys.readouterr().err
    monkeypatch.setattr(binding, "find_spec", lambda name: None)
    sent = len(model.requests)
    with pytest.raises(ConfigurationError, match="needs tqdm or rich"):
        model.batch(INPUTS, show_progress=True)
    assert len(model.requests) == sent


def test_an_error_ends_the_batch_as_it_would(capsys: pytest.CaptureFixture[str]) -> None:
    """It is raised, the bar is closed, and no inputs are no bar."""
    with pytest.raises(ValueError, match="seven"):
        scripted().batch(["7", "1"], show_progress=True)
    assert "/2" in capsys.readouterr().err
    assert scripted().batch([], show_progress=True) == []
    assert capsys.readouterr().err == ""


def test_it_may_be_bound_for_a_chain(capsys: pytest.CaptureFixture[str]) -> None:
    """A chain gives keywords of its batch to its first step alone."""
    model = scripted().bind(show_progress=True)
    chain = ChatPromptTemplate.from_template("{n}") | model
    assert said(chain.batch([{"n": 1}, {"n": 2}])) == ["It is 2.", "It is 4."]
    assert "2/2" in capsys.readouterr().err
    assert said(model.batch(["3"], show_progress=True)) == ["It is 6."]
    assert "1/1" in capsys.readouterr().err


@pytest.mark.parametrize(
    "asked",
    [
        lambda model: model.invoke("1", show_progress=True),
        lambda model: list(model.stream("1", show_progress=True)),
        lambda model: asyncio.run(model.ainvoke("1", show_progress=True)),
        lambda model: model.bind(show_progress=True).invoke("1"),
        lambda model: model.generate([[AIMessage("1")]], show_progress=True),
        lambda model: model.with_tools(None).invoke("1", show_progress=False),
    ],
)
def test_it_is_refused_where_it_has_no_effect(asked: Callable[[Any], Any]) -> None:
    """One input has no progress of this kind."""
    with pytest.raises(ConfigurationError, match="show_progress is for batch"):
        asked(scripted())


def test_anything_but_true_and_false_is_refused() -> None:
    """By every method that takes it, before it runs."""
    for way in ("batch", "batch_as_completed"):
        with pytest.raises(ConfigurationError, match="show_progress must be True or False, not 'yes'"):
            list(getattr(scripted(), way)(INPUTS, show_progress="yes"))
