"""Functions that traverse JSON schemas, shared by the vendors' dialects."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from langchain_core.utils.pydantic import is_basemodel_subclass

JsonSchema = Mapping[str, Any]
"""A JSON schema to read; new ones are a `dict`."""

_ONE = ("items", "not", "additionalProperties", "contains")
_LISTS = ("anyOf", "allOf", "oneOf", "prefixItems")
_NAMED = ("properties", "$defs", "definitions", "patternProperties")
DEFINITIONS = ("$defs", "definitions")
"""The keys under which a schema keeps its definitions."""


def mapped(node: JsonSchema, change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the schema with `change` applied to each direct subschema; data such as defaults and enums stays as it is.

    Args:
        node: The schema.
        change: Gives what takes the place of an inner schema, which may also be a bool.
    """
    changed = dict(node)
    changed |= {key: change(node[key]) for key in _ONE if isinstance(node.get(key), Mapping)}
    changed |= {key: [change(item) for item in node[key]] for key in _LISTS if isinstance(node.get(key), list)}
    changed |= {key: {name: change(item) for name, item in node[key].items()} for key in _NAMED if isinstance(node.get(key), Mapping)}
    return changed


def walked(node: Any, where: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the schema and every schema inside it, each with its path (`pets.items.name`)."""
    if not isinstance(node, Mapping):
        return
    yield where, node
    for key in _ONE:
        yield from walked(node.get(key), f"{where}.{key}".lstrip("."))
    for key in _LISTS:
        for item in node[key] if isinstance(node.get(key), list) else ():
            yield from walked(item, where)
    for key in _NAMED:
        for name, item in node[key].items() if isinstance(node.get(key), Mapping) else ():
            yield from walked(item, f"{where}.{name}".lstrip("."))


def reference(node: JsonSchema) -> str | None:
    """Return the name of the definition that a schema refers to; "" for the whole schema; None if it has no reference."""
    target = node.get("$ref")
    return target.rpartition("/")[2].lstrip("#") if isinstance(target, str) else None


def definitions_of(schema: JsonSchema) -> dict[str, Any]:
    """Return the definitions of a schema, by name."""
    return {name: node for key in DEFINITIONS for name, node in (schema.get(key) or {}).items()}


def at_the_top(schema: JsonSchema) -> dict[str, Any]:
    """Return the schema with an object at the top level, also for a class that refers to itself."""
    name = reference(schema)
    return {**definitions_of(schema)[name], **{key: schema[key] for key in DEFINITIONS if key in schema}} if name else dict(schema)


def is_recursive(schema: JsonSchema) -> bool:
    """Whether a schema refers to itself somewhere."""
    from graphlib import CycleError, TopologicalSorter  # here, because nothing else at import needs it

    definitions = definitions_of(schema)
    inner = {name: {reference(node) for _, node in walked(definition)} - {None} for name, definition in definitions.items()}
    try:
        TopologicalSorter(inner).prepare()
    except CycleError:
        return True
    return any(reference(node) == "" for _, node in walked(schema))


def free_keys(schema: Any) -> str | None:
    """Return the path of an object with arbitrary keys, which no vendor's strict mode supports; None if there is none."""
    for where, node in walked(schema):
        if node.get("additionalProperties") or (node.get("type") == "object" and "properties" not in node):
            return where or "its top"
    return None


def is_pydantic(schema: Any) -> bool:
    """Whether a schema is a pydantic class, of version 1 or 2."""
    return isinstance(schema, type) and is_basemodel_subclass(schema)
