"""Tools of a run in the form of a partner's `bind_tools`, and histories in a form that every partner can send."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from ..executor.names import own_name
from ..executor.wrapped import tool_inside
from ..messages.blocks import is_call_block
from ..messages.calls import KEYS_IN_BLOCKS, calls_of, records_of
from ..turn.tool_choice import ToolChoice, read_choice
from .settings import Toolbox

_UNKNOWN = "autotools_no_such_choice"
_REMEMBERED = 64
"""The number of cached declarations for one value of `tools`."""
_INVALID = "invalid_arguments"

Bind = Callable[..., Any]


def bound_request(model: Any, toolbox: Toolbox, bind: Bind, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords of a request, with tools and choice from the partner's `bind_tools`; cached.

    Args:
        model: The model, whose fields `bind_tools` may read.
        toolbox: The model's own tools.
        bind: The partner's `bind_tools`.
        keywords: The keywords, with `tools` as `format_tool` made them and a `tool_choice`.
    """
    about = {name: keywords[name] for name in ("tools", "tool_choice", "parallel_tool_calls") if keywords.get(name) is not None}
    key = json.dumps(about, sort_keys=True, default=repr)
    fields = [model.__dict__.get(name) for name in type(model).model_fields]
    known = toolbox.requests.get(key)
    if known is None or any(one is not other for one, other in zip(known[0], fields, strict=True)):
        if len(toolbox.requests) >= _REMEMBERED:
            toolbox.requests.clear()
        known = toolbox.requests[key] = (fields, _declared(toolbox, bind, about))
    return {**known[1], **{name: value for name, value in keywords.items() if name not in about and name != "tool_choice"}}


def _declared(toolbox: Toolbox, bind: Bind, about: Mapping[str, Any]) -> dict[str, Any]:
    choice = about.get("tool_choice")
    options = {name: value for name, value in about.items() if name == "parallel_tool_calls"}
    known = read_choice(choice)
    allowed = known.allowed
    narrowed = bool(allowed) and [tool for tool in about["tools"] if own_name(tool) in (allowed or ())]
    tools = [_original(tool, toolbox) for tool in narrowed or about["tools"]]
    if allowed is None:
        return _keywords(bind, tools, {**options, **({} if choice is None else {"tool_choice": choice})})
    if allowed:  # each partner knows what it means that a tool is not there
        return _keywords(bind, tools, {**options, **({"tool_choice": "any"} if known.forced else {})})
    return _without_calls(bind, tools, options)


def _without_calls(bind: Bind, tools: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords of a request that rules out calls, if the partner can express that."""
    made = _tried(bind, tools, {**options, "tool_choice": "none"})
    other = _tried(bind, tools, {**options, "tool_choice": _UNKNOWN})
    is_name = made is not None and other is not None and _text(other).replace(_UNKNOWN, "none") == _text(made)
    if made is None or (is_name and made.get("tool_choice") != "none"):  # it would be the tool named "none"
        return _keywords(bind, tools, options)
    return made


def _tried(bind: Bind, tools: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        return _keywords(bind, tools, options)
    except Exception:  # every partner has its own error for a word that it does not know
        return None


def _keywords(bind: Bind, tools: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    return dict(getattr(bind(tools, **options), "kwargs", {}))


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


def _original(declared: Mapping[str, Any], toolbox: Toolbox) -> Any:
    """Return the tool behind a declaration: a partner may read more of it than its schema (`extras`, for example)."""
    name = own_name(declared)
    tool = toolbox.executor.tools.get(name) if name else None
    mine = tool is not None and any(one is declared or one == declared for one in toolbox.declarations)
    return (tool_inside(tool) or tool) if mine else declared


def declared_names(tool: Any) -> Iterator[str]:
    """Yield the names of declared tools, in any partner's form."""
    if not isinstance(tool, Mapping):
        name = getattr(tool, "name", None)
        yield from [name] if isinstance(name, str) else ()
        return
    several = tool.get("function_declarations") or tool.get("functionDeclarations")
    for one in several if isinstance(several, list) else [tool]:
        name = own_name(one) if isinstance(one, Mapping) else getattr(one, "name", None)
        yield from [str(name)] if name else ()


def read_partner_choice(choice: Any) -> ToolChoice:
    """Return the effect of a tool choice in a partner's form, also in the form `{"auto": {}}`."""
    if isinstance(choice, Mapping) and len(choice) == 1 and "type" not in choice:
        (word,) = choice
        if word in ("auto", "none"):
            return ToolChoice(choice, choice, () if word == "none" else None)
        return ToolChoice(choice, forced=True)
    return read_choice(choice)


def with_valid_calls(message: BaseMessage) -> BaseMessage:
    """Return a message with only valid calls: some partners send no others, and a result without its call is rejected.

    Arguments that could not be read stand as text under `invalid_arguments`.
    """
    if not isinstance(message, AIMessage) or not message.invalid_tool_calls:
        return message
    valid = {call["id"]: call for call in message.tool_calls}
    calls = [
        valid.get(call.id) or {"name": call.name, "args": {_INVALID: call.arguments}, "id": call.id, "type": "tool_call"}
        for call in calls_of(message)
    ]
    kept = {name: value for name, value in message.additional_kwargs.items() if name != "tool_calls"}
    return message.model_copy(update={"tool_calls": calls, "invalid_tool_calls": [], "additional_kwargs": kept})


def with_call_blocks(message: BaseMessage) -> BaseMessage:
    """Return a message with its calls in its content too, where a call has keys that its partner writes and reads only there."""
    if not isinstance(message, AIMessage) or not any(entry.get("extra") for entry in records_of(message).values()):
        return message
    calls = calls_of(message)
    named = [{key: call.extra[key] for key in KEYS_IN_BLOCKS if call.extra.get(key)} for call in calls]
    text: list[Any] = [{"type": "text", "text": message.content}] if message.content else []
    content = message.content if isinstance(message.content, list) else text
    if not any(named) or any(map(is_call_block, content)):
        return message
    blocks = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.args, **own} for call, own in zip(calls, named, strict=True)
    ]
    return message.model_copy(update={"content": [*content, *blocks]})
