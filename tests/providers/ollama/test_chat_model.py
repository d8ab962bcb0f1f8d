"""`ChatOllama`: constructor, environment, what requests say, structured output beside tools."""

from __future__ import annotations

import asyncio
import logging
import socket
from functools import reduce
from operator import add
from typing import Any

import pytest
from langchain_core.exceptions import OutputParserException
from langchain_core.messages import HumanMessage

from langchain_autotools import ChatOllama, ConfigurationError, new_messages, run_usage, stop_reason
from langchain_autotools.providers.ollama.chat_model import address_of
from tests.support.ollama_server import OllamaServer
from tests.support.script import Call, Failure, Raw, Reply, Turn
from tests.support.weather import Weather, get_temperature


def body(*model: Any, call: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    """What a request says besides its messages."""
    with OllamaServer([Turn("Hi")]) as server:
        ChatOllama(**{"model": "m", "base_url": server.url, **arguments}).invoke("x", **(call or {}))
        assert server.rejections == []
        return {key: value for key, value in server.requests[0].items() if key != "messages"}


# ---------------------------------------------------------------------------------------------- constructor


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"num_ctxx": 1}, "did you mean 'num_ctx'"),
        ({"temprature": 1}, "did you mean 'temperature'"),
        ({"client": object()}, "client_kwargs"),
        ({"base_url": "ftp://x"}, "http://host:port"),
        ({"base_url": "http://h:port"}, "no address"),
        ({"top_logprobs": 0}, "top_logprobs"),
        ({"top_logprobs": 1, "logprobs": False}, "top_logprobs"),
        ({"output_version": "v2"}, "output_version"),
        ({"reasoning": ""}, "reasoning"),
        ({"max_retries": -1}, "max_retries"),
    ],
)
def test_arguments_that_cannot_work_are_told(arguments: dict[str, Any], said: str) -> None:
    """The error names the argument and what would work."""
    with pytest.raises(ValueError, match=said):
        ChatOllama(model="m", **arguments).invoke("x")


ADDRESSES = {
    None: "http://127.0.0.1:11434", "": "http://127.0.0.1:11434", "1.2.3.4": "http://1.2.3.4:11434", ":56789": "http://127.0.0.1:56789",
    "example.com:1": "http://example.com:1", "http://1.2.3.4": "http://1.2.3.4:80", "https://example.com/": "https://example.com:443",
    "example.com/path/": "http://example.com:11434/path", "[::1]:5": "http://[::1]:5", "https://e.com:5/p": "https://e.com:5/p",
    "http://u:p%40@e.com:5": "http://e.com:5",
}  # fmt: skip


@pytest.mark.parametrize("host", ADDRESSES)
def test_addresses_are_read_as_the_sdk_reads_them(host: str | None) -> None:
    """Scheme, host and port may be missing; a user and password become a header."""
    address = address_of(host)
    assert address.url == ADDRESSES[host]
    assert (address.authorization, address.password) == (("Basic dTpwQA==", "p@") if host and "@" in host else (None, None))


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """`OLLAMA_HOST` says where, `OLLAMA_API_KEY` who; arguments go before them."""
    with OllamaServer([Turn("a"), Turn("b"), Turn("c")]) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url.removeprefix("http://"))
        monkeypatch.setenv("OLLAMA_API_KEY", "from-environment")
        ChatOllama(model="m").invoke("x")
        ChatOllama(model="m", api_key="own").invoke("x")
        ChatOllama(model="m", client_kwargs={"headers": {"Authorization": "Bearer mine", "X-Other": "y"}}).invoke("x")
        headers = [exchange.headers for exchange in server.exchanges]
    assert [one.get("authorization") for one in headers] == ["Bearer from-environment", "Bearer own", "Bearer mine"]
    assert headers[2]["x-other"] == "y"


def test_options_and_parameters_under_their_names() -> None:
    """Options are in `options`, the rest beside it; None is not sent; a call's keywords go before the constructor's."""
    said = body(
        num_ctx=4096, temperature=0.5, max_tokens=9, stop=["END"], seed=1, options={"num_keep": 3}, keep_alive="5m", reasoning="low"
    )
    assert said == {
        "model": "m",
        "think": "low",
        "keep_alive": "5m",
        "options": {"num_ctx": 4096, "num_predict": 9, "temperature": 0.5, "seed": 1, "stop": ["END"], "num_keep": 3},
        "stream": False,
    }
    call = {
        "num_ctx": 1,
        "temperature": None,
        "options": {"top_k": 2},
        "stop": ["X"],
        "reasoning": False,
        "model": "other",
        "keep_alive": None,
    }
    said = body(num_ctx=4096, temperature=0.5, stop=["END"], keep_alive=0, reasoning=True, call=call)
    assert said == {"model": "other", "think": False, "options": {"num_ctx": 1, "stop": ["X"], "top_k": 2}, "stream": False}
    assert body(reasoning=True, call={"reasoning_effort": "high"})["think"] == "high"
    assert body(top_logprobs=2)["logprobs"] is True
    assert body(model_kwargs={"truncate": False})["truncate"] is False
    assert body(call={"strict": True, "parallel_tool_calls": False, "stream_usage": True}) == {"model": "m", "stream": False}


def test_the_model_is_validated_if_asked_for() -> None:
    """The constructor asks the server for its models, and says which there are."""
    with OllamaServer(models=("qwen3:4b", "llama3:latest")) as server:
        assert ChatOllama(model="qwen3:4b", base_url=server.url, validate_model_on_init=True).model == "qwen3:4b"
        assert ChatOllama(model="llama3", base_url=server.url, validate_model_on_init=True)
        with pytest.raises(ValueError, match="did you mean 'qwen3:4b'"):
            ChatOllama(model="qwen3:4", base_url=server.url, validate_model_on_init=True)
    with pytest.raises(ValueError, match="is Ollama running there"):
        ChatOllama(model="m", base_url=f"127.0.0.1:{free_port()}", validate_model_on_init=True)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def test_what_langchain_is_told() -> None:
    """Tracing parameters, profile and identity; the context is what `num_ctx` says."""
    model = ChatOllama(model="m", temperature=0.5, num_predict=7, num_ctx=4096, base_url="http://u:p@h:1")
    assert model._get_ls_params(stop=["X"]) == {
        "ls_provider": "ollama", "ls_model_name": "m", "ls_model_type": "chat", "ls_temperature": 0.5, "ls_max_tokens": 7, "ls_stop": ["X"],
    }  # fmt: skip
    assert model.profile is not None and (model.profile["max_input_tokens"], model.profile["tool_choice"]) == (4096, False)
    able = {name for name, value in model.profile.items() if value is True}
    assert able == {"text_inputs", "text_outputs"}  # whether a model sees or hears, only who runs it knows
    assert model._identifying_params["base_url"] == "http://h:1"
    assert model.get_num_tokens_from_messages([HumanMessage("four and more")], tools=[get_temperature]) > 10


# ---------------------------------------------------------------------------------------------- tools


def test_nobody_is_forced_and_that_is_said(caplog: pytest.LogCaptureFixture) -> None:
    """A forced choice is accepted, logged and not sent; "none" declares no tools."""
    with OllamaServer([Turn("Hi")] * 3) as server, caplog.at_level(logging.WARNING, "langchain_autotools"):
        model = ChatOllama(model="m", base_url=server.url)
        for choice in ("any", "auto", "none"):
            model.bind_tools([get_temperature], tool_choice=choice).invoke("x")
        assert ["tools" in request for request in server.requests] == [True, True, False]
        assert not any("tool_choice" in request for request in server.requests)
    assert [record.message for record in caplog.records] == [
        "Ollama has no tool_choice: the model is told of the tools and decides itself whether to call one"
    ]


def test_thinking_stays_in_the_loop() -> None:
    """Thinking that came with a call goes back with it; that of the answer does not (wire quirk O-04)."""
    script = [
        Turn("", [Call("get_temperature", {"city": "Paris"})], reasoning="I must look."),
        Turn("21 °C.", reasoning="Easy."),
        Turn("Bye."),
    ]
    with OllamaServer(script) as server:
        model = ChatOllama(model="m", base_url=server.url, tools=[get_temperature], reasoning=True)
        history: list[Any] = [HumanMessage("How warm is it in Paris?")]
        for chunk in model.stream(history):
            history += new_messages(chunk)
        assert [message.additional_kwargs.get("reasoning_content") for message in history[1::2]] == ["I must look.", "Easy."]
        model.invoke([*history, HumanMessage("Bye.")])
        assert [message.get("thinking") for message in server.messages[2]] == [None, "I must look.", None, None, None]
        assert all(request["think"] is True for request in server.requests)


def test_a_call_that_the_server_cannot_read_is_fed_back() -> None:
    """Whole or streamed, with status 500 or in a line, the model is told of its mistake and goes on."""
    said = 'error parsing tool call: raw=\'{"city": "Par\', err=unexpected end of JSON input'
    mistakes: list[Reply] = [Failure(500, said), Raw([b'{"error": "%s"}\n' % said.replace('"', '\\"').encode()], "application/x-ndjson")]
    for mistake in mistakes:
        for stream in (True, False):
            with OllamaServer([mistake, Turn("Sorry.")]) as server:
                model = ChatOllama(model="m", base_url=server.url, tools=[get_temperature], max_retries=0)
                ran = list(model.stream("x"))[-1:] if stream else [model.invoke("x")]
                assert server.left == 0 and server.rejections == [] and ran
                told = server.messages[1][-1]
                assert (told["role"], "error" in told["content"]) == ("tool", True)


# ---------------------------------------------------------------------------------------------- structured output


def test_structured_output_in_every_method() -> None:
    """The schema is the format, the format is JSON, or the schema is a tool."""
    answer, forms = '{"city": "Paris", "degrees": 21}', []
    for method in ("json_schema", "json_mode", "function_calling"):
        with OllamaServer([Turn(calls=[Call("Weather", answer)]) if method == "function_calling" else Turn(answer)]) as server:
            chain = ChatOllama(model="m", base_url=server.url).with_structured_output(Weather, method=method, include_raw=True)  # type: ignore[arg-type]
            result = chain.invoke("x")
            assert (result["parsed"], result["parsing_error"]) == (Weather(city="Paris", degrees=21), None)
            forms.append((server.requests[0].get("format"), "tools" in server.requests[0]))
    assert forms == [(Weather.model_json_schema(), False), ("json", False), (None, True)]


def test_response_formats_of_others_are_formats() -> None:
    """What agents of LangChain give as `response_format` becomes the format."""
    form = {"type": "json_schema", "json_schema": {"name": "Weather", "schema": Weather.model_json_schema()}}
    assert body(call={"response_format": form})["format"] == Weather.model_json_schema()
    assert body(call={"response_format": {"type": "json_object"}})["format"] == "json"
    assert "format" not in body(call={"response_format": {"type": "text"}})


WRONG: list[dict[str, Any]] = [
    {"schema": None},
    {"schema": Weather, "method": "yaml"},
    {"schema": Weather, "method": "json_mode", "tools": [1]},
]


@pytest.mark.parametrize("arguments", WRONG)
def test_structured_output_that_cannot_work_is_told(arguments: dict[str, Any]) -> None:
    """No schema, an unknown method, tools with the wrong method."""
    with pytest.raises(ConfigurationError, match="method"):
        ChatOllama(model="m").with_structured_output(**arguments)


def test_half_an_object_is_an_error() -> None:
    """A reply that was cut is never parsed."""
    with OllamaServer([Turn('{"city": "Par', finish="length")]) as server:
        with pytest.raises(OutputParserException, match="token limit"):
            ChatOllama(model="m", base_url=server.url).with_structured_output(Weather).invoke("x")


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
async def test_a_format_waits_for_the_tools(way: str) -> None:
    """Under a format no tool is called: a turn with both is asked without the format, and once more with it where it answers in words."""
    script = [Turn("", [Call("get_temperature", {"city": "Paris"})]), Turn("It is 21 degrees."), Turn('{"city": "Paris", "degrees": 21}')]
    with OllamaServer(script) as server:
        chain = ChatOllama(model="m", base_url=server.url, tools=[get_temperature]).with_structured_output(Weather)
        if way == "invoke":
            result = await asyncio.to_thread(chain.invoke, "x")
        elif way == "ainvoke":
            result = await chain.ainvoke("x")
        elif way == "stream":
            result = (await asyncio.to_thread(lambda: list(chain.stream("x"))))[-1]
        else:
            result = [part async for part in chain.astream("x")][-1]
        assert result == Weather(city="Paris", degrees=21)
        assert [("format" in request, "tools" in request) for request in server.requests] == [(False, True), (False, True), (True, False)]
        assert server.messages[1] == server.messages[2]


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
async def test_a_turn_of_two_requests_counts_the_tokens_of_both(way: str) -> None:
    """What was asked twice was paid for twice."""
    script = [Turn("It is 21 degrees.", usage=(11, 7)), Turn('{"degrees": 21}', usage=(12, 8))]
    with OllamaServer(script) as server:
        model = ChatOllama(model="m", base_url=server.url, format="json", tools=[get_temperature])
        if way in ("invoke", "stream"):
            ask = model.invoke if way == "invoke" else lambda text: reduce(add, model.stream(text))
            message: Any = await asyncio.to_thread(ask, "x")
        else:
            message = await model.ainvoke("x") if way == "ainvoke" else reduce(add, [part async for part in model.astream("x")])
        assert len(server.requests) == 2
        usage = run_usage(message)
        assert usage is not None and (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (23, 15, 38)


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_a_reply_that_was_cut_off_is_not_asked_for_again_under_its_format(way: str) -> None:
    """Its token limit would cut the second one too."""
    with OllamaServer([Turn("It is 21 deg", finish="length")]) as server:
        model = ChatOllama(model="m", base_url=server.url, format="json", tools=[get_temperature])
        message: Any = model.invoke("x") if way == "invoke" else reduce(add, model.stream("x"))
        assert (message.text, stop_reason(message), len(server.requests)) == ("It is 21 deg", "length", 1)
