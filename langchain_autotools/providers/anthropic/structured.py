"""Schemas for the Messages API's `output_config.format`.

Wire facts: `{"type": "json_schema", "schema": {...}}`; every object admits no properties but its own (`additionalProperties: false`);
bounds of numbers, lengths and counts, and formats but a few, are refused (docs, "Structured outputs", "JSON Schema limitations"), so they
are told in the description, as the vendor's own SDK does; so is `oneOf`, which `anyOf` says as well.
"""

from collections.abc import Mapping
from typing import Any

from ...errors import ConfigurationError
from .._encode.functions import json_schema_of
from .._encode.schemas import JsonSchema, free_keys, is_recursive, mapped

_BOUNDS = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
    *("maxItems", "uniqueItems", "minProperties", "maxProperties", "default", "title", "discriminator"),
)
_SILENT = frozenset({"default", "title", "discriminator"})
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"})


def output_format(schema: Any) -> dict[str, Any]:
    """Return the output format for a schema.

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
    return {"type": "json_schema", "schema": _closed(json_schema_of(schema))}


def strict_schema(schema: JsonSchema) -> dict[str, Any]:
    """Return the schema of a strict tool.

    Raises:
        ConfigurationError: Strict mode cannot express it.
    """
    free = free_keys(schema)
    why = (
        f"an object with keys of its own choosing ({free})" if free else "a schema that refers to itself" if is_recursive(schema) else None
    )
    if why:
        raise ConfigurationError(f"strict mode cannot express {why}; change that, or leave strict out")
    closed: dict[str, Any] = _closed(schema)
    return closed


def _closed(node: Any) -> Any:
    if not isinstance(node, Mapping):
        return node
    notes = [f"{key}: {node[key]}" for key in _BOUNDS if key in node and key not in _SILENT]
    kept = {key: value for key, value in mapped(node, _closed).items() if key not in _BOUNDS}
    if "oneOf" in kept and "anyOf" not in kept:
        kept["anyOf"] = kept.pop("oneOf")
    if node.get("minItems") not in (None, 0, 1):
        notes.append(f"minItems: {kept.pop('minItems')}")
    if isinstance(node.get("format"), str) and node["format"] not in _FORMATS:
        notes.append(f"format: {kept.pop('format')}")
    if notes:
        kept["description"] = " ".join([*([node["description"]] if node.get("description") else []), "{" + ", ".join(notes) + "}"])
    if node.get("type") == "object" or "properties" in node:
        kept["additionalProperties"] = False
    return kept
