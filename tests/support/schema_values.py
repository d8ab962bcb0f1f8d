"""Values that fit a JSON schema, filled with what a prompt mentions: the arguments a fake model writes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_QUOTED = re.compile(r"['\"“「]([^'\"”」]+)['\"”」]")
_PLACE = re.compile(r"\bin ((?:[A-Z][\w.'-]*,? ?)+)")
_PLACES = ("city", "location", "place", "town")


class Hints:
    """The numbers, quoted texts and places of a prompt; each number and quoted text is used once."""

    def __init__(self, prompt: str) -> None:
        self.prompt = prompt
        self.numbers = [float(number) for number in _NUMBER.findall(prompt)]
        self.quoted: list[str] = _QUOTED.findall(prompt)
        self.places = [place.strip(" ,.?!") for place in _PLACE.findall(prompt)]


def value_for(schema: Mapping[str, Any], hints: Hints, name: str = "value", root: Mapping[str, Any] | None = None) -> Any:
    """A value that fits `schema`; `name` is that of the property it is in."""
    root = schema if root is None else root
    schema = _resolved(schema, root)
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return _mentioned(schema["enum"], hints)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = next(part for part in kind if part != "null") if isinstance(kind, list) else kind
    if kind == "object":
        return _object(schema, hints, root)
    if kind == "array":
        count = max(int(schema.get("minItems", 1)), 1)
        return [value_for(schema.get("items") or {}, hints, name, root) for _ in range(count)]
    if kind in {"integer", "number"}:
        return _number(schema, hints, kind == "integer")
    return {"boolean": True, "null": None}[kind] if kind in {"boolean", "null"} else _text(schema, hints, name)


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    while True:
        if "$ref" in schema:
            found: Any = root
            for step in schema["$ref"].removeprefix("#/").split("/"):
                found = found[step]
            schema = {**found, **{key: value for key, value in schema.items() if key != "$ref"}}
        elif options := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
            schema = next((option for option in options if option.get("type") != "null"), options[0])
        else:
            return schema


def _mentioned(values: list[Any], hints: Hints) -> Any:
    return next((value for value in values if str(value).lower() in hints.prompt.lower()), values[0])


def _object(schema: Mapping[str, Any], hints: Hints, root: Mapping[str, Any]) -> dict[str, Any]:
    required = schema.get("required", [])
    properties = schema.get("properties", {})
    wanted = [name for name in properties if name in required or name.replace("_", " ") in hints.prompt.lower()]
    return {name: value_for(properties[name], hints, name, root) for name in wanted}


def _number(schema: Mapping[str, Any], hints: Hints, whole: bool) -> int | float:
    value = hints.numbers.pop(0) if hints.numbers else 1.0
    step = 1 if whole else 0.5
    lowest = max(schema.get("minimum", value), schema.get("exclusiveMinimum", value - step) + step)
    highest = min(schema.get("maximum", value), schema.get("exclusiveMaximum", value + step) - step)
    value = min(max(value, lowest), highest)
    return int(value) if whole else value


def _text(schema: Mapping[str, Any], hints: Hints, name: str) -> str:
    if hints.quoted:
        text = hints.quoted.pop(0)
    elif hints.places and any(word in name.lower() for word in _PLACES):
        text = hints.places.pop(0)
    else:
        text = f"some {name.replace('_', ' ')}"
    return text.ljust(int(schema.get("minLength", 0)), ".")[: schema.get("maxLength")]
