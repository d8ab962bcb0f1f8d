"""Schemas as the Messages API takes them in `output_config.format`.

Wire facts: `{"type": "json_schema", "schema": {...}}`; every object admits no properties but its own (`additionalProperties: false`);
bounds of numbers, lengths and counts are refused (docs, "Structured outputs", "JSON Schema limitations"), so they are told in the
description, as the vendor's own SDK does.
"""

from collections.abc import Mapping
from typing import Any

from langchain_core.utils.function_calling import convert_to_openai_function

from ...errors import ConfigurationError
from .._schemas import mapped
from .._structured import is_pydantic

__all__ = ["output_format"]

_BOUNDS = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
    *("maxItems", "uniqueItems", "minProperties", "maxProperties", "default", "title"),
)
_SILENT = frozenset({"default", "title"})


def output_format(schema: Any) -> dict[str, Any]:
    """The format that asks for output of this schema.

    Args:
        schema: A pydantic class, a TypedDict, a JSON schema with a title, a function or a `response_format` of OpenAI's form, or
            the wire's own format, which is returned as it is.

    Raises:
        ConfigurationError: No JSON schema can be made of it.
    """
    if isinstance(schema, Mapping) and schema.get("type") == "json_schema":
        inner = schema.get("json_schema")
        if not isinstance(inner, Mapping):
            return dict(schema)
        return {"type": "json_schema", "schema": _closed(inner.get("schema") or {})}
    return {"type": "json_schema", "schema": _closed(_json_schema(schema))}


def _json_schema(schema: Any) -> Mapping[str, Any]:
    if is_pydantic(schema) and hasattr(schema, "model_json_schema"):
        declared: dict[str, Any] = schema.model_json_schema()
        if "$ref" in declared:  # a class that refers to itself; the wire wants an object at the top
            declared = {**declared["$defs"][declared["$ref"].rpartition("/")[2]], "$defs": declared["$defs"]}
        return declared
    try:
        function = convert_to_openai_function(schema)
    except ValueError as error:
        raise ConfigurationError(f"no JSON schema can be made of {schema!r}: {error}") from error
    parameters: Mapping[str, Any] = function.get("parameters") or {"type": "object", "properties": {}}
    return parameters


def _closed(node: Any) -> Any:
    if not isinstance(node, Mapping):
        return node
    told = [f"{key}: {node[key]}" for key in _BOUNDS if key in node and key not in _SILENT and not isinstance(node[key], Mapping)]
    kept = {key: value for key, value in mapped(node, _closed).items() if key not in _BOUNDS or isinstance(value, Mapping)}
    if node.get("minItems") not in (None, 0, 1):
        told.append(f"minItems: {kept.pop('minItems')}")
    if told:
        kept["description"] = " ".join([*([node["description"]] if node.get("description") else []), "{" + ", ".join(told) + "}"])
    if node.get("type") == "object" or "properties" in node:
        kept["additionalProperties"] = False
    return kept
