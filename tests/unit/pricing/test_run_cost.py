"""`run_cost`: exact sums of what vendors report, against sums by hand; what has no price of its own makes the cost None and is named."""

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import reduce
from operator import add
from typing import Any

import pytest

from langchain_autotools import (
    Agent,
    ChatAnthropic,
    ChatCohere,
    ChatDeepSeek,
    ChatFireworks,
    ChatGoogleGenerativeAI,
    ChatGroq,
    ChatMistralAI,
    ChatOllama,
    ChatOpenAI,
    ChatOpenRouter,
    ChatTogether,
    ChatXAI,
    ConfigurationError,
    run_cost,
)
from langchain_autotools.testing import ScriptedChatModel
from tests.support.script import Events
from tests.vendor_types.rows import ROWS, Row

pytest.importorskip("genai_prices", reason="needs the extra `cost`")

AT = datetime(2026, 11, 20, tzinfo=UTC)
OWN: Any = {"my-model": {"input_mtok": "0.20", "output_mtok": 0.8, "flex": {"input_mtok": "0.1", "output_mtok": "0.4"}}}


def chat(model: str, usage: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": model, "choices": [choice], "usage": usage, **more}


def tokens(given: int, written: int, cached: int = 0, reasoning: int = 0, audio: int = 0, total: int | None = None) -> dict[str, Any]:
    """Its usage."""
    prompt, completion = {"cached_tokens": cached, "audio_tokens": audio}, {"reasoning_tokens": reasoning, "audio_tokens": 0}
    counts = {"prompt_tokens": given, "completion_tokens": written, "total_tokens": given + written if total is None else total}
    return {**counts, "prompt_tokens_details": prompt, "completion_tokens_details": completion}


def response(model: str, given: int, written: int, *items: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A response of the Responses API."""
    text = {"type": "output_text", "text": "Hi.", "annotations": []}
    said = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [text]}
    counts = {"input_tokens": given, "output_tokens": written, "total_tokens": given + written}
    usage = {**counts, "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    about = {"id": "r", "object": "response", "created_at": 1, "status": "completed", "model": model}
    return {**about, "output": [*items, said], "usage": usage, **more}


def message(model: str, given: int, written: int, **usage: Any) -> dict[str, Any]:
    """A message of the Messages API."""
    about = {"id": "m", "type": "message", "role": "assistant", "model": model, "stop_reason": "end_turn", "stop_sequence": None}
    counts = {"input_tokens": given, "output_tokens": written, **usage}
    return {**about, "content": [{"type": "text", "text": "Hi."}], "usage": counts}


def generated(model: str, usage: Mapping[str, Any], **candidate: Any) -> dict[str, Any]:
    """A reply of generateContent."""
    said = {"content": {"role": "model", "parts": [{"text": "Hi."}]}, "finishReason": "STOP", "index": 0, **candidate}
    return {"candidates": [said], "usageMetadata": usage, "modelVersion": model, "responseId": "r"}


def counted(given: int, written: int, **more: Any) -> dict[str, Any]:
    """Its usage."""
    return {"promptTokenCount": given, "candidatesTokenCount": written, "totalTokenCount": given + written, **more}


OLLAMA = {"model": "qwen3", "created_at": "2026-11-20T00:00:00Z", "message": {"role": "assistant", "content": "Hi."}, "done": True}
SEARCHED = {"type": "web_search_call", "id": "w", "status": "completed", "action": {"type": "search", "query": "x"}}
OPENED = {"type": "web_search_call", "id": "o", "status": "completed", "action": {"type": "open_page", "url": "https://example.com"}}
FOUND = {"type": "file_search_call", "id": "f", "status": "completed", "queries": ["x"], "results": None}
RAN = {"type": "code_interpreter_call", "id": "i", "status": "completed", "code": "1", "container_id": "k", "outputs": None}
COMMAND = {
    **{"type": "shell_call", "id": "s", "call_id": "c", "status": "completed", "action": {"commands": ["ls"]}},
    "environment": {"type": "container_reference", "container_id": "k"},
}
LOCAL = {**COMMAND, "environment": {"type": "local"}}
RESULT = {"type": "shell_call_output", "id": "o", "call_id": "c", "status": "completed", "output": []}
CODE = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {"code": "1"}}
OUTPUT = {"type": "code_execution_result", "stdout": "1", "stderr": "", "return_code": 0, "content": []}
CODE_RESULT = {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": OUTPUT}


def picture(usage: Mapping[str, Any]) -> dict[str, Any]:
    """A chat completion with a picture."""
    body = chat("openai/gpt-5", usage)
    body["choices"][0]["message"]["images"] = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}]
    return body


Model = type[Any]
EXACT: dict[str, tuple[Model, dict[str, Any], dict[str, str]]] = {
    "chat completions": (ChatOpenAI, chat("gpt-5-2025-08-07", tokens(1000, 200)), {"input_tokens": "0.00125", "output_tokens": "0.002"}),
    "cached and reasoned": (
        ChatOpenAI,
        chat("gpt-5", tokens(10_000, 900, cached=4_000, reasoning=500)),
        {"input_tokens": "0.0075", "cache_read_tokens": "0.0005", "output_tokens": "0.004", "output_reasoning_tokens": "0.005"},
    ),
    "the flex tier": (
        ChatOpenAI,
        chat("gpt-5", tokens(10_000, 900, cached=4_000), service_tier="flex"),
        {"input_tokens": "0.00375", "cache_read_tokens": "0.00025", "output_tokens": "0.0045"},
    ),
    "the priority tier": (
        ChatOpenAI,
        chat("gpt-4o", tokens(1_000, 100, reasoning=40), service_tier="priority"),
        {"input_tokens": "0.00425", "output_tokens": "0.00102", "output_reasoning_tokens": "0.00068"},
    ),
    "a count of a proxy's beside a vendor's 0": (
        ChatOpenAI,
        chat("gpt-5", {**tokens(2_500, 100), "cache_read_input_tokens": 2_000}),
        {"input_tokens": "0.000625", "cache_read_tokens": "0.00025", "output_tokens": "0.001"},
    ),
    "a cost that the reply states": (ChatOpenRouter, picture({**tokens(10, 1), "cost": 0.00014, "is_byok": False}), {"stated": "0.00014"}),
    "a cost that was charged elsewhere": (
        ChatOpenRouter,
        chat("own-model", {**tokens(10, 1), "cost": 0.001, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.02}}),
        {"stated": "0.021"},
    ),
    "the default tier": (
        ChatOpenAI,
        chat("gpt-4o", tokens(1_000, 100), service_tier="default"),
        {"input_tokens": "0.0025", "output_tokens": "0.001"},
    ),
    "Responses": (ChatOpenAI, response("gpt-4.1-mini", 500, 50), {"input_tokens": "0.0002", "output_tokens": "0.00008"}),
    "searches of the server": (
        ChatOpenAI,
        response("gpt-5", 1_000, 100, SEARCHED, OPENED, {**SEARCHED, "id": "v"}, FOUND),
        {"input_tokens": "0.00125", "output_tokens": "0.001", "web_searches": "0.02", "storage_searches": "0.0025"},
    ),
    "searches as the reply counts them": (
        ChatOpenAI,
        response("gpt-5", 1_000, 100, SEARCHED, tool_usage={"web_search": {"num_requests": 3}, "image_gen": {"input_tokens": 0}}),
        {"input_tokens": "0.00125", "output_tokens": "0.001", "web_searches": "0.03"},
    ),
    "searches that the reply does not count": (
        ChatOpenAI,
        response("gpt-5", 1_000, 100, SEARCHED, tool_usage={"image_gen": {"input_tokens": 0}}),
        {"input_tokens": "0.00125", "output_tokens": "0.001", "web_searches": "0.01"},
    ),
    "a shell of the caller's": (ChatOpenAI, response("gpt-5", 1_000, 0, LOCAL, RESULT), {"input_tokens": "0.00125"}),
    "Anthropic": (ChatAnthropic, message("claude-sonnet-4-5-20250929", 1_000, 100), {"input_tokens": "0.003", "output_tokens": "0.0015"}),
    "a cache of two lifetimes": (
        ChatAnthropic,
        message(
            "claude-opus-4-6",
            100,
            10,
            cache_read_input_tokens=2_000,
            cache_creation_input_tokens=3_000,
            cache_creation={"ephemeral_5m_input_tokens": 1_000, "ephemeral_1h_input_tokens": 2_000},
            service_tier="standard",
        ),
        {
            **{"input_tokens": "0.0005", "cache_read_tokens": "0.001", "cache_write_5m_tokens": "0.00625"},
            **{"cache_write_1h_tokens": "0.02", "output_tokens": "0.00025"},
        },
    ),
    "a long request": (
        ChatAnthropic,
        message("claude-sonnet-4-5", 100_001, 10, cache_read_input_tokens=100_000),
        {"input_tokens": "0.600006", "cache_read_tokens": "0.06", "output_tokens": "0.000225"},
    ),
    "searches and fetched pages": (
        ChatAnthropic,
        message("claude-opus-4-6", 1_000, 0, server_tool_use={"web_search_requests": 3, "web_fetch_requests": 2}),
        {"input_tokens": "0.005", "web_searches": "0.03"},
    ),
    "the batch tier": (
        ChatAnthropic,
        message("claude-opus-4-6", 1_000, 100, service_tier="batch"),
        {"input_tokens": "0.0025", "output_tokens": "0.00125"},
    ),
    "Gemini": (
        ChatGoogleGenerativeAI,
        generated("gemini-2.5-pro", counted(1_000, 100, cachedContentTokenCount=400, thoughtsTokenCount=50, totalTokenCount=1150)),
        {"input_tokens": "0.00075", "cache_read_tokens": "0.00005", "output_tokens": "0.001", "output_reasoning_tokens": "0.0005"},
    ),
    "sound": (
        ChatGoogleGenerativeAI,
        generated(
            "gemini-2.5-flash",
            counted(1_000, 100, promptTokensDetails=[{"modality": "TEXT", "tokenCount": 400}, {"modality": "AUDIO", "tokenCount": 600}]),
        ),
        {"input_tokens": "0.00012", "input_audio_tokens": "0.0006", "output_tokens": "0.00025"},
    ),
    "a grounded reply": (
        ChatGoogleGenerativeAI,
        generated("gemini-2.5-flash", counted(1_000, 100), groundingMetadata={"webSearchQueries": ["x"]}),
        {"input_tokens": "0.0003", "output_tokens": "0.00025", "web_searches": "0.035"},
    ),
    "reasoning beside the output": (
        ChatXAI,
        chat("grok-4-0709", tokens(1_000, 100, reasoning=300, total=1_400)),
        {"input_tokens": "0.003", "output_tokens": "0.0015", "output_reasoning_tokens": "0.0045"},
    ),
    "Groq": (
        ChatGroq,
        chat("openai/gpt-oss-120b", tokens(1_000, 100, cached=200), service_tier="on_demand"),
        {"input_tokens": "0.00012", "cache_read_tokens": "0.000015", "output_tokens": "0.00006"},
    ),
    "Mistral": (ChatMistralAI, chat("mistral-large-latest", tokens(1_000, 100)), {"input_tokens": "0.002", "output_tokens": "0.0006"}),
    "Cohere": (ChatCohere, chat("command-a-03-2025", tokens(1_000, 100)), {"input_tokens": "0.0025", "output_tokens": "0.001"}),
    "Fireworks": (
        ChatFireworks,
        chat("accounts/fireworks/models/gpt-oss-120b", tokens(1_000, 100)),
        {"input_tokens": "0.00015", "output_tokens": "0.00006"},
    ),
    "Together": (ChatTogether, chat("openai/gpt-oss-120b", tokens(1_000, 100)), {"input_tokens": "0.00015", "output_tokens": "0.00006"}),
    "DeepSeek": (
        ChatDeepSeek,
        chat("deepseek-chat", {**tokens(1_000, 100), "prompt_tokens_details": None, "prompt_cache_hit_tokens": 400}),
        {"input_tokens": "0.000081", "cache_read_tokens": "0.000014", "output_tokens": "0.000055"},
    ),
    "OpenRouter": (ChatOpenRouter, chat("openai/gpt-5", tokens(1_000, 100)), {"input_tokens": "0.00125", "output_tokens": "0.001"}),
    "own prices": (ChatOpenAI, chat("my-model", tokens(1_000, 100)), {"input_tokens": "0.0002", "output_tokens": "0.00008"}),
    "own prices of a dated version, of a tier": (
        ChatOpenAI,
        chat("my-model-2026-01-31", tokens(1_000, 100), service_tier="flex"),
        {"input_tokens": "0.0001", "output_tokens": "0.00004"},
    ),
}

UNPRICED: dict[str, tuple[Model, dict[str, Any], list[str]]] = {
    "a tier": (
        ChatAnthropic,
        message("claude-opus-4-6", 10, 1, service_tier="priority"),
        ["service_tier 'priority'", "input_tokens", "output_tokens"],
    ),
    "another tier": (
        ChatGoogleGenerativeAI,
        generated("gemini-2.5-pro", counted(10, 1, serviceTier="flex")),
        ["service_tier 'flex'", "input_tokens", "output_tokens"],
    ),
    "a region": (ChatAnthropic, message("claude-opus-4-6", 10, 0, inference_geo="us"), ["inference_geo 'us'", "input_tokens"]),
    "sound without a price": (ChatOpenAI, chat("gpt-5", tokens(100, 10, audio=50)), ["input_audio_tokens"]),
    "a cache without a price": (ChatGroq, chat("llama-3.3-70b-versatile", tokens(100, 10, cached=50)), ["cache_read_tokens"]),
    "a picture without a price": (
        ChatGoogleGenerativeAI,
        generated("gemini-2.5-pro", counted(300, 1, promptTokensDetails=[{"modality": "IMAGE", "tokenCount": 258}])),
        ["input_image_tokens"],
    ),
    "cached input of two kinds": (
        ChatGoogleGenerativeAI,
        generated(
            "gemini-2.5-flash",
            counted(900, 0, cachedContentTokenCount=500, promptTokensDetails=[{"modality": "AUDIO", "tokenCount": 600}]),
        ),
        ["input tokens that several of cache_read_tokens, input_audio_tokens count"],
    ),
    "a container": (ChatOpenAI, response("gpt-5", 10, 1, RAN), ["the time of code_interpreter"]),
    "a shell in a container": (ChatOpenAI, response("gpt-5", 10, 1, COMMAND, RESULT), ["the time of shell"]),
    "code in a container": (
        ChatAnthropic,
        {
            **message("claude-opus-4-6", 10, 0),
            "content": [CODE, CODE_RESULT],
            "container": {"id": "k", "expires_at": "2026-11-20T00:00:00Z"},
        },
        ["the time of code_interpreter"],
    ),
    "pictures beside the text": (ChatOpenRouter, picture(tokens(10, 1)), ["generated images"]),
    "a picture that is read": (
        ChatXAI,
        chat("grok-4", {**tokens(300, 1), "prompt_tokens_details": {"image_tokens": 256}}),
        ["input_image_tokens"],
    ),
    "generated pictures": (
        ChatOpenAI,
        response("gpt-5", 10, 1, {"type": "image_generation_call", "id": "g", "status": "completed", "result": "aGk="}),
        ["generated images"],
    ),
    "several queries": (
        ChatGoogleGenerativeAI,
        generated("gemini-2.5-pro", counted(10, 1), groundingMetadata={"webSearchQueries": ["x", "y"]}),
        ["web_searches of 2 queries"],
    ),
    "images of a tool": (
        ChatOpenAI,
        response("gpt-5", 10, 1, tool_usage={"image_gen": {"input_tokens": 5, "output_tokens": 7}}),
        ["image_gen"],
    ),
    "sources": (ChatXAI, chat("grok-4", {**tokens(10, 1), "num_sources_used": 4}), ["num_sources_used"]),
    "a model": (ChatOpenAI, chat("somebody-s", tokens(10, 1)), ["the model 'somebody-s'"]),
    "a provider": (ChatOllama, {**OLLAMA, "done_reason": "stop", "prompt_eval_count": 10, "eval_count": 1}, ["the model 'qwen3'"]),
    "a tier beside own prices": (
        ChatOpenAI,
        chat("my-model", tokens(10, 1), service_tier="priority"),
        ["service_tier 'priority'", "input_tokens", "output_tokens"],
    ),
}


def row_of(body: Mapping[str, Any]) -> Row:
    """The wire of a reply."""
    kinds = {"chat.completion": "Chat completions", "response": "Responses", "message": "Messages"}
    name = kinds.get(str(body.get("object", body.get("type"))), "generateContent" if "candidates" in body else "/api/chat")
    return next(row for row in ROWS if row.name == name)


def answered(kind: Model, body: Mapping[str, Any], *, streamed: bool = False) -> Any:
    """The run message of a model whose server sends this reply: whole, or streamed and in LangChain's own blocks."""
    row = row_of(body)
    with row.serve() as server:
        server.extend([Events(row.events(dict(body)), body)])
        key = {} if kind is ChatOllama else {"api_key": "key"}
        more = {"use_responses_api": row.name == "Responses"} if kind is ChatOpenAI else {}
        form = {"output_version": "v1"} if streamed else {}
        model = kind(model="m", base_url=server.url, max_retries=0, **key, **more, **form)
        return reduce(add, model.stream("Hi")) if streamed else model.invoke("Hi")


@pytest.mark.parametrize("name", EXACT)
def test_the_cost_is_the_sum_by_hand(name: str) -> None:
    """Each kind of usage at its own price, to the last digit."""
    kind, body, parts = EXACT[name]
    for streamed in (False, True):
        cost = run_cost(answered(kind, body, streamed=streamed), prices=OWN, at=AT)
        assert cost.parts == {key: Decimal(price) for key, price in parts.items()}
        assert (cost.total, cost.unpriced) == (sum(map(Decimal, parts.values())), [])


@pytest.mark.parametrize("name", UNPRICED)
def test_what_has_no_price_of_its_own_is_named(name: str) -> None:
    """Nothing is charged at the price of something else: the cost is None."""
    kind, body, names = UNPRICED[name]
    for streamed in (False, True):
        cost = run_cost(answered(kind, body, streamed=streamed), prices=OWN, at=AT)
        assert (cost.total, cost.unpriced) == (None, names)


NO_COUNTS = (None, "12", -5, True)
"""What no number of tokens is."""


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (ChatOpenAI, {key: value for key, value in chat("gpt-5", {}).items() if key != "usage"}),
        *((ChatOpenAI, chat("gpt-5", {"prompt_tokens": count, "completion_tokens": 3})) for count in NO_COUNTS),
        (ChatOpenAI, {**response("gpt-5", 10, 1), "usage": {"input_tokens": 10, "output_tokens": None, "total_tokens": None}}),
        (ChatAnthropic, message("claude-opus-4-6", 10, -1)),
        (ChatGoogleGenerativeAI, generated("gemini-2.5-pro", {"promptTokenCount": -10, "candidatesTokenCount": 1})),
        (ChatOllama, {**OLLAMA, "done_reason": "stop", "prompt_eval_count": -10, "eval_count": 1}),
    ],
)
def test_a_reply_without_usage_has_no_cost(kind: Model, body: dict[str, Any]) -> None:
    """It is not free: nobody knows. Nor is one whose counts are none."""
    run = answered(kind, body)
    assert run.usage_metadata is None and "a reply without usage" in run_cost(run).unpriced


def look(place: str) -> str:
    """Look."""
    return f"{place}: fine"


def asks_and_answers() -> list[Any]:
    """A run of two turns by two models."""
    from langchain_core.messages import AIMessage

    def said(text: str, model: str, **more: Any) -> AIMessage:
        usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
        return AIMessage(text, usage_metadata=usage, response_metadata={"model_provider": "own", "model_name": model}, **more)

    return [said("", "small", tool_calls=[{"name": "look", "args": {"place": "here"}, "id": "1"}]), said("Fine.", "large")]


TWO = {"small": {"input_mtok": 1, "output_mtok": 2}, "large": {"input_mtok": 10, "output_mtok": 20}}


def test_all_turns_count_each_at_its_own_model() -> None:
    """A run message, the sum of its chunks and an agent's result have one cost."""
    made = [ScriptedChatModel(tools=[look], replies=asks_and_answers()) for _ in range(3)]
    first, *chunks = made[1].stream("Hi")
    runs = [made[0].invoke("Hi"), sum(chunks, first), Agent(made[2]).run("Hi")]
    for run in runs:
        cost = run_cost(run, prices=TWO)
        assert [(turn.model, turn.total) for turn in cost.turns] == [("small", Decimal("0.00012")), ("large", Decimal("0.0012"))]
        assert cost.total == Decimal("0.00132")


def test_a_run_without_its_messages_is_refused() -> None:
    """Its last turn alone would be too little."""
    run = ScriptedChatModel(tools=[look], replies=asks_and_answers(), carry_messages=False).invoke("Hi")
    assert run_cost(run, prices=TWO).total == Decimal("0.00132")  # in this process they are remembered
    with pytest.raises(ValueError, match="1 of the replies of its 2 turns"):
        run_cost(type(run).model_validate(run.model_dump()), prices=TWO)


@pytest.mark.parametrize(
    ("prices", "words"),
    [
        ([], "not list"),
        ({"m": {}}, "the entry of 'm'"),
        ({"m": {"input": 1}}, "not 'input'"),
        ({"m": {"input_mtok": "much"}}, "not 'much'"),
        ({"m": {"input_mtok": -1}}, "0 or more"),
        ({"m": {"input_mtok": float("inf")}}, "0 or more"),
        ({"m": {"flex": {"input_mtok": True}}}, "0 or more"),
    ],
)
def test_prices_of_another_form_are_refused(prices: Any, words: str) -> None:
    """By what is wrong with them."""
    with pytest.raises(ConfigurationError, match=words):
        run_cost(ScriptedChatModel(replies=["Hi."]).invoke("Hi"), prices=prices)


def test_something_else_is_refused() -> None:
    """A text has no cost."""
    with pytest.raises(ValueError, match="not a str"):
        run_cost("Hi")  # type: ignore[arg-type]
