"""Tools of every form as functions with a JSON schema, the common input of the vendors' declarations."""

import inspect
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Required, TypedDict, TypeVar, cast

from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_function
from langchain_core.utils.pydantic import is_basemodel_subclass

from ...errors import ConfigurationError
from ...strict_json import is_finite

JsonSchema = Mapping[str, Any]
"""A JSON schema to read; new ones are a `dict`."""

_ONE = (
    *("items", "not", "additionalProperties", "contains", "if", "then", "else", "propertyNames", "additionalItems"),
    *("unevaluatedItems", "unevaluatedProperties", "contentSchema"),
)
_LISTS = ("anyOf", "allOf", "oneOf", "prefixItems")
_MAPS_OF_SCHEMAS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
DEFINITIONS = ("$defs", "definitions")
"""The keys under which a schema keeps its definitions."""


def mapped(node: JsonSchema, change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the schema with `change` applied to each direct subschema; data such as defaults and enums stays as it is.

    Args:
        node: The schema.
        change: Gives what takes the place of an inner schema, which may also be a bool.
    """
    changed = dict(node)
    changed |= {key: change(node[key]) for key in _ONE if isinstance(node.get(key), Mapping)}
    changed |= {key: [change(item) for item in node[key]] for key in _LISTS if isinstance(node.get(key), list)}
    changed |= {
        key: {name: change(item) for name, item in node[key].items()} for key in _MAPS_OF_SCHEMAS if isinstance(node.get(key), Mapping)
    }
    return changed


def walked(node: Any, where: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the schema and every schema inside it, each with its path (`pets.items.name`)."""
    if not isinstance(node, Mapping):
        return
    yield where, node
    for key in _ONE:
        yield from walked(node.get(key), f"{where}.{key}".lstrip("."))
    for key in _LISTS:
        for item in node[key] if isinstance(node.get(key), list) else ():
            yield from walked(item, where)
    for key in _MAPS_OF_SCHEMAS:
        for name, item in node[key].items() if isinstance(node.get(key), Mapping) else ():
            yield from walked(item, f"{where}.{name}".lstrip("."))


def _reference(node: JsonSchema) -> str | None:
    """Return the name of the definition that a schema refers to; "" for the whole schema; None if it has no reference."""
    target = node.get("$ref")
    return target.rpartition("/")[2].lstrip("#") if isinstance(target, str) else None


def definitions_of(schema: JsonSchema) -> dict[str, Any]:
    """Return the definitions of a schema, by name."""
    return {name: node for key in DEFINITIONS for name, node in (schema.get(key) or {}).items()}


def at_the_top(schema: JsonSchema) -> dict[str, Any]:
    """Return the schema with an object at the top level, also for a class that refers to itself."""
    named = definitions_of(schema).get(_reference(schema) or "")
    return {**named, **{key: value for key, value in schema.items() if key != "$ref"}} if isinstance(named, Mapping) else dict(schema)


_BESIDE_OBJECTS = ("anyOf", "oneOf", "allOf", "not", "enum", "const", "$ref", "if")
TYPES = frozenset({"object", "array", "string", "integer", "number", "boolean", "null"})
"""The types that a schema may name."""


def why_no_object(schema: JsonSchema) -> str | None:
    """Return what keeps a schema from being an object's with named fields and nothing else at its top; None if it is one."""
    if schema.get("type", "object" if "properties" in schema else None) != "object":
        return f"type {schema['type']!r}" if "type" in schema else "no type 'object'"
    combined = next((key for key in _BESIDE_OBJECTS if key in schema), None)
    return combined and repr(combined)


def inside_object(schema: JsonSchema, field: str) -> dict[str, Any]:
    """Return the schema of an object whose one field has the values that a schema describes. Title and description become the object's.

    Args:
        schema: The schema.
        field: The field's name.
    """
    outer = {key: schema[key] for key in ("title", "description", "strict") if key in schema}
    definitions = {key: schema[key] for key in DEFINITIONS if key in schema}
    inner = {key: value for key, value in schema.items() if key not in outer and key not in definitions}
    references = (node["$ref"] for _, node in walked(schema) if isinstance(node.get("$ref"), str))
    own = {field: inner, **definitions.get("$defs", {})} if any(map(_leads_to_the_top, references)) else None
    if own is not None:  # at the top there is another schema now
        place = f"#/$defs/{field}"
        definitions["$defs"] = {name: _moved(node, place) for name, node in own.items()}
        inner = {"$ref": place}
    return {**outer, "type": "object", "properties": {field: inner}, "required": [field], **definitions}


def _leads_to_the_top(target: str) -> bool:
    return target == "#" or (target.startswith("#/") and target.split("/")[1] not in DEFINITIONS)


def _moved(node: Any, place: str) -> Any:
    """Return a schema whose references to the top lead to its place now."""
    if not isinstance(node, Mapping):
        return node
    changed = mapped(node, lambda inner: _moved(inner, place))
    target = changed.get("$ref")
    return {**changed, "$ref": f"{place}{target[1:]}"} if isinstance(target, str) and _leads_to_the_top(target) else changed


def is_recursive(schema: JsonSchema) -> bool:
    """Whether a schema refers to itself somewhere."""
    from graphlib import CycleError, TopologicalSorter  # here, because nothing else at import needs it

    definitions = definitions_of(schema)
    inner = {name: {_reference(node) for _, node in walked(definition)} - {None} for name, definition in definitions.items()}
    try:
        TopologicalSorter(inner).prepare()
    except CycleError:
        return True
    return any(_reference(node) == "" for _, node in walked(schema))


_BARRED = (
    *("prefixItems", "not", "if", "then", "else", "patternProperties", "propertyNames", "contains", "minContains", "maxContains"),
    *("unevaluatedProperties", "unevaluatedItems", "additionalItems", "dependentRequired", "dependentSchemas", "dependencies"),
    *("contentSchema", "$dynamicRef", "$recursiveRef"),
)


def barred_keyword(node: JsonSchema) -> str | None:
    """Return a keyword of a schema, in quotes, that shapes values and that no vendor's strict mode has; None if there is none."""
    if "anyOf" in node and "oneOf" in node:
        return "'oneOf' beside 'anyOf'"
    return next((repr(key) for key in _BARRED if key in node), None)


def with_notes(node: JsonSchema, told: Collection[str]) -> dict[str, Any]:
    """Return a schema with these of its keywords told in its description."""
    notes = ", ".join(f"{key}: {node[key]}" for key in told)
    kept = {key: value for key, value in node.items() if key not in told}
    return {**kept, "description": f"{node['description']} {{{notes}}}" if node.get("description") else f"{{{notes}}}"} if notes else kept


def free_keys(schema: Any) -> str | None:
    """Return the path of an object with arbitrary keys, which no vendor's strict mode supports; None if there is none."""
    for where, node in walked(schema):
        if node.get("additionalProperties", False) is not False or (node.get("type") == "object" and "properties" not in node):
            return where or "its top"
    return None


def is_pydantic(schema: Any) -> bool:
    """Whether a schema is a pydantic class, of version 1 or 2."""
    return isinstance(schema, type) and is_basemodel_subclass(schema)


# ---------------------------------------------------------------------------------------------- functions
# Conversion of tools of every form to functions with a JSON schema, the common input of the vendors' declarations.
#
# LangChain's core converts them; where a schema refers to itself, core writes an empty schema in place of the inner reference, and the
# model is not told what is there. Such a schema is taken whole, with its definitions.


_OF_THE_TOOL = ("title", "description")
_VALUES = frozenset({"default", "examples", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})


class Function(TypedDict, total=False):
    """A tool in the form of a function.

    Attributes:
        name: Its name.
        description: The function's description.
        parameters: The JSON schema of the object that it is called with.
        strict: Whether the server must hold the model to that schema.
    """

    name: Required[str]
    description: str
    parameters: dict[str, Any]
    strict: bool


def function_of(tool: Any, *, strict: bool | None = None) -> Function:
    """Return a tool as a function, with its schema in the current dialect of JSON schema.

    Args:
        tool: A function, a pydantic class (of version 1 or 2), a TypedDict, a `BaseTool`, a JSON schema with a title, or a dict in the
            form of OpenAI's functions (also within a declared tool), Anthropic or Bedrock.
        strict: The function's setting for strict mode; None uses the tool's own. (Its schema is not changed.)

    Raises:
        ConfigurationError: The tool says itself that it is strict, or is not, and `strict` contradicts it.
        Exception: The tool cannot be described; core and pydantic raise whatever they meet in it.
    """
    if isinstance(tool, Mapping) and isinstance(tool.get("function"), Mapping):
        tool = tool["function"]
    converted: Any = convert_to_openai_function(tool)
    function: Function = converted
    if is_json_schema(tool) and "parameters" not in function and _SHAPES & tool.keys():  # core takes no other shape than an object's
        function["parameters"] = {key: value for key, value in tool.items() if key not in _OF_THE_TOOL}
    whole = _whole_schema(tool)
    if whole is not None and is_recursive(whole):
        function["parameters"] = {key: value for key, value in _untitled(at_the_top(whole)).items() if key not in _OF_THE_TOOL}
    if isinstance(function.get("parameters"), Mapping):
        parameters = _modern(function["parameters"])
        if not parameters or (parameters.get("type") == "object" and "properties" not in parameters):  # some vendors refuse one without
            parameters = {"type": "object", **parameters, "properties": {}}
        if isinstance(parameters.get("strict"), bool):  # of a schema with a title core takes it for a word of the schema
            function["strict"] = parameters.pop("strict")
        function["parameters"] = _finite_schema(_true_defaults(tool, _without_rest(tool, parameters)))
        json.dumps(function["parameters"], allow_nan=False)
    if strict is None:
        return function
    if function.get("strict", strict) is not strict:
        raise ConfigurationError(f"strict={strict} contradicts the tool, which says strict={function['strict']}: say it in one place")
    return {**function, "strict": strict}


def heading(function: Function) -> Function:
    """Return only the name of a function and its description, if it has one."""
    if description := function.get("description"):
        return {"name": function["name"], "description": description}
    return {"name": function["name"]}


_NAME_KEYS = frozenset({"title", "name", "function", "toolSpec"})
_OTHER_FORMS = frozenset({"name", "function", "toolSpec", "input_schema", "json_schema"})
_SHAPES = frozenset({"type", "anyOf", "oneOf", "allOf", "$ref", "enum", "const", "not", "if"})


def is_json_schema(schema: Any) -> bool:
    """Whether a dict is a JSON schema, and neither a function nor another form in which vendors take one."""
    if not isinstance(schema, Mapping) or _OTHER_FORMS & schema.keys():
        return False
    kind = schema.get("type")
    return kind in TYPES if isinstance(kind, str) else bool(kind or (_SHAPES | {"properties"}) & schema.keys())


def json_schema_of(schema: Any) -> dict[str, Any]:
    """Return the JSON schema for a schema of any form: a pydantic class's own, one as it is, else that of the function's parameters.

    Raises:
        ConfigurationError: None can be made of it.
    """
    if isinstance(schema, type) and is_basemodel_subclass(schema) and hasattr(schema, "model_json_schema"):
        return at_the_top(schema.model_json_schema())
    if isinstance(schema, Mapping) and not _NAME_KEYS & schema.keys():  # core would ask for a name, which nobody needs here
        return dict(schema)
    try:
        function = function_of(schema)
    except ValueError as error:
        raise ConfigurationError(f"no JSON schema can be made of {schema!r}: {error}") from error
    described = {"description": function["description"]} if function.get("description") else {}
    return {**described, **(function.get("parameters") or {"type": "object", "properties": {}})}


def _whole_schema(tool: Any) -> JsonSchema | None:
    """Return the schema from which core derives its own; None if core keeps the tool's schema or derives it from a TypedDict."""
    schema: Any = tool.tool_call_schema if isinstance(tool, BaseTool) else tool
    if isinstance(schema, type):
        if not is_basemodel_subclass(schema):
            return None
        made: JsonSchema = schema.model_json_schema() if hasattr(schema, "model_json_schema") else cast("Any", schema).schema()
        return made
    if isinstance(schema, Mapping):
        return schema if isinstance(tool, BaseTool) else None
    # core asks for a description where a function has no docstring; nobody will read this one
    return _whole_schema(StructuredTool.from_function(tool, description="None")) if callable(tool) else None


def _without_rest(tool: Any, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters without the one that core derives from `**kwargs`, because the function would not receive its values."""
    function = tool.func or tool.coroutine if isinstance(tool, StructuredTool) else tool
    properties = parameters.get("properties")
    if isinstance(tool, BaseTool) and isinstance(tool.args_schema, Mapping):
        return parameters  # what somebody wrote has no more than they meant
    if isinstance(function, BaseTool | Mapping | type) or not callable(function) or not isinstance(properties, Mapping):
        return parameters
    rest = {one.name for one in inspect.signature(function).parameters.values() if one.kind is one.VAR_KEYWORD}
    made = {name for name in rest & properties.keys() if properties[name].get("default", rest) is None and "anyOf" not in properties[name]}
    return {**parameters, "properties": {name: schema for name, schema in properties.items() if name not in made}}


def _untitled(node: Any) -> Any:
    """Return the schema without the titles that pydantic derives from names."""
    if not isinstance(node, Mapping):
        return node
    return {key: value for key, value in mapped(node, _untitled).items() if not (key == "title" and isinstance(value, str))}


def _finite_schema(node: Any) -> Any:
    """Return the schema without defaults, bounds and examples that are no numbers of JSON: infinite ones, and NaN."""
    if not isinstance(node, Mapping):
        return node
    return {key: value for key, value in mapped(node, _finite_schema).items() if key not in _VALUES or is_finite(value)}


def _true_defaults(tool: Any, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters without defaults that hold infinite numbers or NaN in a list, for which pydantic writes null."""
    schema: Any = tool.tool_call_schema if isinstance(tool, BaseTool) else tool
    fields = getattr(schema, "__pydantic_fields__", None) or {}
    if not fields and inspect.isroutine(schema):
        fields = inspect.signature(schema).parameters
    untrue = {name for name, field in fields.items() if not is_finite(field.default)}
    if not untrue:
        return parameters
    known = parameters.get("properties", {}).items()
    left = {name: {key: one for key, one in value.items() if key != "default"} if name in untrue else value for name, value in known}
    return {**parameters, "properties": left}


def _modern(node: Any) -> Any:
    """Return the schema with tuple items under the key of the current dialect; pydantic 1 uses the old one, which vendors reject."""
    if not isinstance(node, Mapping):
        return node
    changed = mapped(node, _modern)
    if isinstance(changed.get("items"), list):
        changed["prefixItems"] = [_modern(item) for item in changed.pop("items")]
    return changed


# ---------------------------------------------------------------------------------------------- choices
# Validation and conversion of tool choices in every spelling, for a vendor's `format_tool_choice`.


_Choice = TypeVar("_Choice")
Tools = Sequence[Mapping[str, Any]]
"""Declared tools, in a wire's form."""


def format_choice(
    choice: Any,
    tools: Tools,
    *,
    any_tool: Callable[[Tools], _Choice],
    named: Callable[[str, Tools], _Choice],
    from_mapping: Callable[[Mapping[str, Any], Tools], _Choice],
    forms: str = "a string, a bool or a dict",
) -> _Choice | None:
    """Return a tool choice in a wire's form; None if nothing was chosen.

    Args:
        choice: None or False (the vendor decides), True (some tool), a word or a tool's name, or a dict.
        tools: The declared tools.
        any_tool: The choice of some tool.
        named: The choice by one word.
        from_mapping: The choice that a dict says.
        forms: The accepted forms, for the error's text.

    Raises:
        ConfigurationError: The choice names no declared tool, or is of no known form.
    """
    if choice is None or choice is False:
        return None
    if choice is True:
        return any_tool(tools)
    if isinstance(choice, str):
        return named(choice, tools)
    if isinstance(choice, Mapping):
        return from_mapping(choice, tools)
    raise ConfigurationError(f"tool_choice must be {forms}, not {choice!r}")


def unknown_choice(choice: str, names: Sequence[str], words: Iterable[str]) -> ConfigurationError:
    """Return the error for a tool choice that is neither a declared tool's name nor a known word."""
    near = get_close_matches(choice, [*names, *words], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return ConfigurationError(f"tool_choice {choice!r} is none of the declared tools {names}{hint}")
