"""Interoperability with Ollama's SDK: a client with a model's settings; its options, tools and messages as input.

Nothing here imports the SDK before it is asked for: whoever gives an object of it has imported it.
"""

import sys
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from ...errors import ConfigurationError
from .._encode.sources import image_type
from .parameters import OllamaParameters, lowered_headers

if TYPE_CHECKING:
    import ollama

_OF_A_REQUEST = ("headers", "timeout")


def sdk_arguments(model: OllamaParameters, headers: Mapping[str, str], *, asynchronous: bool) -> dict[str, Any]:
    """Return the arguments of the SDK's client for the model's server.

    Args:
        model: The model.
        headers: The headers that authorise a request.
        asynchronous: Whether they are for the asynchronous client.
    """
    both, *own = model.all_client_kwargs
    side = own[int(asynchronous)]
    arguments = {name: value for name, value in {**both, **side}.items() if name not in _OF_A_REQUEST}
    own_headers = {**headers, **lowered_headers(both), **lowered_headers(side)}
    timeout = side.get("timeout", model._client_timeout({}, None))
    return {**arguments, "host": model.address.url, "headers": own_headers, **({} if timeout is None else {"timeout": timeout})}


def plain(value: Any) -> Any:
    """Return an SDK object as plain data without unset fields; other values unchanged."""
    if type(value).__module__.partition(".")[0] != "ollama" or not hasattr(value, "model_dump"):
        return value
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def read_messages(given: Any) -> Any:
    """Return a model's input with the SDK's messages converted to LangChain's.

    Raises:
        ConfigurationError: A message of the SDK has a role that no message has.
    """
    message = getattr(sys.modules.get("ollama"), "Message", None)  # None also while another thread imports the SDK
    if message is None or isinstance(given, str):
        return given
    if isinstance(given, message):
        return [_message(given)]
    if not isinstance(given, Sequence) or not any(map(isinstance, given, repeat(message))):
        return given
    return [_message(one) if isinstance(one, message) else one for one in given]


def _message(given: "ollama.Message") -> BaseMessage:
    fields = plain(given)
    content = _content(fields.get("content") or "", fields.get("images") or ())
    role = fields["role"]
    if role == "user":
        return HumanMessage(content)
    if role == "system":
        return SystemMessage(content)
    if role == "tool":  # the protocol pairs results with calls by their order; `repair` gives both an id
        return ToolMessage(content, tool_call_id=fields.get("tool_call_id") or "", name=fields.get("tool_name"))
    if role != "assistant":
        raise ConfigurationError(f"a message of role {role!r} cannot be sent: roles are user, assistant, system and tool")
    functions = [(call.get("id"), call["function"]) for call in fields.get("tool_calls") or ()]
    calls: Any = [{"name": one["name"], "args": one["arguments"], "id": call_id, "type": "tool_call"} for call_id, one in functions]
    extra = {"reasoning_content": fields["thinking"]} if fields.get("thinking") else {}
    return AIMessage(content, tool_calls=calls, additional_kwargs=extra)


def _content(text: str, images: Sequence[str]) -> Any:
    if not images:
        return text
    pictures = [{"type": "image", "base64": data, "mime_type": image_type(data) or "image/png"} for data in images]
    return [*([{"type": "text", "text": text}] if text else []), *pictures]
