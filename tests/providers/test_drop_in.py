"""Where other libraries, and programs written for the partner packages, look: signatures, environment variables, clients, keywords."""

import inspect
import json
import logging
import pickle
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import ModelProfile
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompt_values import StringPromptValue
from langchain_core.tools import StructuredTool, tool
from pydantic import BaseModel
from typing_extensions import TypedDict

from langchain_autotools import (
    AzureChatOpenAI,
    ChatAnthropic,
    ChatGoogleGenerativeAI,
    ChatGroq,
    ChatMistralAI,
    ChatOpenAI,
    ChatXAI,
    ConfigurationError,
)
from tests.contract.wires import ROWS, Wire
from tests.support.anthropic_server import AnthropicServer
from tests.support.azure_server import KEY, TOKEN, VERSION, AzureServer
from tests.support.google_server import GoogleServer
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Turn

WITHOUT_A_WORD = ("google", "ollama", "cohere")
"""Wires that cannot say that a turn may hold one call only."""


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_one_call_a_turn_is_said_in_each_wires_words(row: Wire, caplog: pytest.LogCaptureFixture) -> None:
    """`bind_tools` names `parallel_tool_calls` in its signature; False is sent, also with each request of a run, or logged."""
    assert "parallel_tool_calls" in inspect.signature(row.chat_model.bind_tools).parameters
    with row.serve(lambda exchange: Turn("hello")) as server, caplog.at_level(logging.WARNING, "langchain_autotools"):
        row.model(server).bind_tools([add], parallel_tool_calls=False).invoke("x")
        row.model(server, tools=[add]).invoke("x", parallel_tool_calls=False)
        row.model(server).bind_tools([add]).invoke("x")
        sent = [exchange.json for exchange in server.exchanges]
    said = [request.get("tool_choice") if row.name == "anthropic" else request.get("parallel_tool_calls") for request in sent]
    if row.name in WITHOUT_A_WORD:
        assert (said, sum("has no parallel_tool_calls" in text for text in caplog.messages)) == ([None] * 3, 2)
    else:
        single = {"type": "auto", "disable_parallel_tool_use": True} if row.name == "anthropic" else False
        assert (said, "parallel" in caplog.text) == ([single, single, None], False)


# ---------------------------------------------------------------------------------------------- Google


@pytest.mark.parametrize(("name", "vertexai"), [("GOOGLE_GEMINI_BASE_URL", False), ("GOOGLE_VERTEX_BASE_URL", True)])
def test_the_addresses_of_googles_sdk_are_honoured(name: str, vertexai: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that the environment names gets the requests; an argument goes before it, and the other API's variable means nothing."""
    with GoogleServer([Turn("hello")]) as server:
        monkeypatch.setenv(name, server.url)
        model = ChatGoogleGenerativeAI(model="any", api_key="key", vertexai=vertexai)
        assert model.base_url == server.url
        if not vertexai:  # the server knows the Gemini API's paths only
            assert model.invoke("x").text == "hello"
        assert ChatGoogleGenerativeAI(model="any", api_key="key", base_url="http://other").base_url == "http://other"
        assert ChatGoogleGenerativeAI(model="any", api_key="key", vertexai=not vertexai).base_url is None


@pytest.mark.parametrize("name", ["http_options", "httpOptions", "automatic_function_calling", "automatic_continuation"])
def test_what_only_googles_sdk_knows_is_refused(name: str) -> None:
    """In a call, in `model_kwargs` and in the constructor: the server would not know it either."""
    with GoogleServer([]) as server:
        model = ChatGoogleGenerativeAI(model="any", api_key="key", base_url=server.url)
        with pytest.raises(ConfigurationError, match=f"{name} cannot be sent: it is google-genai's own"):
            model.invoke("x", **{name: {"timeout": 1}})
        with pytest.raises(ConfigurationError, match=f"{name} cannot be sent"):
            ChatGoogleGenerativeAI(model="any", api_key="key", model_kwargs={name: {}})
        with pytest.raises(ConfigurationError, match=name):
            ChatGoogleGenerativeAI(model="any", api_key="key", **{name: {}})
        assert server.exchanges == []


# ---------------------------------------------------------------------------------------------- Anthropic


def test_a_client_of_another_http_library_is_refused_where_it_is_given() -> None:
    """The SDK takes clients of one library only; one of that library works."""
    import anthropic

    libraries = [import_module(name) for name in ("httpx", "httpx2") if find_spec(name)]
    own = next(library for library in libraries if issubclass(anthropic.DefaultHttpxClient, library.Client))
    with AnthropicServer([Turn("hello")]) as server, own.Client() as client:
        place: dict[str, Any] = {"model": "any", "base_url": server.url, "api_key": "key"}
        assert ChatAnthropic(**place, http_client=client).invoke("x").text == "hello"
        for other in (library for library in libraries if library is not own):
            with (
                other.Client() as foreign,
                pytest.raises(ConfigurationError, match=f"is an {other.__name__}.Client, but .* {own.__name__}"),
            ):
                ChatAnthropic(**place, http_client=foreign)
            with pytest.raises(ConfigurationError, match="http_async_client is an"):
                ChatAnthropic(**place, http_async_client=other.AsyncClient())


def test_the_workspace_is_said_in_a_header() -> None:
    """As the SDK says it, from a call and from `model_kwargs`, beside the user's profile."""
    with AnthropicServer([Turn("hello"), Turn("hello")]) as server:
        place: dict[str, Any] = {"model": "any", "base_url": server.url, "api_key": "key"}
        ChatAnthropic(**place).invoke("x", workspace_id="wrkspc_1")
        ChatAnthropic(**place, model_kwargs={"workspace_id": "wrkspc_2"}, user_profile_id="u").invoke("x")
        assert [exchange.headers["anthropic-workspace-id"] for exchange in server.exchanges] == ["wrkspc_1", "wrkspc_2"]
        assert server.exchanges[1].headers["anthropic-user-profile-id"] == "u"
        assert not any("workspace_id" in request or "user_profile_id" in request for request in server.requests)


# ---------------------------------------------------------------------------------------------- Azure


async def test_a_token_goes_before_a_key_that_is_given_too() -> None:
    """As in the SDK; the key serves synchronous requests where the token comes from an asynchronous function only."""

    async def atoken() -> str:
        return TOKEN

    with AzureServer(lambda exchange: Turn("hello")) as server:
        place: dict[str, Any] = {"azure_endpoint": server.address, "azure_deployment": "mine", "api_version": VERSION, "api_key": KEY}
        for given in ({"azure_ad_token": TOKEN}, {"azure_ad_token_provider": lambda: TOKEN}, {"azure_ad_async_token_provider": atoken}):
            model = AzureChatOpenAI(**place, **given)
            assert model.invoke("x").text == (await model.ainvoke("x")).text == "hello"
        sent = [(exchange.headers.get("api-key"), exchange.headers.get("authorization")) for exchange in server.exchanges]
        assert sent[:4] == [(None, f"Bearer {TOKEN}")] * 4
        assert (sent[4][0], sent[5]) == (KEY, (None, f"Bearer {TOKEN}"))


# ---------------------------------------------------------------------------------------------- tools


UNION = {"name": "either", "description": "Takes one of two.", "input_schema": {"type": "object", "oneOf": [{"required": ["a"]}]}}


def offered(exchange: Any) -> list[str]:
    """The names of the declared tools of a request."""
    return [tool["name"] for tool in exchange.json["tools"]]


async def test_a_tool_that_the_vendor_cannot_take_is_left_out_where_that_was_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    """`skip_invalid_tools=True` logs it and sends the others, of the constructor, of a call and bound; without it is refused."""
    either = StructuredTool(name="either", description="Takes one of two.", args_schema=UNION["input_schema"], func=lambda **given: "x")
    with AnthropicServer(lambda exchange: Turn("hello")) as server, caplog.at_level(logging.WARNING, "langchain_autotools"):
        place: dict[str, Any] = {"model": "any", "base_url": server.url, "api_key": "key"}
        with pytest.raises(ConfigurationError, match="oneOf"):
            ChatAnthropic(**place, tools=[either, add])
        with pytest.raises(ConfigurationError, match="oneOf"):
            ChatAnthropic(**place).bind_tools([UNION, add])
        ChatAnthropic(**place, tools=[either, add], skip_invalid_tools=True).invoke("x")
        plain = ChatAnthropic(**place, skip_invalid_tools=True)
        plain.bind_tools([UNION, add]).invoke("x")
        await plain.ainvoke("x", tools=[either, add])
        assert [offered(exchange) for exchange in server.exchanges] == [["add"]] * 3
    left_out = [text for text in caplog.messages if "a tool is left out" in text]
    assert len(left_out) == 3 and all("'either'" in text for text in left_out)


def test_a_tool_of_an_mcp_server_can_be_chosen_by_name() -> None:
    """Only the server knows its tools' names, so a choice passes on beside a toolset; without one it is refused."""
    toolset = {"type": "mcp_toolset", "mcp_server_name": "maps"}
    with AnthropicServer([Turn("hello")]) as server:
        model = ChatAnthropic(model="any", base_url=server.url, api_key="key")
        bound: Any = model.bind_tools([toolset, add], tool_choice="find_place")
        assert bound.kwargs["tool_choice"] == {"type": "tool", "name": "find_place"}
        with pytest.raises(ConfigurationError, match="find_place"):
            model.bind_tools([add], tool_choice="find_place")
    hosted = {"type": "mcp", "server_label": "maps", "server_url": "http://127.0.0.1:9", "require_approval": "never"}
    bound = ChatOpenAI(model="any", api_key="key", use_responses_api=True).bind_tools([hosted], tool_choice="find_place")
    assert bound.kwargs["tool_choice"] == {"type": "mcp", "server_label": "maps", "name": "find_place"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_tools_none_means_no_tools(row: Wire) -> None:
    """In the constructor, in a call and in a copy; the model pickles and answers."""
    with row.serve(lambda exchange: Turn("hello")) as server:
        model = row.model(server, tools=None)
        assert [one.invoke("x", tools=None).text for one in (model, model.model_copy(update={"tools": None}))] == ["hello"] * 2
        assert not any("tools" in exchange.json for exchange in server.exchanges)
        assert pickle.loads(pickle.dumps(model)).tools is None


async def test_a_turn_without_a_run_that_ends_in_calls_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """`generate` and its like give calls and no text for a model with tools of its own: the warning names `invoke`."""
    with OpenAIServer(lambda exchange: Turn(calls=[Call("add", {"a": 1, "b": 2})])) as server:
        with caplog.at_level(logging.WARNING, "langchain_autotools"):
            model = ChatOpenAI(model="any", base_url=server.url, api_key="key", tools=[add])
            assert model.generate([[HumanMessage("x")]]).generations[0][0].text == ""
            await model.agenerate_prompt([StringPromptValue(text="x")])
            assert (
                caplog.messages
                == ["generate made one turn, which ends in calls and has no text: use invoke, which runs the model's tools"] * 2
            )
            caplog.clear()
            model.invoke("x", max_turns=1, on_limit="return")
            ChatOpenAI(model="any", base_url=server.url, api_key="key").bind_tools([add]).invoke("x")
            assert caplog.messages == ["a run has ended at its limit max_turns=1, after 1 turns and 1 tool calls"]


# ---------------------------------------------------------------------------------------------- what models say of themselves


class Weather(BaseModel):
    """Weather of a city."""

    city: str


class Place(TypedDict):
    """A place."""

    city: str


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_structured_output_says_what_comes_out(row: Wire) -> None:
    """`get_output_jsonschema` describes the schema, whatever its form, by every method."""
    with row.serve([]) as server:
        model = row.model(server)
        for method in ("json_schema", "function_calling"):
            assert model.with_structured_output(Weather, method=method).get_output_jsonschema() == Weather.model_json_schema()
            for schema in (Place, {"title": "Place", "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}):
                said = model.with_structured_output(schema, method=method).get_output_jsonschema()
                assert (said["properties"]["city"]["type"], said["required"]) == ("string", ["city"])


def test_a_models_name_in_capitals_is_the_same_model() -> None:
    """What the name decides is decided alike: the profile, and that a temperature is not sent."""
    with OpenAIServer(lambda exchange: Turn("hello")) as server:
        for name in ("gpt-5-mini", "GPT-5-MINI"):
            ChatOpenAI(model=name, base_url=server.url, api_key="key", temperature=0.5).invoke("x")
        assert [request.pop("model") for request in server.requests] == ["gpt-5-mini", "GPT-5-MINI"]
        assert server.requests[0] == {**server.requests[1], "model": "gpt-5-mini"} and "temperature" not in server.requests[0]
    for chat_model, name in ((ChatAnthropic, "Claude-Opus-5"), (ChatGoogleGenerativeAI, "Gemini-3.5-Flash"), (ChatXAI, "Grok-4.5")):
        assert chat_model(model=name, api_key="key").profile == chat_model(model=name.lower(), api_key="key").profile is not None


def test_profiles_have_what_other_libraries_read() -> None:
    """Keys of LangChain's profiles beyond limits and modalities: attachments, default efforts, messages and tools that come later."""
    openai, claude, gemini = (
        dict(chat_model(model=name, api_key="key").profile or {})
        for chat_model, name in ((ChatOpenAI, "gpt-5.5"), (ChatAnthropic, "claude-opus-5"), (ChatGoogleGenerativeAI, "gemini-3.5-flash"))
    )
    assert [profile["attachment"] for profile in (openai, claude, gemini)] == [True] * 3
    assert [profile["reasoning_effort_default"] for profile in (openai, claude, gemini)] == ["medium", "high", "medium"]
    assert [profile.get("mid_conversation_system_messages") for profile in (openai, claude, gemini)] == [True, True, None]
    assert claude["mid_conversation_tools"] is True
    for name, responses, takes in (("gpt-5.5", None, False), ("gpt-5.5", True, True), ("gpt-5-pro", None, True), ("gpt-4o", True, None)):
        profile = dict(ChatOpenAI(model=name, api_key="key", use_responses_api=responses).profile or {})
        assert profile.get("mid_conversation_tools") is takes, name
    azure = AzureChatOpenAI(model="gpt-5.5", azure_endpoint="https://a.test", api_version="1", api_key="key", use_responses_api=True)
    assert azure.profile and "mid_conversation_tools" not in azure.profile  # Azure's documentation does not say


def test_profiles_say_what_people_call_a_model_and_since_when_it_is_there() -> None:
    """Name, days, status and whether the weights are open, where the vendor tells; a dated version has what its name has."""
    keys = ("name", "release_date", "last_updated", "open_weights", "status")
    for model, said in (
        (ChatOpenAI(model="gpt-4o-2024-08-06", api_key="key"), ("GPT-4o", "2024-05-13", "2024-08-06", False, None)),
        (ChatOpenAI(model="o3-mini", api_key="key"), ("o3-mini", "2024-12-20", "2025-01-29", False, "deprecated")),
        (ChatGroq(model="openai/gpt-oss-20b", api_key="key"), ("GPT OSS 20B", "2025-08-05", "2026-05-27", True, None)),
        (ChatMistralAI(model="devstral-latest", api_key="key"), ("Devstral 2", "2025-12-09", "2025-12-09", True, "deprecated")),
        (ChatAnthropic(model="claude-opus-5", api_key="key"), ("Claude Opus 5", "2026-07-24", "2026-07-24", False, None)),
        (ChatGoogleGenerativeAI(model="gemini-3.5-flash", api_key="key"), ("Gemini 3.5 Flash", "2026-05-19", "2026-05-19", False, None)),
    ):
        profile = dict(model.profile or {})
        assert tuple(profile.get(key) for key in keys) == said
    some = (ChatOpenAI(model="gpt-5.5", api_key="key", use_responses_api=True), ChatOpenAI(model="o3-mini", api_key="key"))
    told = {key for model in some for key in model.profile or {}}
    assert told >= ModelProfile.__annotations__.keys()


class Tracer(BaseCallbackHandler):
    """Keeps what callbacks are told of a model, as tracers read it."""

    def __init__(self) -> None:
        self.told: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def on_chat_model_start(self, serialized: dict[str, Any], messages: Any, **more: Any) -> None:
        """Keep the model and the metadata."""
        self.told.append((serialized, more["metadata"]))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_tracers_find_the_models_settings(row: Wire) -> None:
    """Plain ones, no secret, in `serialized["kwargs"]` (OpenLLMetry reads nothing else); a temperature that is not set is None in the
    metadata, as of the partner packages."""
    tracer = Tracer()
    with row.serve(lambda exchange: Turn("hello")) as server:
        row.model(server, temperature=0.5, max_retries=3, tools=[add]).invoke("x", config={"callbacks": [tracer]})
        reply = row.model(server).invoke("x", config={"callbacks": [tracer]})
    (set_, metadata), (unset, bare) = tracer.told
    kwargs = set_["kwargs"]
    name = row.model(server)._get_ls_params()["ls_model_name"]
    assert name in {kwargs.get("model"), kwargs.get("model_name")} and json.loads(json.dumps(kwargs)) == kwargs
    assert (kwargs["max_retries"], metadata["ls_temperature"], bare["ls_temperature"]) == (3, 0.5, None)
    assert unset["kwargs"]["max_retries"] == 0 and "key" not in kwargs.values()
    assert row.name not in ("anthropic", "ollama") or reply.response_metadata["model"] == reply.response_metadata["model_name"]


async def test_what_cannot_be_a_conversation_says_what_was_done() -> None:
    """No message at all; and a message whose fields are in the history (`history += message`). Nothing is sent, with tools or without."""
    with OpenAIServer(lambda exchange: Turn("hello")) as server:
        for tools in ([], [add]):
            model = ChatOpenAI(model="any", base_url=server.url, api_key="key", tools=tools)
            for given, said in (
                ([], "no message to answer"),
                ([HumanMessage("Hi"), *AIMessage("Hi.")], r"history \+= new_messages\(message\)"),
            ):
                with pytest.raises(ConfigurationError, match=said):
                    model.invoke(given)
                with pytest.raises(ConfigurationError, match=said):
                    list(model.stream(given))
                with pytest.raises(ConfigurationError, match=said):
                    await model.ainvoke(given)
        assert server.exchanges == []


def test_a_model_that_nobody_named_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    """`ChatOpenAI()` asks what langchain-openai's asks, with a WARNING; a named model and the presets' own defaults bring none."""
    ChatOpenAI(model="gpt-3.5-turbo", api_key="key")
    ChatMistralAI(api_key="key")
    assert caplog.messages == []
    ChatOpenAI(api_key="key")
    assert [text for text in caplog.messages if "gpt-3.5-turbo" in text] == caplog.messages != []
