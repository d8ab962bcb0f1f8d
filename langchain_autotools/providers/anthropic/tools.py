"""Declarations in the Messages API's form: tools, tool choices, schemas of replies.

Wire facts (https://platform.claude.com/docs/en/build-with-claude/structured-outputs, "JSON Schema limitations"): the format is
`{"type": "json_schema", "schema": {...}}`; every object admits no properties but its own (`additionalProperties: false`). Bounds of
numbers, lengths and counts, formats but a few and patterns with look-around are refused, so they are told in the description, as the
vendor's own SDK does; so is `oneOf`, which `anyOf` says as well. What remains (keys of the model's own choosing, recursion, tuples, values
of any type) has no such form.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Protocol

from langchain_core.tools import BaseTool

from ...errors import ConfigurationError
from ...turn.tools import declaring
from .._encode.tools import (
    TYPES,
    JsonSchema,
    Tools,
    barred_keyword,
    format_choice,
    free_keys,
    function_of,
    heading,
    is_recursive,
    json_schema_of,
    mapped,
    unknown_choice,
    walked,
    with_notes,
)
from .mapper import LEGAL_NAME

_TOLD = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
    *("maxItems", "uniqueItems", "minProperties", "maxProperties", "default", "examples"),
)
_SILENT = frozenset({"title", "discriminator"})
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"})
_NO_PATTERN = re.compile(r"\(\?[=!<]|\\[bB1-9]")
_TYPED = frozenset({"type", "anyOf", "allOf", "oneOf", "enum", "const", "$ref"})


def output_format(schema: Any) -> dict[str, Any]:
    """Return the output format for a schema.

    Args:
        schema: A pydantic class, a TypedDict, a JSON schema with a title, a function or a `response_format` of OpenAI's form, or
            the wire's own format, which is returned as it is.

    Raises:
        ConfigurationError: No JSON schema can be made of it, or the format cannot express it.
    """
    if isinstance(schema, Mapping) and schema.get("type") == "json_schema" and not isinstance(schema.get("json_schema"), Mapping):
        return dict(schema)
    declared = _plain_schema(schema)
    why = _why_not_closed(declared)
    if why:
        rule = "Anthropic's JSON output cannot express"
        raise ConfigurationError(f"{rule} {why}; use method='function_calling', or with create_agent response_format=ToolStrategy(...)")
    return {"type": "json_schema", "schema": _closed(declared)}


def has_format(schema: Any) -> bool:
    """Whether there is an output format for a schema."""
    return _why_not_closed(_plain_schema(schema)) is None


def _plain_schema(schema: Any) -> JsonSchema:
    if isinstance(schema, Mapping) and isinstance(schema.get("json_schema"), Mapping):
        inner: JsonSchema = schema["json_schema"].get("schema") or {"type": "object", "properties": {}}
        return inner
    return json_schema_of(schema)


def _strict_schema(schema: JsonSchema) -> dict[str, Any]:
    """Return the schema of a strict tool.

    Raises:
        ConfigurationError: Strict mode cannot express it.
    """
    why = _why_not_closed(schema)
    if why:
        raise ConfigurationError(f"strict mode cannot express {why}; change that, or leave strict out")
    closed: dict[str, Any] = _closed(schema)
    return closed


def _why_not_closed(schema: JsonSchema) -> str | None:
    """Return the part of a schema that the vendor's constrained output cannot express; None if there is none."""
    free = free_keys(schema)
    if free:
        return f"an object with keys of its own choosing ({free})"
    if is_recursive(schema):
        return "a schema that refers to itself"
    for where, node in walked(schema):
        found = barred_keyword(node) or _barred_here(node, top=not where)
        if found:
            return f"{found} ({where or 'its top'})"
    return None


def _barred_here(node: JsonSchema, *, top: bool) -> str | None:
    if any(isinstance(value, list | dict) for value in (*(node.get("enum") or ()), node.get("const"))):
        return "an enumeration of lists or objects"
    if not top and not _TYPED & node.keys():
        return "a value of any type"
    if any("$ref" in part for part in node.get("allOf") or ()):
        return "'allOf' with a reference"
    return "a reference to another document" if not str(node.get("$ref", "#")).startswith("#") else None


def _closed(node: Any) -> Any:
    if not isinstance(node, Mapping):
        return node
    told = [key for key in _TOLD if key in node]
    told += ["minItems"] if node.get("minItems") not in (None, 0, 1) else []
    told += ["format"] if isinstance(node.get("format"), str) and node["format"] not in _FORMATS else []
    told += ["pattern"] if _NO_PATTERN.search(str(node.get("pattern", ""))) else []
    kept = {key: value for key, value in with_notes(mapped(node, _closed), told).items() if key not in _SILENT}
    if "oneOf" in kept:
        kept["anyOf"] = kept.pop("oneOf")
    if node.get("type") == "object" or "properties" in node:
        kept["additionalProperties"] = False
    return kept


# ---------------------------------------------------------------------------------------------- tools
# Tools and tool choices in the Messages API's form.
#
# Wire facts: a tool is `{name, description, input_schema}` with a name of `[a-zA-Z0-9_-]{1,128}` and a schema whose `type` is "object". At
# its top the schema has neither `$ref` nor `anyOf`, `oneOf`, `allOf`, and properties with names of `[a-zA-Z0-9_.-]{1,64}`. A tool of the
# vendor's own has a versioned `type`. A choice is `{"type": "auto" | "any" | "tool" | "none"}`; all but "none" take
# `disable_parallel_tool_use`.


_EXTRAS = ("allowed_callers", "cache_control", "defer_loading", "eager_input_streaming", "input_examples")
_DEFINITION = "provider_tool_definition"
_ON_CLIENT = re.compile(r"(bash|text_editor|computer|memory)_\d")
_KINDS = {"bash": "shell"}
_COMBINED = ("anyOf", "oneOf", "allOf")
_MCP = "mcp_toolset"
_MODES = {"any": "any", "required": "any", "auto": "auto", "none": "none"}


def format_tool(tool: Any, *, strict: bool | None = None) -> dict[str, Any]:
    """Return a tool in the form of a request.

    Args:
        tool: A function, a pydantic class, a TypedDict, a `BaseTool`, a JSON schema with a title, or a dict in the form of
            Anthropic or OpenAI. A tool of the vendor's own (a dict of another `type`) is returned untouched.
        strict: Whether the vendor must hold the model to the schema. None leaves that as the tool or the vendor has it.

    Raises:
        ConfigurationError: The tool cannot be declared: its name is illegal, or its schema is none that the vendor takes.
    """
    extras = tool.extras if isinstance(tool, BaseTool) and isinstance(tool.extras, dict) else {}
    if isinstance(extras.get(_DEFINITION), Mapping):
        return dict(extras[_DEFINITION])
    if isinstance(tool, dict) and is_builtin(tool):
        return tool
    with declaring(tool):
        declared = _declaration(tool, strict)
    _check(declared)
    return {**declared, **{key: extras[key] for key in _EXTRAS if key in extras}}


def is_builtin(tool: Mapping[str, Any]) -> bool:
    """Whether a dict is one of the vendor's own tools: by its type, and neither a function, a schema nor another vendor's tool."""
    kind = tool.get("type")
    if not isinstance(kind, str) or kind in ("function", "custom") or kind in TYPES:
        return False
    return not ({"input_schema", "properties", "parameters", "function"} & tool.keys())


def client_tool_names(tools: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the names of the vendor's tools that run on the caller's machine, which the model calls like functions, each with the kind of
    its handlers."""
    matches = [(tool.get("name"), _ON_CLIENT.match(str(tool.get("type")))) for tool in tools]
    return {str(name): _KINDS.get(match[1], match[1]) for name, match in matches if name and match}


def _declaration(tool: Any, strict: bool | None) -> dict[str, Any]:
    if isinstance(tool, dict) and "input_schema" in tool:
        held = {} if strict is None else {"strict": strict}
        closed = tool.get("strict") if strict is None else strict
        return {**tool, **held, **({"input_schema": _strict_schema(tool["input_schema"])} if closed else {})}
    function = function_of(tool, strict=strict)
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    held = {"strict": function["strict"]} if function.get("strict") or strict is False else {}
    return {**heading(function), "input_schema": _strict_schema(schema) if held.get("strict") else schema, **held}


def _check(declared: Mapping[str, Any]) -> None:
    name, schema = declared.get("name"), declared["input_schema"]
    if not isinstance(name, str) or not LEGAL_NAME.fullmatch(name):
        raise ConfigurationError(f"tool name {name!r} cannot be sent: it must have 1 to 128 letters, digits, '_' or '-'")
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        raise ConfigurationError(f"tool {name!r} cannot be sent: the type of its input_schema must be 'object'")
    combined = [key for key in _COMBINED if key in schema]
    if combined:
        raise ConfigurationError(
            f"tool {name!r} cannot be sent: {combined[0]} may not are at the top of its schema; put it into a property"
        )


_LEGAL_KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


def check_taken(declared: Mapping[str, Any]) -> None:
    """Raise for a tool whose arguments have names that Anthropic itself refuses, with every other tool of the request.

    Raises:
        ConfigurationError: It is such a tool.
    """
    schema = declared.get("input_schema")
    illegal = next((name for name in (schema or {}).get("properties") or () if not _LEGAL_KEY.fullmatch(name)), None)
    if illegal is not None:
        rule = "it must have 1 to 64 letters, digits, '_', '.' or '-'"
        raise ConfigurationError(f"tool {declared.get('name')!r} cannot be sent: of the name of its argument {illegal!r}, {rule}")


# ---------------------------------------------------------------------------------------------- choices


def format_tool_choice(choice: Any, tools: Tools) -> dict[str, Any] | None:
    """Return a tool choice in the form of a request.

    Args:
        choice: None or False (the vendor decides), True, "any" or "required" (some tool), "auto", "none", the name or the type
            of a declared tool, or a dict in the form of Anthropic, chat completions or Responses.
        tools: The declared tools, as `format_tool` made them.

    Returns:
        The value to send; None: send nothing.

    Raises:
        ConfigurationError: The choice names no declared tool, or is of no known form.
    """
    single = {"type": "tool", "name": tools[0]["name"]} if len(tools) == 1 and "name" in tools[0] else None
    return format_choice(choice, tools, any_tool=lambda _: single or {"type": "any"}, named=_named, from_mapping=_from_mapping)


def _named(choice: str, tools: Tools) -> dict[str, Any]:
    """Return a choice given by one word; a tool's name takes precedence over the vendor's keywords."""
    names = [str(tool.get("name") or tool.get("type")) for tool in tools]
    if choice in names or (not tools and choice not in _MODES):
        return {"type": "tool", "name": choice}
    if choice in _MODES:
        return {"type": _MODES[choice]}
    by_type = next((tool for tool in tools if tool.get("type") == choice and "name" in tool), None)
    if by_type is not None:
        return {"type": "tool", "name": by_type["name"]}
    if any(tool.get("type") == _MCP for tool in tools):  # its server knows its tools' names
        return {"type": "tool", "name": choice}
    raise unknown_choice(choice, names, _MODES)


def _from_mapping(choice: Mapping[str, Any], tools: Tools) -> dict[str, Any]:
    kind = choice.get("type")
    inner = choice.get("function") or choice.get("custom")
    if isinstance(inner, Mapping):
        return _named(str(inner.get("name")), tools)
    if kind in _MODES:
        return {**choice, "type": _MODES[kind]}
    if kind == "tool":
        return dict(choice)
    if isinstance(choice.get("name"), str):
        return _named(choice["name"], tools)
    if isinstance(kind, str) and kind != "allowed_tools":
        return _named(kind, tools)
    raise ConfigurationError(f"tool_choice {dict(choice)!r} names no tool")


# ---------------------------------------------------------------------------------------------- the memory tool
# The memory tool over any storage, on the SDK's own base class, which is loaded at the first command.


class MemoryStorage(Protocol):
    """What keeps a model's memory: one method for each command of the tool, which returns the text for the model."""

    def view(self, path: str, view_range: list[int] | None) -> str:
        """Return the lines of a file, or the files of a directory."""

    def create(self, path: str, text: str) -> str:
        """Make a new file."""

    def str_replace(self, path: str, old: str, new: str) -> str:
        """Replace what occurs once in a file."""

    def insert(self, path: str, line: int, text: str) -> str:
        """Add lines to a file."""

    def delete(self, path: str) -> str:
        """Remove a file or a directory."""

    def rename(self, old: str, new: str) -> str:
        """Rename or move a file or a directory."""


def run_command(storage: MemoryStorage, arguments: Mapping[str, Any]) -> str:
    """Return what a command of the memory tool (`memory_20250818`) returns. Its arguments are complete and of the right types."""
    tool = _memory_tool()()
    tool.storage = storage
    return str(tool.call(dict(arguments)))


_COMMANDS = {
    "view": ("path", "view_range"),
    "create": ("path", "file_text"),
    "str_replace": ("path", "old_str", "new_str"),
    "insert": ("path", "insert_line", "insert_text"),
    "delete": ("path",),
    "rename": ("old_path", "new_path"),
}
"""The methods of a storage, each with its arguments by their names in a command."""


@cache
def _memory_tool() -> type[Any]:
    """Return the SDK's class with methods that hand their command to a storage."""
    from anthropic.lib.tools import BetaAbstractMemoryTool

    def handing(name: str) -> Callable[[Any, Any], str]:
        return lambda tool, command: getattr(tool.storage, name)(*(getattr(command, field) for field in _COMMANDS[name]))

    return type("StoredMemory", (BetaAbstractMemoryTool,), {name: handing(name) for name in _COMMANDS})
