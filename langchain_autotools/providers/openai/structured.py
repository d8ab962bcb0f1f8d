"""Schemas as chat completions takes them in `response_format`.

Wire facts: `{"type": "json_schema", "json_schema": {name, description, schema, strict}}`; names match `[a-zA-Z0-9_-]{1,64}`. What
`strict` asks of a schema stands in `strict`.
"""

import re
from collections.abc import Mapping
from typing import Any

from ...errors import ConfigurationError
from .._encode.functions import function_of
from .._encode.schemas import at_the_top, is_pydantic
from .strict import strict_schema, why_not_strict

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
    declared = at_the_top(schema.model_json_schema())
    if strict is None:
        strict = why_not_strict(declared) is None
    named = {"name": _legal(declared.get("title") or schema.__name__)}
    described = {"description": declared["description"]} if declared.get("description") else {}
    body = strict_schema(declared) if strict else declared
    return {"type": "json_schema", "json_schema": {**named, **described, "schema": body, "strict": strict}}


def _of_function(schema: Any, strict: bool | None) -> dict[str, Any]:
    try:
        function = function_of(schema, strict=strict)
    except ConfigurationError:
        raise
    except ValueError as error:
        raise ConfigurationError(f"no JSON schema can be made of {schema!r}: {error}") from error
    strict = bool(function.pop("strict", False))
    body = function.pop("parameters", {"type": "object", "properties": {}})
    body = strict_schema(body) if strict else body
    return {"type": "json_schema", "json_schema": {**function, "name": _legal(function["name"]), "schema": body, "strict": strict}}


def _legal(name: str) -> str:
    return _ILLEGAL.sub("_", name)[:_LONGEST_NAME]
