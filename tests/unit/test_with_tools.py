"""`with_tools`: a copy of a model with other tools."""

import pytest

from langchain_autotools import ConfigurationError
from langchain_autotools.testing import ScriptedChatModel


def look(at: str) -> str:
    """Look at a place."""
    return f"{at} is quiet"


def test_the_copy_runs_the_tools_and_the_model_keeps_its_own() -> None:
    """The tools of the copy are declared and run; the model has those that it had."""
    model = ScriptedChatModel(replies=["Fine."], tools=[look])
    other = model.with_tools({"see": look})
    other.invoke("What is up?")
    assert [tool["function"]["name"] for tool in model.requests[-1].tools] == ["see"]
    assert model.tools == [look]
    assert other.with_tools(None).tools is None


def test_tools_that_cannot_work_are_refused_at_once() -> None:
    """What is no tool, and a setting that names a tool that is gone, are errors where the copy is made."""
    model = ScriptedChatModel(replies=["Fine."], tools=[look], polling_tools=["look"])
    with pytest.raises(ConfigurationError):
        model.with_tools([3])
    with pytest.raises(ConfigurationError, match="polling_tools"):
        model.with_tools({"see": look})
