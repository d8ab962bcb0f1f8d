"""Schemas of replies: `responseMimeType` and `responseJsonSchema`."""

from collections.abc import Mapping
from typing import Any

from langchain_core.utils.function_calling import convert_to_openai_function

from ...errors import ConfigurationError
from .._structured import is_pydantic
from .schemas import dialect

__all__ = ["reply_schema", "response_format_config"]

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


def reply_schema(schema: Any) -> dict[str, Any]:
    """The JSON schema of replies.

    Args:
        schema: A pydantic class, a TypedDict, or a JSON schema, also one without a title.

    Raises:
        ConfigurationError: No JSON schema can be made of it.
    """
    if is_pydantic(schema) and hasattr(schema, "model_json_schema"):
        declared: dict[str, Any] = schema.model_json_schema()
        if "$ref" in declared:  # a class that refers to itself; the wire wants an object at the top
            declared = {**declared["$defs"][declared["$ref"].rpartition("/")[2]], "$defs": declared["$defs"]}
        return dialect(declared)
    if isinstance(schema, Mapping) and "title" not in schema and "name" not in schema:
        return dialect(schema)
    try:
        function = convert_to_openai_function(schema)
    except ValueError as error:
        raise ConfigurationError(f"no JSON schema can be made of {schema!r}: {error}") from error
    return dialect(function.get("parameters") or {"type": "object", "properties": {}})
