"""Conversion of an AI message's content to Messages API blocks: text, and for their origin thinking and server tools' output.

Opaque blocks (thinking with its signature, server tools and their results) go back unchanged and in their place, to the endpoint
and model that sent them; to any other they are left out, as every other vendor's inner state is.

Wire facts (wire quirks C-09 to C-16): thinking may be empty and still be needed for its signature; without a signature it is refused;
a text without a visible character is refused; citations in replies name the uploaded file, those in requests may not.
"""

import logging
from collections.abc import Mapping

from .._encode.json_text import read_object
from .._encode.order import CALLS
from .._encode.sources import Block, extra
from .blocks import part_of, text_part
from .wire import Part

_logger = logging.getLogger("langchain_autotools")

_SERVER_ENDINGS = ("_tool_use", "_tool_result")
_OPAQUE = frozenset({"redacted_thinking", "fallback", "compaction", "container_upload", "mcp_tool_listing"})
_STANDARD = frozenset({"server_tool_call", "server_tool_call_chunk", "server_tool_result", "non_standard"})
_REMOTE = "remote_mcp"
_NAMES = {"code_interpreter": "code_execution"}  # as core renames them


def assistant_part(block: str | Block, *, same_origin: bool) -> Part | None:
    """Convert one content block of an AI message that is not a call; None if it is not sent.

    Args:
        block: The block, of any vendor.
        same_origin: Whether it goes back to the endpoint and model that wrote it.
    """
    if isinstance(block, str):
        return text_part(block) if block.strip() else None
    kind = str(block.get("type") or ("text" if isinstance(block.get("text"), str) else ""))
    if kind in ("text", "output_text"):
        return _cited_text(block, same_origin)
    if kind == "refusal":
        return part_of(block)
    if not same_origin:
        _logger.debug("not sent: an assistant's content block of type %r", kind)
        return None
    if kind in ("thinking", "reasoning"):
        return _signed_thinking(block)
    if kind in _STANDARD:
        return _from_standard(block, kind)
    return _verbatim(block) if kind in _OPAQUE or kind.endswith(_SERVER_ENDINGS) else None


def _cited_text(block: Block, same_origin: bool) -> Part | None:
    part = part_of({"type": "text", **{key: block[key] for key in ("text", "cache_control") if key in block}})
    citations = block.get("citations") or [_citation(note) for note in block.get("annotations") or ()]
    found = [{key: value for key, value in citation.items() if key != "file_id"} for citation in citations if citation]
    return {**part, "citations": found} if part and found and same_origin else part


def _signed_thinking(block: Block) -> Part | None:
    signature = extra(block, "signature")
    if not signature:
        return None
    return {"type": "thinking", "thinking": block.get("thinking") or block.get("reasoning") or "", "signature": signature}


def _verbatim(block: Block) -> Part:
    """Return a block as received, with the input of a server tool that langchain-anthropic stored as streamed text parsed."""
    kept = {key: value for key, value in block.items() if key not in ("index", "partial_json")}
    written = block.get("partial_json")
    if written and not kept.get("input"):
        kept["input"] = read_object(str(written)) or {}
    return dict(sorted(kept.items(), key=lambda item: item[0] != "type"))


def _from_standard(block: Block, kind: str) -> Part | None:
    """Return the block that LangChain's standard block was made of."""
    extras = dict(block.get("extras") or {})
    if kind == "non_standard":
        value = block.get("value")
        if not isinstance(value, Mapping) or value.get("type") in ("non_standard", *CALLS):
            return None
        return assistant_part(value, same_origin=True)
    if kind == "server_tool_result":
        output = {"content": block["output"]} if "output" in block else {"content": []}
        failed = {"is_error": True} if extras.get("block_type") == "mcp_tool_result" and block.get("status") == "error" else {}
        wire_kind = extras.pop("block_type", None)
        return {"type": wire_kind, "tool_use_id": block.get("tool_call_id"), **output, **failed, **extras} if wire_kind else None
    if kind == "server_tool_call_chunk":
        return None
    called = {"id": block.get("id"), "input": block.get("args") or {}}
    if block.get("name") == _REMOTE:
        return {"type": "mcp_tool_use", **called, "name": extras.pop("tool_name", ""), **extras}
    return {"type": "server_tool_use", **called, "name": _NAMES.get(str(block.get("name")), block.get("name")), **extras}


_PLACES = {
    "start_char_index": "char_location",
    "start_page_number": "page_location",
    "search_result_index": "search_result_location",
    "start_block_index": "content_block_location",
}


def _citation(note: Block) -> Part | None:
    """Return the citation that LangChain's standard citation was made of."""
    if note.get("type") == "non_standard_annotation":
        return note.get("value")
    if note.get("type") != "citation":
        return None
    extras = dict(note.get("extras") or {})
    common = {"cited_text": note.get("cited_text"), **extras}
    if note.get("url"):
        return {"type": "web_search_result_location", "url": note["url"], "title": note.get("title"), **common}
    kind = next((kind for key, kind in _PLACES.items() if key in extras), None)
    if kind is None:
        return None
    name = "title" if kind == "search_result_location" else "document_title"
    return {"type": kind, **common, **({name: note["title"]} if note.get("title") else {})}
