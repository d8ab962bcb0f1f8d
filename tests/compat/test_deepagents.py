"""deepagents: planning, files and sub-agents around one model."""

from typing import Any

import pytest
from deepagents import create_deep_agent
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


def test_an_agent_plans_writes_a_file_and_uses_a_tool() -> None:
    """Its own tools and the user's run side by side; `prompt_caching=True` marks what its own middleware leaves to another class."""
    replies = [
        Turn(calls=[Call("write_file", {"file_path": "/notes.txt", "content": "Rome"}), Call("get_temperature", {"city": "Rome"})]),
        Turn("It is 21 °C in Rome."),
    ]
    with AnthropicServer(replies) as server:
        model = ChatAnthropic(model="claude-sonnet-5", base_url=server.url, api_key="key", prompt_caching=True)
        agent: Any = create_deep_agent(model=model, tools=[get_temperature], system_prompt="Be brief.")
        state = agent.invoke({"messages": [HumanMessage("How warm is Rome?")]})
        assert server.rejections == []
        last = server.requests[-1]
    assert state["messages"][-1].text == "It is 21 °C in Rome."
    assert "/notes.txt" in state["files"]
    mark = {"type": "ephemeral"}
    assert (last["cache_control"], last["tools"][-1]["cache_control"], last["system"][-1]["cache_control"]) == (mark, mark, mark)
