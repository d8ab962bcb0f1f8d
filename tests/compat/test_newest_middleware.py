"""LangChain's middleware for errors of tools, refusals, risky calls and a vendor's search for tools, which needs newer releases."""

from typing import Any

import pytest
from langchain.agents.middleware import (
    AutoModeMiddleware,
    ModelFallbackMiddleware,
    ModelRefusalMiddleware,
    ProviderToolSearchMiddleware,
    ToolErrorMiddleware,
)
from langchain_core.decisions import BaseDecisionModel, ClassifierResponse, NoulAnswer
from langchain_core.exceptions import ModelRefusalError
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from pydantic import Field

from langchain_autotools import ChatAnthropic, ChatOpenAI, RetryPolicy, ToolPolicy, new_messages, run_usage, stop_reason
from langchain_autotools.testing import ScriptedChatModel
from tests.support.anthropic_server import AnthropicServer
from tests.support.endless_chat import Way, ainvoke, every_way, invoke
from tests.support.middleware import call, look, model_of
from tests.support.responses_server import ResponsesServer
from tests.support.script import Call, Turn

pytestmark = pytest.mark.compat


@every_way
def test_an_error_of_a_tool_is_told_in_the_middlewares_words(way: Way) -> None:
    """After the attempts that the tool's policy makes; what the middleware does not know becomes the error that the model reads."""
    attempts: list[str] = []

    def find(at: str = "") -> str:
        """Find."""
        attempts.append(at)
        raise ConnectionError("secret") if at == "Rome" else ValueError("no such place")

    def told(error: Exception, request: Any) -> str | None:
        return f"{request.tool_call['name']}: {type(error).__name__}" if isinstance(error, ConnectionError) else None

    policies = {"find": ToolPolicy(retry=RetryPolicy(attempts=2, wait_scale=0), retry_on=(ConnectionError,))}
    replies = [call("Rome", "find"), call("Oslo", "find"), "Fine."]
    run, messages = way(model_of(*replies, middleware=[ToolErrorMiddleware(told)], tools=[find], policies=policies))
    results = [one for one in messages if one.type == "tool"]
    assert [one.status for one in results] == ["error", "error"]
    assert results[0].text == "find: ConnectionError" and "no such place" in results[1].text
    assert (attempts.count("Rome"), stop_reason(run)) == (2, "complete")


def refused(tokens: int) -> AIMessage:
    """A refusal that used tokens."""
    usage: Any = {"input_tokens": tokens - 1, "output_tokens": 1, "total_tokens": tokens}
    return AIMessage([{"type": "refusal", "refusal": "No."}], usage_metadata=usage, response_metadata={"model_provider": "openai"})


@pytest.mark.parametrize("way", [invoke, ainvoke])
def test_a_refusal_is_an_error_that_a_fallback_answers(way: Way) -> None:
    """The refused reply is no message, and its tokens count."""
    guard = ModelRefusalMiddleware()
    with pytest.raises(ModelRefusalError):
        way(model_of(refused(5), middleware=[guard]))
    other = ScriptedChatModel(replies=[AIMessage("Fine.", usage_metadata={"input_tokens": 6, "output_tokens": 1, "total_tokens": 7})])
    run, messages = way(model_of(refused(5), middleware=[ModelFallbackMiddleware(other), guard]))
    usage = run_usage(run)
    assert ([one.text for one in messages], usage and usage["total_tokens"]) == (["Fine."], 12)


class Classifier(BaseDecisionModel):
    """Finds a call risky by its argument."""

    model: str = "none"
    asked: list[Any] = Field(default_factory=list)

    @property
    def _provider(self) -> str:
        return "none"

    def _classify(self, state: Any, questions: Any) -> ClassifierResponse:
        self.asked.append(state)
        noul = 0.9 if state["tool_call"]["args"]["at"] == "Rome" else 0.1
        return ClassifierResponse(model=self.model, answers={name: NoulAnswer(type="noul", noul=noul) for name in questions})


@every_way
def test_a_call_that_a_classifier_finds_risky_does_not_run(way: Way) -> None:
    """The others do; the classifier gets the conversation and the tool's description."""
    classifier, looked = Classifier(), list[str]()

    def peek(at: str = "") -> str:
        """Peek."""
        looked.append(at)
        return f"seen {at}"

    guard = AutoModeMiddleware(tools=["peek"], classifier=classifier)
    run, messages = way(model_of(call("Rome", "peek"), call("Oslo", "peek"), "Fine.", middleware=[guard], tools=[peek]))
    blocked, result = (one for one in messages if one.type == "tool")
    assert "was blocked" in blocked.text and (blocked.status, result.text, looked) == ("error", "seen Oslo", ["Oslo"])
    assert [one.type for one in classifier.asked[0]["messages"]] == ["human", "ai"]
    assert (classifier.asked[0]["tool_description"], stop_reason(run)) == ("Peek.", "complete")


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return f"{city}: 21 °C"


@every_way
@pytest.mark.parametrize("vendor", ["anthropic", "openai"])
def test_tools_are_deferred_behind_the_vendors_search(way: Way, vendor: str) -> None:
    """The strict servers take the declarations of every turn, and a deferred tool runs."""
    searching = ProviderToolSearchMiddleware(searchable_tools=["get_temperature"])
    settings: dict[str, Any] = {"api_key": "key", "tools": [get_temperature, look], "middleware": [searching]}
    replies = [Turn(calls=[Call("get_temperature", {"city": "Rome"})]), Turn("21 °C.")]
    with (AnthropicServer if vendor == "anthropic" else ResponsesServer)(replies) as server:
        known: Any = ChatAnthropic if vendor == "anthropic" else ChatOpenAI
        extra = {} if vendor == "anthropic" else {"use_responses_api": True}
        model = known(model="gpt-5.5" if extra else "claude-sonnet-5", base_url=server.url, **extra, **settings)
        run, _ = way(model)
        assert not server.rejections
        declared = [request["tools"] for request in server.requests]
    assert [message.text for message in new_messages(run)][1:] == ["Rome: 21 °C", "21 °C."]
    assert declared[0] == declared[1]
    deferred, plain, search = declared[0]
    assert (deferred["defer_loading"], plain.get("defer_loading")) == (True, None)
    assert search["type"] == ("tool_search_tool_bm25_20251119" if vendor == "anthropic" else "tool_search")
