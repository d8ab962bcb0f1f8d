"""Who listens to a run: event streams, handlers of the context, and handlers that fail."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.callbacks import get_usage_metadata_callback
from langchain_core.tracers.context import collect_runs

from langchain_autotools import new_messages
from langchain_autotools.testing import ScriptedChatModel

from .conftest import TEXT, answer

Make = Callable[..., ScriptedChatModel]


async def test_events_v2_show_every_step(chat: Make) -> None:
    """`astream_events` tells parent run, turns and tools; the end of the parent run gives the run message."""
    events = [event async for event in chat().astream_events("?", version="v2")]
    kinds = [event["event"] for event in events]
    assert kinds.count("on_chat_model_start") == kinds.count("on_chat_model_end") == 2
    assert kinds.count("on_tool_start") == kinds.count("on_tool_end") == 2
    run = events[-1]["data"]["output"]
    assert kinds[-1] == "on_chain_end" and [message.type for message in new_messages(run)] == ["ai", "tool", "tool", "ai"]


@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_listeners_of_the_context_hear_of_v3_events_once(chat: Make, asynchronous: bool) -> None:
    """Tokens are counted once and one run is traced, where the listener comes with the context and not in the configuration."""
    with collect_runs() as traced, get_usage_metadata_callback() as usage:
        if asynchronous:
            await (await chat().astream_events("?", version="v3")).output
        else:
            assert chat().stream_events("?", version="v3").output.text == TEXT
    assert [(run.run_type, run.name) for run in traced.traced_runs] == [("chain", "ScriptedChatModel")]
    assert usage.usage_metadata["scripted-1"]["total_tokens"] == 60


@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
@pytest.mark.parametrize("carry", [True, False])
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_an_error_of_v3_events_brings_what_had_completed(chat: Make, asynchronous: bool, carry: bool) -> None:
    """No event before the last one delivers a message, so the error brings them all."""

    def reply(messages: list[Any], **kwargs: Any) -> Any:
        return ConnectionError("gone") if messages[-1].type == "tool" else answer(messages)

    model = chat(replies=reply, carry_messages=carry)
    with pytest.raises(ConnectionError) as caught:
        if asynchronous:
            await (await model.astream_events("?", version="v3")).output
        else:
            list(model.stream_events("?", version="v3"))
    assert [message.type for message in new_messages(caught.value)] == ["ai", "tool", "tool"]
