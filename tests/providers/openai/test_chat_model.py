"""ChatOpenAI's constructor and what it sends: names, environment, precedence of parameters, what LangChain asks a model."""

import base64
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import ConfigurableField
from pydantic import BaseModel

from langchain_autotools import ChatOpenAI, ConfigurationError, RetryPolicy, new_messages
from langchain_autotools.providers.openai.chat_model import profile_of
from tests.support.openai_server import OpenAIServer
from tests.support.responses_server import ResponsesServer
from tests.support.script import Call, Events, Turn
from tests.support.weather import get_temperature

OWN = {"model", "messages", "stream", "stream_options"}


def sent(call: dict[str, Any] | None = None, *, stream: bool = False, **constructor: Any) -> dict[str, Any]:
    """The body of the request that a model of these arguments makes."""
    with OpenAIServer([Turn("ok")], rules=None) as server:
        model = ChatOpenAI(**{"model": "any", "base_url": server.url, "api_key": "key", "max_retries": 0, **constructor})
        list(model.stream("Hi", **(call or {}))) if stream else model.invoke("Hi", **(call or {}))
        return server.requests[0]


# ---------------------------------------------------------------------------------------------- parameters


def test_a_plain_model_sends_only_what_it_must() -> None:
    """No parameter that nobody set: compatible servers refuse what they do not know (wire quirk E-14)."""
    assert sent() == {"model": "any", "messages": [{"content": "Hi", "role": "user"}]}
    assert sent(stream=True) == {"model": "any", "messages": [{"content": "Hi", "role": "user"}], "stream": True}


EVERY = {
    "temperature": 0.5,
    "top_p": 0.9,
    "n": 1,
    "stop": ["END"],
    "seed": 7,
    "presence_penalty": 0.1,
    "frequency_penalty": 0.2,
    "logit_bias": {50256: -100},
    "logprobs": True,
    "top_logprobs": 2,
    "reasoning_effort": "low",
    "verbosity": "low",
    "modalities": ["text", "audio"],
    "audio": {"voice": "alloy", "format": "wav"},
    "service_tier": "flex",
    "store": False,
    "prompt_cache_key": "tenant",
    "prompt_cache_options": {"mode": "explicit"},
}


def test_every_parameter_is_sent_under_its_name() -> None:
    """The constructor's parameters, as the wire calls them."""
    body = sent(**EVERY, max_tokens=9, model_kwargs={"metadata": {"a": "b"}}, extra_body={"ttl": 300})
    expected = {**EVERY, "logit_bias": {"50256": -100}, "max_completion_tokens": 9, "metadata": {"a": "b"}, "ttl": 300}
    assert {key: value for key, value in body.items() if key not in OWN} == expected


@pytest.mark.parametrize(
    ("constructor", "call", "expected"),
    [
        ({"max_tokens": 1}, {}, {"max_completion_tokens": 1}),
        ({"max_completion_tokens": 1}, {}, {"max_completion_tokens": 1}),
        ({"model_kwargs": {"max_tokens": 1}}, {}, {"max_completion_tokens": 1}),
        ({"max_tokens": 1}, {"max_tokens": 2}, {"max_completion_tokens": 2}),
        ({"max_tokens": 1}, {"max_tokens": None}, {}),
        ({"temperature": 0}, {"temperature": 1.5}, {"temperature": 1.5}),
        ({"temperature": 0}, {}, {"temperature": 0}),
        ({"stop_sequences": ["a"]}, {}, {"stop": ["a"]}),
        ({"stop": "a"}, {"stop": ["b"]}, {"stop": ["b"]}),
        ({"stop": []}, {}, {}),
        ({"seed": 1, "model_kwargs": {"seed": 2}}, {}, {"seed": 2}),
        ({"seed": 1}, {"extra_body": {"seed": 3}}, {"seed": 3}),
        ({"extra_body": {"a": 1, "b": 1}}, {"extra_body": {"b": 2}}, {"a": 1, "b": 2}),
        ({"model_kwargs": {"top_k": 4}}, {"top_k": 5}, {"top_k": 5}),
        ({}, {"tools": [], "tool_choice": "auto", "parallel_tool_calls": False}, {}),
    ],
)
def test_which_of_two_values_is_sent(constructor: dict[str, Any], call: dict[str, Any], expected: dict[str, Any]) -> None:
    """extra_body before the call before model_kwargs before the constructor; None is not sent; unknown keywords are."""
    body = sent(call, **constructor)
    assert {key: value for key, value in body.items() if key not in OWN} == expected


def test_a_call_may_name_another_model() -> None:
    """`model=` of a call goes before the constructor's."""
    assert sent({"model": "other"})["model"] == "other"


@pytest.mark.parametrize(
    ("constructor", "call", "options"),
    [
        ({"stream_usage": True}, {}, {"include_usage": True}),
        ({"stream_usage": True}, {"stream_usage": False}, None),
        ({}, {"stream_usage": True}, {"include_usage": True}),
        ({}, {"stream_options": {"include_obfuscation": False}}, {"include_obfuscation": False}),
        ({"stream_usage": True}, {"stream_options": {"include_usage": False}}, {"include_usage": False}),
        ({"model_kwargs": {"stream_options": {"include_usage": True}}}, {}, {"include_usage": True}),
        ({"stream_usage": True, "disabled_params": {"stream_options": None}}, {}, None),
    ],
)
def test_token_counts_of_streams_are_asked_for(constructor: dict[str, Any], call: dict[str, Any], options: Any) -> None:
    """By the call, by stream_options, or by the model; a whole request never says stream_options."""
    assert sent(call, stream=True, **constructor).get("stream_options") == options
    assert "stream_options" not in sent(call, **constructor)


def test_openai_itself_is_asked_for_token_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing says otherwise: of OpenAI yes, of any other server no."""
    assert ChatOpenAI().stream_usage is True
    assert ChatOpenAI(stream_usage=False).stream_usage is False
    assert ChatOpenAI(base_url="http://127.0.0.1:9/v1").stream_usage is None
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert ChatOpenAI().stream_usage is None


@pytest.mark.parametrize(
    ("arguments", "call", "temperature"),
    [
        ({"model": "gpt-5", "temperature": 0}, {}, None),
        ({"model": "gpt-5-2025-08-07", "temperature": 0}, {}, None),
        ({"model": "gpt-5", "temperature": 1}, {}, 1),
        ({"model": "gpt-5", "temperature": 0, "reasoning_effort": "none"}, {}, 0),
        ({"model": "gpt-5", "temperature": 0}, {"temperature": 0}, 0),
        ({"model": "gpt-5", "temperature": 0, "profile": {"temperature": True}}, {}, 0),
        ({"model": "gpt-4o", "temperature": 0}, {}, 0),
        ({"model": "gpt-4o", "temperature": 0}, {"model": "o3"}, None),
        ({"model": "somebody-elses", "temperature": 0}, {}, 0),
        ({"model": "gpt-5.1", "temperature": 0}, {}, 0),
        ({"model": "gpt-5.1", "temperature": 0}, {"reasoning_effort": "high"}, None),
        ({"model": "gpt-5.1", "temperature": 0, "reasoning_effort": "high", "profile": {"temperature": True}}, {}, 0),
        ({"model": "somebody-elses", "temperature": 0, "reasoning_effort": "high"}, {}, 0),
        ({"model": "gpt-6-sol", "temperature": 0}, {}, None),
    ],
)
def test_a_temperature_is_not_sent_to_models_that_take_none(arguments: dict[str, Any], call: dict[str, Any], temperature: Any) -> None:
    """The constructor's is left out; one that a call names is sent."""
    assert sent(call, **arguments).get("temperature") == temperature


def test_headers_and_query_go_along() -> None:
    """Those of the constructor, and those of the call before them."""
    with OpenAIServer([Turn("ok")], rules=None) as server:
        model = ChatOpenAI(
            model="any",
            base_url=server.address,
            api_key="key",
            organization="org-1",
            default_headers={"x-one": "1", "x-two": "1"},
            default_query={"version": "1", "flag": "on"},
            max_retries=0,
        )
        with pytest.raises(Exception, match="Invalid URL"):  # the server wants /v1
            model.invoke("Hi", extra_headers={"x-two": "2"}, extra_query={"version": "2"})
        exchange = server.exchanges[0]
    assert {name: exchange.headers[name] for name in ("x-one", "x-two", "openai-organization", "authorization")} == {
        "x-one": "1",
        "x-two": "2",
        "openai-organization": "org-1",
        "authorization": "Bearer key",
    }
    assert exchange.path == "/chat/completions?version=2&flag=on"


@pytest.mark.parametrize("stream", [False, True])
def test_response_headers_are_told_if_asked_for(stream: bool) -> None:
    """`include_response_headers` puts them into the message's metadata."""
    with OpenAIServer([Turn("ok")]) as server:
        model = ChatOpenAI(model="any", base_url=server.url, api_key="key", include_response_headers=True, streaming=stream)
        assert "x-request-id" in model.invoke("Hi").response_metadata["headers"]


@pytest.mark.parametrize("responses", [False, True])
@pytest.mark.parametrize("stream", [False, True])
def test_an_id_that_a_server_gives_twice_is_used_once(stream: bool, responses: bool) -> None:
    """Whoever keeps messages by their ids, as LangGraph does, must lose none. The server's id is kept beside."""
    choice, given = {"index": 0, "finish_reason": "stop"}, "reply_000000000007"
    chat = {"id": given, "object": "chat.completion", "choices": [{**choice, "message": {"role": "assistant", "content": "a"}}]}
    chunk = {"id": given, "object": "chat.completion.chunk", "choices": [{**choice, "delta": {"content": "a"}}]}
    said = {"id": "msg_7", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": []}]}
    whole = {"id": given, "object": "response", "status": "completed", "output": [said]}
    reply = Events([{"type": "response.completed", "response": whole}], whole=whole) if responses else Events([chunk], whole=chat)
    history: list[Any] = [HumanMessage("Hi")]
    with (ResponsesServer if responses else OpenAIServer)([reply, reply, reply]) as server:
        model = ChatOpenAI(model="any", base_url=server.url, api_key="key", use_responses_api=responses)
        for _ in range(3):
            new = [one for chunk in model.stream(history) for one in new_messages(chunk)] if stream else new_messages(model.invoke(history))
            history += [*new, HumanMessage("And?")]
    answers = [message for message in history if isinstance(message, AIMessage)]
    assert answers[0].id == given
    assert len({message.id for message in answers} - {None}) == 3
    assert {message.response_metadata["id"] for message in answers} == {given}


# ---------------------------------------------------------------------------------------------- the constructor


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("temprature", "did you mean 'temperature'"),
        ("max_token", "did you mean 'max_tokens'"),
        ("tool", "did you mean 'tools'"),
        ("baseurl", "did you mean 'base_url'"),
        ("tool_choise", "did you mean 'tool_choice'"),
        ("top_k", "others that the vendor knows go into model_kwargs"),
        ("messages", "what invoke and stream are given"),
    ],
)
def test_an_unknown_argument_names_the_nearest(name: str, hint: str) -> None:
    """Nothing is passed on with a warning."""
    with pytest.raises(ConfigurationError, match=f"no argument '{name}': .*{hint}"):
        ChatOpenAI(model="any", **{name: 1})


@pytest.mark.parametrize("name", sorted(ChatOpenAI._refused))
def test_arguments_that_other_packages_know_are_explained(name: str) -> None:
    """What belongs to another API or to another way is refused with the reason, unless it asks for nothing."""
    with pytest.raises(ConfigurationError, match=name):
        ChatOpenAI(model="any", **{name: True})
    assert ChatOpenAI(model="any", **{name: None}).model == "any"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"n": 2}, "batch"),
        ({"output_version": "responses/v1"}, "there are 'v0'"),
        ({"openai_proxy": "http://127.0.0.1:9", "http_client": object()}, "openai_proxy"),
        ({"temperature": "hot"}, "temperature"),
        ({"max_retries": "many"}, "max_retries"),
    ],
)
def test_values_that_cannot_work_are_refused(arguments: dict[str, Any], said: str) -> None:
    """The error says why, and does not repeat the other arguments, the key among them."""
    with pytest.raises(ConfigurationError, match=said) as raised:
        ChatOpenAI(model="any", api_key="sk-1234567890", **arguments)
    assert "sk-1234567890" not in str(raised.value)


def test_both_names_of_an_argument_work() -> None:
    """LangChain's field names and the short ones; what is read back is the same."""
    long = ChatOpenAI(model_name="a", openai_api_key="k", openai_api_base="http://b", openai_organization="o", request_timeout=3)
    short = ChatOpenAI(model="a", api_key="k", base_url="http://b", organization="o", timeout=3)
    assert long.model_dump() == short.model_dump()
    assert (short.model, short.model_name) == ("a", "a")


def test_the_environment_fills_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Key, base URL, organization and proxy; an argument goes before them."""
    for name in ("OPENAI_API_KEY", "OPENAI_API_BASE", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROXY"):
        monkeypatch.setenv(name, f"http://{name.lower()}")
    model = ChatOpenAI(api_key=None)
    assert model.openai_api_key is not None
    assert not callable(model.openai_api_key)
    found = (model.openai_api_key.get_secret_value(), model.openai_api_base, model.openai_organization, model.openai_proxy)
    assert found == ("http://openai_api_key", "http://openai_api_base", "http://openai_org_id", "http://openai_proxy")
    assert ChatOpenAI(base_url="http://mine").openai_api_base == "http://mine"
    monkeypatch.delenv("OPENAI_API_BASE")
    assert ChatOpenAI().openai_api_base == "http://openai_base_url"


def test_a_retry_policy_may_be_given_as_numbers() -> None:
    """A dict is read as one."""
    assert ChatOpenAI(retry={"attempts": 5}).retry == RetryPolicy(attempts=5)  # type: ignore[arg-type]


def test_fields_can_be_made_configurable() -> None:
    """A configured copy sends what it was configured with."""
    with OpenAIServer([Turn("ok")] * 2) as server:
        model = ChatOpenAI(model="any", base_url=server.url, api_key="key", temperature=0).configurable_fields(
            temperature=ConfigurableField(id="warmth"), model_name=ConfigurableField(id="who")
        )
        model.invoke("Hi")
        model.invoke("Hi", {"configurable": {"warmth": 1.5, "who": "other"}})
        assert [(request["model"], request["temperature"]) for request in server.requests] == [("any", 0), ("other", 1.5)]


@pytest.mark.parametrize("code", ["from langchain_autotools import ChatOpenAI; ChatOpenAI(model='gpt-5', api_key='k', tools=[])"])
def test_constructing_a_model_loads_no_sdk(code: str) -> None:
    """The SDK comes with the first request."""
    code += "; import sys; print(sorted({'openai', 'tiktoken', 'langgraph'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3])
    assert done.stdout.strip() == "[]"


# ---------------------------------------------------------------------------------------------- what LangChain asks


def test_what_traces_are_told() -> None:
    """Provider, model, temperature, limit and stop, the call's values before the constructor's."""
    model = ChatOpenAI(model="gpt-4o", temperature=0.5, max_tokens=9, stop="END")
    assert model._get_ls_params() == {
        "ls_provider": "openai",
        "ls_model_name": "gpt-4o",
        "ls_model_type": "chat",
        "ls_temperature": 0.5,
        "ls_max_tokens": 9,
        "ls_stop": ["END"],
    }
    called = model._get_ls_params(stop=["a"], model="other", temperature=1, max_tokens=3)
    assert (called["ls_model_name"], called["ls_temperature"], called["ls_max_tokens"], called["ls_stop"]) == ("other", 1, 3, ["a"])
    assert "langchain-core" in (model.metadata or {})["lc_versions"]
    assert model._llm_type == "openai-chat"


def test_profiles_claim_only_what_is_known() -> None:
    """A known model has its numbers, a dated version those of its name, another none; the user's word goes before."""
    assert (ChatOpenAI(model="gpt-4o").profile or {})["max_input_tokens"] == 128_000
    assert profile_of("gpt-4o-2024-08-06") == profile_of("gpt-4o")
    assert profile_of("gpt-4o-2024-05-13") != profile_of("gpt-4o")
    assert ChatOpenAI(model="somebody-elses").profile is None
    assert ChatOpenAI(model="gpt-4o", profile={"max_input_tokens": 5}).profile == {"max_input_tokens": 5}


class Look(BaseModel):
    """Look somewhere."""

    where: str


def test_tokens_are_estimated_offline() -> None:
    """Text by its bytes; names, calls, results, pictures and tools count too; an own counter goes before."""
    model = ChatOpenAI(model="gpt-4o")
    assert (model.get_num_tokens(""), model.get_num_tokens("four"), model.get_num_tokens("漢字")) == (0, 1, 2)
    hello = [HumanMessage("a" * 40)]
    assert model.get_num_tokens_from_messages(hello) == 3 + 10 + 3
    picture = {"type": "image_url", "image_url": {"url": "http://a", "detail": "low"}}
    conversation = [
        SystemMessage("a" * 40),
        HumanMessage([{"type": "text", "text": "a" * 40}, picture], name="anna"),
        AIMessage("", tool_calls=[{"type": "tool_call", "id": "1", "name": "look", "args": {}}]),
        ToolMessage("a" * 40, tool_call_id="1"),
    ]
    assert model.get_num_tokens_from_messages(conversation) == 13 + (3 + 1 + 10 + 85) + (3 + 3 + 1 + 1) + (13 + 3) + 3
    assert model.get_num_tokens_from_messages(hello, tools=[Look]) > model.get_num_tokens_from_messages(hello) + 20
    counting = ChatOpenAI(model="gpt-4o", custom_get_token_ids=lambda text: list(range(len(text))))
    assert counting.get_num_tokens_from_messages(hello) == 3 + 40 + 3
    assert counting.get_token_ids("abc") == [0, 1, 2]
    with pytest.raises(ConfigurationError, match="custom_get_token_ids"):
        model.get_token_ids("abc")


def test_other_contents_have_an_estimate_too() -> None:
    """A large picture, a document, blocks of calls, a bare text in a list."""
    model = ChatOpenAI(model="gpt-4o")
    data = base64.b64encode(b"x").decode()
    contents: list[tuple[Any, int]] = [
        ({"type": "image", "base64": data, "mime_type": "image/png"}, 765),
        ({"type": "file", "base64": data, "mime_type": "application/pdf"}, 1_000),
        ({"type": "tool_call", "name": "a", "args": {}, "id": "1"}, 0),
        ("four", 1),
    ]
    for block, tokens in contents:
        assert model.get_num_tokens_from_messages([HumanMessage([block])]) == 3 + tokens + 3


def test_a_run_message_counts_as_the_messages_it_carries() -> None:
    """The estimate of a history is the same whether it holds the run message or its parts."""
    with OpenAIServer([Turn("Hello there")]) as server:
        model = ChatOpenAI(model="any", base_url=server.url, api_key="key")
        assert model.get_num_tokens_from_messages([model.invoke("Hi")]) == 3 + 3 + 3


@pytest.mark.parametrize(("asked", "requests"), [(True, 1), (None, 3)])
def test_limits_of_tokens_count_what_a_stream_reports(asked: bool | None, requests: int) -> None:
    """A server that is not OpenAI's own reports the tokens of a stream only where it is asked to."""
    calls = [Turn(calls=[Call("get_temperature", {"city": f"Paris {number}"})], usage=(200, 7)) for number in range(2)]
    with OpenAIServer([*calls, Turn("21 °C.")]) as server:
        model = ChatOpenAI(model="any", base_url=server.url, api_key="key", tools=[get_temperature], stream_usage=asked)
        list(model.stream("How warm?", context_window=100, on_limit="return"))
        assert len(server.requests) == requests
