"""JSON schemas, walked: what every vendor's dialect is made with."""

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["mapped"]

_ONE = ("items", "not", "additionalProperties", "contains")
_LISTS = ("anyOf", "allOf", "oneOf", "prefixItems")
_NAMED = ("properties", "$defs", "definitions", "patternProperties")


def mapped(node: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """The schema with each schema directly inside it changed; data such as defaults and enums stays as it is."""
    changed = dict(node)
    changed |= {key: change(node[key]) for key in _ONE if isinstance(node.get(key), Mapping)}
    changed |= {key: [change(item) for item in node[key]] for key in _LISTS if isinstance(node.get(key), list)}
    changed |= {key: {name: change(item) for name, item in node[key].items()} for key in _NAMED if isinstance(node.get(key), Mapping)}
    return changed
