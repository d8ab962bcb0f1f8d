"""How a conversation is given what a caller may ask for: a parameter, a tool, a part of a message."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_autotools.turn.model import argument_names
from tests.vendor_types.asking import Given
from tests.vendor_types.reading import look_up
from tests.vendor_types.rows import Body
from tests.vendor_types.samples import fields_of

_HELLO = {"role": "user", "content": "Hello"}
_CALL = AIMessage("", tool_calls=[{"name": "look_up", "args": {}, "id": "call_1", "type": "tool_call"}])
_OWN = {"metadata", "max_tool_calls", "fallbacks"}
"""Names that mean something else to LangChain or to this package: the vendor's own parameter goes into `model_kwargs` or `extra_body`."""


def give_parameter(model: type[Any], *, name: Callable[[str], str] = str) -> Callable[[str, Any, bool], Given]:
    """Give a parameter to the constructor, by its own name or in `model_kwargs`, or to the call."""

    def give(path: str, value: Any, in_constructor: bool) -> Given:
        own = name(path)
        bound = [function(one) for one in _named(value)] if path in ("tool_choice", "toolConfig") else []
        if not in_constructor or own == "tool_choice":
            return Given(keywords={"extra_body": {own: value}} if own in _OWN else {own: value}, bound=bound)
        taken = (argument_names(model) | model._call_names) - _OWN
        return Given(arguments={own: value} if own in taken else {"model_kwargs": {own: value}}, bound=bound)

    return give


def _named(choice: Any) -> Iterator[str]:
    """The tools that a choice names."""
    if isinstance(choice, Mapping):
        for key, value in choice.items():
            if key in ("name", "allowedFunctionNames"):
                yield from [value] if isinstance(value, str) else value
            else:
                yield from _named(value)
    elif isinstance(choice, list):
        for one in choice:
            yield from _named(one)


def function(name: str) -> Body:
    """The declaration of a function."""
    schema = {"type": "object", "properties": {}}
    return {"type": "function", "function": {"name": name, "description": "Do something.", "parameters": schema}}


def give_tool(path: str, value: Any, in_constructor: bool) -> Given:
    """Give a tool to `bind_tools`; one of the vendor's own to the constructor too."""
    is_own = (
        isinstance(value, Mapping)
        and value.get("type", "function") not in ("function", "custom", "namespace")
        and not {"name", "function"} & value.keys()
    )
    return Given(arguments={"tools": [look_up, value]}) if in_constructor and is_own else Given(bound=[value])


def fields_without(type_: type[Any], *without: str) -> Callable[[], Mapping[str, Any]]:
    """The fields of a type but for some."""
    return lambda: {key: annotation for key, annotation in fields_of(type_).items() if key not in without}


def give_message(path: str, value: Any, in_constructor: bool) -> Given:
    """Give a part of a message: by its path what the user, the system, a tool or the reply says."""
    if path == "reply":
        return Given(said=[value])
    if path == "result":
        return Given(history=["Hello", _CALL, ToolMessage([value], tool_call_id="call_1")])
    if path == "system":
        return Given(history=[SystemMessage([value]), "Hello"])
    if path == "message":
        return Given(history=[{"content": "", **value}, _HELLO])
    return Given(history=[HumanMessage([value])])
