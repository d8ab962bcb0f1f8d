"""Random JSON schemas: every keyword of the current dialect, at every depth, with a word of its own in each place."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]

_FORMATS = ("date", "date-time", "uuid", "uri", "ipv4", "binary", "email", "regex")
_KINDS = ("string", "integer", "boolean", "array", "object", "tuple", "union", "enum", "const", "list", "reference", "any", "rare")
_LIKELY = (8, 8, 2, 6, 8, 1, 4, 4, 2, 2, 4, 0.5, 1)
SILENT = frozenset({"title", "$schema", "$comment", "discriminator"})
"""Keywords that say nothing to a model: a vendor's form may leave them out."""


class Schemas:
    """Makes random schemas, each from its seed.

    Args:
        seed: The seed of one schema.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._count = 0
        self._names = [self._word("Def") for _ in range(self._random.choice((0, 0, 1, 2)))]

    def schema(self) -> Schema:
        """Return a schema with a title, whose top is of any kind, mostly an object."""
        kind = "object" if self._random.random() < 0.6 else None
        top = {"title": "Made", **self._one(3, kind)}
        made = {name: self._one(2, "object", described=False) for name in self._names}
        used: list[str] = []
        for part in _parts_with(top, made, used):
            used.append(part)
        definitions = {name: made[name] for name in used}
        return {**top, **({"$defs": definitions} if definitions else {}), **self._maybe("$comment", "said to people")}

    def _word(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}x"

    def _number(self) -> int:
        self._count += 1
        return 7000 + self._count

    def _maybe(self, key: str, value: Any, chance: float = 0.15) -> Schema:
        return {key: value} if self._random.random() < chance else {}

    def _one(self, depth: int, kind: str | None = None, *, described: bool = True) -> Schema:
        kind = kind or self._random.choices(_KINDS, _LIKELY)[0]
        if (depth <= 0 and kind in ("array", "object", "tuple", "union", "rare")) or (kind == "reference" and not self._names):
            kind = "string"
        made: Schema = getattr(self, f"_{kind}")(depth)
        return {**made, **(self._maybe("description", self._word("said "), 0.3) if described else {})}

    def _string(self, depth: int) -> Schema:
        pattern = self._random.choice((f"^{self._word('p')}[a-z]+$", f"^(?={self._word('p')}).+$"))
        return {
            **{"type": "string"},
            **self._maybe("minLength", self._number()),
            **self._maybe("maxLength", self._number()),
            **self._maybe("pattern", pattern),
            **self._maybe("format", self._random.choice(_FORMATS)),
            **self._maybe("default", self._word("d")),
            **self._maybe("examples", [self._word("e")]),
        }

    def _integer(self, depth: int) -> Schema:
        bounds = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
        made: Schema = {"type": self._random.choice(("integer", "number"))}
        for bound in bounds:
            made |= self._maybe(bound, self._number())
        return {**made, **self._maybe("default", self._number())}

    def _boolean(self, depth: int) -> Schema:
        return {"type": "boolean", **self._maybe("default", False)}

    def _array(self, depth: int) -> Schema:
        return {
            **{"type": "array", "items": self._one(depth - 1)},
            **self._maybe("minItems", self._random.choice((1, 7001))),
            **self._maybe("maxItems", self._number()),
            **self._maybe("uniqueItems", True),
            **self._maybe("contains", {"const": self._word("c")}, 0.03),
        }

    def _tuple(self, depth: int) -> Schema:
        return {"type": "array", "prefixItems": [self._one(depth - 1), self._one(0)], **self._maybe("items", False)}

    def _object(self, depth: int) -> Schema:
        names = [self._word("field") for _ in range(self._random.randint(1, 3))]
        properties = {name: self._one(depth - 1) for name in names}
        free = self._random.choice((True, self._one(0)))
        return {
            **{"type": "object", "properties": properties},
            **self._maybe("required", [names[0]], 0.7),
            **self._maybe("additionalProperties", False, 0.3),
            **self._maybe("additionalProperties", free, 0.05),
            **self._maybe("patternProperties", {f"^{self._word('key')}": self._one(0)}, 0.03),
            **self._maybe("propertyNames", {"pattern": f"^{self._word('key')}$"}, 0.03),
            **self._maybe("minProperties", self._number(), 0.05),
            **self._maybe("dependentRequired", {names[0]: [names[-1]]}, 0.03),
        }

    def _union(self, depth: int) -> Schema:
        key = self._random.choice(("anyOf", "anyOf", "oneOf"))
        return {key: [self._one(depth - 1), self._random.choice(({"type": "null"}, self._one(depth - 1)))]}

    def _enum(self, depth: int) -> Schema:
        return {"enum": [self._word("v"), self._word("v")], **self._maybe("type", "string", 0.5)}

    def _const(self, depth: int) -> Schema:
        return {"const": self._random.choice((self._word("v"), self._number()))}

    def _list(self, depth: int) -> Schema:
        return {"type": [self._random.choice(("string", "integer")), "null"]}

    def _reference(self, depth: int) -> Schema:
        return {"$ref": f"#/$defs/{self._random.choice(self._names)}"}

    def _any(self, depth: int) -> Schema:
        return {"description": self._word("said ")}

    def _rare(self, depth: int) -> Schema:
        keys = self._random.choice((("not",), ("if", "then"), ("if", "then", "else"), ("allOf",)))
        if keys == ("allOf",):
            return {"allOf": [self._object(depth - 1) for _ in range(self._random.randint(1, 2))]}
        return {**self._object(depth - 1), **{key: self._object(0) for key in keys}}


def _parts_with(top: Schema, made: dict[str, Schema], used: list[str]) -> Iterator[str]:
    """Yield the names of the definitions that a schema refers to, also through others."""
    for name in made:
        if any(f'"#/$defs/{name}"' in json.dumps(part) for part in (top, *(made[one] for one in used))) and name not in used:
            yield name
            yield from _parts_with(top, made, used)


def words(schema: Any, *, name: str = "") -> Iterator[str]:
    """Yield what a schema says: its keywords, the names of its fields, and its values as texts."""
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key in SILENT:
                continue
            if name not in ("$defs",):
                yield key
            yield from words(value, name=key if name not in ("properties", "$defs", "patternProperties", "dependentRequired") else "")
    elif isinstance(schema, list):
        for value in schema:
            yield from words(value)
    elif isinstance(schema, str) and name != "$ref":
        yield schema
    elif isinstance(schema, int) and not isinstance(schema, bool):
        yield str(schema)
