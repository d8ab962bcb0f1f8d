"""JSON schemas in the form of OpenAI's strict mode, for tools and structured output.

Wire facts: every object lists all its properties as required and admits no others, nothing has a default, a `$ref` has no keys
beside it, everything has a type, and of the words that combine schemas there is `anyOf` alone (OpenAI's guide to structured outputs,
"Supported schemas").
"""

from collections.abc import Mapping
from typing import Any

from ...errors import ConfigurationError
from .._encode.schemas import free_keys, mapped, walked

_HINTS = frozenset({"default", "discriminator", "uniqueItems", "minProperties", "maxProperties"})
"""Keywords that strict mode rejects and that can be dropped, because the tool itself still checks the values."""
_BARRED = (
    *("not", "if", "then", "else", "patternProperties", "propertyNames", "contains", "unevaluatedProperties"),
    *("dependentRequired", "dependentSchemas"),
)
_TYPED = frozenset({"type", "anyOf", "enum", "const", "$ref", "oneOf", "allOf"})


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema in strict mode's dialect.

    Raises:
        ConfigurationError: Strict mode cannot express it.
    """
    why = why_not_strict(schema)
    if why:
        raise ConfigurationError(f"strict mode cannot express {why}; change that, or leave strict out")
    definitions = {**(schema.get("definitions") or {}), **(schema.get("$defs") or {})}
    closed: dict[str, Any] = _closed(schema, definitions, ())
    return closed


def why_not_strict(schema: Any) -> str | None:
    """Return the part of a schema that strict mode cannot express; None if there is none."""
    free = free_keys(schema)
    if free:
        return f"an object with keys of its own choosing ({free})"
    for where, node in walked(schema):
        barred = next((key for key in _BARRED if key in node), None)
        if barred or len(node.get("allOf") or ()) > 1:
            return f"{(barred or 'allOf')!r} ({where or 'its top'})"
        if where and not _TYPED & node.keys():
            return f"a value of any type ({where})"
    return None


def _closed(node: Any, definitions: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    """Return a schema in strict mode's form. `inside` names the definitions being expanded: a recursive one stays a reference."""
    if not isinstance(node, Mapping):
        return node
    node = _without_hints(node)
    reference = node.get("$ref")
    if isinstance(reference, str) and len(node) > 1:
        name = reference.rpartition("/")[2]
        if name in inside or name not in definitions:
            return {"$ref": reference}
        merged = {**definitions[name], **{key: value for key, value in node.items() if key != "$ref"}}
        return _closed(merged, definitions, (*inside, name))
    closed = mapped(node, lambda inner: _closed(inner, definitions, inside))
    if isinstance(node.get("properties"), Mapping):
        closed |= {"required": list(node["properties"]), "additionalProperties": False}
    return closed


def _without_hints(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema without keywords that strict mode does not know and can omit."""
    plain = {key: value for key, value in node.items() if key not in _HINTS}
    if "oneOf" in plain:
        plain["anyOf"] = plain.pop("oneOf")
    if len(plain.get("allOf") or ()) == 1:
        (only,) = plain.pop("allOf")
        plain = {**only, **plain}
    return plain
