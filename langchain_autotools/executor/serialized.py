"""Serialization of results to text, for programs with their own wire format."""

import json
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.messages.tool import ToolOutputMixin

from ..errors import ConfigurationError
from ..strict_json import mend_surrogates
from .content import NO_OUTPUT, output_content
from .results import ToolCallResult, describe


def serialize_result(value: Any) -> str:
    """Return the text of a tool result for the model.

    Args:
        value: A `ToolMessage`, a `ToolCallResult`, what a tool returned, or the exception that it raised.

    Returns:
        A text as it is, and the texts of text blocks joined; `{"error": "..."}` of an exception; `(no output)` where there is nothing,
        because servers reject an empty result; JSON of anything else, other content blocks included.

    Raises:
        ConfigurationError: It is a graph's `Command`, which is no result.
        ToolException: It is, or holds, something that should have been awaited.
    """
    if isinstance(value, BaseException):
        return json.dumps({"error": mend_surrogates(describe(value))}, ensure_ascii=False)
    message = value.message if isinstance(value, ToolCallResult) else value
    content = message.content if isinstance(message, ToolMessage) else output_content(message)
    if isinstance(content, ToolOutputMixin) or (isinstance(content, list) and any(isinstance(part, ToolOutputMixin) for part in content)):
        raise ConfigurationError(f"a result is a message or what a tool returned, not {type(value).__name__}")
    text = mend_surrogates(content if isinstance(content, str) else _text_of_blocks(content))
    return text if text.strip() else NO_OUTPUT


def _text_of_blocks(blocks: list[Any]) -> str:
    texts = [block if isinstance(block, str) else block.get("text") for block in blocks if _is_text(block)]
    return "".join(map(str, texts)) if len(texts) == len(blocks) else json.dumps(blocks, ensure_ascii=False, default=str)


def _is_text(block: Any) -> bool:
    return isinstance(block, str) or (isinstance(block, dict) and block.get("type") == "text")
