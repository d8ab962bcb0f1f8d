"""Conversion of tools of every form to functions with a JSON schema, the common input of the vendors' declarations.

LangChain's core converts them; where a schema refers to itself, core writes an empty schema in place of the inner reference, and the
model is not told what stands there. Such a schema is taken whole, with its definitions.
"""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Required, TypedDict, cast

from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_function
from langchain_core.utils.pydantic import is_basemodel_subclass

from ...errors import ConfigurationError
from .schemas import JsonSchema, at_the_top, is_recursive, mapped

_OF_THE_TOOL = ("title", "description")


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


@contextmanager
def declaring(tool: Any) -> Iterator[None]:
    """Add the tool's name to any error raised in the body.

    Raises:
        ConfigurationError: Something did.
    """
    try:
        yield
    except Exception as error:
        raise ConfigurationError(f"tool {_label(tool)!r} cannot be declared: {error}") from error


def _label(tool: Any) -> str:
    if isinstance(tool, Mapping):
        return str(tool.get("name") or tool.get("title") or tool)
    return str(getattr(tool, "name", None) or getattr(tool, "__name__", None) or tool)


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
    whole = _whole_schema(tool)
    if whole is not None and is_recursive(whole):
        function["parameters"] = {key: value for key, value in _untitled(at_the_top(whole)).items() if key not in _OF_THE_TOOL}
    if isinstance(function.get("parameters"), Mapping):
        parameters = _modern(function["parameters"])
        if isinstance(parameters.get("strict"), bool):  # of a schema with a title core takes it for a word of the schema
            function["strict"] = parameters.pop("strict")
        function["parameters"] = _without_rest(tool, parameters)
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


def json_schema_of(schema: Any) -> dict[str, Any]:
    """Return the JSON schema for a schema of any form: a pydantic class's own, else that of the function's parameters.

    Raises:
        ConfigurationError: None can be made of it.
    """
    if isinstance(schema, type) and is_basemodel_subclass(schema) and hasattr(schema, "model_json_schema"):
        return at_the_top(schema.model_json_schema())
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


def _modern(node: Any) -> Any:
    """Return the schema with tuple items under the key of the current dialect; pydantic 1 uses the old one, which vendors reject."""
    if not isinstance(node, Mapping):
        return node
    changed = mapped(node, _modern)
    if isinstance(changed.get("items"), list):
        changed["prefixItems"] = [_modern(item) for item in changed.pop("items")]
    return changed
