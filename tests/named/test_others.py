"""A conversation with two parallel calls over each class of LangChain's `init_chat_model`, over HTTP, whole and streamed."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, ToolMessage

from langchain_autotools import new_messages, stop_reason, with_tools
from tests.named.others import OTHERS
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


@pytest.mark.parametrize("way", ["invoke", "stream"])
@pytest.mark.parametrize("name", OTHERS)
def test_two_parallel_calls(name: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both run, their results go back in order, and the history is taken again."""
    other = OTHERS[name]
    with other.serve(script()) as server:
        model = with_tools(other.model(server, monkeypatch), [warmth])
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
