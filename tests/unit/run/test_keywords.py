"""The keywords of one call: each has its effect, or is refused where it is given."""

import asyncio
from collections.abc import Callable
from inspect import signature
from typing import Any

import anthropic
import ollama
import pytest
from google.genai.types import GenerateContentConfig
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from openai.resources.chat import Completions
from openai.resources.responses import Responses

from langchain_autotools import ChatAnthropic, ChatOpenAI, ConfigurationError, ToolPolicy, ToolsAndMessagesMixin
from langchain_autotools.run.settings import call_settings
from langchain_autotools.testing import ScriptedChatModel
from tests.support.anthropic_server import AnthropicServer
from tests.support.openai_server import OpenAIServer
from tests.support.script import Turn


def look(number: int = 0) -> str:
    """Look."""
    return str(number)


def _asks_forever(messages: list[BaseMessage], **kwargs: Any) -> AIMessage:
    usage = {"input_tokens": 90, "output_tokens": 20, "total_tokens": 110}
    if kwargs.get("tool_choice") == "none":
        return AIMessage("done", usage_metadata=usage)  # type: ignore[arg-type]
    return AIMessage("", tool_calls=[{"name": "look", "args": {"number": len(messages)}, "id": f"c{len(messages)}"}], usage_metadata=usage)  # type: ignore[arg-type]


def _scripted(**fields: Any) -> ScriptedChatModel:
    return ScriptedChatModel(**{"replies": _asks_forever, "tools": [look], **fields})


def _stopped(message: Any) -> tuple[str, int]:
    own = message.response_metadata["autotools"]
    return own["stop_reason"], own["turns"]


async def _all(chunks: Any) -> list[Any]:
    return [chunk async for chunk in chunks]


def _summed(chunks: list[Any]) -> Any:
    return sum(chunks[1:], chunks[0])


ASK = [HumanMessage("?")]
WAYS: dict[str, Callable[..., Any]] = {
    "bind": lambda model, **keywords: model.bind(**keywords).invoke(ASK),
    "invoke": lambda model, **keywords: model.invoke(ASK, **keywords),
    "stream": lambda model, **keywords: _summed(list(model.stream(ASK, **keywords))),
    "batch": lambda model, **keywords: model.batch([ASK], **keywords)[0],
    "ainvoke": lambda model, **keywords: asyncio.run(model.ainvoke(ASK, **keywords)),
    "astream": lambda model, **keywords: _summed(asyncio.run(_all(model.astream(ASK, **keywords)))),
    "abatch": lambda model, **keywords: asyncio.run(model.abatch([ASK], **keywords))[0],
}
ONE_TURN: dict[str, Callable[..., Any]] = {
    "generate": lambda model, **keywords: model.generate([ASK], **keywords),
    "agenerate": lambda model, **keywords: asyncio.run(model.agenerate([ASK], **keywords)),
    "bind_tools": lambda model, **keywords: model.bind_tools([look], **keywords),
}


@pytest.mark.parametrize("way", WAYS)
def test_limits_of_a_call(way: str) -> None:
    """A call's limit holds, and its None lifts the model's; `max_turns` counts the turns that may ask for tools."""
    run = WAYS[way]
    assert _stopped(run(_scripted(), max_turns=2)) == ("max_turns", 3)
    assert _stopped(run(_scripted(), context_window=100)) == ("context_window", 2)
    assert _stopped(run(_scripted(max_turns=1), max_turns=None, max_tool_calls=4)) == ("max_tool_calls", 6)
    assert _stopped(run(_scripted(profile={"max_input_tokens": 100}), context_window=None, max_turns=3)) == ("max_turns", 4)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"context_window": -5}, "context_window must be greater than 0"),
    ({"max_turns": -5}, "max_turns must be greater than 0"),
    ({"polling_tools": "look"}, "polling_tools must be a list"),
    ({"on_limit": "stop"}, "on_limit must be one of"),
    ({"message_separator": 3}, "message_separator must be a text"),
    ({"carry_messages": "no"}, "carry_messages must be True or False"),
    ({"on_executing": "print"}, "on_executing must be a function"),
    ({"parallel": 0}, "parallel must be True or False"),
    ({"max_concurrency": 0}, "max_concurrency must be a whole number of at least 1"),
    ({"tool_timeout": 3}, r"there is no keyword 'tool_timeout': .*default_policy=ToolPolicy\(timeout="),
    ({"max_turn": 5}, "there is no keyword 'max_turn': did you mean 'max_turns'"),
    ({"deadlin": 5}, "there is no keyword 'deadlin': did you mean 'deadline'"),
]


@pytest.mark.parametrize("way", [*WAYS, *ONE_TURN])
@pytest.mark.parametrize("tools", [[], [look]], ids=["no tools", "tools"])
def test_what_cannot_work_is_refused(way: str, tools: list[Any]) -> None:
    """Bad values and misspelt names, on every way, of models with and without tools; no request is made."""
    model = _scripted(tools=tools)
    for keywords, why in BAD:
        with pytest.raises(ConfigurationError, match=why):
            (WAYS | ONE_TURN)[way](model, **keywords)
    assert not model.requests


def test_limits_of_a_model_without_tools() -> None:
    """A program that swaps models may give them: they bound nothing, and no request has them."""
    model = ScriptedChatModel(replies=["done"])
    assert model.invoke("?", max_turns=5, default_policy=ToolPolicy(timeout=3), parallel=False).text == "done"
    assert model.requests[0].kwargs == {}


def test_polling_tools_are_tools() -> None:
    """A name that no tool has would exempt nothing."""
    with pytest.raises(ValueError, match="polling_tools names tools that do not exist: 'lok'"):
        _scripted(polling_tools=["lok"])
    with pytest.raises(ConfigurationError, match="polling_tools names tools that do not exist: 'lok'"):
        _scripted().invoke("?", polling_tools=["look", "lok"])


# ---------------------------------------------------------------------------------------------- the vendor's keywords


@pytest.mark.parametrize(
    "name",
    [
        *("max_retries", "retry", "include_response_headers", "model_kwargs", "stream_chunk_timeout"),
        *("disabled_params", "null_content", "part_keys", "use_previous_response_id", "use_responses_api"),
    ],
)
def test_what_is_set_at_construction_is_refused_at_a_call(name: str) -> None:
    """It would go into the request's body and do nothing."""
    with OpenAIServer([Turn("done")]) as server:
        model = ChatOpenAI(model="any", base_url=server.url, api_key="key")
        with pytest.raises(ConfigurationError, match=f"{name} is set where the model is made"):
            model.invoke("?", **{name: 3})
    assert not server.exchanges


def test_another_vendors_own_settings_too() -> None:
    """Which fields a class has beside those of its wire is its own matter."""
    with AnthropicServer([Turn("done")]) as server:
        model = ChatAnthropic(model="any", base_url=server.url, api_key="key")
        with pytest.raises(ConfigurationError, match="reuse_last_container is set where the model is made"):
            model.bind(reuse_last_container=True).invoke("?")
    assert not server.exchanges


def _parameters() -> list[str]:
    known: set[str] = {*RunnableConfig.__annotations__, *BaseChatModel.model_fields, *GenerateContentConfig.model_fields}
    for create in (
        Completions.create,
        Responses.create,
        anthropic.resources.Messages.create,
        anthropic.resources.beta.Messages.create,
        ollama.Client.chat,
    ):
        known |= set(signature(create).parameters)
    mine = {"max_tool_calls", "parallel", "deadline", "self"}
    return sorted(known - mine - {"kwargs", "args"})


def test_no_vendors_keyword_is_mistaken() -> None:
    """Parameters of the SDKs, of LangChain's own and its tracers', and any others that are not near pass to the request."""
    extra = ["thinking_budget", "ls_structured_output_format", "max_output_tokens", "response_format", "num_ctx", "x"]
    model = ScriptedChatModel(replies=["done"])
    for name in {*_parameters(), *extra} - {"fallbacks"}:
        model.bind(**{name: None})
    with pytest.raises(ConfigurationError, match="fallbacks is set where the model is made, not at a call; .* goes in extra_body"):
        model.bind(fallbacks=None)  # a parameter of Anthropic's, too, that has our name


@pytest.mark.parametrize("name", ["mx_trns", "max_turnsss", "maxturn", "mox_tirns", pytest.param("maaax_turns", marks=pytest.mark.further)])
def test_a_keyword_two_letters_off_is_refused(name: str) -> None:
    """Left out, put in or changed: it is told what was meant."""
    with pytest.raises(ConfigurationError, match=f"no keyword '{name}': did you mean 'max_turns'"):
        ScriptedChatModel(replies=["done"]).invoke("?", **{name: 3})


def test_a_keyword_two_letters_off_is_refused_where_settings_are_read() -> None:
    """Before any request: a run that takes its settings has no keyword of its own left that it would send."""
    with pytest.raises(ConfigurationError, match="did you mean 'max_turns'"):
        call_settings(ScriptedChatModel(replies=[]), {"max_turns": 3, "maxturn": 3})


def test_a_models_own_keywords_are_known() -> None:
    """What a model's own methods or constructor name is no misspelling."""

    class Own(ToolsAndMessagesMixin):
        deadlines: int = 0

        @property
        def _llm_type(self) -> str:
            return "own"

        def raw_stream(self, messages: Any, stop: Any = None, max_turn: int = 0, **kwargs: Any) -> Any:
            yield AIMessageChunk(content=f"{max_turn} {kwargs}")

    assert Own().invoke("?", max_turn=3, deadlines=4).text == "3 {'deadlines': 4}"


def test_unknown_arguments_of_a_constructor() -> None:
    """Models of one's own refuse them as the vendors' classes do, with the nearest name; who allows them gets them."""

    class Own(ToolsAndMessagesMixin):
        @property
        def _llm_type(self) -> str:
            return "own"

    class Open(Own):
        model_config = {"extra": "allow"}

    with pytest.raises(ConfigurationError, match="Own has no argument 'max_turn': did you mean 'max_turns'"):
        Own(max_turn=3)
    with pytest.raises(ConfigurationError, match="ScriptedChatModel has no argument 'script'"):
        ScriptedChatModel(script=["done"])
    with pytest.raises(ConfigurationError, match=r"Own has no argument 'tool_timeout': .*default_policy=ToolPolicy\(timeout="):
        Own(tool_timeout=3)
    with pytest.raises(ConfigurationError, match="ChatAnthropic has no argument 'max_turn': did you mean 'max_turns'"):
        ChatAnthropic(model="any", api_key="key", max_turn=3)
    assert Open(max_turn=3).max_turn == 3
