"""`ChatGoogleGenerativeAI` over real HTTP: parameters, environment, structured output, secrets, copies, signatures."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from google.genai import types as sdk_types
from langchain_core.exceptions import (
    OutputParserException,
)
from langchain_core.messages import AIMessage, HumanMessage

from langchain_autotools import ChatGoogleGenerativeAI, ConfigurationError, new_messages
from tests.support.google_server import GoogleServer
from tests.support.script import Call, Raw, Turn
from tests.support.weather import Weather, get_temperature

KEY = "AIza-secret-1234"


def model(server: GoogleServer, **more: Any) -> ChatGoogleGenerativeAI:
    """A model that asks the server."""
    return ChatGoogleGenerativeAI(**{"model": "gemini-test", "base_url": server.url, "api_key": KEY, "max_retries": 0, **more})


# ---------------------------------------------------------------------------------------------- parameters


def test_parameters_are_sent() -> None:
    """Constructor and call say the same things under the partner package's names; None unsets; the SDK's objects are taken."""
    asked: dict[str, Any] = {
        **{"temperature": 0.5, "top_p": 0.9, "top_k": 3, "max_tokens": 50, "stop": ["END"], "seed": 7, "thinking_level": "low"},
        **{"include_thoughts": True, "response_modalities": ["TEXT"], "media_resolution": "low", "cached_content": "cachedContents/c"},
        "safety_settings": {
            sdk_types.HarmCategory.HARM_CATEGORY_HARASSMENT: sdk_types.HarmBlockThreshold.BLOCK_NONE,
            "HARM_CATEGORY_HATE_SPEECH": "BLOCK_ONLY_HIGH",
        },
        "model_kwargs": {"response_logprobs": True},
    }
    with GoogleServer([Turn("a"), Turn("b")], strict=False) as server:
        model(server, **asked).invoke("x")
        model(server, **asked).invoke(
            "x",
            stop=["X"],
            temperature=None,
            max_output_tokens=9,
            thinking_config=sdk_types.ThinkingConfig(thinking_budget=5),
            thinking_level=None,
            generation_config={"top_k": 1, "speech_config": {"a": 1}},
            labels={"a": "b"},
            extra_headers={"X-More": "1"},
            extra_query={"q": "1"},
            extra_body={"modelArmorConfig": {}},
        )
    first, second = server.requests
    assert {key: value for key, value in first.items() if key != "contents"} == {
        "safetySettings": [
            {"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"},
            {"category": "HARM_CATEGORY_HATE_SPEECH", "threshold": "BLOCK_ONLY_HIGH"},
        ],
        "cachedContent": "cachedContents/c",
        "generationConfig": {
            **{"temperature": 0.5, "topP": 0.9, "topK": 3, "maxOutputTokens": 50, "stopSequences": ["END"], "seed": 7},
            **{"responseModalities": ["TEXT"], "mediaResolution": "MEDIA_RESOLUTION_LOW", "responseLogprobs": True},
            "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "LOW"},
        },
    }
    generation = second["generationConfig"]
    assert "temperature" not in generation
    assert (generation["stopSequences"], generation["maxOutputTokens"], generation["topK"]) == (["X"], 9, 1)
    assert generation["thinkingConfig"] == {"thinkingBudget": 5, "includeThoughts": True}
    assert (generation["speechConfig"], second["labels"], second["modelArmorConfig"]) == ({"a": 1}, {"a": "b"}, {})
    assert server.exchanges[1].headers["x-more"] == "1" and server.exchanges[1].path.endswith("?q=1")


def test_a_call_may_ask_another_model() -> None:
    """The model of a call is in the address, not in the request."""
    with GoogleServer([Turn("a"), Turn("b")]) as server:
        model(server).invoke("x", model="gemini-other")
        list(model(server).stream("x", model="models/gemini-third"))
    assert [exchange.path for exchange in server.exchanges] == [
        "/v1beta/models/gemini-other:generateContent",
        "/v1beta/models/gemini-third:streamGenerateContent?alt=sse",
    ]


@pytest.mark.parametrize("name", ["temprature", "client", "async_client", "default_metadata", "convert_system_message_to_human", "x"])
def test_unknown_and_refused_arguments(name: str) -> None:
    """What the class does not take is an error that says what to do."""
    with pytest.raises(ConfigurationError, match=f"{name}.*: "):
        ChatGoogleGenerativeAI(model="m", api_key="k", **{name: "value"})
    if name != "x":
        ChatGoogleGenerativeAI(model="m", api_key="k", convert_system_message_to_human=False)


@pytest.mark.parametrize(
    "wrong",
    [{"n": 2}, {"project": "p", "vertexai": False}, {"output_version": "v2"}, {"client_args": {"verify": False}, "http_client": object()}],
)
def test_arguments_that_cannot_work(wrong: dict[str, Any]) -> None:
    """Arguments that contradict each other or the class are errors at construction."""
    with pytest.raises(ValueError):
        ChatGoogleGenerativeAI(model="m", api_key="k", **wrong)


def test_the_environment_fills_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys come from the environment in the SDK's order; a missing one is told at the first request."""
    with pytest.raises(ConfigurationError, match="GOOGLE_API_KEY"):
        ChatGoogleGenerativeAI(model="m").invoke("x")
    monkeypatch.setenv("GEMINI_API_KEY", "second")
    assert secret(ChatGoogleGenerativeAI(model="m")) == "second"
    monkeypatch.setenv("GOOGLE_API_KEY", "first")
    assert secret(ChatGoogleGenerativeAI(model="m")) == "first"
    assert secret(ChatGoogleGenerativeAI(model="m", google_api_key="own")) == "own"
    monkeypatch.setenv("GOOGLE_GENAI_API_VERSION", "v1")
    assert ChatGoogleGenerativeAI(model="m", client_options={"api_endpoint": "http://h"})._api.root == "http://h/v1"


def secret(asked: ChatGoogleGenerativeAI) -> str | None:
    """The model's key."""
    return asked.google_api_key.get_secret_value() if asked.google_api_key else None


# ---------------------------------------------------------------------------------------------- structured output


@pytest.mark.parametrize("method", ["json_schema", "json_mode", "function_calling"])
def test_structured_output(method: Any) -> None:
    """Each method gives an object; an incomplete reply is an error, and raw replies carry it."""
    good = (
        Turn(calls=[Call("Weather", {"city": "Paris", "degrees": 21})])
        if method == "function_calling"
        else Turn('{"city": "Paris", "degrees": 21}')
    )
    with GoogleServer([good, good, Turn('{"city": "Par', finish="length")]) as server:
        asked = model(server).with_structured_output(Weather, method=method)
        assert asked.invoke("x") == Weather(city="Paris", degrees=21)
        assert list(asked.stream("x"))[-1] == Weather(city="Paris", degrees=21)
        with pytest.raises(OutputParserException, match="token limit"):
            asked.invoke("x")
        assert server.rejections == []
    generation = server.requests[0].get("generationConfig", {})
    assert ("responseJsonSchema" in generation) == (method != "function_calling")


def test_json_without_a_schema() -> None:
    """`json_mode` needs none; the other methods say that they do."""
    with GoogleServer([Turn('{"a": 1}')]) as server:
        assert model(server).with_structured_output(None, method="json_mode").invoke("x") == {"a": 1}
        assert server.requests[0]["generationConfig"] == {"responseMimeType": "application/json"}
        for wrong in (
            {"method": "json_schema"},
            {"method": "xml", "schema": Weather},
            {"method": "function_calling", "schema": Weather, "tools": [1]},
        ):
            with pytest.raises(ConfigurationError):
                model(server).with_structured_output(**wrong)  # type: ignore[arg-type]


def test_older_models_with_tools_are_asked_by_a_call() -> None:
    """A model that takes no schema beside tools gets the schema as a tool."""
    script = [Turn(calls=[Call("get_temperature", {"city": "Paris"})]), Turn(calls=[Call("Weather", {"city": "Paris", "degrees": 21})])]
    with GoogleServer(script) as server:
        asked = model(server, model="gemini-2.5-flash", tools=[get_temperature]).with_structured_output(Weather)
        assert asked.invoke("x") == Weather(city="Paris", degrees=21)
        assert all("responseMimeType" not in request.get("generationConfig", {}) for request in server.requests)


def test_a_response_format_is_understood() -> None:
    """OpenAI's form of a schema, as LangChain's agents send it, becomes the wire's."""
    form = {"type": "json_schema", "json_schema": {"name": "Weather", "schema": Weather.model_json_schema()}}
    with GoogleServer([Turn("{}")]) as server:
        model(server).invoke("x", response_format=form, strict=True)
    generation = server.requests[0]["generationConfig"]
    assert (generation["responseMimeType"], generation["responseJsonSchema"]["required"]) == ("application/json", ["city", "degrees"])


# ---------------------------------------------------------------------------------------------- secrets, copies, signatures


def test_secrets_and_copies() -> None:
    """The key is in no repr and no pickle; copies work and ask the same server."""
    with GoogleServer([Turn("a"), Turn("b")]) as server:
        asked = model(
            server, additional_headers={"X-Api-Token": "hidden-value"}, client_args={"headers": {"a": "hidden-value", "x-title": "b"}}
        )
        assert KEY not in repr(asked) and "hidden-value" not in repr(asked)
        with pytest.raises(pickle.PicklingError, match=r"additional_headers.*X-Api-Token.*client_args\['headers'\]\['a'\] cannot"):
            pickle.dumps(asked)
        assert copy.deepcopy(asked).invoke("x").text == "a"
        assert asked.model_copy(update={"model": "gemini-b"}).invoke("x").response_metadata["model_name"] == "gemini-b"
    plain: dict[str, Any] = {"headers": {"x-title": "b"}}
    pickled = pickle.dumps(asked.model_copy(update={"additional_headers": None, "client_args": plain}))
    other = pickle.loads(pickled)
    assert (KEY.encode() in pickled, other.google_api_key, other.client_args) == (False, None, plain)


def test_what_langchain_asks() -> None:
    """Tracing parameters, type and token estimate are the partner package's."""
    asked = ChatGoogleGenerativeAI(model="models/gemini-x", api_key="k", temperature=0.2, max_tokens=9)
    assert asked._get_ls_params(stop=["a"]) == {
        **{"ls_provider": "google_genai", "ls_model_name": "gemini-x", "ls_model_type": "chat"},
        **{"ls_temperature": 0.2, "ls_max_tokens": 9, "ls_stop": ["a"]},
    }
    assert (asked._llm_type, asked.thinking_level, asked.get_num_tokens("four") > 0) == ("chat-google-generative-ai", None, True)
    assert asked.get_num_tokens_from_messages([HumanMessage("Hi")], tools=[get_temperature]) > 20
    assert (ChatGoogleGenerativeAI(model="gemini-2.5-flash-001", api_key="k").profile or {})["max_input_tokens"] == 1_048_576
    assert KEY not in str(asked._identifying_params)


def test_cached_tokens_are_told() -> None:
    """Tokens that the vendor read from a cache are in the usage, and the run adds them up."""
    with GoogleServer([Turn("a", usage=(10, 3), usage_details={"cached": 8, "reasoning": 1})]) as server:
        message = model(server).invoke("x")
    assert message.usage_metadata == {
        **{"input_tokens": 10, "output_tokens": 3, "total_tokens": 13},
        **{"input_token_details": {"cache_read": 8}, "output_token_details": {"reasoning": 1}},
    }


def test_another_model_is_not_sent_the_signatures() -> None:
    """A signature belongs to its model: another one gets the word that stands for it, and no thoughts."""
    script = [
        Turn("Look.", [Call("get_temperature", {"city": "Paris"})], reasoning="Hm."),
        Turn("21.", reasoning="So."),
        Turn("Yes."),
        Turn("Yes."),
    ]
    with GoogleServer(script) as server:
        ran = model(server, tools=[get_temperature]).invoke("How warm?")
        history = [HumanMessage("How warm?"), ran, HumanMessage("Really?")]
        model(server, tools=[get_temperature]).invoke(history)
        model(server, model="gemini-other", tools=[get_temperature]).invoke(history)
        assert server.rejections == []
    at_home, abroad = (server.exchanges[number].body.decode() for number in (2, 3))
    assert at_home.count('"thought":true') == 2 and "c2ln0000call" in at_home and '"id":"fc000000"' in at_home
    assert not any(word in abroad for word in ('thought":true', "c2ln", "fc0000")) and "skip_thought_signature_validator" in abroad


def test_without_tools_a_message_is_the_vendors() -> None:
    """A plain answer is plain text, the same from `stream` and `invoke`, and remembers itself for the caller's loop."""
    with GoogleServer([Turn("Hello there."), Turn("Hello there.")]) as server:
        whole = model(server).invoke("x")
        chunks = list(model(server).stream("x"))
    assert (type(whole), whole.content) == (AIMessage, "Hello there.")
    [stored] = [message for chunk in chunks for message in new_messages(chunk)]
    assert stored.content == whole.content


def test_a_server_that_streams_a_json_array() -> None:
    """A server that does not know `alt=sse` is understood too."""
    pieces = [b'[{"candidates": [{"content": {"parts": [{"text": "Hel"}]}}]}', b',\r\n{"candidates": [{"content": {"parts": ']
    pieces.append(b'[{"text": "lo"}]}, "finishReason": "STOP"}]}]')
    with GoogleServer([Raw(pieces, "application/json")]) as server:
        assert "".join(chunk.text for chunk in model(server).stream("x")) == "Hello"
