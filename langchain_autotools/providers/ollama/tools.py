"""Declarations in /api/chat's form: tools, tool choices, schemas of replies.

Wire facts (wire quirk O-05): of a parameter's schema the server keeps type, description, enum, items, properties, required and anyOf and
silently drops everything else, references among it. So references are written out (what holds itself: once), `const`, `oneOf` and
`allOf` are said in the keys that are kept, and what has no such key (defaults, bounds, patterns, tuples) is told in the description. Of
a schema in `format` the server makes a grammar, which knows references; it is sent as it is.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from ...errors import ConfigurationError
from ...executor.names import tool_name
from ...turn.tools import declaring
from .._encode.encoder import dumps
from .._encode.tools import TYPES, Function, JsonSchema, Tools, format_choice, function_of, heading, json_schema_of, mapped, unknown_choice

_SILENT = frozenset({"title", "$defs", "definitions", "$schema", "additionalProperties", "deprecated", "readOnly", "writeOnly"})
_COMBINED = frozenset({"anyOf", "oneOf", "allOf", "$ref", "const"})
_KEPT = frozenset({"type", "description", "enum", "items", "properties", "required"})


def _tool_parameters(name: str, schema: JsonSchema) -> dict[str, Any]:
    """Return a tool's parameters in the server's dialect.

    Args:
        name: The tool's name, for the error.
        schema: The JSON schema of its parameters.

    Raises:
        ConfigurationError: The schema refers to nothing, or is no object.
    """
    definitions = {**(schema.get("definitions") or {}), **(schema.get("$defs") or {}), "#": schema}
    try:
        inlined = _inlined(schema, definitions, ())
    except ValueError as error:
        raise ConfigurationError(f"tool {name!r} cannot be sent: {error}") from error
    if inlined.get("type", "object") != "object":
        raise ConfigurationError(f"tool {name!r} cannot be sent: its parameters must be an object, not {inlined['type']!r}")
    rest = {key: value for key, value in inlined.items() if key not in ("type", "properties")}
    return {"type": "object", "properties": inlined.get("properties") or {}, **rest}


def _inlined(node: Any, definitions: Mapping[str, JsonSchema], inside: tuple[str, ...]) -> dict[str, Any]:
    """Return a schema without references, in keys that the server keeps. `inside` names the definitions being expanded."""
    if not isinstance(node, Mapping):
        return {}  # `true`: anything
    reference = node.get("$ref")
    if reference is not None:
        target = str(reference).rpartition("/")[2]
        if target not in definitions:
            raise ValueError(f"{reference!r} refers to nothing")
        if target in inside or target == "#":
            return _recursive_note(target, definitions[target], node)
        rest = {key: value for key, value in node.items() if key != "$ref"}
        return _inlined({**definitions[target], **rest}, definitions, (*inside, target))
    if isinstance(node.get("allOf"), list):
        return _inlined(_merged(node, definitions), definitions, inside)
    kept = {key: value for key, value in node.items() if key in _KEPT}
    if "const" in node:
        kept["enum"] = [node["const"]]
    if isinstance(node.get("properties"), Mapping):
        kept["properties"] = {name: _inlined(one, definitions, inside) for name, one in node["properties"].items()}
    if "items" in node:
        kept["items"] = {} if isinstance(node["items"], list) else _inlined(node["items"], definitions, inside)
    either = node.get("anyOf") or node.get("oneOf")
    if isinstance(either, list):
        kept["anyOf"] = [_inlined(one, definitions, inside) for one in either]
    return {**kept, **_description(node, definitions, inside)}


def _recursive_note(name: str, definition: JsonSchema, node: JsonSchema) -> dict[str, Any]:
    """Return a recursive schema, which cannot be expanded, with a note in its description."""
    notes = [str(node["description"])] if node.get("description") else []
    notes.append("(the same as the whole)" if name == "#" else f"(again a {name}, as above)")
    kind = {"type": definition["type"]} if "type" in definition else {}
    return {**kind, "description": " ".join(notes)}


def _merged(node: JsonSchema, definitions: Mapping[str, JsonSchema]) -> dict[str, Any]:
    """Return a schema with `allOf` merged: properties and required names are joined, other keys taken from the outer schema."""
    merged: dict[str, Any] = {}
    rest = {key: value for key, value in node.items() if key != "allOf"}
    for part in [*node["allOf"], rest]:
        if isinstance(part, Mapping) and "$ref" in part and len(node["allOf"]) > 1:
            part = {**definitions.get(str(part["$ref"]).rpartition("/")[2], part), **{k: v for k, v in part.items() if k != "$ref"}}
        properties = {**merged.get("properties", {}), **(part.get("properties") or {})}
        required = list(dict.fromkeys([*merged.get("required", ()), *(part.get("required") or ())]))
        merged |= part
        merged |= {"properties": properties} if properties else {}
        merged |= {"required": required} if required else {}
    return merged


def _description(node: JsonSchema, definitions: Mapping[str, JsonSchema], inside: tuple[str, ...]) -> dict[str, Any]:
    """Return the description with the information that the server has no key for."""
    others = {key: value for key, value in node.items() if key not in _KEPT | _SILENT | _COMBINED and value is not None}
    others = mapped(others, lambda inner: _inlined(inner, definitions, inside))
    places = node["items"] if isinstance(node.get("items"), list) else node.get("prefixItems")
    if isinstance(places, list):
        others["prefixItems"] = [_inlined(one, definitions, inside) for one in places]
    if isinstance(node.get("additionalProperties"), Mapping) and node["additionalProperties"]:
        others["values"] = _inlined(node["additionalProperties"], definitions, inside)
    description = [str(node["description"])] if node.get("description") else []
    if others:
        description.append("(" + ", ".join(f"{key}: {dumps(value)}" for key, value in others.items()) + ")")
    return {"description": " ".join(description)} if description else {}


# ---------------------------------------------------------------------------------------------- structured output


def output_format(schema: Any) -> Any:
    """Return the `format` of a request for output of this schema.

    Args:
        schema: A pydantic class, a TypedDict, a JSON schema, a function of OpenAI's form, a `response_format` of OpenAI's form, or
            the wire's own "json" and "".

    Raises:
        ConfigurationError: No JSON schema can be made of it.
    """
    if isinstance(schema, str):
        if schema not in ("", "json"):
            raise ConfigurationError(f"format={schema!r} is neither 'json' nor a JSON schema")
        return schema
    if isinstance(schema, Mapping):
        return _of_mapping(schema)
    return json_schema_of(schema)


def _of_mapping(schema: JsonSchema) -> Any:
    kind = schema.get("type")
    if kind in ("json_object", "text"):
        return "json" if kind == "json_object" else ""
    if kind == "json_schema":
        inner = schema.get("json_schema")
        found = inner.get("schema") if isinstance(inner, Mapping) else schema.get("schema")
        if not isinstance(found, Mapping):
            raise ConfigurationError(f"a response_format of type 'json_schema' needs a schema, not {found!r}")
        return dict(found)
    if "parameters" in schema or "function" in schema or "input_schema" in schema:
        return json_schema_of(schema)
    return dict(schema)


# ---------------------------------------------------------------------------------------------- tools
# Tools and tool choices in /api/chat's form.
#
# Wire facts: a tool is `{"type": "function", "function": {name, description, parameters}}`; there are no tools of the server's own and no
# tool choice: whoever must not call gets no tools, and nobody can be forced. A choice is therefore kept in a form of our own (that of
# chat completions), which `request` reads and does not send.


_OF_FUNCTIONS = frozenset({"function", "parameters", "input_schema", "properties"})
_MODES = {"any": "required", "required": "required", "auto": "auto", "none": "none"}


class Tool(TypedDict):
    """A declared tool; in a choice, the named one."""

    type: Literal["function"]
    function: Function


def format_tool(tool: Any) -> Tool:
    """Return a tool in the form of a request.

    Args:
        tool: A function, a pydantic class, a TypedDict, a `BaseTool`, a JSON schema with a title, or a dict in the form of
            OpenAI or Anthropic.

    Raises:
        ConfigurationError: The tool cannot be declared: it is another vendor's own, it has no name, or its schema is no object's.
    """
    with declaring(tool):
        # Another vendor's own tool has a type of its own, and no function.
        foreign = isinstance(tool, Mapping) and tool.get("type") not in (None, "function", *TYPES) and not _OF_FUNCTIONS & tool.keys()
        function = None if foreign else function_of(tool)
        if function is None or not function.get("name"):
            raise ConfigurationError("Ollama has no tools of its own, only functions with a name")
    declared = heading(function)
    declared["parameters"] = _tool_parameters(function["name"], function.get("parameters") or {})
    return {"type": "function", "function": declared}


Choice = str | Tool
"""A tool choice: "auto", "none", "required", or the tool to call."""


def format_tool_choice(choice: Any, tools: Tools) -> Choice | None:
    """Return a tool choice in one form, from any vendor's.

    Args:
        choice: None or False (the model decides), True, "any" or "required" (some tool), "auto", "none", the name of a declared
            tool, or a dict in the form of chat completions, Responses or Anthropic.
        tools: The declared tools, as `format_tool` made them.

    Returns:
        "auto", "none", "required", `{"type": "function", "function": {"name": ...}}`, or None where nothing was chosen.

    Raises:
        ConfigurationError: The choice names no declared tool, or is of no known form.
    """
    return format_choice(choice, tools, any_tool=lambda _: "required", named=_named, from_mapping=_from_mapping)


def _from_mapping(choice: Mapping[str, Any], tools: Tools) -> Choice:
    inner = choice.get("function")
    name = inner.get("name") if isinstance(inner, Mapping) else choice.get("name") or choice.get("type")
    return _named(str(name), tools)


def _named(choice: str, tools: Tools) -> Choice:
    """Return a choice given by one word; a tool's name takes precedence over a keyword."""
    names = [tool_name(tool) for tool in tools]
    if choice in names or (not tools and choice not in _MODES):
        return {"type": "function", "function": {"name": choice}}
    if choice in _MODES:
        return _MODES[choice]
    raise unknown_choice(choice, names, _MODES)
