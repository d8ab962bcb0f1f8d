"""What becomes of each part of a JSON schema, for each vendor and method: `python -m tests.compositions.schema_table` writes the page.

Nothing is written by hand: each cell is what a strict server of the vendor got, or that the class refused the schema.
"""

import json
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import HumanMessage

from langchain_autotools import ConfigurationError
from tests.compositions.test_output_schemas import ROWS, declared
from tests.conftest import REPOSITORY
from tests.support.script import Turn

PAGE = REPOSITORY / "docs" / "schemas.md"
COLUMNS: dict[str, tuple[str, str, bool | None]] = {
    "OpenAI<br>`json_schema`": ("openai-chat", "json_schema", None),
    "OpenAI<br>`json_schema`, strict": ("openai-chat", "json_schema", True),
    "OpenAI<br>`function_calling`": ("openai-chat", "function_calling", None),
    "OpenAI<br>`function_calling`, strict": ("openai-chat", "function_calling", True),
    "Anthropic<br>`json_schema`": ("anthropic", "json_schema", None),
    "Anthropic<br>`function_calling`": ("anthropic", "function_calling", None),
    "Anthropic<br>`function_calling`, strict": ("anthropic", "function_calling", True),
    "Google<br>`json_schema`": ("google", "json_schema", None),
    "Google<br>`function_calling`": ("google", "function_calling", None),
    "Ollama<br>`json_schema`": ("ollama", "json_schema", None),
    "Ollama<br>`function_calling`": ("ollama", "function_calling", None),
}
_OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
TOPS: dict[str, dict[str, Any]] = {
    "an object with fields": _OBJECT,
    "`additionalProperties` (keys of the model's choice)": {"type": "object", "additionalProperties": {"type": "integer"}},
    "a list": {"type": "array", "items": {"type": "integer"}},
    "`anyOf`": {"anyOf": [_OBJECT, {"type": "string"}]},
    "`enum`": {"enum": ["a", "b"]},
}
_BOUNDS = {"minimum": 3, "maximum": 3, "exclusiveMinimum": 3, "exclusiveMaximum": 3, "multipleOf": 3}
FIELDS: dict[str, dict[str, Any]] = {
    "`enum`": {"enum": ["a", "b"]},
    "`const`": {"const": "a"},
    "`anyOf`": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    "`oneOf`": {"oneOf": [{"type": "integer"}, {"type": "null"}]},
    "`allOf`": {"allOf": [_OBJECT, {"type": "object", "properties": {"b": {"type": "integer"}}}]},
    "a list of types": {"type": ["integer", "null"]},
    "`$ref`": {"$ref": "#/$defs/Part"},
    "`$ref` to itself": {"$ref": "#/$defs/Node"},
    "`additionalProperties` (keys of the model's choice)": {"additionalProperties": {"type": "integer"}, "type": "object"},
    "`default`": {"default": 3, "type": "integer"},
    "bounds of numbers": {**_BOUNDS, "type": "integer"},
    "`minLength`, `maxLength`": {"minLength": 3, "maxLength": 3, "type": "string"},
    "`pattern`": {"pattern": "^a+$", "type": "string"},
    "`pattern` with look-around": {"pattern": "^(?=a).+$", "type": "string"},
    "`format`: date, date-time, uuid": {"format": "date", "type": "string"},
    "`format`: uri": {"format": "uri", "type": "string"},
    "`format`: binary": {"format": "binary", "type": "string"},
    "`minItems`, `maxItems`": {"minItems": 3, "maxItems": 3, "type": "array", "items": {"type": "integer"}},
    "`uniqueItems`": {"uniqueItems": True, "type": "array", "items": {"type": "integer"}},
    "`prefixItems` (tuples)": {"prefixItems": [{"type": "integer"}], "type": "array"},
    "`patternProperties`": {"patternProperties": {"^a": {"type": "integer"}}, **_OBJECT},
    "`if`, `then`, `else`": {"if": _OBJECT, "then": _OBJECT, "else": _OBJECT},
    "`not`": {"not": {"type": "integer"}, **_OBJECT},
    "a value of any type": {"description": "anything"},
}
_DEFINITIONS = {
    "Part": _OBJECT,
    "Node": {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}}, "required": ["next"]},
}
_WORDS = {"additionalProperties": "values"}
_OTHER = {"`oneOf`": "anyOf", "`const`": "enum"}
_HEAD = """# What is sent of a JSON schema

`with_structured_output(schema)` takes pydantic classes, TypedDicts, dataclasses, JSON schemas, and types such as `list[int]` or
`Cat | Dog`. The schema is sent whole. If a vendor requires an object at the top, the schema is sent as the one field `value` of an object,
and the answer is taken out of it again. What the vendor's form cannot express is a `ConfigurationError` before the request. Nothing is left
out silently.

- **yes**: sent as it is. **inside**: sent as the one field of an object. **told**: put into the description, because the vendor has no
  keyword for it.
- **as ...**: sent as another keyword that means the same. **written out**: put in the place of the reference.
- **refused**: an error that names the part. If you did not ask for strictness, OpenAI gets the schema of such a class without it. If a
  model of Anthropic's thinks and JSON output cannot express a schema, the schema is a tool, whose call is requested, not forced.

A `title`, `$schema` and `$comment` are for people and may be left out, and so may a `discriminator`, because the values that it points to
are in the schema. Strict tools are treated like strict `function_calling`, and the presets like OpenAI. The rules are those of the
vendors' guides:
[OpenAI](https://platform.openai.com/docs/guides/structured-outputs),
[Anthropic](https://platform.claude.com/docs/en/build-with-claude/structured-outputs),
[Google](https://ai.google.dev/gemini-api/docs/structured-output) and
[Ollama](https://docs.ollama.com/capabilities/structured-outputs). Google's models ignore keywords that its guide does not name.

This page is generated from what strict servers received (`python -m tests.compositions.schema_table`); a test compares."""

Column = tuple[str, str, bool | None]


def page() -> str:
    """The page, from what the servers get."""
    cells = {title: _cells(column) for title, column in COLUMNS.items()}
    lines = [_HEAD]
    for place, parts in (("At the top", TOPS), ("In a field", FIELDS)):
        lines += [f"\n## {place}\n", f"| | {' | '.join(COLUMNS)} |", "|---|" + "---|" * len(COLUMNS)]
        lines += [f"| {part} | {' | '.join(cells[title][place, part] for title in COLUMNS)} |" for part in parts]
    return "\n".join(lines) + "\n"


def _cells(column: Column) -> dict[tuple[str, str], str]:
    """What became of each part, at the top and in a field."""
    name, method, strict = column
    wire = next(wire for wire in ROWS if wire.name == name)
    with wire.serve(lambda exchange: Turn("{}")) as server:
        model = wire.model(server)

        def sent(schema: Mapping[str, Any]) -> Any:
            """The schema that the strict server gets; None if the class refuses it."""
            try:
                chain = model.with_structured_output(schema, method=method, strict=strict, include_raw=True)
            except ConfigurationError:
                return None
            chain.invoke([HumanMessage("JSON?")])
            return declared(server.exchanges[-1])[1]

        tops = {("At the top", part): _top(schema, sent({"title": "Made", **schema})) for part, schema in TOPS.items()}
        return tops | {("In a field", part): _field(part, schema, sent(_whole(schema))) for part, schema in FIELDS.items()}


def _whole(schema: Mapping[str, Any]) -> dict[str, Any]:
    used = {name: one for name, one in _DEFINITIONS.items() if f"/{name}" in json.dumps(schema)}
    whole = {"title": "Made", "type": "object", "properties": {"field": schema}, "required": ["field"]}
    return {**whole, "$defs": used} if used else whole


def _top(schema: Mapping[str, Any], sent: Any) -> str:
    if sent is None:
        return "refused"
    inside = sent.get("properties", {}).get("value")
    found = sent if inside is None else inside
    if all(_says(found.get(key), value) for key, value in schema.items()):
        return "yes" if inside is None else "inside"
    return "told"


def _field(part: str, schema: Mapping[str, Any], sent: Any) -> str:
    if sent is None:
        return "refused"
    found = sent["properties"]["field"]
    description = found.get("description", "")
    if all(_says(found.get(key), value) for key, value in schema.items()):
        return "yes"
    if _OTHER.get(part) in found:
        return f"as `{_OTHER[part]}`"
    told = [key for key in schema if _says(found.get(key), schema[key]) or f"{_WORDS.get(key, key)}:" in description]
    return "told" if len(told) == len(schema) else "written out"


def _says(found: Any, asked: Any) -> bool:
    """Whether a part of a schema is what was asked for, but for what closes its objects."""
    if isinstance(asked, Mapping) and isinstance(found, Mapping):
        return all(_says(found.get(key), value) for key, value in asked.items())
    if isinstance(asked, list) and isinstance(found, list) and len(asked) == len(found):
        return all(map(_says, found, asked))
    return bool(found == asked)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
