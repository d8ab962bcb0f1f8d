"""langgraph-supervisor: one model that hands over to agents."""

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph_supervisor import create_supervisor

from langchain_autotools import ChatOpenAI
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Turn

# The supervisor is built on what langgraph has announced to remove.
pytestmark = [pytest.mark.compat, pytest.mark.filterwarnings("ignore:create_react_agent has been moved")]

ran: list[str] = []


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    ran.append(city)
    return f"{city}: 21 °C"


def test_a_supervisor_hands_over_and_answers() -> None:
    """The supervisor calls the agent, the agent its tool once, and the supervisor, one call a turn, answers."""
    ran.clear()
    replies = [
        Turn(calls=[Call("transfer_to_weather")]),
        Turn(calls=[Call("get_temperature", {"city": "Rome"})]),
        Turn("Rome has 21 °C."),
        Turn("It is 21 °C in Rome."),
    ]
    with OpenAIServer(replies) as server:
        model = ChatOpenAI(model="any", base_url=server.url, api_key="key")
        agent = create_agent(model, [get_temperature], name="weather")
        state = create_supervisor([agent], model=model).compile().invoke({"messages": [HumanMessage("How warm is Rome?")]})
    assert server.rejections == []
    assert ran == ["Rome"]
    assert state["messages"][-1].text == "It is 21 °C in Rome."
    declared = [[one["function"]["name"] for one in request.get("tools", [])] for request in server.requests]
    assert [request.get("parallel_tool_calls") for request in server.requests] == [False, None, None, False]
    assert declared == [["transfer_to_weather"], ["get_temperature"], ["get_temperature"], ["transfer_to_weather"]]
