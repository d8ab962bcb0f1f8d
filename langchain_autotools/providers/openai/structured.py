"""Schemas as chat completions takes them in `response_format`.

Wire facts: `{"type": "json_schema", "json_schema": {name, description, schema, strict}}`; names match `[a-zA-Z0-9_-]{1,64}`; with
`strict` every object lists all its properties as required, admits no others, nothing has a default, and a `$ref` has no keys
beside it (OpenAI's guide to structured outputs, "Supported schemas").
"""

import re
from collections.abc import Mapping
from typing import Any

from langchain_core.utils.function_calling import convert_to_openai_function

from ...errors import ConfigurationError
from .._schemas import mapped
from .._structured import is_pydantic

__all__ = ["response_format"]

_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]+")
_LONGEST_NAME = 64


def response_format(schema: Any, *, strict: bool | None = None) -> dict[str, Any]:
    """The `response_format` that asks for output of this schema.

    Args:
        schema: A pydantic class, a TypedDict, a JSON schema with a title, a function of OpenAI's form, the inner
            `{"name", "schema"}`, or a whole `response_format`, which is returned as it is.
        strict: Whether the server must hold the model to the schema. None: as the schema says; of a pydantic class that says
            nothing, yes wherever its fields allow it (a dict with free keys does not).

    Raises:
        ConfigurationError: `strict` contradicts the schema, or no JSON schema can be made of it.
    """
    if isinstance(schema, Mapping) and isinstance(schema.get("type"), str) and schema["type"] in ("json_schema", "json_object", "text"):
        return _agreed({**schema}, strict)
    if isinstance(schema, Mapping) and "name" in schema and "schema" in schema:
        return _agreed({"type": "json_schema", "json_schema": dict(schema)}, strict)
    if is_pydantic(schema) and hasattr(schema, "model_json_schema"):
        return _of_class(schema, strict)
    return _of_function(schema, strict)


def _agreed(format: dict[str, Any], strict: bool | None) -> dict[str, Any]:
    """A format in the wire's own form, with `strict` where it does not say."""
    inner = format.get("json_schema")
    if strict is None or not isinstance(inner, Mapping):
        return format
    if inner.get("strict", strict) is not strict:
        raise ConfigurationError(f"strict={strict} contradicts the schema, which says strict={inner['strict']}: say it in one place")
    return {**format, "json_schema": {**inner, "strict": strict}}


def _of_class(schema: Any, strict: bool | None) -> dict[str, Any]:
    declared = schema.model_json_schema()
    if "$ref" in declared:  # a class that refers to itself; the wire wants an object at the top
        declared = {**declared["$defs"][declared["$ref"].rpartition("/")[2]], "$defs": declared["$defs"]}
    if strict is None:
        strict = not _has_free_keys(declared)
    named = {"name": _legal(declared.get("title") or schema.__name__)}
    described = {"description": declared["description"]} if declared.get("description") else {}
    body = _closed(declared, declared.get("$defs") or {}, ()) if strict else declared
    return {"type": "json_schema", "json_schema": {**named, **described, "schema": body, "strict": strict}}


def _of_function(schema: Any, strict: bool | None) -> dict[str, Any]:
    if strict is None:
        said = schema.get("strict") if isinstance(schema, Mapping) else None
        strict = said if isinstance(said, bool) else False
    try:
        function = convert_to_openai_function(schema, strict=strict)
    except ValueError as error:
        raise ConfigurationError(f"no JSON schema can be made of {schema!r}: {error}") from error
    body = function.pop("parameters", {"type": "object", "properties": {}})
    return {"type": "json_schema", "json_schema": {**function, "name": _legal(function["name"]), "schema": body, "strict": strict}}


def _legal(name: str) -> str:
    return _ILLEGAL.sub("_", name)[:_LONGEST_NAME]


# ---------------------------------------------------------------------------------------------- strict schemas


def _has_free_keys(schema: Any) -> bool:
    """Whether a schema has an object whose keys are not known, which strict mode cannot express."""
    free = False

    def look(node: Any) -> Any:
        nonlocal free
        if isinstance(node, Mapping):
            free = free or bool(node.get("additionalProperties")) or (node.get("type") == "object" and not node.get("properties"))
            mapped(node, look)
        return node

    look(schema)
    return free


def _closed(node: Any, definitions: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    """A schema as strict mode wants it: all properties required, none besides, no key beside a `$ref`.

    `inside` names the definitions that are being written out here: one within itself stays a bare reference.
    """
    if not isinstance(node, Mapping):
        return node
    reference = node.get("$ref")
    if isinstance(reference, str) and len(node) > 1:
        name = reference.rpartition("/")[2]
        if name in inside or name not in definitions:
            return {"$ref": reference}
        merged = {**definitions[name], **{key: value for key, value in node.items() if key != "$ref"}}
        return _closed(merged, definitions, (*inside, name))
    closed = mapped(node, lambda inner: _closed(inner, definitions, inside))
    closed.pop("default", None)  # of a required property a default says nothing, and the vendor refuses it
    if isinstance(node.get("properties"), Mapping):
        closed |= {"required": list(node["properties"]), "additionalProperties": False}
    return closed
