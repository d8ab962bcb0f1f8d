"""Schemas for chat completions' `response_format`.

Wire facts: `{"type": "json_schema", "json_schema": {name, description, schema, strict}}`; names match `[a-zA-Z0-9_-]{1,64}`. What
`strict` asks of a schema stands in `strict`.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...errors import ConfigurationError
from .._encode.functions import function_of
from .._encode.schemas import at_the_top, is_pydantic
from .strict import strict_schema, why_not_strict
from .wire import ResponseFormat

if TYPE_CHECKING:
    from openai.types.shared_params.response_format_json_schema import JSONSchema

_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]+")
_LONGEST_NAME = 64


def response_format(schema: Any, *, strict: bool | None = None) -> ResponseFormat:
    """Return the `response_format` of a request for output of this schema.

    Args:
        schema: A pydantic class, a TypedDict, a JSON schema with a title, a function of OpenAI's form, the inner
            `{"name", "schema"}`, or a whole `response_format`, which is returned as it is.
        strict: Whether the server must hold the model to the schema. None: as the schema says; of a pydantic class that says
            nothing, yes wherever its fields allow it (a dict with free keys does not).

    Raises:
        ConfigurationError: `strict` contradicts the schema, or no JSON schema can be made of it.
    """
    if isinstance(schema, Mapping) and isinstance(schema.get("type"), str) and schema["type"] in ("json_schema", "json_object", "text"):
        own: Any = {**schema}
        return _agreed(own, strict)
    if isinstance(schema, Mapping) and "name" in schema and "schema" in schema:
        inner: Any = {**schema}
        return _agreed({"type": "json_schema", "json_schema": inner}, strict)
    if is_pydantic(schema) and hasattr(schema, "model_json_schema"):
        return _of_class(schema, strict)
    return _of_function(schema, strict)


def _agreed(format: ResponseFormat, strict: bool | None) -> ResponseFormat:
    """Return a format in the wire's own form, with `strict` unless it is set already."""
    inner = format.get("json_schema")
    if strict is None or not isinstance(inner, Mapping):
        return format
    if inner.get("strict", strict) is not strict:
        raise ConfigurationError(f"strict={strict} contradicts the schema, which says strict={inner['strict']}: say it in one place")
    return {**format, "json_schema": {**inner, "strict": strict}}


def _of_class(schema: Any, strict: bool | None) -> ResponseFormat:
    declared = at_the_top(schema.model_json_schema())
    if strict is None:
        strict = why_not_strict(declared) is None
    inner: JSONSchema = {"name": _legal_format_name(declared.get("title") or schema.__name__)}
    if declared.get("description"):
        inner["description"] = declared["description"]
    return {"type": "json_schema", "json_schema": {**inner, "schema": strict_schema(declared) if strict else declared, "strict": strict}}


def _of_function(schema: Any, strict: bool | None) -> ResponseFormat:
    try:
        function: Any = function_of(schema, strict=strict)
    except ConfigurationError:
        raise
    except ValueError as error:
        raise ConfigurationError(f"no JSON schema can be made of {schema!r}: {error}") from error
    strict = bool(function.pop("strict", False))
    body = function.pop("parameters", {"type": "object", "properties": {}})
    body = strict_schema(body) if strict else body
    inner: JSONSchema = function
    return {"type": "json_schema", "json_schema": {**inner, "name": _legal_format_name(function["name"]), "schema": body, "strict": strict}}


def _legal_format_name(name: str) -> str:
    return _ILLEGAL.sub("_", name)[:_LONGEST_NAME]
