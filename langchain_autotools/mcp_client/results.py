"""Tools and results of MCP servers in LangChain's form."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, ToolException

from ..executor import ToolContext
from ..executor.sources import SourceTool
from .questions import check_answers

_Call = Callable[[str, Mapping[str, Any], ToolContext], Awaitable[tuple[Any, Any]]]


def tool_of(definition: Mapping[str, Any], prefix: str, call: _Call) -> BaseTool:
    """Return a tool of a server.

    Args:
        definition: The tool, as the server lists it.
        prefix: Is put before its name.
        call: Calls it.
    """
    name = definition["name"]

    async def call_tool(context_of_call: ToolContext, **arguments: Any) -> tuple[Any, Any]:
        return await call(name, arguments, context_of_call)

    return SourceTool(
        name=f"{prefix}{name}",
        description=definition.get("description") or definition.get("title") or "",
        args_schema={"properties": {}, **definition["inputSchema"]},
        coroutine=call_tool,
        response_format="content_and_artifact",
        check_continued=check_answers,
        metadata={"annotations": definition["annotations"]} if definition.get("annotations") else None,
    )


def content_of(result: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the content and the artifact of a result: a text where it is one, else LangChain's blocks, else its data.

    Raises:
        ToolException: It is an error.
    """
    blocks: list[Any] = [_block(block) for block in result.get("content", ())]
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    if result.get("isError"):
        raise ToolException("\n".join(texts) or "the tool has failed")
    structured = result.get("structuredContent")
    artifact = None if structured is None else {"structured_content": structured}
    if len(texts) == len(blocks) == 1 or not blocks:
        return (texts[0] if texts else structured), artifact
    # as a message, because LangChain's core would write a list with sound as JSON
    return ToolMessage(content=blocks, artifact=artifact, tool_call_id=""), artifact


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    kind = block["type"]
    if kind == "text":
        return {"type": "text", "text": block["text"]}
    if kind in ("image", "audio"):
        return {"type": kind, "base64": block["data"], "mime_type": block["mimeType"]}
    if kind == "resource":
        return _resource(block["resource"])
    return {"type": "text", "text": f"{block.get('name', kind)}: {block.get('uri', '')}"}


def _resource(resource: Mapping[str, Any]) -> dict[str, Any]:
    if "text" in resource:
        return {"type": "text", "text": resource["text"]}
    mime_type = resource.get("mimeType", "application/octet-stream")
    return {"type": "image" if mime_type.startswith("image/") else "file", "base64": resource["blob"], "mime_type": mime_type}
