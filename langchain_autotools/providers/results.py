"""Conversion of tool results to vendors' own APIs, for programs that call an SDK directly."""

import json
from collections.abc import Iterable
from typing import Any

from langchain_core.messages import ToolMessage

from ..errors import ConfigurationError
from ..executor import ToolCallResult
from .anthropic.mapper import MessagesMapper
from .google.mapper import GenerateContentMapper
from .ollama.mapper import OllamaMapper
from .openai.mapper import ChatCompletionsMapper
from .openai.responses_mapper import ResponsesMapper

__all__ = ["format_for_anthropic", "format_for_google", "format_for_ollama", "format_for_openai"]

Results = Iterable[ToolMessage | ToolCallResult]
"""Results of a `ToolExecutor`."""


def format_for_openai(results: Results, *, use_responses_api: bool = False) -> list[dict[str, Any]]:
    """Return the results as messages of OpenAI's Chat Completions API, or as input items of its Responses API.

    Args:
        results: The results of one turn, in call order. Media follow in a user message, since a tool message has text alone.
        use_responses_api: Whether to write items for `client.responses.create(input=...)` in place of messages.

    Returns:
        What to append to `messages`, or to `input`.

    Raises:
        ConfigurationError: Something is no result.
        UnsupportedFeatureError: A result has content that the API cannot carry.
    """
    if use_responses_api:
        return _read(ResponsesMapper().encode_request(_messages(results), {}), "input")
    return _read(ChatCompletionsMapper().encode_request(_messages(results), {}), "messages")


def format_for_anthropic(results: Results) -> list[dict[str, Any]]:
    """Return the results as messages of Anthropic's Messages API: of the user, with `tool_result` blocks. Raises as `format_for_openai`."""
    return _read(MessagesMapper().encode_request(_messages(results), {}), "messages")


def format_for_google(results: Results) -> list[dict[str, Any]]:
    """Return the results as `contents` of the Gemini API: `functionResponse` parts under each call's name. Raises as `format_for_openai`.

    A part has its call's id, which Google wants back where it gave one; not one that the executor made (`call_0`, `call_1`, ...).
    """
    messages = _messages(results)
    contents = _read(GenerateContentMapper().encode_request(messages, {}), "contents")
    responses = (part["functionResponse"] for content in contents for part in content["parts"] if "functionResponse" in part)
    for position, (response, message) in enumerate(zip(responses, messages, strict=True)):
        if message.tool_call_id not in ("", f"call_{position}"):
            response["id"] = message.tool_call_id
    return contents


def format_for_ollama(results: Results) -> list[dict[str, Any]]:
    """Return the results as messages of Ollama's `/api/chat`. Raises as `format_for_openai`."""
    return _read(OllamaMapper().encode_request(_messages(results), {}), "messages")


def _messages(results: Results) -> list[ToolMessage]:
    messages = [result.message if isinstance(result, ToolCallResult) else result for result in results]
    for message in messages:
        if not isinstance(message, ToolMessage):
            raise ConfigurationError(f"a result is a ToolMessage or a ToolCallResult, not {message!r:.200}")
    return messages


def _read(body: bytes, key: str) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = json.loads(body)[key]
    return messages
