"""Mistral's dialect of chat completions, whose SDK has types of its own."""

from __future__ import annotations

from functools import partial

from mistralai.client.models import (
    AssistantMessageTypedDict,
    ChatCompletionRequestToolTypedDict,
    ChatCompletionRequestTypedDict,
    ChatCompletionResponseTypedDict,
    CompletionChunkTypedDict,
    ContentChunkTypedDict,
    SystemMessageTypedDict,
    UserMessageTypedDict,
)

from langchain_autotools import ChatMistralAI
from tests.support.openai_server import OpenAIServer
from tests.vendor_types.asking import Asked
from tests.vendor_types.asking_rows import TWO_WAYS, UNTITLED
from tests.vendor_types.giving import fields_without, give_message, give_parameter, give_tool
from tests.vendor_types.replies import completion_saying
from tests.vendor_types.rows import KEYED, STREAMED, WHOLE, Row, completion_events, completion_with_call, model_of
from tests.vendor_types.samples import Rules, fields_of

_PARTNER = ("langchain_mistralai", "ChatMistralAI")
_ENDED = {"choices[].finish_reason": "stop", "choices[].index": 0}
ROWS = (
    Row(
        name="Mistral",
        distribution="mistralai",
        type=ChatCompletionResponseTypedDict,
        serve=partial(OpenAIServer, rules=None),
        model=partial(model_of, ChatMistralAI, **KEYED),
        arguments={},
        partner=_PARTNER,
        partner_arguments=KEYED,
        events=completion_events,
        with_call=completion_with_call,
        ways=WHOLE,
        rules=Rules(
            only={**_ENDED, "choices[].message.tool_calls[].index": 0},
            absent=frozenset({"choices[].message.prefix"}),
        ),
    ),
    Row(
        name="Mistral, chunks",
        distribution="mistralai",
        type=CompletionChunkTypedDict,
        serve=partial(OpenAIServer, rules=None),
        model=partial(model_of, ChatMistralAI, **KEYED),
        arguments={},
        partner=_PARTNER,
        partner_arguments=KEYED,
        events=completion_events,
        with_call=completion_with_call,
        ways=STREAMED,
        rules=Rules(only={**_ENDED, "choices[].delta.role": "assistant", "choices[].delta.tool_calls[].index": 0}),
    ),
)
ASKED = (
    Asked(
        name="Mistral: parameters",
        wire=ROWS[0],
        type=ChatCompletionRequestTypedDict,
        members=fields_without(ChatCompletionRequestTypedDict, "messages", "tools", "stream"),
        give=give_parameter(ChatMistralAI),
        places=("not", "messages", "tools"),
        reply=completion_saying,
    ),
    Asked(
        name="Mistral: tools",
        ways=TWO_WAYS,
        wire=ROWS[0],
        type=ChatCompletionRequestTypedDict,
        members=lambda: {"tools": ChatCompletionRequestToolTypedDict},
        give=give_tool,
        places=("tools",),
        reply=completion_saying,
        rules=Rules(only={"tools<function>.function.parameters": UNTITLED}),
    ),
    Asked(
        name="Mistral: messages",
        ways=TWO_WAYS,
        wire=ROWS[0],
        type=ChatCompletionRequestTypedDict,
        members=lambda: {
            "user": ContentChunkTypedDict,
            "result": ContentChunkTypedDict,
            "message": SystemMessageTypedDict | UserMessageTypedDict | AssistantMessageTypedDict,
            "reply": AssistantMessageTypedDict,
        },
        give=give_message,
        places=("messages",),
        reply=completion_saying,
        rules=Rules(
            only={
                "reply.tool_calls[].function.arguments": '{"key":"there"}',
                "reply.tool_calls[].id": "Ab3dE5gH7",
                "reply.tool_calls[].index": 0,
            },
            absent=frozenset({"message<AssistantMessageTypedDict>.tool_calls", "reply.prefix"}),
            one_of={"AssistantMessageTypedDict": frozenset(fields_of(AssistantMessageTypedDict)) - {"role"}},
        ),
    ),
)
