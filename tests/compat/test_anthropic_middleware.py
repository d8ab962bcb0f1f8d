"""langchain-anthropic's middleware around our class of the same name."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool

from langchain_autotools import ChatAnthropic
from tests.support.anthropic_server import AnthropicServer
from tests.support.script import Call, Turn

pytestmark = pytest.mark.compat


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return f"{city}: 21 °C"


def test_cache_marks_behind_a_gateway() -> None:
    """The middleware leaves our class alone; `prompt_caching` marks tools, system prompt and messages at every address."""
    with AnthropicServer([Turn(calls=[Call("get_temperature", {"city": "Rome"})]), Turn("It is 21 °C in Rome.")]) as server:
        model = ChatAnthropic(model="any", base_url=server.url, api_key="key", prompt_caching="1h")
        caching = AnthropicPromptCachingMiddleware(unsupported_model_behavior="ignore")
        agent: Any = create_agent(model, [get_temperature], system_prompt="Be brief.", middleware=[caching])
        assert agent.invoke({"messages": [HumanMessage("Rome?")]})["messages"][-1].text == "It is 21 °C in Rome."
        assert server.rejections == []
        for request in server.requests:
            marks = [request["cache_control"], request["tools"][-1]["cache_control"], request["system"][-1]["cache_control"]]
            assert marks == [{"type": "ephemeral", "ttl": "1h"}] * 3


def test_a_gateway_without_marks_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """Neither the middleware nor `prompt_caching="auto"` marks anything there: one WARNING for all requests names the way out."""
    with AnthropicServer(lambda exchange: Turn("Hi.")) as server:
        for wanted in ({}, {}, {"prompt_caching": False}, {"prompt_caching": True}):
            model = ChatAnthropic(model="any", base_url=server.url, api_key="key", **wanted)
            caching = AnthropicPromptCachingMiddleware(unsupported_model_behavior="ignore")
            agent: Any = create_agent(model, [get_temperature], middleware=[caching])
            agent.invoke({"messages": [HumanMessage("Rome?")]})
        assert ["cache_control" in request for request in server.requests] == [False, False, False, True]
    said = [record.getMessage() for record in caplog.records if "prompt_caching=True" in record.getMessage()]
    assert len(said) == 1 and "127.0.0.1" in said[0]
