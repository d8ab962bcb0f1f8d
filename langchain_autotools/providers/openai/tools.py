"""Declarations in chat completions' form: tools, tool choices, schemas of replies.

Wire facts (https://platform.openai.com/docs/guides/structured-outputs, "Supported schemas"): every object lists all its properties as
required and admits no others. Nothing has a default, a `$ref` has no keys beside it, everything has a type. Of the words that combine
schemas there is `anyOf` alone, of formats there are nine. Patterns have no look-around, and tuples are not known. A schema has at most
5,000 properties and 1,000 values of enumerations.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Required, TypedDict, cast

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from ...errors import ConfigurationError
from ...executor.names import own_name, tool_name
from ...executor.tools import SourceTool
from ...turn.tools import declaring
from .._encode import tools as schemas

if TYPE_CHECKING:
    from openai.types.shared_params.response_format_json_schema import JSONSchema


_SILENT = frozenset({"discriminator", "$schema", "$id", "$comment"})
_TOLD = ("default", "uniqueItems", "minProperties", "maxProperties", "examples")
"""Keywords that strict mode rejects and that are told in the description, because the tool itself still checks the values."""
_TYPED = frozenset({"type", "anyOf", "enum", "const", "$ref", "oneOf", "allOf"})
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_LOOK_AROUND = re.compile(r"\(\?<?[=!]")
_OF_PEOPLE = frozenset({"title", "description", "default"})
_MOST = {"properties": 5000, "enum": 1000}


def _strict_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema in strict mode's dialect.

    Raises:
        ConfigurationError: Strict mode cannot express it.
    """
    why = _why_not_strict(schema)
    if why:
        raise ConfigurationError(f"strict mode cannot express {why}; change that, or leave strict out")
    definitions = {**(schema.get("definitions") or {}), **(schema.get("$defs") or {})}
    return cast("dict[str, Any]", _closed(schema, definitions, ()))


def _why_not_strict(schema: Any) -> str | None:
    """Return the part of a schema that strict mode cannot express; None if there is none."""
    free = schemas.free_keys(schema)
    if free:
        return f"an object with keys of its own choosing ({free})"
    for where, node in schemas.walked(schema):
        barred = schemas.barred_keyword(node) or _barred_here(node, top=not where)
        if barred:
            return f"{barred} ({where or 'its top'})"
    for key, most in _MOST.items():
        if sum(len(node.get(key) or ()) for _, node in schemas.walked(schema)) > most:
            return f"more than {most} {'values of enumerations' if key == 'enum' else key}"
    return None


def _barred_here(node: Mapping[str, Any], *, top: bool) -> str | None:
    parts = node.get("allOf") or ()
    if len(parts) > 1 or any(node.get(key, value) != value for part in parts for key, value in part.items() if key not in _OF_PEOPLE):
        return "'allOf'"
    if "format" in node and node["format"] not in _FORMATS:
        return f"the format {node['format']!r}"
    if _LOOK_AROUND.search(str(node.get("pattern", ""))):
        return "a pattern with look-around"
    if not str(node.get("$ref", "#")).startswith("#"):
        return "a reference to another document"
    return None if top or _TYPED & node.keys() else "a value of any type"


def _closed(node: Any, definitions: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    """Return a schema in strict mode's form. `inside` names the definitions being expanded: a recursive one stays a reference."""
    if not isinstance(node, Mapping):
        return node
    node = _without_hints(node)
    reference = node.get("$ref")
    if isinstance(reference, str) and len(node) > 1:
        name = reference.rpartition("/")[2]
        if name in inside or name not in definitions:
            return {"anyOf": [{"$ref": reference}], **{key: value for key, value in node.items() if key != "$ref"}}
        merged = {**definitions[name], **{key: value for key, value in node.items() if key != "$ref"}}
        return _closed(merged, definitions, (*inside, name))
    closed = schemas.mapped(node, lambda inner: _closed(inner, definitions, inside))
    if isinstance(node.get("properties"), Mapping):
        closed |= {"required": list(node["properties"]), "additionalProperties": False}
    return closed


def _without_hints(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema without keywords that strict mode does not know and can omit. A default of null says no more than the type."""
    while len(node.get("allOf") or ()) == 1:
        node = {**node["allOf"][0], **{key: value for key, value in node.items() if key != "allOf"}}
    told = [key for key in _TOLD if node.get(key) is not None]
    plain = schemas.with_notes(
        {key: value for key, value in node.items() if key not in _SILENT and (key not in _TOLD or key in told)}, told
    )
    if "oneOf" in plain:
        plain["anyOf"] = plain.pop("oneOf")
    return plain


# ---------------------------------------------------------------------------------------------- structured
# Schemas for chat completions' `response_format`.
#
# Wire facts: `{"type": "json_schema", "json_schema": {name, description, schema, strict}}`; names match `[a-zA-Z0-9_-]{1,64}`. What
# `strict` asks of a schema is said in the section `strict`.


_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]+")
_LONGEST_NAME = 64


class ResponseFormat(TypedDict, total=False):
    """The format of a reply's text."""

    type: Required[str]
    json_schema: "JSONSchema"


def response_format(schema: Any, *, strict: bool | None = None) -> ResponseFormat:
    """Return the `response_format` of a request for output of this schema.

    Args:
        schema: A pydantic class, a TypedDict, a JSON schema with a title, a function of OpenAI's form, the inner
            `{"name", "schema"}`, or a whole `response_format`, which is returned as it is.
        strict: Whether the server must hold the model to the schema. None: as the schema says; of a pydantic class that says
            nothing, yes wherever its fields allow it (a dict with free keys does not).

    Raises:
        ConfigurationError: `strict` contradicts the schema, or no JSON schema can be made of it.
    """
    if isinstance(schema, Mapping) and isinstance(schema.get("type"), str) and schema["type"] in ("json_schema", "json_object", "text"):
        own: Any = {**schema}
        return _agreed(own, strict)
    if isinstance(schema, Mapping) and "name" in schema and "schema" in schema:
        inner: Any = {**schema}
        return _agreed({"type": "json_schema", "json_schema": inner}, strict)
    if schemas.is_pydantic(schema) and hasattr(schema, "model_json_schema"):
        return _of_class(schema, strict)
    return _of_function(schema, strict)


def _agreed(format: ResponseFormat, strict: bool | None) -> ResponseFormat:
    """Return a format in the wire's own form, with `strict` unless it is set already, and a strict schema closed as the vendor demands."""
    inner = format.get("json_schema")
    if not isinstance(inner, Mapping):
        return format
    if strict is not None and inner.get("strict", strict) is not strict:
        raise ConfigurationError(f"strict={strict} contradicts the schema, which says strict={inner['strict']}: say it in one place")
    held = inner.get("strict") if strict is None else strict
    given: Any = inner.get("schema")
    closed: Any = {"schema": _strict_schema(_object(schemas.at_the_top(given), given))} if held and isinstance(given, Mapping) else {}
    whole: Any = {**inner, **closed, **({} if strict is None else {"strict": strict})}
    return {**format, "json_schema": whole}


def _of_class(schema: Any, strict: bool | None) -> ResponseFormat:
    declared = _object(schemas.at_the_top(schema.model_json_schema()), schema)
    if strict is None:
        strict = _why_not_strict(declared) is None
    inner: JSONSchema = {"name": _legal_format_name(declared.get("title") or schema.__name__)}
    if declared.get("description"):
        inner["description"] = declared["description"]
    return {"type": "json_schema", "json_schema": {**inner, "schema": _strict_schema(declared) if strict else declared, "strict": strict}}


def _of_function(schema: Any, strict: bool | None) -> ResponseFormat:
    try:
        function: Any = schemas.function_of(schema, strict=strict)
    except ConfigurationError:
        raise
    except ValueError as error:
        raise ConfigurationError(f"no JSON schema can be made of {schema!r}: {error}") from error
    strict = bool(function.pop("strict", False))
    body = _object(function.pop("parameters", {"type": "object", "properties": {}}), schema)
    body = _strict_schema(body) if strict else body
    inner: JSONSchema = function
    return {"type": "json_schema", "json_schema": {**inner, "name": _legal_format_name(function["name"]), "schema": body, "strict": strict}}


def _object(declared: dict[str, Any], schema: Any) -> dict[str, Any]:
    """Return the schema of an object as the vendor takes it.

    Raises:
        ConfigurationError: It is that of something else, which `with_structured_output` puts into an object.
    """
    found = schemas.why_no_object(declared)
    if found:
        rule = "the top of a reply's schema must be an object (OpenAI's guide to structured outputs, 'Root objects')"
        raise ConfigurationError(f"{schema!r} cannot be a response_format: it has {found}, and {rule}; use with_structured_output")
    return declared if "properties" in declared else {**declared, "properties": {}}


def _legal_format_name(name: str) -> str:
    return _ILLEGAL.sub("_", name)[:_LONGEST_NAME]


# ---------------------------------------------------------------------------------------------- tools
# Tools and tool choices in chat completions' form.
#
# Wire facts: a function is `{"type": "function", "function": {name, description, parameters, strict}}`, a custom tool `{"type": "custom",
# "custom": {name, description, format}}`; names match `[a-zA-Z0-9_-]{1,64}`; a choice is "none", "auto", "required", a named tool, or
# `{"type": "allowed_tools", "allowed_tools": {mode, tools}}`.


_logger = logging.getLogger("langchain_autotools")

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_LONGEST_DESCRIPTION = 1024
"""Characters of a description (https://github.com/modelcontextprotocol/servers/issues/799). Of a tool whose source the user cannot mend,
such as that of a server, the rest is left out; any other one is refused by the vendor, in its own words."""
_TOO_LONG = "the description of the tool %r has %d characters, of which the vendor takes %d: the rest is left out"
_EXTRAS = ("defer_loading", "async", "allowed_callers", "output_schema")
_CUSTOM_KEYS = ("name", "description", "format")
_POINTERS = ("function", "custom", "tool", None)
_MODES = {"any": "required", "required": "required", "auto": "auto", "none": "none"}


def format_tool(tool: Any, *, strict: bool | None = None) -> dict[str, Any]:
    """Return a tool in the form of a request.

    Args:
        tool: A function, a pydantic class, a TypedDict, a `BaseTool`, a JSON schema with a title, or a dict in the form of
            OpenAI, Anthropic or Bedrock. A builtin tool of the vendor (a dict of another `type`) is returned untouched.
        strict: Whether the server must hold the model to the schema. None leaves that as the tool or the vendor has it.

    Raises:
        ConfigurationError: The tool cannot be declared: its name is illegal, or its arguments have no JSON schema.
    """
    if isinstance(tool, dict) and _is_builtin(tool):
        return tool
    with declaring(tool):
        declared = _declared(tool, strict)
    name = own_name(declared)
    if not isinstance(name, str) or not _LEGAL_NAME.fullmatch(name):
        raise ConfigurationError(f"tool name {name!r} cannot be sent: it must have 1 to 64 letters, digits, '_' or '-'")
    parameters = declared.get("function", {}).get("parameters") or {"properties": {}}
    kind = parameters.get("type", "object" if "properties" in parameters else None) if isinstance(parameters, Mapping) else "object"
    if kind != "object":
        raise ConfigurationError(f"tool {name!r} cannot be sent: its parameters must be an object, not of type {kind!r}")
    return declared


_NOT_AT_THE_TOP = ("anyOf", "oneOf", "allOf", "enum", "not")


def check_taken(declared: Mapping[str, Any]) -> None:
    """Raise for a function whose schema OpenAI itself refuses, with every other tool of the request; servers that speak like it may not.

    Raises:
        ConfigurationError: It is such a schema.
    """
    schema = declared.get("function", {}).get("parameters")
    for where, node in schemas.walked(schema):
        combined = next((repr(key) for key in _NOT_AT_THE_TOP if key in node), None) if not where and node is schema else None
        why = f"{combined} may not be at the top of its schema" if combined else _why_not_taken(node)
        if why:
            raise ConfigurationError(f"tool {own_name(declared)!r} cannot be sent: {why}{f' ({where})' if where else ''}")


def _why_not_taken(node: Mapping[str, Any]) -> str | None:
    if node.get("type") == "array" and not {"items", "prefixItems"} & node.keys():
        return "an array needs 'items'"
    try:
        re.compile(str(node.get("pattern", "")))
    except re.error:
        return f"the pattern {node['pattern']!r} is not a regular expression there"
    return None


def _is_builtin(tool: Mapping[str, Any]) -> bool:
    """Whether a dict is one of the vendor's own tools: by its type, and neither a function, a schema nor another vendor's tool."""
    kind = tool.get("type")
    if not isinstance(kind, str) or kind == "function" or kind in schemas.TYPES:
        return False
    if "parameters" in tool and "name" not in tool and "title" not in tool:
        return True  # no function, which has a name: `tool_search` with `execution: "client"` takes parameters
    return not ({"input_schema", "properties", "parameters"} & tool.keys())


def _declared(tool: Any, strict: bool | None) -> dict[str, Any]:
    if isinstance(tool, dict) and tool.get("type") == "function":
        inner = tool.get("function", tool)  # the wire's own form, or the flat one of Responses
        around = {key: tool[key] for key in _EXTRAS if key in tool}
        return {"type": "function", "function": _function(inner, strict), **around}
    if isinstance(tool, BaseTool) and (tool.metadata or {}).get("type") == "custom_tool":  # whose input is free text rather than JSON
        declared = convert_to_openai_tool(tool)
        declared = {"type": "custom", "custom": {key: declared[key] for key in _CUSTOM_KEYS if key in declared}}
    else:
        declared = {"type": "function", "function": _function(tool, strict)}
    extras = tool.extras if isinstance(tool, BaseTool) else None
    return {**declared, **{key: extras[key] for key in _EXTRAS if key in extras}} if extras else declared


def _function(tool: Any, strict: bool | None) -> schemas.Function:
    function = schemas.function_of(tool, strict=strict)
    if isinstance(tool, SourceTool) and len(function.get("description") or "") > _LONGEST_DESCRIPTION:
        _logger.warning(_TOO_LONG, tool.name, len(function["description"]), _LONGEST_DESCRIPTION)
        function = {**function, "description": f"{function['description'][: _LONGEST_DESCRIPTION - 1]}…"}
    if not function.get("strict"):
        return function
    return {**function, "parameters": _strict_schema(function.get("parameters") or {"type": "object", "properties": {}})}


# ---------------------------------------------------------------------------------------------- choices


class AllowedTools(TypedDict):
    """The tools that may be called, and whether a call is required."""

    mode: str
    tools: "list[str | ToolChoice]"


class ToolChoice(TypedDict, total=False):
    """A tool choice other than a keyword: its type, and its value under the key of that name."""

    type: Required[str]
    function: dict[str, str]
    custom: dict[str, str]
    allowed_tools: AllowedTools
    server_label: str | None
    name: str


def format_tool_choice(choice: Any, tools: Sequence[Mapping[str, Any]]) -> str | ToolChoice | None:
    """Return a tool choice in the form of a request.

    Args:
        choice: None or False (the vendor decides), True, "any" or "required" (some tool), "auto", "none", the name of a tool,
            the type of a builtin tool, or a dict in the form of chat completions, Responses or Anthropic.
        tools: The declared tools, as `format_tool` made them.

    Returns:
        The value to send; None: send nothing.

    Raises:
        ConfigurationError: The choice names no declared tool, or is of no known form.
    """
    return schemas.format_choice(choice, tools, any_tool=lambda _: "required", named=_choice_by_name, from_mapping=_choice_from_mapping)


def _choice_by_name(choice: str, tools: Sequence[Mapping[str, Any]]) -> str | ToolChoice:
    """Return a choice given by one word; a tool's name takes precedence over the vendor's keywords."""
    for tool in tools:
        if own_name(tool) == choice:
            return _pointer(tool, choice)
    if choice in _MODES:
        return _MODES[choice]
    if any(tool.get("type") == choice for tool in tools):
        return {"type": choice}
    if not tools:
        return {"type": "function", "function": {"name": choice}}
    servers = [tool for tool in tools if tool.get("type") == "mcp"]
    if len(servers) == 1:  # it knows its tools' names
        return {"type": "mcp", "server_label": servers[0].get("server_label"), "name": choice}
    names = [tool_name(tool) for tool in tools]
    raise schemas.unknown_choice(choice, names, _MODES)


def _pointer(tool: Mapping[str, Any], name: str) -> ToolChoice:
    if tool.get("type") == "custom":
        return {"type": "custom", "custom": {"name": name}}
    return {"type": "function", "function": {"name": name}}


def _choice_from_mapping(choice: Mapping[str, Any], tools: Sequence[Mapping[str, Any]]) -> str | ToolChoice:
    kind = choice.get("type")
    if kind == "allowed_tools":
        return _allowed(choice, tools)
    inner = choice.get("function") or choice.get("custom")
    default = {"type": "custom" if "custom" in choice else "function"} if isinstance(inner, Mapping) else {}
    given: Any = {**default, **choice}
    own: ToolChoice = given
    if default:
        return own
    if isinstance(choice.get("name"), str) and kind in _POINTERS:  # flat: Responses, Anthropic's {"type": "tool"}, or a bare name
        declared = next((tool for tool in tools if own_name(tool) == choice["name"]), {"type": kind})
        return _pointer(declared, choice["name"])
    if kind in _MODES and choice.keys() <= {"type", "disable_parallel_tool_use"}:
        return _MODES[kind]
    if kind is None:
        raise ConfigurationError(f"tool_choice {dict(choice)!r} names no tool")
    return own


def _allowed(choice: Mapping[str, Any], tools: Sequence[Mapping[str, Any]]) -> ToolChoice:
    """Return the choice of allowed tools, also from the flat form (Responses) and bare names."""
    inner = choice.get("allowed_tools")
    body = inner if isinstance(inner, Mapping) else choice
    allowed = [_allowed_tool(tool, tools) for tool in body.get("tools") or ()]
    if not allowed:
        raise ConfigurationError(f"tool_choice {dict(choice)!r} names no tool: 'none' allows none")
    return {"type": "allowed_tools", "allowed_tools": {"mode": body.get("mode") or "auto", "tools": allowed}}


def _allowed_tool(tool: Any, tools: Sequence[Mapping[str, Any]]) -> str | ToolChoice:
    """Return one allowed tool, from its name, a reference, or the tool itself."""
    if isinstance(tool, Mapping):
        return _choice_from_mapping(tool, tools)
    return _choice_by_name(tool if isinstance(tool, str) else str(getattr(tool, "name", None) or getattr(tool, "__name__", tool)), tools)
