"""`ChatAnthropic` over real HTTP: parameters, caching, thinking in a loop, server tools, structured output, errors, secrets."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import anthropic
import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.exceptions import ModelAPIError, ModelRateLimitError, OutputParserException
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from langchain_autotools import ChatAnthropic, ConfigurationError, RetryPolicy, new_messages
from langchain_autotools.providers.anthropic.tools import format_tool_choice
from tests.contract.talk import WAYS, run_in
from tests.support.anthropic_server import AnthropicServer
from tests.support.script import Call, Events, Failure, Reply, Turn
from tests.support.weather import Weather, get_temperature

THINKING = {"type": "enabled", "budget_tokens": 1024}


def model(server: AnthropicServer, **more: Any) -> ChatAnthropic:
    """A model that asks the server."""
    return ChatAnthropic(**{"model": "claude-test", "base_url": server.url, "api_key": "sk-secret-1234", "max_retries": 0, **more})


def thinking_turns() -> list[Reply]:
    """A turn that thinks and calls, and one that thinks and answers."""
    calls = [Call("get_temperature", {"city": "Paris"}), Call("get_temperature", {"city": "Rome"})]
    return [Turn("Let me look.", calls, reasoning="Two cities."), Turn("Warm.", reasoning="Both are warm.")]


class Listener(BaseCallbackHandler):
    """A handler that listens to tokens, which changes how core runs a model."""

    def on_llm_new_token(self, token: str, **_: object) -> None:
        """Hear a token."""


@pytest.mark.parametrize("version", [None, "v1"])
@pytest.mark.parametrize("way", WAYS)
async def test_thinking_goes_back_signed_in_the_loop(way: str, version: str | None) -> None:
    """Thinking returns unchanged and first in its turn, whichever way the run goes and whatever form content is stored in."""
    bodies = []
    for handlers in ([], [Listener()]):
        with AnthropicServer(thinking_turns()) as server:
            asked = model(server, tools=[get_temperature], thinking=THINKING, output_version=version)
            ran = await run_in(way, asked, [HumanMessage("How warm?")], config={"callbacks": handlers})
            assert server.rejections == []
            first = server.messages[1][1]["content"]
            assert [block["type"] for block in first] == ["thinking", "text", "tool_use", "tool_use"]
            assert ran.message.text == "Let me look.\nWarm."
            thoughts = [block["reasoning"] for block in ran.message.content_blocks if block["type"] == "reasoning"]
            assert thoughts == ["Two cities.", "Both are warm."]
            bodies.append(server.exchanges[1].body)
            again = model(server, tools=[get_temperature], thinking=THINKING)
            server.extend([Turn("Yes."), Turn("Yes.")])
            for middle in ([ran.message], ran.new):
                again.invoke([HumanMessage("How warm?"), *middle, HumanMessage("Really?")])
            assert server.rejections == [] and server.exchanges[2].body == server.exchanges[3].body
    assert bodies[0] == bodies[1]


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")
def test_event_streams_keep_signatures() -> None:
    """A run that is told as v3 events thinks in the loop too, and its stored messages keep their signatures."""
    with AnthropicServer(thinking_turns()) as server:
        stream = model(server, tools=[get_temperature], thinking=THINKING).stream_events("How warm?", version="v3")
        output = stream.output
        server.extend([Turn("Yes.")])
        model(server, tools=[get_temperature], thinking=THINKING).invoke([HumanMessage("How warm?"), output, HumanMessage("Really?")])
        assert (output.text, server.rejections) == ("Let me look.\nWarm.", [])
        assert len([block for message in server.messages[2] for block in message["content"] if block["type"] == "thinking"]) == 2


@pytest.mark.parametrize("way", WAYS)
async def test_content_of_calls_alone_is_their_blocks(way: str) -> None:
    """A reply of nothing but calls is a list of their blocks, as the partner package has it, without an empty text before them."""
    with AnthropicServer([Turn(calls=[Call("get_temperature", {"city": "Paris"})])] * 2 + [Turn("21.")]) as server:
        bound = model(server).bind_tools([get_temperature])
        left = await run_in(way, bound, [HumanMessage("How warm?")])
        ran = await run_in(way, model(server, tools=[get_temperature]), [HumanMessage("How warm?")])
        for asked in (left.message, left.new[0], ran.new[0]):
            assert [(block["type"], block["name"]) for block in asked.content] == [("tool_use", "get_temperature")]
        assert ran.message.content == "21."


@pytest.mark.parametrize("way", WAYS)
async def test_citations_are_standard_annotations(way: str) -> None:
    """With standard blocks citations are annotations, also of a stream, where they come apart from the text that they are of."""
    place = {"type": "char_location", "cited_text": "c", "document_index": 0, "document_title": "t"}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}
    deltas = [
        {"type": "citations_delta", "citation": place},
        {"type": "text_delta", "text": "So"},
        {"type": "text_delta", "text": " it is."},
    ]
    events = [
        {"type": "message_start", "message": {**head, "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    body = {**head, "content": [{"type": "text", "text": "So it is.", "citations": [place]}], "stop_reason": "end_turn"}
    document: Any = [{"type": "text-plain", "text": "long", "mime_type": "text/plain", "extras": {"citations": {"enabled": True}}}]
    with AnthropicServer([Events(events, body)]) as server:
        ran = await run_in(way, model(server, output_version="v1"), [HumanMessage(document)])
        [block] = ran.message.content_blocks
        assert (block["text"], [note["title"] for note in block["annotations"]]) == ("So it is.", ["t"])
        assert "citations" not in block


def test_another_model_is_not_sent_the_thinking() -> None:
    """A signature belongs to its model: another one gets the text and the calls."""
    with AnthropicServer([*thinking_turns(), Turn("Yes.")]) as server:
        ran = model(server, tools=[get_temperature], thinking=THINKING).invoke("How warm?")
        model(server, model="claude-other", tools=[get_temperature]).invoke([HumanMessage("How warm?"), ran, HumanMessage("Really?")])
        assert server.rejections == []
        assert b"thinking" not in server.exchanges[2].body


def test_parameters_are_sent() -> None:
    """Constructor and call say the same things under the partner package's names; None unsets; betas become a header."""
    with AnthropicServer([Turn("a"), Turn("b")], strict=False) as server:
        asked = model(
            server, max_tokens=50, temperature=0.5, top_k=3, stop=["END"], effort="low", betas=["one"], model_kwargs={"metadata": {}}
        )
        asked.invoke("x", temperature=None, top_p=0.9, stop=["X"], mcp_servers=[{"type": "url"}], extra_headers={"X-More": "1"})
        asked.invoke("x", thinking={"type": "adaptive"}, container="c")
    sent = {key: value for key, value in server.requests[0].items() if key != "messages"}
    assert sent == {
        **{"model": "claude-test", "max_tokens": 50, "top_k": 3, "top_p": 0.9, "stop_sequences": ["X"], "metadata": {}},
        **{"output_config": {"effort": "low"}, "mcp_servers": [{"type": "url"}]},
    }
    headers = server.exchanges[0].headers
    assert (headers["anthropic-beta"], headers["x-more"]) == ("one,mcp-client-2025-11-20", "1")
    assert server.requests[1]["container"] == "c"


def test_the_environment_and_the_profile_fill_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Key, address and the reply's length come from the environment and from what is known of the model."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "from-env")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    asked = ChatAnthropic(model="claude-sonnet-4-5-20250929")
    assert (asked.anthropic_api_url, asked.max_tokens) == ("http://127.0.0.1:9", 64_000)
    assert asked.anthropic_api_key is not None and asked.anthropic_api_key.get_secret_value() == "from-env"
    assert ChatAnthropic(model="unheard-of").max_tokens == 4096
    assert (asked.profile or {})["max_input_tokens"] == 200_000
    with pytest.raises(ConfigurationError, match="temperature"):
        ChatAnthropic(model="m", temprature=1)


def test_caching_marks() -> None:
    """C-18 and the vendor's limits: tools and system prompt are marked, messages by the request's own mark, so their bytes stay."""
    history = [SystemMessage("Be brief."), HumanMessage("How warm?")]
    turns = [Turn(calls=[Call("get_temperature", {"city": "Paris"})]), Turn("21.")]
    with AnthropicServer([*turns, Turn("a"), Turn("b")]) as server:
        model(server, tools=[get_temperature], prompt_caching="1h").invoke(history)
        mark = {"type": "ephemeral", "ttl": "1h"}
        for request in server.requests[:2]:
            assert (request["cache_control"], request["tools"][-1]["cache_control"], request["system"][-1]["cache_control"]) == (mark,) * 3
        first, second = (json.dumps(messages) for messages in server.messages[:2])
        assert second.startswith(first[:-1])
        model(server, tools=[get_temperature]).invoke(history)
        own: Any = [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]
        model(server, prompt_caching=True).invoke([SystemMessage("Be brief."), HumanMessage(own)])
        assert b"cache_control" not in server.exchanges[2].body  # auto: another server than the vendor's
        assert server.exchanges[3].body.count(b"cache_control") == 1
        assert server.rejections == []


NAMED = {"type": "tool", "name": "f"}
CHOICES = [
    *[(None, None), (False, None), ("auto", {"type": "auto"}), ("any", {"type": "any"}), ("required", {"type": "any"})],
    *[("none", {"type": "none"}), (True, NAMED), ("f", NAMED), (NAMED, NAMED)],
    ({"type": "function", "function": {"name": "f"}}, NAMED),
    ({"type": "auto", "disable_parallel_tool_use": True}, {"type": "auto", "disable_parallel_tool_use": True}),
]


@pytest.mark.parametrize(("choice", "expected"), CHOICES)
def test_tool_choices(choice: Any, expected: Any) -> None:
    """Every spelling of a tool choice becomes the wire's."""
    assert format_tool_choice(choice, [{"name": "f", "input_schema": {"type": "object"}}]) == expected


def test_tools_that_cannot_be_declared_are_told_when_they_are_bound() -> None:
    """A name or a schema that the vendor refuses is an error at once; a misspelt choice names its neighbour."""
    asked = ChatAnthropic(model="m", api_key="k")
    for bad in ({"name": "a b", "input_schema": {"type": "object"}}, {"name": "f", "input_schema": {"type": "object", "anyOf": []}}):
        with pytest.raises(ConfigurationError, match="cannot be sent"):
            asked.bind_tools([bad])
    with pytest.raises(ConfigurationError, match="get_temperature"):
        asked.bind_tools([get_temperature], tool_choice="get_temperatur")


def test_strict_tools_are_in_the_vendors_dialect() -> None:
    """Objects are closed, bounds are told in words; free keys and schemas that refer to themselves are refused when bound."""
    asked = ChatAnthropic(model="m", api_key="k")
    schema = {"type": "object", "properties": {"x": {"type": "integer", "minimum": 1}, "y": {"type": "object", "properties": {}}}}
    bound: Any = asked.bind_tools([{"name": "f", "input_schema": schema}], strict=True)
    [declared] = bound.kwargs["tools"]
    properties = declared["input_schema"]["properties"]
    assert (declared["strict"], properties["x"]["description"], properties["y"]["additionalProperties"]) == (True, "{minimum: 1}", False)
    for bad in ({"type": "object"}, {"$ref": "#"}):
        with pytest.raises(ConfigurationError, match="strict mode cannot express"):
            asked.bind_tools([{"title": "f", "type": "object", "properties": {"x": bad}}], strict=True)


def test_parallel_calls_can_be_switched_off_for_every_turn() -> None:
    """`parallel_tool_calls=False` holds in every turn of a run, a forced choice in the first only."""
    with AnthropicServer([Turn(calls=[Call("get_temperature", {"city": "Paris"})]), Turn("21.")]) as server:
        model(server, tools=[get_temperature]).invoke("x", parallel_tool_calls=False, tool_choice={"type": "any"})
    single = {"disable_parallel_tool_use": True}
    assert [request["tool_choice"] for request in server.requests] == [{"type": "any", **single}, {"type": "auto", **single}]


def test_a_choice_that_is_not_sent_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """A model that thinks cannot be forced to call: whoever forces it reads so, once for each request."""
    with AnthropicServer([Turn("No.")]) as server:
        model(server, thinking=THINKING).bind_tools([get_temperature], tool_choice="any").invoke("x")
        assert "tool_choice" not in server.requests[0]
    assert sum("cannot be forced" in record.message for record in caplog.records) == 1


def test_structured_output_of_a_model_that_thinks() -> None:
    """A model that thinks cannot be forced to call: its output is asked for by schema, closed as the vendor wants it."""
    with AnthropicServer([Turn('{"city": "Paris", "degrees": 21}', reasoning="Hm."), Turn('{"city": "Par', finish="length")]) as server:
        asked = model(server, thinking=THINKING).with_structured_output(Weather)
        assert asked.invoke("x") == Weather(city="Paris", degrees=21)
        schema = server.requests[0]["output_config"]["format"]["schema"]
        assert (schema["additionalProperties"], "tools" in server.requests[0]) == (False, False)
        with pytest.raises(OutputParserException, match="token limit"):
            asked.invoke("x")


def test_errors_are_typed_and_tried_again() -> None:
    """An overloaded vendor is asked again before anything was heard; the last error is the SDK's and LangChain's, without the key."""
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    script = [Failure(529, "Overloaded"), Events([overloaded], done=False), Turn("Fine."), Failure(429, "Slow down, sk-secret-1234.")]
    policy = RetryPolicy(attempts=3, wait_initial=0.001, wait_max=0.001)
    with AnthropicServer(script) as server:
        asked = model(server, max_retries=None, retry=policy)
        assert "".join(chunk.text for chunk in asked.stream("x")) == "Fine."
        with pytest.raises(ModelRateLimitError, match="Slow down") as raised:
            model(server).invoke("x")
    assert isinstance(raised.value, anthropic.RateLimitError) and "sk-secret" not in str(raised.value)


async def test_an_error_after_text_is_raised_where_it_happened() -> None:
    """C-08: an error in the middle of a stream reaches the caller after the text before it."""
    head = {"type": "message_start", "message": {"id": "m", "content": [], "model": "x", "usage": {}}}
    text = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}}
    error = {"type": "error", "error": {"type": "api_error", "message": "Internal server error"}}
    with AnthropicServer([Events([head, text, error], done=False)] * 2) as server:
        heard: list[str] = []
        with pytest.raises(ModelAPIError, match="Internal server error"):
            async for chunk in model(server).astream("x"):
                heard.append(chunk.text)
        assert heard == ["Hel"]


def test_secrets_and_copies() -> None:
    """The key is in no repr and no pickle; copies work and ask the same server."""
    with AnthropicServer([Turn("a"), Turn("b")]) as server:
        asked = model(server, default_headers={"X-Api-Token": "hidden-value"})
        assert "sk-secret" not in repr(asked)
        with pytest.raises(pickle.PicklingError, match="default_headers.*X-Api-Token"):
            pickle.dumps(asked)
        assert copy.deepcopy(asked).invoke("x").text == "a"
        assert asked.model_copy(update={"model": "claude-b"}).invoke("x").response_metadata["model_name"] == "claude-b"
    pickled = pickle.dumps(asked.model_copy(update={"default_headers": None}))
    assert (b"sk-secret" in pickled, pickle.loads(pickled).anthropic_api_key) == (False, None)


def test_what_opens_a_remote_server_is_sent_and_not_traced() -> None:
    """The token of an MCP server goes to the vendor, and into neither repr nor trace."""
    told: list[Any] = []

    class Ear(BaseCallbackHandler):
        """Hears what is asked."""

        def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
            told.append((args, kwargs))

    remote = {"type": "url", "url": "https://mcp.example", "name": "s", "authorization_token": "hidden-value"}
    with AnthropicServer([Turn("a")]) as server:
        model(server, mcp_servers=[remote]).invoke("x", {"callbacks": [Ear()]})
        assert server.requests[0]["mcp_servers"] == [remote]
        assert "hidden-value" not in repr(told) and "https://mcp.example" in repr(told)


def test_what_langchain_asks() -> None:
    """Tracing parameters, type and token estimate are the partner package's."""
    asked = ChatAnthropic(model="claude-x", api_key="k", temperature=0.2, max_tokens=9)
    params = asked._get_ls_params(stop=["a"], model="claude-y")
    assert params == {
        **{"ls_provider": "anthropic", "ls_model_name": "claude-y", "ls_model_type": "chat"},
        **{"ls_temperature": 0.2, "ls_max_tokens": 9, "ls_stop": ["a"]},
    }
    assert (asked._llm_type, asked.get_num_tokens("four") > 0) == ("anthropic-chat", True)
    assert asked.get_num_tokens_from_messages([HumanMessage("Hi")], tools=[get_temperature]) > 20


def test_without_tools_a_message_is_the_vendors() -> None:
    """A plain answer is plain text, the same from `stream` and `invoke`, and remembers itself for the caller's loop."""
    with AnthropicServer([Turn("Hello there."), Turn("Hello there.")]) as server:
        whole = model(server).invoke("x")
        chunks = list(model(server).stream("x"))
    assert (type(whole), whole.content) == (AIMessage, "Hello there.")
    [stored] = [message for chunk in chunks for message in new_messages(chunk)]
    assert stored.content == whole.content
    assert whole.response_metadata["stop_reason"] == "end_turn"


NAMES_OF_THE_PARTNER = (
    *("model", "model_name", "max_tokens", "max_tokens_to_sample", "temperature", "top_k", "top_p", "default_request_timeout", "timeout"),
    *("max_retries", "stop_sequences", "stop", "anthropic_api_url", "base_url", "anthropic_api_key", "api_key", "anthropic_proxy"),
    *("default_headers", "betas", "model_kwargs", "streaming", "stream_usage", "thinking", "output_config", "reasoning_effort", "effort"),
    *("mcp_servers", "context_management", "reuse_last_container", "container", "inference_geo", "user_profile_id"),
    *("name", "cache", "verbose", "callbacks", "tags", "metadata", "custom_get_token_ids", "rate_limiter", "disable_streaming"),
    *("output_version", "profile"),
)
"""Every constructor argument of langchain-anthropic 1.7.7's `ChatAnthropic`."""


def test_every_argument_of_the_partner_is_known() -> None:
    """An argument of langchain-anthropic is taken, or refused with a reason; none is passed over."""
    for name in set(NAMES_OF_THE_PARTNER) - set(ChatAnthropic._argument_names()):
        with pytest.raises(ConfigurationError, match=f"'{name}': "):
            ChatAnthropic(**{"model": "m", name: True})
