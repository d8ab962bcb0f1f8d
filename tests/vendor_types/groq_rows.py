"""Groq's dialect of chat completions, whose SDK has types of its own."""

from __future__ import annotations

from functools import partial

from groq.types.chat import (
    ChatCompletion,
    ChatCompletionAssistantMessageParam,
    ChatCompletionChunk,
    ChatCompletionContentPartParam,
    ChatCompletionSystemMessageParam,
    ChatCompletionToolParam,
    ChatCompletionUserMessageParam,
)
from groq.types.chat.completion_create_params import CompletionCreateParams

from langchain_autotools import ChatGroq
from tests.support.openai_server import OpenAIServer
from tests.support.vendors import VENDORS
from tests.vendor_types.asking import Asked
from tests.vendor_types.asking_rows import TWO_WAYS, UNTITLED
from tests.vendor_types.giving import fields_without, give_message, give_parameter, give_tool
from tests.vendor_types.replies import completion_saying
from tests.vendor_types.rows import KEYED, STREAMED, WHOLE, Row, completion_events, completion_with_call, model_of
from tests.vendor_types.samples import Rules, fields_of

_PARTNER = ("langchain_groq", "ChatGroq")
_ENDED = {"choices[].finish_reason": "stop", "choices[].index": 0}
ROWS = (
    Row(
        name="Groq",
        distribution="groq",
        type=ChatCompletion,
        serve=partial(OpenAIServer, rules=None),
        model=partial(model_of, ChatGroq, **KEYED),
        arguments={},
        partner=_PARTNER,
        partner_arguments=KEYED,
        events=completion_events,
        with_call=completion_with_call,
        ways=WHOLE,
        rules=Rules(only=_ENDED),
    ),
    Row(
        name="Groq, chunks",
        distribution="groq",
        type=ChatCompletionChunk,
        serve=partial(OpenAIServer, rules=None),
        model=partial(model_of, ChatGroq, **KEYED),
        arguments={},
        partner=_PARTNER,
        partner_arguments=KEYED,
        events=completion_events,
        with_call=completion_with_call,
        ways=STREAMED,
        rules=Rules(only={**_ENDED, "choices[].delta.role": "assistant", "choices[].delta.tool_calls[].index": 0}),
    ),
)
_ASSISTANT = "message<ChatCompletionAssistantMessageParam>"
_REFUSES = next(vendor.translate for vendor in VENDORS if vendor.chat_model is ChatGroq)
ASKED = (
    Asked(
        name="Groq: parameters",
        wire=ROWS[0],
        type=CompletionCreateParams,
        members=fields_without(CompletionCreateParams, "messages", "tools", "stream"),
        give=give_parameter(ChatGroq),
        places=("not", "messages", "tools"),
        reply=completion_saying,
    ),
    Asked(
        name="Groq: tools",
        ways=TWO_WAYS,
        wire=ROWS[0],
        type=CompletionCreateParams,
        members=lambda: {"tools": ChatCompletionToolParam},
        give=give_tool,
        places=("tools",),
        reply=completion_saying,
        rules=Rules(only={"tools.type": "function", "tools.function.parameters": UNTITLED}),
    ),
    Asked(
        name="Groq: messages",
        ways=TWO_WAYS,
        wire=ROWS[0],
        type=CompletionCreateParams,
        members=lambda: {
            "user": ChatCompletionContentPartParam,
            "result": ChatCompletionContentPartParam,
            "message": ChatCompletionSystemMessageParam | ChatCompletionUserMessageParam | ChatCompletionAssistantMessageParam,
            "reply": ChatCompletionAssistantMessageParam,
        },
        give=give_message,
        places=("messages",),
        reply=completion_saying,
        vendor=partial(_REFUSES, sent={}),
        rules=Rules(
            only={f"reply.{place}.arguments": '{"key":"there"}' for place in ("function_call", "tool_calls[].function")},
            absent=frozenset({"reply.name", "reply.content"}) | {f"{_ASSISTANT}.{key}" for key in ("function_call", "tool_calls")},
            one_of={"ChatCompletionAssistantMessageParam": frozenset(fields_of(ChatCompletionAssistantMessageParam)) - {"name", "role"}},
        ),
    ),
)
