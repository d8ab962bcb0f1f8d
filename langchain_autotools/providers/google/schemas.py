"""JSON schemas in the form of Google's two APIs.

Wire facts: a function's schema goes as `parametersJsonSchema`, which is JSON Schema, on both APIs alike (google-genai,
`types.FunctionDeclaration`; recorded requests to both); the older `parameters` takes an OpenAPI subset that knows no `$ref`, no
`const`, no `additionalProperties` and no list of types, and refuses the whole request for one of them (wire quirk G-11). Of a reply it is
`responseJsonSchema`. References are resolved in place, because not every model follows them; a schema that refers to itself keeps its
`$defs`.
"""

from collections.abc import Mapping
from typing import Any

from .._encode.schemas import DEFINITIONS, JsonSchema, definitions_of, mapped

_SAID_TO_VALIDATORS = ("$schema", "$id", "$comment")


def dialect(schema: JsonSchema) -> dict[str, Any]:
    """Return the schema with references resolved where possible, and without keys that only validators read."""
    resolver = _Resolver(definitions_of(schema))
    resolved: dict[str, Any] = resolver.resolve({key: value for key, value in schema.items() if key not in DEFINITIONS}, ())
    if resolver.kept:
        resolved["$defs"] = resolver.kept_definitions()
    return resolved


class _Resolver:
    """Replaces references by the definitions they refer to.

    Args:
        definitions: The schema's definitions by name.

    Attributes:
        kept: Definitions that refer to themselves, by name: these stay references.
    """

    def __init__(self, definitions: Mapping[str, JsonSchema]) -> None:
        self._definitions = definitions
        self.kept: dict[str, None] = {}

    def resolve(self, node: Any, inside: tuple[str, ...]) -> Any:
        """Return the node with its references resolved; `inside` contains the definitions around it."""
        if not isinstance(node, Mapping):
            return node
        reference = node.get("$ref")
        name = str(reference).rpartition("/")[2]
        if isinstance(reference, str) and name in self._definitions:
            if name in inside or name in self.kept:
                self.kept[name] = None
                return {"$ref": f"#/$defs/{name}"}
            target = self.resolve(self._definitions[name], (*inside, name))
            if name not in self.kept:
                return {**target, **{key: value for key, value in node.items() if key != "$ref"}}
            return {"$ref": f"#/$defs/{name}"}
        changed = mapped(node, lambda inner: self.resolve(inner, inside))
        if "const" in changed:
            changed["enum"] = [changed.pop("const")]
        return {key: value for key, value in changed.items() if key not in _SAID_TO_VALIDATORS}

    def kept_definitions(self) -> dict[str, Any]:
        """Return the definitions that are still referred to; resolving one may reveal another."""
        done: dict[str, Any] = {}
        while waiting := [name for name in self.kept if name not in done]:
            for name in waiting:
                done[name] = self.resolve(self._definitions[name], (name,))
        return done
