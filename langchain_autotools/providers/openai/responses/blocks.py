"""Conversion of content blocks of any vendor to input parts of the Responses API.

Wire facts: parts are input_text, input_image, input_file and input_audio; a tool's output takes text, images and files; files go
as data, as the id of an upload or as a URL (platform.openai.com/docs/api-reference/responses/create).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from ....executor.names import own_name
from ....messages.metadata import text_of
from ..._encode.json_text import dumps
from ..._encode.sources import Block, source_of, unsupported
from ..blocks import part_of
from ..wire import Part
from .client_calls import APPROVED, FOUND_TOOLS
from .wire import Item, ItemPart

_WIRE_PARTS = frozenset({"input_text", "input_image", "input_file", "input_audio"})
_DOCUMENTS = frozenset({"file", "document", "media"})
_WHY = "the Responses API has no such content"

_SCREEN = "computer_call_output"
_OF_ANSWERS = ("id", "status", "acknowledged_safety_checks", "max_output_length", "caller")

ADDED_TOOLS = "additional_tools"
"""The item type that declares tools within a conversation; allowed for instructions only (openai's `AdditionalTools`)."""
ITEM_TYPES = frozenset(
    {
        *(APPROVED, _SCREEN, "local_shell_call_output", "shell_call_output", "apply_patch_call_output"),
        *(FOUND_TOOLS, "item_reference", ADDED_TOOLS, "configuration_update", "compaction", "compaction_trigger"),
    }
)
"""Types of content blocks that are separate items: the caller's answers to the vendor's tools, and references."""


def added_tools(messages: Sequence[BaseMessage]) -> set[str]:
    """The names of the tools that instructions declare in the middle of a conversation."""
    blocks = [block for message in messages if not isinstance(message.content, str) for block in message.content]
    items: list[Any] = [item for item in map(item_of, blocks) if item and item["type"] == ADDED_TOOLS]
    return {name for item in items for tool in item.get("tools", ()) if (name := own_name(tool))}


def item_of(block: Any) -> Item | None:
    """Return the input item for a content block; None for a block that is part of a message."""
    if not isinstance(block, Mapping):
        return None
    if block.get("type") == "non_standard":
        return item_of(block.get("value"))
    if block.get("type") not in ITEM_TYPES or (block.get("type") == _SCREEN and block.get("is_error")):
        return None  # a screen is answered by pictures only: why there is none is a text of the user's
    item: Item = _of_result(block) if "is_error" in block else _without_index(block)
    return item


def _of_result(block: Block) -> Any:
    """Return the item for a result that answers a call of the vendor's tools; `output` and `is_error` come from a tool message."""
    kind, content, failed = block["type"], block["output"], block["is_error"]
    text = text_of(HumanMessage(content))
    item: dict[str, Any] = {"type": kind, "call_id": block["call_id"], "output": text}
    if kind == APPROVED:
        return {"type": kind, "approval_request_id": block["call_id"], "approve": not failed, **({"reason": text} if failed else {})}
    if kind == FOUND_TOOLS:
        found = [tool for tool in content if not _is_text(tool)] if isinstance(content, list) and not failed else []
        return {"type": kind, "call_id": block["call_id"], "execution": "client", "status": "completed", "tools": found}
    if kind == _SCREEN:
        item["output"] = _screen(content)
    elif kind == "shell_call_output":
        streams = {"stdout": "" if failed else text, "stderr": text if failed else ""}
        item["output"] = [*map(_ran, content)] if isinstance(content, list) else [{**streams, **_ended(int(failed))}]
    elif kind == "local_shell_call_output" and isinstance(content, list) and not text:
        item["output"] = dumps(content)
    elif kind == "apply_patch_call_output":
        item["status"] = "failed" if failed else "completed"
    return item | _own_fields(content) | {name: block[name] for name in _OF_ANSWERS if name in block}


def _ran(command: Any) -> Any:
    """Return what a command gave, from `stdout`, `stderr` and `exit_code` or `timed_out`, or from a text; the API's own object as it is."""
    if _is_text(command):
        return {"stdout": command["text"], "stderr": "", **_ended(0)}
    if "outcome" in command:
        return command
    outcome = {"outcome": {"type": "timeout"}} if command.get("timed_out") else _ended(command.get("exit_code") or 0)
    return {"stdout": command.get("stdout") or "", "stderr": command.get("stderr") or "", **outcome}


def _ended(exit_code: int) -> dict[str, Any]:
    return {"outcome": {"type": "exit", "exit_code": exit_code}}


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "text"


def _own_fields(content: Any) -> dict[str, Any]:
    """Return the item's fields if the result contains these in place of its output."""
    fields = content[0] if isinstance(content, list) and len(content) == 1 and isinstance(content[0], Mapping) else {}
    return {**fields} if "output" in fields and "type" not in fields else {}


def _screen(content: Any) -> Any:
    """Return a screenshot, from its URL or a content block of any vendor."""
    if not isinstance(content, list):
        return {"type": "input_image", "image_url": content}
    block = next((part for part in content if isinstance(part, dict) and not _is_text(part)), {})
    return input_part(block) if block.get("type") in ("image", "image_url") else block


def _without_index(block: Block) -> Any:
    return {key: value for key, value in block.items() if key != "index"}


def input_part(block: str | Block, keys: Collection[str] = ()) -> ItemPart:
    """Convert one content block to an input part.

    Args:
        block: The block, of any vendor.
        keys: Keys of a block that the server takes on a part besides the vendor's own.

    Raises:
        UnsupportedFeatureError: The API cannot carry the block.
    """
    if isinstance(block, Mapping):
        if block.get("type") == "non_standard" and isinstance(block.get("value"), Mapping):
            return input_part(block["value"], keys)
        own: ItemPart | None = _without_index(block) if block.get("type") in _WIRE_PARTS else None
        special = own or _linked(block)
        if special is not None:
            return special
    return wire_part(part_of(block, keys, why=_WHY))


def _linked(block: Block) -> ItemPart | None:
    """Convert a file with a URL, or an image with the id of its upload, which chat completions cannot express."""
    kind = block.get("type")
    if kind in _DOCUMENTS and not isinstance(block.get("file"), Mapping):
        source = source_of(block)
        if source.url and not str(source.mime_type).startswith(("image/", "audio/")):
            return {"type": "input_file", "file_url": source.url}
    if kind == "image":
        source = source_of(block)
        if source.file_id and not source.url:
            return {"type": "input_image", "detail": "auto", "file_id": source.file_id}
    return None


def _input_image(part: Part) -> ItemPart:
    return {"type": "input_image", "detail": part["image_url"].get("detail") or "auto", "image_url": part["image_url"]["url"]}


def _input_file(part: Part) -> Any:
    return {"type": "input_file", **part["file"]}


_CONVERTERS: dict[str, Callable[[Part], ItemPart]] = {
    "text": lambda part: {"type": "input_text", "text": part["text"]},
    "image_url": _input_image,
    "input_audio": lambda part: {"type": "input_audio", "input_audio": part["input_audio"]},
    "file": _input_file,
}


def wire_part(part: Part) -> ItemPart:
    """Convert a part of chat completions to an input part.

    Raises:
        UnsupportedFeatureError: The API has no such part.
    """
    convert = _CONVERTERS.get(part["type"])
    if convert is None:
        raise unsupported(part["type"], _WHY)
    kept: Any = {key: value for key, value in part.items() if key not in ("type", "text", "image_url", "input_audio", "file")}
    return {**convert(part), **kept}
