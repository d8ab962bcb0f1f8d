"""Tools and tool choices as Google declares them: schemas of every shape, every spelling of a choice, the vendor's own tools."""

from __future__ import annotations

import enum
from typing import Any, Literal

import pytest
from google.genai import types as sdk_types
from langchain_core.tools import StructuredTool, tool
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from langchain_autotools import ChatGoogleGenerativeAI, ConfigurationError
from langchain_autotools.providers.google.chat_model import wire_choice
from langchain_autotools.providers.google.tools import dialect, format_tool, format_tool_choice, wire_tools
from tests.support.google_server import GoogleServer
from tests.support.script import Call, Turn


class Colour(enum.Enum):
    red = "red"
    green = "green"


class Part(BaseModel):
    """A part of something."""

    name: str
    größe: float = Field(1.5, description="in cm")


class Tree(BaseModel):
    """A node and what hangs from it."""

    label: str
    children: list[Tree] = []


class Order(BaseModel):
    """An order."""

    part: Part
    more: list[Part] | None = None
    either: int | Part | Literal["none"] = "none"
    colour: Colour = Colour.red
    exactly: Literal["x"] = "x"
    tree: Tree


class Pair(TypedDict):
    """Two numbers."""

    a: int
    b: int


@tool(args_schema=Order)
def order(**fields: Any) -> str:
    """Place an order."""
    return "ordered"


@tool
def tell_time() -> str:
    """Tell the time."""
    return "12:00"


def references(node: Any) -> list[str]:
    """All references in a schema."""
    if isinstance(node, list):
        return [found for item in node for found in references(item)]
    if not isinstance(node, dict):
        return []
    own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
    return own + [found for item in node.values() for found in references(item)]


def test_schemas_of_every_shape_are_declared_and_accepted() -> None:
    """Nested models, unions, enums, defaults and names of any script go through; what does not refer to itself is in its place.

    Wire quirk G-11.
    """
    with GoogleServer([Turn("Hi.")]) as server:
        model = ChatGoogleGenerativeAI(model="any", base_url=server.url, api_key="k", tools=[order, tell_time])
        model.bind_tools([Pair, free_tool()]).invoke("Hi")
        assert server.rejections == []
    [entry] = server.requests[0]["tools"]
    declared = {one["name"]: one["parametersJsonSchema"] for one in entry["functionDeclarations"]}
    assert list(declared) == ["order", "tell_time", "Pair", "be_free"]
    schema = declared["order"]
    assert schema["properties"]["part"]["properties"]["größe"] == {"default": 1.5, "description": "in cm", "type": "number"}
    assert [kind.get("type") for kind in schema["properties"]["either"]["anyOf"]] == ["integer", "object", "string"]
    assert (schema["properties"]["colour"]["enum"], schema["properties"]["exactly"]["enum"]) == (["red", "green"], ["x"])
    assert set(references(schema)) == {"#/$defs/Tree"} <= {f"#/$defs/{name}" for name in schema["$defs"]}  # what refers to itself
    assert declared["tell_time"] == {"type": "object", "properties": {}}


def free_tool() -> StructuredTool:
    """A tool whose arguments are a dict schema, with a key in another script."""
    schema = {"type": "object", "properties": {"ключ": {"type": ["string", "null"]}}, "$schema": "https://json-schema.org/draft"}
    return StructuredTool.from_function(lambda **_: "", name="be_free", description="Free.", args_schema=schema)


def test_what_refers_to_itself_stays_a_reference() -> None:
    """Of a reply's schema, and of two definitions that refer to each other, every reference that is left has its definition."""
    with GoogleServer([Turn("{}")]) as server:
        model = ChatGoogleGenerativeAI(model="any", base_url=server.url, api_key="k")
        model.with_structured_output(Order, include_raw=True).invoke("Hi")
        assert server.rejections == []
    reply = server.requests[0]["generationConfig"]["responseJsonSchema"]
    assert set(references(reply)) == {"#/$defs/Tree"} and list(reply["$defs"]) == ["Tree"]
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {
            "A": {"type": "object", "properties": {"b": {"$ref": "#/$defs/B"}}},
            "B": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]},
        },
    }
    made = dialect(schema)
    assert {name.rpartition("/")[2] for name in references(made)} <= made["$defs"].keys()


@pytest.mark.parametrize(
    "declared",
    [
        {"name": "f", "description": "F.", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}},
        {
            "type": "function",
            "function": {"name": "f", "description": "F.", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}},
        },
        {"name": "f", "description": "F.", "input_schema": {"type": "object", "properties": {"a": {"type": "string"}}}},
        {"name": "f", "description": "F.", "parametersJsonSchema": {"type": "object", "properties": {"a": {"type": "string"}}}},
        {"title": "f", "description": "F.", "type": "object", "properties": {"a": {"type": "string"}}},
    ],
)
def test_dicts_of_every_vendor(declared: dict[str, Any]) -> None:
    """A function in any vendor's form is declared in Google's."""
    expected = {"name": "f", "description": "F.", "parametersJsonSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}
    assert format_tool(declared) == expected


def test_the_older_dialect_stays_as_it_is() -> None:
    """A declaration in the vendor's OpenAPI dialect is sent as it was given; lists of declarations are taken apart."""
    older = {"name": "f", "parameters": {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}}
    assert wire_tools([{"function_declarations": [older], "google_search": {}}, {"code_execution": {}}]) == [
        {"functionDeclarations": [older]},
        {"googleSearch": {}},
        {"codeExecution": {}},
    ]


def test_the_sdks_own_objects() -> None:
    """google-genai's objects are taken where its dicts are: from the constructor, bound or per call."""
    search = sdk_types.Tool(google_search=sdk_types.GoogleSearch())
    fields = {"a": sdk_types.Schema(type=sdk_types.Type.STRING)}
    taken = sdk_types.FunctionDeclaration(name="f", parameters=sdk_types.Schema(type=sdk_types.Type.OBJECT, properties=fields))
    functions = sdk_types.Tool(function_declarations=[taken, sdk_types.FunctionDeclaration(name="g")])
    with GoogleServer([Turn("Hi.")] * 4) as server:
        ChatGoogleGenerativeAI(model="any", base_url=server.url, api_key="k", tools=[search]).invoke("Hi")
        plain = ChatGoogleGenerativeAI(model="any", base_url=server.url, api_key="k")
        plain.invoke("Hi", tools=[search])
        plain.bind_tools([functions]).invoke("Hi")
        plain.invoke("Hi", tools=[functions])
    declared = [
        {"name": "f", "parameters": {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}},
        {"name": "g", "parametersJsonSchema": {"type": "object", "properties": {}}},
    ]
    assert [request["tools"] for request in server.requests] == [
        *([{"googleSearch": {}}], [{"googleSearch": {}}]),
        *([{"functionDeclarations": declared}], [{"functionDeclarations": declared}]),
    ]
    assert server.rejections == []


@pytest.mark.parametrize("own", [{"google_search": {}}, {"googleSearch": {}}, {"type": "google_search"}, {"google_search": None}])
def test_the_vendors_own_tools(own: dict[str, Any]) -> None:
    """However it is written, a tool of the vendor's own is declared, from the constructor, bound or per call, and never executed."""
    with GoogleServer([Turn("Hi."), Turn("Hi."), Turn("Hi.")]) as server:
        ChatGoogleGenerativeAI(model="any", base_url=server.url, api_key="k", tools=[own, tell_time]).invoke("Hi")
        plain = ChatGoogleGenerativeAI(model="any", base_url=server.url, api_key="k")
        plain.bind_tools([own]).invoke("Hi")
        plain.invoke("Hi", tools=[own])
    assert [request["tools"][-1] for request in server.requests] == [{"googleSearch": {}}] * 3
    assert server.rejections == []  # beside functions the Gemini API wants a word more
    assert [request.get("toolConfig") for request in server.requests] == [{"includeServerSideToolInvocations": True}, None, None]


@pytest.mark.parametrize(
    "bad",
    [
        {"name": "a b", "parameters": {"type": "object"}},
        {"name": "1f", "parameters": {"type": "object"}},
        {"name": "f" * 65, "parameters": {"type": "object"}},
        {"name": "f", "parametersJsonSchema": {"type": "array"}},
        {"google_search": {}, "url_context": {}},
        3,
    ],
)
def test_what_cannot_be_declared_is_told_at_once(bad: Any) -> None:
    """A tool that the vendor would refuse is an error when it is bound."""
    with pytest.raises(ConfigurationError, match="cannot be"):
        ChatGoogleGenerativeAI(model="m", api_key="k").bind_tools([bad])


NAMED = {"type": "any", "names": ["f"]}
ONLY = {**NAMED, "only": True}
VALIDATED = {"type": "validated", "names": ["f"]}
CHOICES = [
    *[(None, None), (False, None), ("auto", {"type": "auto"}), ("any", {"type": "any"}), ("required", {"type": "any"})],
    *[
        ("none", {"type": "none"}),
        ("validated", {"type": "validated"}),
        (True, {"type": "any"}),
        ("f", NAMED),
        (["f"], ONLY),
        (NAMED, NAMED),
        (ONLY, ONLY),
        (VALIDATED, VALIDATED),
    ],
    ({"type": "function", "function": {"name": "f"}}, NAMED),
    ({"type": "tool", "name": "f"}, NAMED),
    ({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}}, ONLY),
    ({"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["f"]}}, VALIDATED),
    ({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]}, VALIDATED),
    ({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "f"}}]}}, ONLY),
    ({"function_calling_config": {"mode": "AUTO"}}, {"type": "auto"}),
    ({"mode": "NONE"}, {"type": "none"}),
]


@pytest.mark.parametrize(("choice", "expected"), CHOICES)
def test_tool_choices(choice: Any, expected: Any) -> None:
    """Every spelling of a tool choice becomes the same plain one."""
    assert format_tool_choice(choice, [{"name": "f"}, {"name": "g"}]) == expected


@pytest.mark.parametrize("choice", ["ff", ["f", "h"], {"type": "function"}, 3, {"mode": "ANY", "allowedFunctionNames": ["h"]}])
def test_choices_that_name_nothing(choice: Any) -> None:
    """A choice of an unknown tool, or of no known form, is an error."""
    with pytest.raises(ConfigurationError, match="tool_choice"):
        format_tool_choice(choice, [{"name": "f"}, {"name": "g"}])


def test_a_misspelt_choice_names_its_neighbour() -> None:
    """The error says which tool was probably meant."""
    with pytest.raises(ConfigurationError, match="did you mean 'tell_time'"):
        ChatGoogleGenerativeAI(model="m", api_key="k").bind_tools([tell_time], tool_choice="tell_tim")


def test_choices_on_the_wire() -> None:
    """Modes are capitals; names go with the modes that take them."""
    assert [wire_choice(choice) for choice in ({"type": "auto"}, NAMED)] == [
        {"mode": "AUTO"},
        {"mode": "ANY", "allowedFunctionNames": ["f"]},
    ]


def test_a_forced_choice_holds_for_the_first_turn() -> None:
    """A run that must call a tool is free afterwards; `tool_config` goes along."""
    retrieval = {"retrievalConfig": {"languageCode": "de"}}
    with GoogleServer([Turn(calls=[Call("tell_time")]), Turn("Noon.")]) as server:
        model = ChatGoogleGenerativeAI(model="any", base_url=server.url, api_key="k", tools=[tell_time])
        assert model.invoke("Hi", tool_choice="any", tool_config={"retrieval_config": {"languageCode": "de"}}).text == "Noon."
    assert [request["toolConfig"] for request in server.requests] == [{**retrieval, "functionCallingConfig": {"mode": "ANY"}}, retrieval]
