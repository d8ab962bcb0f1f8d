"""What OpenAI asks of a JSON schema: any schema that a tool declares, and the narrower kind of strict mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Context = tuple[str, ...]
Fail = Callable[[str], Exception]

_TYPES = {"string", "number", "integer", "boolean", "object", "array", "null"}
_BARRED = ("allOf", "oneOf", "not", "if", "then", "else", "default", "patternProperties", "propertyNames", "uniqueItems", "minProperties",
           "maxProperties", "unevaluatedProperties", "dependentRequired", "dependentSchemas", "contains")  # fmt: skip


def check_schema(schema: Any, strict: bool, fail: Fail) -> None:
    """Raise `fail(reason)` for what OpenAI refuses."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    if kind != "object":
        raise fail(f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'.")
    if "properties" not in schema and "$ref" not in schema:
        raise fail("In context=(), object schema missing properties.")
    for context, part in walk(schema, ()):
        _check_any(context, part, schema, fail)
        if strict:
            _check_strict(context, part, fail)


def walk(schema: Any, context: Context) -> Iterator[tuple[Context, Any]]:
    """Every schema inside a schema, itself first."""
    yield context, schema
    if not isinstance(schema, dict):
        return
    for key in ("properties", "$defs", "definitions"):
        for name, part in _items(schema.get(key)):
            yield from walk(part, (*context, key, name))
    for key in ("anyOf", "allOf", "oneOf", "prefixItems"):
        for position, part in enumerate(schema.get(key) or ()):
            yield from walk(part, (*context, key, str(position)))
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from walk(schema[key], (*context, key))


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    yield from value.items() if isinstance(value, dict) else ()


def _check_any(context: Context, part: Any, root: Mapping[str, Any], fail: Fail) -> None:
    if not isinstance(part, dict):
        if isinstance(part, bool):
            return
        raise fail(f"In context={context}, {part!r} is not of type 'object', 'boolean'.")
    kinds = part.get("type", [])
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        if kind not in _TYPES:
            raise fail(f"In context={context}, {kind!r} is not valid under any of the given schemas.")
    if part.get("type") == "array" and "items" not in part and "prefixItems" not in part:
        raise fail(f"In context={context}, array schema missing items.")
    if "properties" in part and not isinstance(part["properties"], dict):
        raise fail(f"In context={context}, {part['properties']!r} is not of type 'object'.")
    if "required" in part and not _strings(part["required"]):
        raise fail(f"In context={context}, {part['required']!r} is not of type 'array'.")
    if "enum" in part and not (isinstance(part["enum"], list) and part["enum"]):
        raise fail(f"In context={context}, {part['enum']!r} should be non-empty.")
    if "$ref" in part and not _resolves(part["$ref"], root):
        raise fail(f"In context={context}, reference can only point to definitions defined at the top level of the schema.")


def _strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _resolves(reference: str, root: Mapping[str, Any]) -> bool:
    found: Any = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        if step:
            found = found.get(step) if isinstance(found, dict) else None
    return reference.startswith("#") and found is not None


def _check_strict(context: Context, part: Any, fail: Fail) -> None:
    if not isinstance(part, dict):
        raise fail(f"In context={context}, schema must have a 'type' key.")
    for key in _BARRED:
        if key in part:
            raise fail(f"In context={context}, '{key}' is not permitted.")
    if "$ref" in part:
        if others := sorted(set(part) - {"$ref"}):
            raise fail(f"In context={context}, $ref cannot have keywords {set(others)}.")
        return
    if not part.keys() & {"type", "anyOf", "enum", "const"}:
        raise fail(f"In context={context}, schema must have a 'type' key.")
    if part.get("type") == "object" or "properties" in part:
        _check_strict_object(context, part, fail)


def _check_strict_object(context: Context, part: Mapping[str, Any], fail: Fail) -> None:
    if part.get("additionalProperties") is not False:
        raise fail(f"In context={context}, 'additionalProperties' is required to be supplied and to be false.")
    properties, required = part.get("properties", {}), part.get("required", [])
    for name in properties:
        if name not in required:
            reason = f"'required' is required to be supplied and to be an array including every key in properties. Missing '{name}'."
            raise fail(f"In context={context}, {reason}")
    for name in required:
        if name not in properties:
            raise fail(
                f"In context={context}, 'required' is required to be an array of keys in properties. Extra required key '{name}' supplied."
            )
