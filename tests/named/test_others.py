"""A conversation with two parallel calls by each name of LangChain's `init_chat_model`, over HTTP, whole and streamed."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import langchain.chat_models as langchain_models
import pytest
from langchain_core.messages import HumanMessage, ToolMessage

from langchain_autotools import ToolsAndMessagesMixin, new_messages, stop_reason
from langchain_autotools.providers.known import LANGCHAIN_CLASSES, PROVIDERS
from tests.named.others import KEY, OTHERS
from tests.support.script import Call, Turn

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]


def warmth(city: str) -> str:
    """Current temperature of a city."""
    return f"{city}: 21 °C"


def script() -> list[Turn]:
    """Two calls, an answer, and the answer to a second question."""
    calls = [Call("warmth", {"city": "Paris"}), Call("warmth", {"city": "Rome"})]
    return [Turn("Let me look.", calls), Turn("Both are warm."), Turn("They are.")]


def asked(model: Any, way: str, messages: Any) -> Any:
    """The run message, in one of the ways."""
    return model.invoke(messages) if way == "invoke" else reduce(add, model.stream(messages))


def test_every_name_is_tried() -> None:
    """Those that this package has no class for are made by the name."""
    assert OTHERS.keys() == PROVIDERS.keys() - {"local"} | LANGCHAIN_CLASSES.keys()
    assert {name for name, other in OTHERS.items() if other.place is None} == LANGCHAIN_CLASSES.keys()


@pytest.mark.parametrize("way", ["invoke", "stream"])
@pytest.mark.parametrize("name", OTHERS)
def test_two_parallel_calls(name: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both run, their results go back in order, and the history is taken again."""
    other = OTHERS[name]
    with other.serve(script()) as server:
        model = other.model(name, other.arguments(name, server, monkeypatch), tools=[warmth], max_turns=3)
        question = HumanMessage("How warm are Paris and Rome?")
        run = asked(model, way, [question])
        assert [one.message for one in server.rejections] == []
        first, *results, last = new_messages(run)
        done = [message for message in results if isinstance(message, ToolMessage) and message.status == "success"]
        assert (first.type, last.type, len(results) - len(done)) == ("ai", "ai", other.unreadable if way == "stream" else 0)
        assert [message.text for message in done] == ["Paris: 21 °C", "Rome: 21 °C"]
        assert (run.text.split("\n")[-1], stop_reason(run)) == ("Both are warm.", "complete")
        again = asked(model, way, [question, *new_messages(run), HumanMessage("Sure?")])
        assert again.text == "They are." and [one.message for one in server.rejections] == []


@pytest.mark.parametrize("name", LANGCHAIN_CLASSES)
def test_a_name_makes_the_class_that_it_makes_in_langchain(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same parameters, and settings of runs; it shows no key but the class's own way."""
    other = OTHERS[name]
    with other.serve() as server:
        arguments = other.arguments(name, server, monkeypatch)
        model = other.model(name, arguments, tools=[warmth], max_turns=3, requires_approval=["warmth"])
        theirs = langchain_models.init_chat_model(model_provider=name, **arguments)
    assert isinstance(model, type(theirs)) and isinstance(model, ToolsAndMessagesMixin)
    assert (model.tools, model.max_turns, model.requires_approval) == ([warmth], 3, ["warmth"])
    assert model._identifying_params.items() >= theirs._identifying_params.items()
    assert other.shows_key or KEY not in repr(model)
