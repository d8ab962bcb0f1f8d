"""Interoperability with google-genai: a client with a model's settings; its schemas and contents as a model's input.

Nothing here imports the SDK before it is asked for: whoever gives an object of it has imported it.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from .._transport.timeouts import read_timeout
from .endpoint import Endpoint

_TYPES = "google.genai.types"
_OF_RESPONSES = ("result", "output", "error")
_MILLISECONDS = 1000


def http_options(endpoint: Endpoint, headers: Mapping[str, str] | None, timeout: Any, **clients: Any) -> dict[str, Any]:
    """Return the HTTP options of the SDK's client.

    Args:
        endpoint: The endpoint of requests.
        headers: Sent with every request.
        timeout: The timeout, as the model takes it.
        **clients: The HTTP clients, or what they are made with. Those that are None are left out.
    """
    address, _, version = endpoint.root.rpartition("/")
    read = None if timeout is None else read_timeout(timeout)
    options = {
        **({"base_url": address} if endpoint.base_url else {}),
        "api_version": version,
        "headers": dict(headers or {}),
        **({} if read is None else {"timeout": int(read * _MILLISECONDS)}),
    }
    return options | {name: value for name, value in clients.items() if value is not None}


def plain_schema(schema: Any) -> Any:
    """Return the JSON schema of a `types.Schema`; other values unchanged."""
    known = _sdk_class("Schema")
    if known is None or not isinstance(schema, known):
        return schema
    return {"title": "Output", **schema.json_schema.model_dump(mode="json", by_alias=True, exclude_none=True)}


def read_contents(given: Any) -> Any:
    """Return a model's input with the SDK's contents converted to LangChain messages.

    Thoughts are left out, as for any history that does not name the model that wrote it.
    """
    content = _sdk_class("Content")
    if content is None or isinstance(given, str):
        return given
    if isinstance(given, content):
        return _messages(given)
    if not isinstance(given, Sequence) or not any(map(isinstance, given, repeat(content))):
        return given
    return [message for one in given for message in (_messages(one) if isinstance(one, content) else [one])]


def _sdk_class(name: str) -> Any:
    """Return a class of the SDK; None if nobody can have an object of it yet, also while another thread imports the SDK."""
    return getattr(sys.modules.get(_TYPES), name, None)


def _messages(content: Any) -> list[BaseMessage]:
    fields = content.model_dump(mode="json", by_alias=True, exclude_none=True)
    parts: list[dict[str, Any]] = fields.get("parts") or []
    blocks: list[Any] = list(_blocks(parts))
    if fields.get("role") == "model":
        calls: Any = [
            {"type": "tool_call", "name": call.get("name") or "", "args": call.get("args") or {}, "id": call.get("id")}
            for part in parts
            if (call := part.get("functionCall")) is not None
        ]
        return [AIMessage(blocks, tool_calls=calls)]
    results: list[BaseMessage] = [_result(part["functionResponse"]) for part in parts if "functionResponse" in part]
    return [*results, HumanMessage(blocks)] if blocks or not results else results


def _blocks(parts: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    for part in parts:
        if part.get("thought") or "functionCall" in part or "functionResponse" in part:
            continue
        if "text" in part:
            yield {"type": "text", "text": part["text"]}
        elif "inlineData" in part:
            data = part["inlineData"]["data"].replace("-", "+").replace("_", "/")  # the SDK writes the alphabet of URLs
            yield {**part, "type": "media", "inlineData": {**part["inlineData"], "data": data}}
        else:
            yield {**part, "type": "media"} if "fileData" in part else {"type": "part", "part": dict(part)}


def _result(response: Mapping[str, Any]) -> ToolMessage:
    given = response.get("response") or {}
    name = next(iter(given)) if len(given) == 1 else None
    value = given[name] if name in _OF_RESPONSES else given
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    known = {"tool_call_id": response.get("id") or "", "name": response.get("name")}
    return ToolMessage(text, status="error" if name == "error" else "success", **known)
