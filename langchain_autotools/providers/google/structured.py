"""Schemas of replies, for `responseMimeType` and `responseJsonSchema`."""

from collections.abc import Mapping
from typing import Any

from .._encode.functions import json_schema_of
from .schemas import dialect
from .sdk import plain_schema

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
