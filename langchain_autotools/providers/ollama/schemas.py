"""Schemas in Ollama's form: of a tool's parameters, and of structured output in `format`.

Wire facts (wire quirk O-05): of a parameter's schema the server keeps type, description, enum, items, properties, required and anyOf and
silently drops everything else, references among it. So references are written out (what holds itself: once), `const`, `oneOf` and
`allOf` are said in the keys that are kept, and what has no such key (defaults, bounds, patterns, tuples) is told in the description. Of
a schema in `format` the server makes a grammar, which knows references; it is sent as it is.
"""

from collections.abc import Mapping
from typing import Any

from ...errors import ConfigurationError
from .._encode.functions import json_schema_of
from .._encode.json_text import dumps
from .._encode.schemas import JsonSchema

_SILENT = frozenset({"title", "$defs", "definitions", "$schema", "additionalProperties", "examples", "deprecated", "readOnly", "writeOnly"})
_COMBINED = frozenset({"anyOf", "oneOf", "allOf", "$ref", "const"})
_KEPT = frozenset({"type", "description", "enum", "items", "properties", "required"})


def tool_parameters(name: str, schema: JsonSchema) -> dict[str, Any]:
    """Return a tool's parameters in the server's dialect.

    Args:
        name: The tool's name, for the error.
        schema: The JSON schema of its parameters.

    Raises:
        ConfigurationError: The schema refers to nothing, or is no object.
    """
    definitions = {**(schema.get("definitions") or {}), **(schema.get("$defs") or {}), "#": schema}
    try:
        inlined = _inlined(schema, definitions, ())
    except ValueError as error:
        raise ConfigurationError(f"tool {name!r} cannot be sent: {error}") from error
    if inlined.get("type", "object") != "object":
        raise ConfigurationError(f"tool {name!r} cannot be sent: its parameters must be an object, not {inlined['type']!r}")
    rest = {key: value for key, value in inlined.items() if key not in ("type", "properties")}
    return {"type": "object", "properties": inlined.get("properties") or {}, **rest}


def _inlined(node: Any, definitions: Mapping[str, JsonSchema], inside: tuple[str, ...]) -> dict[str, Any]:
    """Return a schema without references, in keys that the server keeps. `inside` names the definitions being expanded."""
    if not isinstance(node, Mapping):
        return {}  # `true`: anything
    reference = node.get("$ref")
    if reference is not None:
        target = str(reference).rpartition("/")[2]
        if target not in definitions:
            raise ValueError(f"{reference!r} refers to nothing")
        if target in inside or target == "#":
            return _again(target, definitions[target], node)
        rest = {key: value for key, value in node.items() if key != "$ref"}
        return _inlined({**definitions[target], **rest}, definitions, (*inside, target))
    if isinstance(node.get("allOf"), list):
        return _inlined(_merged(node, definitions), definitions, inside)
    kept = {key: value for key, value in node.items() if key in _KEPT}
    if "const" in node:
        kept["enum"] = [node["const"]]
    if isinstance(node.get("properties"), Mapping):
        kept["properties"] = {name: _inlined(one, definitions, inside) for name, one in node["properties"].items()}
    if "items" in node:
        kept["items"] = {} if isinstance(node["items"], list) else _inlined(node["items"], definitions, inside)
    either = node.get("anyOf") or node.get("oneOf")
    if isinstance(either, list):
        kept["anyOf"] = [_inlined(one, definitions, inside) for one in either]
    return {**kept, **_description(node, definitions, inside)}


def _again(name: str, definition: JsonSchema, node: JsonSchema) -> dict[str, Any]:
    """Return a recursive schema, which cannot be expanded, with a note in its description."""
    notes = [str(node["description"])] if node.get("description") else []
    notes.append("(the same as the whole)" if name == "#" else f"(again a {name}, as above)")
    kind = {"type": definition["type"]} if "type" in definition else {}
    return {**kind, "description": " ".join(notes)}


def _merged(node: JsonSchema, definitions: Mapping[str, JsonSchema]) -> dict[str, Any]:
    """Return a schema with `allOf` merged: properties and required names are joined, other keys taken from the outer schema."""
    merged: dict[str, Any] = {}
    rest = {key: value for key, value in node.items() if key != "allOf"}
    for part in [*node["allOf"], rest]:
        if isinstance(part, Mapping) and "$ref" in part and len(node["allOf"]) > 1:
            part = {**definitions.get(str(part["$ref"]).rpartition("/")[2], part), **{k: v for k, v in part.items() if k != "$ref"}}
        properties = {**merged.get("properties", {}), **(part.get("properties") or {})}
        required = list(dict.fromkeys([*merged.get("required", ()), *(part.get("required") or ())]))
        merged |= part
        merged |= {"properties": properties} if properties else {}
        merged |= {"required": required} if required else {}
    return merged


def _description(node: JsonSchema, definitions: Mapping[str, JsonSchema], inside: tuple[str, ...]) -> dict[str, Any]:
    """Return the description with the information that the server has no key for."""
    others = {key: value for key, value in node.items() if key not in _KEPT | _SILENT | _COMBINED and value is not None}
    places = node["items"] if isinstance(node.get("items"), list) else node.get("prefixItems")
    if isinstance(places, list):
        others["prefixItems"] = [_inlined(one, definitions, inside) for one in places]
    if isinstance(node.get("additionalProperties"), Mapping) and node["additionalProperties"]:
        others["values"] = _inlined(node["additionalProperties"], definitions, inside)
    description = [str(node["description"])] if node.get("description") else []
    if others:
        description.append("(" + ", ".join(f"{key}: {dumps(value)}" for key, value in others.items()) + ")")
    return {"description": " ".join(description)} if description else {}


# ---------------------------------------------------------------------------------------------- structured output


def output_format(schema: Any) -> Any:
    """Return the `format` of a request for output of this schema.

    Args:
        schema: A pydantic class, a TypedDict, a JSON schema, a function of OpenAI's form, a `response_format` of OpenAI's form, or
            the wire's own "json" and "".

    Raises:
        ConfigurationError: No JSON schema can be made of it.
    """
    if isinstance(schema, str):
        if schema not in ("", "json"):
            raise ConfigurationError(f"format={schema!r} is neither 'json' nor a JSON schema")
        return schema
    if isinstance(schema, Mapping):
        return _of_mapping(schema)
    return json_schema_of(schema)


def _of_mapping(schema: JsonSchema) -> Any:
    kind = schema.get("type")
    if kind in ("json_object", "text"):
        return "json" if kind == "json_object" else ""
    if kind == "json_schema":
        inner = schema.get("json_schema")
        found = inner.get("schema") if isinstance(inner, Mapping) else schema.get("schema")
        if not isinstance(found, Mapping):
            raise ConfigurationError(f"a response_format of type 'json_schema' needs a schema, not {found!r}")
        return dict(found)
    if "parameters" in schema or "function" in schema or "input_schema" in schema:
        return json_schema_of(schema)
    return dict(schema)
