"""Schemas of replies: `responseMimeType` and `responseJsonSchema`."""

from collections.abc import Mapping
from typing import Any

from langchain_core.utils.function_calling import convert_to_openai_tool

from ...errors import ConfigurationError
from .._functions import function_of
from .._schemas import at_the_top
from .._structured import is_pydantic
from .schemas import dialect

__all__ = ["reply_schema", "response_format_config", "told_schema"]

_JSON = {"responseMimeType": "application/json"}


def response_format_config(form: Any) -> dict[str, Any]:
    """A `response_format` of OpenAI's form, or a schema, as parameters of this wire; empty for None."""
    if form is None:
        return {}
    if isinstance(form, Mapping) and form.get("type") in ("json_object", "text", "json_schema"):
        if form["type"] == "text":
            return {}
        inner = form.get("json_schema") or form
        return {**_JSON, **({"responseJsonSchema": dialect(inner["schema"])} if inner.get("schema") else {})}
    return {**_JSON, "responseJsonSchema": reply_schema(form)}


def told_schema(schema: Any) -> Mapping[str, Any]:
    """A schema as traces tell it: with its name, where it has one."""
    try:
        return convert_to_openai_tool(schema)
    except (ValueError, TypeError):
        return reply_schema(schema)


def reply_schema(schema: Any) -> dict[str, Any]:
    """The JSON schema of replies.

    Args:
        schema: A pydantic class, a TypedDict, or a JSON schema, also one without a title.

    Raises:
        ConfigurationError: No JSON schema can be made of it.
    """
    if is_pydantic(schema) and hasattr(schema, "model_json_schema"):
        return dialect(at_the_top(schema.model_json_schema()))
    if isinstance(schema, Mapping) and "title" not in schema and "name" not in schema:
        return dialect(schema)
    try:
        function = function_of(schema)
    except ValueError as error:
        raise ConfigurationError(f"no JSON schema can be made of {schema!r}: {error}") from error
    return dialect(function.get("parameters") or {"type": "object", "properties": {}})
