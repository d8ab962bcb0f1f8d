"""Models that LangChain makes of others: `configurable_fields`, and calls that ask for another model."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.runnables import ConfigurableField

from langchain_autotools import ChatOpenAI
from langchain_autotools.testing import ScriptedChatModel
from tests.contract.wires import WIRES, Wire
from tests.support.openai_server import OpenAIServer
from tests.support.script import Turn

from .conftest import TEXT

Make = Callable[..., ScriptedChatModel]


def test_fields_can_be_configured_for_a_call(chat: Make) -> None:
    """`configurable_fields` reaches run settings and tools."""
    model = chat().configurable_fields(message_separator=ConfigurableField(id="separator"), tools=ConfigurableField(id="tools"))
    assert model.with_config(configurable={"separator": " - "}).invoke("?").text == TEXT.replace("\n", " - ")
    assert [call["id"] for call in model.with_config(configurable={"tools": []}).invoke("?").tool_calls] == ["call_1", "call_2"]


@pytest.mark.parametrize(("asked", "reason"), [({}, "context_window"), ({"model": "larger"}, "complete")])
def test_the_profiles_window_is_that_of_the_models_own_name(chat: Make, asked: dict[str, Any], reason: str) -> None:
    """A call that asks for another model (`bind(model=...)`) is not cut short by what is known of this one."""
    run = chat(profile={"max_input_tokens": 10}).bind(**asked).invoke("?")
    assert run.response_metadata["autotools"]["stop_reason"] == reason


def test_a_model_configured_by_name_has_that_models_profile() -> None:
    """What is known of the first model (here: that it takes no temperature) is not held against the one that is configured."""
    with OpenAIServer([Turn("Hello.")] * 2) as server:
        model = ChatOpenAI(model="gpt-5", temperature=0.5, base_url=server.url, api_key="k")
        configurable = model.configurable_fields(model_name=ConfigurableField(id="model"))
        configurable.invoke("?")
        configurable.with_config(configurable={"model": "gpt-4o"}).invoke("?")
    assert [(request["model"], request.get("temperature")) for request in server.requests] == [("gpt-5", None), ("gpt-4o", 0.5)]


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_a_configured_model_streams(wire: Wire) -> None:
    """LangChain makes a configured model anew, every field given: that must not switch its streams off."""
    with wire.serve([Turn("One two three four five.")]) as server:
        model = wire.model(server).configurable_fields(temperature=ConfigurableField(id="temperature"))
        texts = [chunk.text for chunk in model.with_config(configurable={"temperature": 0.5}).stream("?")]
    assert "".join(texts) == "One two three four five." and len(list(filter(None, texts))) > 1
