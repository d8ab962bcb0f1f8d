"""Which of OpenAI's two APIs a request goes to, at the vendor's own address, at Azure's and elsewhere."""

import logging
from functools import partial
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from langchain_autotools import (
    AzureChatOpenAI,
    ChatGroq,
    ChatOpenAI,
    ConfigurationError,
    UnsupportedFeatureError,
    new_messages,
    pending_calls,
)
from langchain_autotools.providers.openai.errors import OpenAIInvalidRequestError
from tests.contract.talk import WAYS, run_in
from tests.support.azure_server import KEY, VERSION, AzureResponsesServer
from tests.support.openai_itself import OpenAIItself
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Failure, Turn
from tests.support.weather import get_temperature

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
SEARCH = {"type": "web_search"}
NESTED = {"type": "builtin_function", "function": {"name": "$web_search"}}
NESTED_ALIKE = {"type": "web_search", "web_search": {"enable": True}}
REFUSAL = "Function tools with reasoning_effort are not supported for any in /v1/chat/completions. Please use /v1/responses instead."


def turns(count: int = 1) -> list[Any]:
    """So many turns that call a tool, and an answer."""
    return [*[Turn(calls=[Call("get_temperature", {"city": f"Paris {number}"})]) for number in range(count)], Turn("21 °C.")]


def model_of(vendor: OpenAIItself, **given: Any) -> ChatOpenAI:
    """A model without a base URL unless one is given."""
    return ChatOpenAI(**{"model": "gpt-5", "api_key": "key", "max_retries": 0, "http_client": vendor.client(), **given})


def asked(call: dict[str, Any] | None = None, bound: Any = (), **given: Any) -> str:
    """The API that one request went to."""
    with OpenAIItself(chat=[Turn("Hi.")], responses=[Turn("Hi.")]) as vendor:
        model = model_of(vendor, **given)
        (model.bind_tools(bound) if bound else model).invoke("Hi", **(call or {}))
        assert not vendor.chat.rejections and not vendor.responses.rejections
        return "".join(vendor.asked)


@pytest.mark.parametrize("name", ["gpt-5-pro", "o3-pro-2025-06-10", "gpt-5.1-codex-max", "o4-mini-deep-research", "gpt-5.6-sol"])
def test_a_model_that_responses_alone_serves_goes_there(name: str) -> None:
    """Of the constructor or of the call, with tools or without."""
    assert asked(model=name) == asked({"model": name}) == RESPONSES
    assert asked(model=name, use_responses_api=False) == CHAT


@pytest.mark.parametrize(
    ("name", "api"),
    [("gpt-5.3", CHAT), ("gpt-4o", CHAT), ("o3", CHAT), ("gpt-35-turbo", CHAT), ("ft:gpt-4o:acme-codex::id", CHAT)]
    + [(name, RESPONSES) for name in ("gpt-5.4", "gpt-5.5-2026-03-01", "gpt-6-astra", "ft:gpt-5.4-mini:acme::id")],
)
def test_function_tools_of_models_since_5_4_go_to_responses(name: str, api: str) -> None:
    """By constructor or `bind_tools`; without tools they stay on chat completions."""
    assert asked(model=name) == CHAT
    assert asked(model=name, tools=[get_temperature]) == asked(model=name, bound=[get_temperature]) == api


def test_without_effort_function_tools_stay_where_the_vendor_takes_them() -> None:
    """`none` is what chat completions asks for; from gpt-6 on it is no way out."""
    assert asked(model="gpt-5.4", reasoning_effort="none", bound=[get_temperature]) == CHAT
    assert asked({"reasoning_effort": "low"}, model="gpt-5.4", reasoning_effort="none", bound=[get_temperature]) == RESPONSES
    assert asked(model="gpt-6-astra", reasoning_effort="none", bound=[get_temperature]) == RESPONSES


@pytest.mark.parametrize("address", [{}, {"base_url": "http://gateway.test/v1"}], ids=["vendor", "gateway"])
def test_what_only_responses_has_asks_for_it_everywhere(address: dict[str, Any]) -> None:
    """Builtin tools and parameters, of the constructor or of the call."""
    asks = partial(asked, **address)
    assert asks(tools=[SEARCH]) == asks(bound=[SEARCH]) == asks(bound=[get_temperature, SEARCH]) == RESPONSES
    called: list[dict[str, Any]] = [{"reasoning": {"effort": "low"}}, {"include": ["reasoning.encrypted_content"]}, {"truncation": "auto"}]
    called += [{"text": {"verbosity": "low"}}]
    for call in called:
        assert asks(call) == RESPONSES
    assert asks(reasoning={"effort": "low"}) == asks(model_kwargs={"truncation": "auto"}) == RESPONSES
    assert asks({"reasoning": None}) == asks(extra_body={"user": "me"}) == CHAT


def test_a_reply_that_is_named_was_one_of_responses() -> None:
    """So is what refers to it."""
    with OpenAIItself(responses=[Turn("Hi."), Turn("Ho.")]) as vendor:
        model = model_of(vendor)
        first = model.invoke("Hi", truncation="auto").response_metadata["id"]
        assert model.invoke("Hi", previous_response_id=first).text == "Ho."


def test_at_other_addresses_a_name_says_nothing() -> None:
    """A gateway's model of that name may be served otherwise; the vendor's address, written out, is the vendor's."""
    gateway = {"model": "gpt-5-pro", "base_url": "http://gateway.test/v1"}
    assert asked(**gateway) == asked(**gateway, tools=[get_temperature]) == CHAT
    assert asked(**{**gateway, "base_url": "https://api.openai.com/v1"}) == RESPONSES


def test_an_address_of_the_environment_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that the constructor gives."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://gateway.test/v1")
    assert asked(model="gpt-5-pro") == CHAT


def test_tools_nested_under_their_type_are_of_chat_completions() -> None:
    """Vendors of that wire declare their builtin tools so."""
    with OpenAIServer([Turn("Hi."), Turn("Hi.")], rules=None) as server:  # the strict rules are OpenAI's own
        model = ChatOpenAI(model="any", base_url=server.url, api_key="key")
        for tool in (NESTED, NESTED_ALIKE):
            assert model.bind(tools=[tool]).invoke("Hi").text == "Hi."
        assert [request["tools"] for request in server.requests] == [[NESTED], [NESTED_ALIKE]]


def test_all_turns_of_a_run_go_to_one_api() -> None:
    """Streamed or not; the last request at a limit too."""
    with OpenAIItself(responses=[*turns(2), *turns(2), *turns(3)]) as vendor:
        model = model_of(vendor, model="gpt-5.4", tools=[get_temperature])
        assert model.invoke("How warm?").text == "21 °C."
        assert "".join(chunk.text for chunk in model.stream("How warm?")) == "21 °C."
        model.invoke("How warm?", max_turns=1)
        assert set(vendor.asked) == {RESPONSES} and vendor.responses.rejections == []


async def test_asynchronous_runs_go_the_same_way() -> None:
    """Both ways."""
    with OpenAIItself(responses=[*turns(), *turns()]) as vendor:
        async with vendor.async_client() as client:
            model = model_of(vendor, model="gpt-5.4", tools=[get_temperature], http_async_client=client)
            assert (await model.ainvoke("How warm?")).text == "21 °C."
            assert "".join([chunk.text async for chunk in model.astream("How warm?")]) == "21 °C."
        assert vendor.asked == [RESPONSES] * 4


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_a_refusal_that_names_the_other_api_is_obeyed(way: str) -> None:
    """At any server, once: what it taught holds for the run's other turns, and for later requests of the kind."""
    with OpenAIItself(chat=[Failure(400, REFUSAL, "invalid_request_error"), Turn("No tools.")], responses=[*turns(), *turns()]) as vendor:
        model = model_of(vendor, base_url="http://gateway.test/v1", tools=[get_temperature])
        for _ in range(2):
            texts = [model.invoke("How warm?").text] if way == "invoke" else [chunk.text for chunk in model.stream("How warm?")]
            assert "".join(texts) == "21 °C."
        assert vendor.asked == [CHAT, *[RESPONSES] * 4]
        assert model.model_copy(update={"tools": []}).invoke("Hi").text == "No tools."  # nothing was said of these


async def test_a_refusal_is_obeyed_asynchronously() -> None:
    """As in threads."""
    with OpenAIItself(chat=[Failure(404, REFUSAL)], responses=turns()) as vendor:
        async with vendor.async_client() as client:
            model = model_of(vendor, base_url="http://gateway.test/v1", tools=[get_temperature], http_async_client=client)
            assert (await model.ainvoke("How warm?")).text == "21 °C."


def test_a_server_that_sends_a_request_back_is_not_obeyed_again() -> None:
    """Its second refusal is the error, and the caller's own choice holds against the first."""
    there, back = Failure(400, REFUSAL), Failure(400, "Not in v1/responses: use v1/chat/completions.")
    with OpenAIItself(chat=[there, there], responses=[back]) as vendor:
        with pytest.raises(OpenAIInvalidRequestError, match="Not in v1/responses"):
            model_of(vendor, base_url="http://gateway.test/v1").invoke("Hi")
        with pytest.raises(OpenAIInvalidRequestError, match="Please use /v1/responses"):
            model_of(vendor, use_responses_api=False).invoke("Hi")
        assert vendor.asked == [CHAT, RESPONSES, CHAT]


def test_a_model_that_responses_does_not_serve_goes_back() -> None:
    """What only its name sent there."""
    with OpenAIItself(chat=[Turn("Hi.")], responses=[Failure(404, "Only supported in v1/chat/completions.")]) as vendor:
        assert model_of(vendor, model="gpt-5-pro").invoke("Hi").text == "Hi."


def test_presets_stay_on_chat_completions() -> None:
    """Whatever a server or a model's name says."""
    with OpenAIServer([Failure(400, REFUSAL)]) as server:
        model = ChatGroq(model="gpt-5-pro", base_url=server.url, api_key="key", max_retries=0)
        with pytest.raises(OpenAIInvalidRequestError, match="Please use"):
            model.invoke("Hi")
        assert len(server.exchanges) == 1


def test_errors_say_what_sends_a_request_to_responses() -> None:
    """Of what that API does not have; at construction where it is known then."""
    with pytest.raises(ConfigurationError, match=r"seed cannot be sent.*because of the model 'gpt-5-pro'"):
        ChatOpenAI(model="gpt-5-pro", api_key="key", seed=1)
    with pytest.raises(ConfigurationError, match=r"logit_bias cannot be sent.*the model 'gpt-6' with tools"):
        ChatOpenAI(model="gpt-6", api_key="key", logit_bias={1: 1}, tools=[get_temperature])
    with OpenAIItself(chat=[Failure(400, REFUSAL)]) as vendor:
        model = model_of(vendor)
        with pytest.raises(ConfigurationError, match=r"logit_bias cannot be sent.*the tool of type 'web_search'"):
            model.bind_tools([SEARCH]).invoke("Hi", logit_bias={1: 1})
        with pytest.raises(ConfigurationError, match=r"seed cannot be sent.*because of reasoning="):
            model.invoke("Hi", seed=1, reasoning={"effort": "low"})
        with pytest.raises(ConfigurationError, match=r"seed cannot be sent.*because of the server"):
            model.invoke("Hi", seed=1)


def test_stop_sequences_are_left_out_where_the_api_has_none(caplog: pytest.LogCaptureFixture) -> None:
    """Of the constructor, of a call and of `bind`, as agents that read text bind them; a WARNING says so, and they change no route."""
    given: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"use_responses_api": True, "stop": ["."]}, {}),
        ({"model": "gpt-5-pro"}, {"stop": ["."]}),
    ]
    for constructor, call in given:
        with OpenAIItself(chat=[], responses=[Turn("One. Two."), Turn("One. Two.")]) as vendor:
            model = model_of(vendor, **constructor)
            assert model.bind(**call).invoke("Hi").text == model.invoke("Hi", **call).text == "One. Two."
            assert vendor.asked == [RESPONSES] * 2 and not vendor.responses.rejections
            assert not any("stop" in request for request in vendor.responses.requests)
        warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
        assert len(warnings) == 2 and all(said.startswith("stop is not sent, and no text is cut") for said in warnings)
        caplog.clear()
    with OpenAIItself(chat=[Turn("One")], responses=[]) as vendor:
        model_of(vendor, model="gpt-4o", stop=["."]).invoke("Hi")
        assert vendor.chat.requests[0]["stop"] == ["."] and not caplog.records


STOPS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "constructor": ({"stop": ["."]}, {}),
    "call": ({}, {"stop": ["."]}),
    "with tools": ({"tools": [get_temperature]}, {"stop": ["."]}),
    "model_kwargs": ({"model_kwargs": {"stop": ["."]}}, {}),
    "extra_body": ({}, {"extra_body": {"stop": ["."]}}),
}


@pytest.mark.further
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("constructor", "call"), STOPS.values(), ids=STOPS)
async def test_a_stop_sequence_sends_no_model_to_an_api_that_does_not_serve_it(
    constructor: dict[str, Any], call: dict[str, Any], way: str, caplog: pytest.LogCaptureFixture
) -> None:
    """However it is said; and no WARNING and no error advises that, unless the caller has chosen the API."""
    for name in ("gpt-5-pro", "o3-pro", "gpt-5.1-codex-max", "o4-mini-deep-research", "gpt-5.6-sol"):
        with OpenAIItself(chat=[], responses=[Turn("One. Two.")]) as vendor:
            async with vendor.async_client() as client:
                ran = await run_in(way, model_of(vendor, model=name, http_async_client=client, **constructor), [HumanMessage("Hi")], **call)
            assert (ran.message.text, vendor.asked) == ("One. Two.", [RESPONSES])
            assert not vendor.responses.rejections and "stop" not in vendor.responses.requests[0]
        with pytest.raises(ConfigurationError, match="seed cannot be sent") as raised:
            ChatOpenAI(model=name, api_key="key", seed=1)
        said = f"{caplog.text} {raised.value}"
        assert said.count(f"because of the model {name!r}") == 2 and "use_responses_api" not in said
        caplog.clear()
    with pytest.raises(ConfigurationError, match="use_responses_api=False has it"):
        ChatOpenAI(model="gpt-5", api_key="key", use_responses_api=True, seed=1)


TOOLS_LATER = {
    "type": "additional_tools",
    "role": "developer",
    "tools": [{"type": "function", "name": "get_time", "parameters": {"type": "object"}}],
}
EFFORT_LATER = {"type": "configuration_update", "reasoning": {"effort": "high"}}


def test_tools_and_settings_that_come_in_mid_conversation() -> None:
    """Items of the Responses API, at their place; tools are added by instructions alone; elsewhere the error says where they go."""
    history = [
        HumanMessage("What time is it?"),
        SystemMessage([TOOLS_LATER]),
        HumanMessage([EFFORT_LATER, {"type": "text", "text": "Well?"}]),
    ]
    with OpenAIItself(chat=[], responses=[Turn("Noon.")]) as vendor:
        model_of(vendor, use_responses_api=True).invoke(history)
        first, *rest = vendor.responses.requests[0]["input"]
        assert (first["role"], rest[:2], rest[2]["role"]) == ("user", [TOOLS_LATER, EFFORT_LATER], "user")
        with pytest.raises(UnsupportedFeatureError, match="tools are added by a SystemMessage"):
            model_of(vendor, use_responses_api=True).invoke([HumanMessage([TOOLS_LATER])])
        for block in (TOOLS_LATER, EFFORT_LATER):
            with pytest.raises(UnsupportedFeatureError, match=r"only the Responses API has it \(use_responses_api=True\)"):
                model_of(vendor, use_responses_api=False).invoke([SystemMessage([block])])


@pytest.mark.parametrize("own", [get_temperature, {"get_time": lambda: "noon"}], ids=["another", "of that name"])
def test_a_call_of_a_tool_that_a_message_declares_is_the_callers(own: Any) -> None:
    """In a run of a model with tools of its own, as that of any declared tool; a tool of the model's own that has the name runs."""
    history = [HumanMessage("What time is it?"), SystemMessage([TOOLS_LATER]), HumanMessage("Well?")]
    with OpenAIItself(chat=[], responses=[Turn(calls=[Call("get_time", {})]), Turn("Noon.")]) as vendor:
        model = model_of(vendor, use_responses_api=True, tools=own if isinstance(own, dict) else [own])
        run = model.invoke(history)
        is_own = isinstance(own, dict)
        assert [call.name for call in pending_calls(run)] == ([] if is_own else ["get_time"])
        assert [message.type for message in new_messages(run)] == (["ai", "tool", "ai"] if is_own else ["ai"])
        assert run.response_metadata["autotools"]["stop_reason"] == ("complete" if is_own else "calls_pending")
        assert not vendor.responses.rejections


def test_a_history_of_either_api_goes_to_the_other() -> None:
    """Reasoning stays behind; text, calls and results go."""
    with OpenAIItself(chat=[*turns(), Turn("Yes.")], responses=[Turn("Yes."), Turn("Reasoned.", reasoning="Hm.")]) as vendor:
        model = model_of(vendor, tools=[get_temperature])
        history: list[Any] = [HumanMessage("How warm?")]
        history += new_messages(model.invoke(history))
        assert model.invoke([*history, HumanMessage("Sure?")], reasoning={"effort": "low"}).text == "Yes."
        history += [HumanMessage("Why?"), *new_messages(model.invoke([*history, HumanMessage("Why?")], reasoning={"effort": "low"}))]
        assert isinstance(history[-1], AIMessage) and model.invoke([*history, HumanMessage("Sure?")]).text == "Yes."
        assert vendor.asked == [CHAT, CHAT, RESPONSES, RESPONSES, CHAT]
        assert vendor.chat.rejections == vendor.responses.rejections == []


def test_azure_goes_by_the_models_name_too() -> None:
    """The deployment is the request's model there."""
    with AzureResponsesServer([Turn("Hi."), *turns()], deployments=("mine",)) as server:
        place = {"azure_endpoint": server.address, "azure_deployment": "mine", "api_version": VERSION, "api_key": KEY}
        assert AzureChatOpenAI(**place, model="gpt-5-codex").invoke("Hi").text == "Hi."
        assert AzureChatOpenAI(**place, model="gpt-5.4", tools=[get_temperature]).invoke("Hi").text == "21 °C."
        assert {request["model"] for request in server.requests} == {"mine"}


def test_the_vendors_limit_of_tool_calls_goes_in_the_body() -> None:
    """`max_tool_calls` is a run's limit; the parameter of that name is said in `extra_body`."""
    with OpenAIItself(responses=[Turn("Hi."), Turn("Hi.")]) as vendor:
        model = model_of(vendor, tools=[SEARCH], max_tool_calls=3)
        model.invoke("Hi")
        model.invoke("Hi", extra_body={"max_tool_calls": 2})
        assert [request.get("max_tool_calls") for request in vendor.responses.requests] == [None, 2]
