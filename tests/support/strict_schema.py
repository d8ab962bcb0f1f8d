"""What OpenAI asks of a JSON schema: any schema that a tool declares, and the narrower kind of strict mode.

The rules of strict mode are those of https://platform.openai.com/docs/guides/structured-outputs, "Supported schemas".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Context = tuple[str, ...]
Fail = Callable[[str], Exception]

_TYPES = {"string", "number", "integer", "boolean", "object", "array", "null"}
_BARRED = ("allOf", "oneOf", "not", "if", "then", "else", "default", "patternProperties", "propertyNames", "uniqueItems", "minProperties",
           "maxProperties", "unevaluatedProperties", "dependentRequired", "dependentSchemas", "contains", "prefixItems",
           "unevaluatedItems", "minContains", "maxContains")  # fmt: skip
_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
_AT_THE_TOP = ("anyOf", "oneOf", "allOf", "enum", "not", "const")


def check_schema(schema: Any, strict: bool, fail: Fail, at_the_top: Sequence[str] = _AT_THE_TOP) -> None:
    """Raise `fail(reason)` for what OpenAI refuses. `at_the_top` are the keywords that may not be there."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    if kind != "object":
        raise fail(f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'.")
    if "properties" not in schema and "$ref" not in schema:
        raise fail("In context=(), object schema missing properties.")
    combined = next((key for key in at_the_top if key in schema), None)
    if combined:
        raise fail(f"schema must have type 'object' and not have '{combined}' at the top level.")
    if strict:
        _check_size(schema, fail)
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
    if "$ref" in part and not resolves(part["$ref"], root):
        raise fail(f"In context={context}, reference can only point to definitions defined at the top level of the schema.")


def _strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def resolves(reference: str, root: Mapping[str, Any]) -> bool:
    """Whether a reference leads to a part of the schema."""
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
    if part.get("format", "date") not in _FORMATS:
        raise fail(f"In context={context}, '{part['format']}' is not a valid format.")
    if re.search(r"\(\?<?[=!]", part.get("pattern", "")):
        raise fail(f"In context={context}, lookaround is not supported in patterns.")
    if "$ref" in part:
        if others := sorted(set(part) - {"$ref"}):
            raise fail(f"In context={context}, $ref cannot have keywords {set(others)}.")
        return
    if not part.keys() & {"type", "anyOf", "enum", "const"}:
        raise fail(f"In context={context}, schema must have a 'type' key.")
    if part.get("type") == "object" or "properties" in part:
        _check_strict_object(context, part, fail)


def _check_size(schema: Any, fail: Fail) -> None:
    parts = [part for _, part in walk(schema, ()) if isinstance(part, dict)]
    if sum(len(part.get("properties", {})) for part in parts) > 5000:
        raise fail("schema exceeds the maximum of 5000 object properties.")
    if sum(len(part.get("enum", ())) for part in parts) > 1000:
        raise fail("schema exceeds the maximum of 1000 enum values.")


def is_recursive(schema: Any) -> bool:
    """Whether a schema refers to itself somewhere."""
    definitions = {f"#/$defs/{name}": part for name, part in (schema.get("$defs") or {}).items()}

    def leads(part: Any, inside: Context) -> bool:
        targets = [inner["$ref"] for _, inner in walk({**part, "$defs": {}}, ()) if isinstance(inner, dict) and "$ref" in inner]
        return any(target in (*inside, "#") or leads(definitions.get(target, {}), (*inside, target)) for target in targets)

    return leads(schema, ())


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
