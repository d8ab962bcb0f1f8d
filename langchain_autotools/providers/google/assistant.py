"""Conversion of an AI message's content to Content parts: text, and for their origin thoughts, signatures and server output.

Signatures go back on the very part that they came with, be it empty; parts that carry one are never joined (wire quirk G-03). Any other
endpoint or model gets the text, and media that it can read; thoughts and what servers' tools did are left out.
"""

import logging
from collections.abc import Mapping
from typing import Any

from ...errors import UnsupportedFeatureError
from ...messages.provisional import is_provisional
from .._encode.sources import Block, extra
from .blocks import part_of, text_part
from .wire import CodeResult, ExecutableCode, Part

_logger = logging.getLogger("langchain_autotools")

_OUTCOMES: Mapping[Any, str] = {1: "OUTCOME_OK", 2: "OUTCOME_FAILED", 3: "OUTCOME_DEADLINE_EXCEEDED"}
_TEXTS = frozenset({"text", "output_text", "refusal"})
_MEDIA = frozenset({"image", "image_url", "audio", "video", "file", "file_data", "media", "document", "image_generation_call"})
_CODE_RESULT = "code_execution_result"


def assistant_part(block: str | Block, *, same_origin: bool) -> Part | None:
    """Convert one block; None if it is not sent.

    Args:
        block: The block, of any vendor.
        same_origin: Whether it goes back to the endpoint and model that wrote it.
    """
    if isinstance(block, str):
        return text_part(block) if block else None
    if is_provisional(block):
        return None
    kind = str(block.get("type") or ("text" if isinstance(block.get("text"), str) else ""))
    signature = extra(block, "signature") if same_origin else None
    part = _part_of_kind(block, kind, same_origin=same_origin)
    beside = extra(block, "part_metadata") if same_origin else None
    if part is None or (part == text_part("") and not signature and not beside):
        return None
    if signature:
        part["thoughtSignature"] = signature
    if beside:
        part["partMetadata"] = beside
    return part


def _part_of_kind(block: Block, kind: str, *, same_origin: bool) -> Part | None:
    if kind in _TEXTS:
        return text_part(str(block.get("text") or block.get("refusal") or ""))
    if kind in _MEDIA:
        return _media_with_data(block, kind)
    if not same_origin:
        _logger.debug("not sent: an assistant's content block of type %r", kind)
        return None
    if kind in ("thinking", "reasoning"):
        return {"text": block.get("thinking") or block.get("reasoning") or "", "thought": True}
    if kind == "part":
        part: Part = {**(block.get("part") or {})}
        return part
    if kind == "non_standard" and isinstance(block.get("value"), Mapping):
        return assistant_part(block["value"], same_origin=True)
    return _of_server(block, kind)


def _media_with_data(block: Block, kind: str) -> Part | None:
    """Convert media that a model produced; None if only its vendor has the data."""
    try:
        return part_of(block)
    except UnsupportedFeatureError:
        _logger.debug("not sent: an assistant's content block of type %r without data", kind)
        return None


def _of_server(block: Block, kind: str) -> Part | None:
    """Convert code that the server ran, or its result, also in LangChain's standard form."""
    if kind == "executable_code":
        return _code(block.get("id"), block.get("language"), block.get("executable_code"))
    if kind == "server_tool_call" and block.get("name") == "code_interpreter":
        arguments = block.get("args") or {}
        return _code(block.get("id"), arguments.get("language"), arguments.get("code"))
    if kind == _CODE_RESULT or (kind == "server_tool_result" and extra(block, "block_type") == _CODE_RESULT):
        outcome = extra(block, "outcome")
        output = block.get(_CODE_RESULT) if kind == _CODE_RESULT else block.get("output")
        result: CodeResult = {"outcome": _OUTCOMES.get(outcome, outcome), "output": output}
        return {"codeExecutionResult": {"id": block["tool_call_id"], **result} if block.get("tool_call_id") else result}
    return None


def _code(identifier: str | None, language: str | None, code: str | None) -> Part:
    executed: ExecutableCode = {"language": language, "code": code}
    return {"executableCode": {"id": identifier, **executed} if identifier else executed}
