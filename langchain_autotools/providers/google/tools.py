"""Tools, tool choices, their schemas in the form of Google's two APIs.

Wire facts: a function's schema goes as `parametersJsonSchema`, which is JSON Schema, on both APIs alike (google-genai,
`types.FunctionDeclaration`; recorded requests to both). The older `parameters` takes an OpenAPI subset that knows no `$ref`, no `const`, no
`additionalProperties` and no list of types, and refuses the whole request for one of them (wire quirk G-11). Of a reply it is
`responseJsonSchema`. References are resolved in place, because not every model follows them; a schema that refers to itself keeps its
`$defs`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Required, TypedDict

from langchain_core.tools import BaseTool
from pydantic import BaseModel

from ...errors import ConfigurationError
from ...turn.tools import declaring
from .._encode.encoder import sdk_class
from .._encode.tools import (
    DEFINITIONS,
    JsonSchema,
    Tools,
    definitions_of,
    format_choice,
    function_of,
    heading,
    json_schema_of,
    mapped,
    unknown_choice,
)
from .decode import camel, snake

_SAID_TO_VALIDATORS = ("$schema", "$id", "$comment")


def dialect(schema: JsonSchema) -> dict[str, Any]:
    """Return the schema with references resolved where possible, and without keys that only validators read."""
    resolver = _Resolver(definitions_of(schema))
    resolved: dict[str, Any] = resolver.resolve({key: value for key, value in schema.items() if key not in DEFINITIONS}, ())
    if resolver.kept:
        resolved["$defs"] = resolver.kept_definitions()
    return resolved


def _reference(name: str, beside: JsonSchema) -> dict[str, Any]:
    """Return a reference to a definition, beside which the vendor takes no other key."""
    reference = {"$ref": f"#/$defs/{name}"}
    return {"anyOf": [reference], **beside} if beside else reference


class _Resolver:
    """Replaces references by the definitions they refer to.

    Args:
        definitions: The schema's definitions by name.

    Attributes:
        kept: Definitions that refer to themselves, by name: these stay references.
    """

    def __init__(self, definitions: Mapping[str, JsonSchema]) -> None:
        self._definitions = definitions
        self.kept: dict[str, None] = {}

    def resolve(self, node: Any, inside: tuple[str, ...]) -> Any:
        """Return the node with its references resolved; `inside` contains the definitions around it."""
        if not isinstance(node, Mapping):
            return node
        reference = node.get("$ref")
        name = str(reference).rpartition("/")[2]
        if isinstance(reference, str) and name in self._definitions:
            beside = {key: value for key, value in node.items() if key != "$ref"}
            if name in inside or name in self.kept:
                self.kept[name] = None
                return _reference(name, beside)
            target = self.resolve(self._definitions[name], (*inside, name))
            return {**target, **beside} if name not in self.kept else _reference(name, beside)
        changed = mapped(node, lambda inner: self.resolve(inner, inside))
        if "const" in changed:
            changed["enum"] = [changed.pop("const")]
        return {key: value for key, value in changed.items() if key not in _SAID_TO_VALIDATORS}

    def kept_definitions(self) -> dict[str, Any]:
        """Return the definitions that are still referred to; resolving one may reveal another."""
        done: dict[str, Any] = {}
        while waiting := [name for name in self.kept if name not in done]:
            for name in waiting:
                done[name] = self.resolve(self._definitions[name], (name,))
        return done


# ---------------------------------------------------------------------------------------------- tools
# Tools and tool choices in the form of Google's two APIs.
#
# Wire facts: a function is `{name, description, parametersJsonSchema}` with a name of letters, digits, `_`, `.`, `:`, `-`
# that begins with a letter or `_`, at most 64 long (wire quirk N-06). All functions are in one entry of `tools`, each of the vendor's own
# tools in one of its own, e.g. `{"googleSearch": {}}`. A choice is `toolConfig.functionCallingConfig`: `mode` AUTO, ANY, NONE or VALIDATED,
# and for ANY and VALIDATED `allowedFunctionNames`.
#
# Between binding and the request a choice is a `Choice`, and a tool of the vendor's own says its name as its type.


LEGAL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
_LISTS = ("function_declarations", "functionDeclarations")
_SCHEMAS = ("parametersJsonSchema", "parameters_json_schema")
_OF_FUNCTIONS = frozenset({"name", "title", "function", "parameters", "properties", "input_schema", *_SCHEMAS})
_DEFINITION = "provider_tool_definition"
_MODES = {"any": "any", "required": "any", "auto": "auto", "none": "none", "validated": "validated"}
_CONFIGS = ("functionCallingConfig", "function_calling_config")
_NAMES = ("allowedFunctionNames", "allowed_function_names", "names")


def flat_tools(tools: Sequence[Any]) -> list[Any]:
    """Return the tools one by one, with `function_declarations` lists flattened."""
    return [one for tool in tools for one in _declared_in(plain_tool(tool))]


def plain_tool(tool: Any) -> Any:
    """Return a google-genai object as the equivalent dict."""
    if isinstance(tool, BaseModel) and type(tool).__module__.startswith("google."):
        return tool.model_dump(mode="json", exclude_none=True)
    return tool


def _declared_in(tool: Any) -> list[Any]:
    key = next((key for key in _LISTS if isinstance(tool, Mapping) and key in tool), None)
    if key is None:
        return [tool]
    rest = {name: value for name, value in tool.items() if name != key}
    return [*tool[key], *([rest] if rest else [])]


def format_tool(tool: Any, *, strict: bool | None = None) -> dict[str, Any]:
    """Return a tool in the form of a request.

    Args:
        tool: A function, a pydantic class, a TypedDict, a `BaseTool`, a JSON schema with a title, or a dict in the form of
            Google, OpenAI or Anthropic, or google-genai's object. One of the vendor's own (`{"google_search": {}}`) is marked with its
            name as its type.
        strict: Accepted for LangChain's sake; the vendor has no such switch for one tool.

    Raises:
        ConfigurationError: The tool cannot be declared: its name is illegal, or its schema is none that the vendor takes.
    """
    tool = plain_tool(tool)
    if isinstance(tool, Mapping) and any(key in tool for key in _LISTS):
        return dict(tool)  # several: the request takes them apart
    extras = tool.extras if isinstance(tool, BaseTool) and isinstance(tool.extras, dict) else {}
    if isinstance(extras.get(_DEFINITION), Mapping):
        return _builtin(extras[_DEFINITION])
    if isinstance(tool, Mapping) and not _OF_FUNCTIONS & tool.keys():
        return _builtin(tool)
    with declaring(tool):
        declared = _declared(tool)
    _check(declared)
    return declared


def _builtin(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return one of the vendor's own tools in the wire's form: from `{"google_search": {...}}`, or from its name as type."""
    names = [key for key in tool if key != "type"]
    if not names and isinstance(tool.get("type"), str):
        return {"type": snake(tool["type"]), tool["type"]: {}}
    if len(names) != 1:
        raise ConfigurationError(f"tool {dict(tool)!r} cannot be declared: it names neither a function nor one tool of the vendor's")
    return {"type": snake(names[0]), names[0]: tool[names[0]] or {}}


def _declared(tool: Any) -> dict[str, Any]:
    if isinstance(tool, Mapping) and (set(_SCHEMAS) & tool.keys()):
        schema = next(tool[key] for key in _SCHEMAS if key in tool)
        return {**{key: value for key, value in tool.items() if key not in _SCHEMAS}, "parametersJsonSchema": dialect(schema)}
    if isinstance(tool, Mapping) and "name" in tool and "input_schema" not in tool and _is_openapi(tool.get("parameters")):
        return dict(tool)
    function = function_of(tool)
    schema = {"type": "object", "properties": {}, **(function.get("parameters") or {})}
    return {**heading(function), "parametersJsonSchema": dialect(schema)}


def _is_openapi(schema: Any) -> bool:
    """Whether a schema is in the vendor's older dialect, with types in capitals or as numbers."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return isinstance(kind, int) or (isinstance(kind, str) and kind.isupper())


def _check(declared: Mapping[str, Any]) -> None:
    name, schema = declared.get("name"), declared.get("parametersJsonSchema")
    if not isinstance(name, str) or not LEGAL_NAME.fullmatch(name):
        rule = "it must begin with a letter or '_' and have at most 64 letters, digits, '_', '.', ':' or '-'"
        raise ConfigurationError(f"tool name {name!r} cannot be sent: {rule}")
    if schema is not None and (not isinstance(schema, Mapping) or schema.get("type", "object") != "object"):
        raise ConfigurationError(f"tool {name!r} cannot be sent: its schema must describe an object, the arguments by name")


def wire_tools(tools: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the tools of a request: all functions in one entry, first, then the vendor's own."""
    formatted = [
        tool if isinstance(tool, Mapping) and _SCHEMAS[0] in tool and "type" not in tool else format_tool(tool)
        for tool in flat_tools(tools)
    ]
    functions = [tool for tool in formatted if "name" in tool]
    builtin = [{camel(key): value for key, value in tool.items() if key != "type"} for tool in formatted if "name" not in tool]
    return [*([{"functionDeclarations": functions}] if functions else []), *builtin]


# ---------------------------------------------------------------------------------------------- choices


class Choice(TypedDict, total=False):
    """A tool choice in the form between binding and the request.

    Attributes:
        type: The mode, in small letters.
        names: The only tools that may be called.
        only: Whether it was said that no other tool may be called, also later; else a tool was named that is to be called now.
    """

    type: Required[str]
    names: list[str]
    only: bool


def format_tool_choice(choice: Any, tools: Tools) -> Choice | None:
    """Return a tool choice in plain form.

    Args:
        choice: None or False (the vendor decides), True, "any" or "required" (some tool), "auto", "none", "validated", the name of
            a declared tool or a list of names, or a dict in the form of Google, chat completions, Responses or Anthropic.
        tools: The declared tools, as `format_tool` made them.

    Returns:
        The choice; None: say nothing.

    Raises:
        ConfigurationError: The choice names no declared tool, or is of no known form.
    """
    if isinstance(choice, list | tuple):
        return _only([str(name) for name in choice], "any", tools)
    return format_choice(
        choice,
        tools,
        any_tool=lambda _: Choice(type="any"),
        named=lambda name, declared: _named([name], declared),
        from_mapping=_from_mapping,
        forms="a string, a list of names, a bool or a dict",
    )


def _named(names: Sequence[str], tools: Tools) -> Choice:
    """Return a choice given by words; a tool's name takes precedence over a keyword."""
    declared = [str(tool["name"]) for tool in tools if "name" in tool]
    if names and (set(names) <= set(declared) or (not tools and names[0] not in _MODES)):
        return {"type": "any", "names": list(names)}
    if len(names) == 1 and names[0] in _MODES:
        return {"type": _MODES[names[0]]}
    unknown = next((name for name in names if name not in declared), "")
    raise unknown_choice(unknown, declared, _MODES)


def _from_mapping(choice: Mapping[str, Any], tools: Tools) -> Choice:
    inner = next((choice[key] for key in (*_CONFIGS, "function", "custom") if isinstance(choice.get(key), Mapping)), None)
    if inner is not None:
        return _from_mapping(inner, tools)
    if choice.get("type") == "allowed_tools":
        return _allowed(choice, tools)
    kind = str(choice.get("mode") or choice.get("type") or "").lower()
    names = next((choice[key] for key in _NAMES if choice.get(key)), None)
    if kind in _MODES and names:
        asks = "type" in choice and not choice.get("only")  # a plain choice of this package that names what to call now
        return _named(names, tools) if asks and _MODES[kind] == "any" else _only(names, _MODES[kind], tools)
    if kind in _MODES:
        return {"type": _MODES[kind]}
    if isinstance(choice.get("name"), str):
        return _named([choice["name"]], tools)
    raise ConfigurationError(f"tool_choice {dict(choice)!r} names no tool")


def _only(names: Sequence[str], mode: str, tools: Tools) -> Choice:
    """Return the choice of only these tools. With names "auto" becomes "validated": the vendor accepts names with that and "any" only."""
    plain: Choice = {"type": "validated" if mode == "auto" else mode, "names": _named(names, tools).get("names") or list(names)}
    return {**plain, "only": True} if mode == "any" else plain


def _allowed(choice: Mapping[str, Any], tools: Tools) -> Choice:
    """Return a choice of allowed tools given in the form of chat completions or Responses."""
    nested = choice.get("allowed_tools")
    body = nested if isinstance(nested, Mapping) else choice
    pointed = [tool if isinstance(tool, Mapping) else {"name": tool} for tool in body.get("tools") or ()]
    names = [str((tool.get("function") or tool).get("name")) for tool in pointed]
    if not names:
        raise ConfigurationError(f"tool_choice {dict(choice)!r} names no tool: 'none' allows none")
    return _only(names, _MODES.get(str(body.get("mode")), "auto"), tools)


# ---------------------------------------------------------------------------------------------- schemas of replies


_JSON = {"responseMimeType": "application/json"}


def response_format_config(form: Any) -> dict[str, Any]:
    """Return the wire's parameters for a `response_format` in OpenAI's form, or for a schema; empty for None."""
    if form is None:
        return {}
    if isinstance(form, Mapping) and form.get("type") in ("json_object", "text", "json_schema"):
        if form["type"] == "text":
            return {}
        inner = form.get("json_schema") or form
        return {**_JSON, **({"responseJsonSchema": dialect(inner["schema"])} if inner.get("schema") else {})}
    return {**_JSON, "responseJsonSchema": reply_schema(form)}


def reply_schema(schema: Any) -> dict[str, Any]:
    """Return the JSON schema of replies.

    Args:
        schema: A pydantic class, a TypedDict, a JSON schema, also one without a title, or a `types.Schema` of the SDK.

    Raises:
        ConfigurationError: No JSON schema can be made of it.
    """
    schema = plain_schema(schema)
    is_bare = isinstance(schema, Mapping) and "title" not in schema and "name" not in schema
    return dialect(schema if is_bare else json_schema_of(schema))


def plain_schema(schema: Any) -> Any:
    """Return the JSON schema of a `types.Schema`; other values unchanged."""
    known = sdk_class("google.genai.types", "Schema")
    if known is None or not isinstance(schema, known):
        return schema
    return {"title": "Output", **schema.json_schema.model_dump(mode="json", by_alias=True, exclude_none=True)}
