"""Tools and schemas in Ollama's dialect: what the server would drop is written out or told, what it cannot take is an error."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any, Literal, TypedDict

import pytest
from langchain_core.tools import tool
from pydantic import BaseModel, Field

from langchain_autotools import ChatOllama, ConfigurationError
from langchain_autotools.providers.ollama import OllamaMapper
from langchain_autotools.providers.ollama.tools import format_tool, format_tool_choice
from tests.support.strict_ollama import check_request


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    """A place."""

    x: int = Field(ge=0, le=9)
    y: int = 0


class Shape(BaseModel):
    """Draw a shape."""

    corners: list[Point]
    middle: Point
    colour: Colour = Colour.RED
    kind: Literal["open", "closed"]
    label: str | None = Field(None, description="What stands in it", max_length=5)
    weights: dict[str, float] = {}
    either: int | list[Point]
    größe: float


class Node(BaseModel):
    """A tree."""

    children: list[Node]


RECURSIVE = {
    "type": "object",
    "properties": {"p": {"$ref": "#/$defs/N"}, "q": {"$ref": "#"}},
    "$defs": {"N": {"items": {"$ref": "#/$defs/N", "description": "More."}, "type": "array"}},
}


def parameters(declared: Any) -> dict[str, Any]:
    """A tool's parameters, in a request that a strict server accepts."""
    formatted = format_tool(declared)
    check_request(OllamaMapper().encode_request([], {"model": "m", "tools": [formatted]}))
    return formatted["function"]["parameters"]  # type: ignore[no-any-return]


def test_nested_models_enums_unions_and_defaults() -> None:
    """References are written out; what the server has no key for is in the description; nothing is lost (wire quirk O-05)."""
    schema = parameters(Shape)
    properties = schema["properties"]
    point = {
        "description": "A place.",
        "properties": {
            "x": {"type": "integer", "description": "(maximum: 9, minimum: 0)"},
            "y": {"type": "integer", "description": "(default: 0)"},
        },
        "required": ["x"],
        "type": "object",
    }
    assert properties["corners"] == {"items": point, "type": "array"}
    assert properties["middle"] == point
    assert (properties["colour"]["enum"], properties["colour"]["description"]) == (["red", "blue"], '(default: "red")')
    assert properties["kind"]["enum"] == ["open", "closed"]
    assert properties["label"]["description"].startswith("What stands in it")
    assert [one["type"] for one in properties["label"]["anyOf"]] == ["string", "null"]
    assert '"type":"number"' in properties["weights"]["description"]
    assert properties["either"]["anyOf"] == [{"type": "integer"}, {"items": point, "type": "array"}]
    assert properties["größe"] == {"type": "number"}
    assert "größe" in schema["required"] and "$defs" not in json.dumps(schema)


def test_a_schema_that_holds_itself_is_written_out_once() -> None:
    """The model is told where it comes again."""
    again = {"type": "array", "description": "More. (again a N, as above)"}
    written = parameters({"name": "f", "description": "F.", "parameters": RECURSIVE})["properties"]
    assert written["p"] == {"type": "array", "items": again}
    assert written["q"] == {"type": "object", "description": "(the same as the whole)"}


def test_a_tool_without_arguments() -> None:
    """It has an empty object."""

    @tool
    def tell_time() -> str:
        """Tell the time."""
        return ""

    assert parameters(tell_time) == {"type": "object", "properties": {}}
    assert parameters({"name": "bare", "description": "No schema at all."}) == {"type": "object", "properties": {}}


SCHEMAS = {
    "const": ({"const": 1}, {"enum": [1]}),
    "oneOf": ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
    "allOf of one": ({"allOf": [{"$ref": "#/$defs/P"}], "description": "D"}, {"type": "string", "description": "D"}),
    "allOf of two": (
        {"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]},
        {"properties": {"a": {"type": "string"}, "b": {}}, "required": ["a", "b"]},
    ),
    "reference with words of its own": ({"$ref": "#/$defs/P", "description": "D"}, {"type": "string", "description": "D"}),
    "tuple": (
        {"type": "array", "prefixItems": [{"$ref": "#/$defs/P"}, {"type": "integer"}]},
        {"type": "array", "description": '(prefixItems: [{"type":"string"},{"type":"integer"}])'},
    ),
    "several types": ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
    "anything": (True, {}),
    "pattern": ({"type": "string", "pattern": "^a"}, {"type": "string", "description": '(pattern: "^a")'}),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_dialect(name: str) -> None:
    """Each construct in the keys that the server keeps."""
    schema, expected = SCHEMAS[name]
    declared = {
        "name": "f",
        "description": "F.",
        "parameters": {"type": "object", "properties": {"p": schema}, "$defs": {"P": {"type": "string"}}},
    }
    assert parameters(declared)["properties"]["p"] == expected


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"name": "f", "parameters": {"type": "object", "properties": {"p": {"$ref": "#/$defs/Q"}}}}, "refers to nothing"),
        ({"name": "f", "parameters": {"type": "string"}}, "must be an object"),
        ({"type": "web_search_20250305", "name": "web_search"}, "cannot be declared"),
        (3, "cannot be declared"),
    ],
    ids=["dangling reference", "no object", "another vendor's", "no tool"],
)
def test_what_cannot_be_declared_is_told_when_it_is_bound(declared: Any, said: str) -> None:
    """A tool that would be spoilt on its way is an error at once, which names it."""
    with pytest.raises(ConfigurationError, match=said):
        ChatOllama(model="m").bind_tools([declared])


CHOICES = [
    (None, None), (False, None), (True, "required"), ("any", "required"), ("required", "required"), ("auto", "auto"), ("none", "none"),
    ("f", {"type": "function", "function": {"name": "f"}}),
    ({"type": "function", "function": {"name": "f"}}, {"type": "function", "function": {"name": "f"}}),
    ({"type": "tool", "name": "f"}, {"type": "function", "function": {"name": "f"}}),
    ({"type": "any"}, "required"),
]  # fmt: skip


@pytest.mark.parametrize(("choice", "expected"), CHOICES, ids=[str(number) for number in range(len(CHOICES))])
def test_choices_in_every_form(choice: Any, expected: Any) -> None:
    """Whoever wrote it, a choice has one form here."""
    assert format_tool_choice(choice, [format_tool({"name": "f", "description": "F."})]) == expected


@pytest.mark.parametrize("choice", ["g", {"type": "function", "function": {"name": "g"}}, 3])
def test_a_choice_of_no_tool_is_told(choice: Any) -> None:
    """A choice that names nothing declared is an error that names what there is."""
    with pytest.raises(ConfigurationError, match=r"tool_choice"):
        ChatOllama(model="m").bind_tools([{"name": "f", "description": "F."}], tool_choice=choice)


class Joke(TypedDict):
    """A joke."""

    setup: str


@pytest.mark.parametrize(
    "schema",
    [
        Point,
        Node,
        Joke,
        Point.model_json_schema(),
        {"type": "json_schema", "json_schema": {"name": "P", "schema": Point.model_json_schema()}},
    ],
    ids=["pydantic", "recursive", "typed dict", "JSON schema", "response_format"],
)
def test_formats(schema: Any) -> None:
    """Every way to say a schema becomes a JSON schema whose top is an object; the grammar knows references, so recursion is fine."""
    from langchain_autotools.providers.ollama.tools import output_format

    form = output_format(schema)
    assert form["type"] == "object" and "properties" in form


def test_a_format_that_is_none_is_told() -> None:
    """A word that is no format is an error of the constructor and of the call."""
    with pytest.raises(ValueError, match="neither 'json' nor a JSON schema"):
        ChatOllama(model="m", format="yaml")
