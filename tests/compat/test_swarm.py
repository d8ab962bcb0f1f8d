"""langgraph-swarm: agents that hand over to each other."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph_swarm import create_handoff_tool, create_swarm

from langchain_autotools import ChatAnthropic, ChatOpenAI
from tests.support.anthropic_server import AnthropicServer
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Turn

pytestmark = pytest.mark.compat


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return f"{city}: 21 °C"


def test_agents_of_two_vendors_hand_over_to_each_other() -> None:
    """What one agent's model said is in the other's history, in the other wire's form, and both servers accept it."""
    handing = [Turn("I ask the other.", calls=[Call("transfer_to_weather")])]
    knowing = [Turn(calls=[Call("get_temperature", {"city": "Rome"})]), Turn("It is 21 °C in Rome.")]
    with OpenAIServer(handing) as first, AnthropicServer(knowing) as second:
        models: list[Any] = [
            ChatOpenAI(model="any", base_url=first.url, api_key="key"),
            ChatAnthropic(model="any", base_url=second.url, api_key="key"),
        ]
        front = create_agent(models[0], [create_handoff_tool(agent_name="weather")], name="front")
        weather = create_agent(models[1], [get_temperature, create_handoff_tool(agent_name="front")], name="weather")
        state = create_swarm([front, weather], default_active_agent="front").compile().invoke({"messages": [HumanMessage("Rome?")]})
        assert (first.rejections, second.rejections) == ([], [])
    assert state["messages"][-1].text == "It is 21 °C in Rome."
    assert state["active_agent"] == "weather"
