"""How tools and tool choices are declared to chat completions."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool, StructuredTool, Tool, tool
from pydantic import BaseModel, Field

from langchain_autotools.errors import ConfigurationError
from langchain_autotools.executor.names import own_name
from langchain_autotools.providers.openai.mapper import ChatCompletionsMapper
from langchain_autotools.providers.openai.tools import format_tool, format_tool_choice
from tests.support.strict import Rules
from tests.support.strict_openai import check_request

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def weather(city: str) -> str:
    """Look at the sky."""
    return city


class Weather(BaseModel):
    """Look at the sky."""

    city: str = Field(description="where")


class WeatherDict(TypedDict):
    """Look at the sky."""

    city: str


def untold(city: str) -> str:
    """Nothing: its docstring is taken away."""
    return city


untold.__doc__ = None


def with_extras(**extras: Any) -> BaseTool:
    """The tool `weather` with extras."""
    return StructuredTool.from_function(weather, extras=extras)


FORMS: list[tuple[str, Any, str]] = [
    ("function", weather, "weather"),
    ("function without a docstring", untold, "untold"),
    ("tool", tool(weather), "weather"),
    ("pydantic class", Weather, "Weather"),
    ("typed dict", WeatherDict, "WeatherDict"),
    ("schema with a title", {**SCHEMA, "title": "weather", "description": "x"}, "weather"),
    ("bare function dict", {"name": "weather", "parameters": SCHEMA}, "weather"),
    ("chat completions", {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}, "weather"),
    ("Responses", {"type": "function", "name": "weather", "parameters": SCHEMA}, "weather"),
    ("Anthropic", {"name": "weather", "input_schema": SCHEMA, "cache_control": {"type": "ephemeral"}}, "weather"),
    ("Anthropic with a type", {"type": "custom", "name": "weather", "input_schema": SCHEMA}, "weather"),
]


@pytest.mark.parametrize(("form", "name"), [form[1:] for form in FORMS], ids=[form[0] for form in FORMS])
def test_every_form_of_a_tool_is_declared(form: Any, name: str) -> None:
    """Functions, classes, tools, schemas and other vendors' dicts become a function that the strict server takes."""
    declared = format_tool(form)
    assert (declared["type"], own_name(declared)) == ("function", name)
    assert set(declared["function"]["parameters"]["properties"]) == {"city"}
    check_request(ChatCompletionsMapper().encode_request([HumanMessage("q")], {"model": "any", "tools": [declared]}), Rules())


@pytest.mark.parametrize("form", [form[1] for form in FORMS], ids=[form[0] for form in FORMS])
def test_strict_closes_the_schema(form: Any) -> None:
    """`strict=True` says so and forbids other arguments, in whatever form the tool comes; the caller's dict stays as it was."""
    before = str(form)
    declared = format_tool(form, strict=True)["function"]
    assert (declared["strict"], declared["parameters"]["additionalProperties"]) == (True, False)
    assert str(form) == before
    assert "strict" not in format_tool(form)["function"]


@pytest.mark.parametrize(
    "builtin",
    [
        {"type": "web_search_preview"},
        {"type": "file_search", "vector_store_ids": ["v"]},
        {"type": "mcp", "server_label": "x", "name": "not a.name"},
        {"type": "custom", "custom": {"name": "calc", "format": {"type": "text"}}},
        {"type": "something_new", "x": 1},
        {"type": "tool_search", "execution": "client", "description": "d", "parameters": {"type": "object", "properties": {}}},
    ],
    ids=lambda builtin: builtin["type"],
)
def test_builtin_tools_are_not_touched(builtin: dict[str, Any]) -> None:
    """A tool that the vendor runs is passed on as the caller wrote it."""
    assert format_tool(builtin, strict=True) is builtin


def test_a_tool_of_free_text_is_declared_in_the_wires_form() -> None:
    """A tool marked as custom is declared as one, in the form of chat completions."""
    calc = Tool(name="calc", description="d", func=str, metadata={"type": "custom_tool", "format": {"type": "text"}})
    assert format_tool(calc) == {"type": "custom", "custom": {"name": "calc", "description": "d", "format": {"type": "text"}}}


def test_extras_that_the_vendor_knows_are_declared() -> None:
    """`defer_loading` and `async` of a tool's extras go along; others stay here."""
    assert format_tool(with_extras(defer_loading=True, cache_control={}))["defer_loading"] is True
    assert "cache_control" not in format_tool(with_extras(cache_control={}))
    assert format_tool({"type": "function", "function": {"name": "f"}, "defer_loading": True})["defer_loading"] is True


@pytest.mark.parametrize("name", ["a.b", "with space", "", "x" * 65, "é"])
def test_an_illegal_name_is_refused_when_it_is_bound(name: str) -> None:
    """A name that the vendor would refuse in every request is refused at once, with what would do (wire quirk N-06)."""
    with pytest.raises(ConfigurationError, match="letters, digits"):
        format_tool({"name": name, "parameters": SCHEMA})


def _opaque(value: Callable[[int], int]) -> None:
    """Take what has no JSON."""


class Connection:
    """No tool."""


@pytest.mark.parametrize(
    ("odd", "named"), [(_opaque, "_opaque"), (SCHEMA, "type"), (3, "3"), (lambda: None, "<lambda>"), (object(), "object")]
)
def test_a_tool_that_cannot_be_declared_is_named(odd: Any, named: str) -> None:
    """Arguments without a JSON schema, or no tool at all: an error that names the tool."""
    with pytest.raises(ConfigurationError, match=f"(?s){named}"):
        format_tool(odd)


def test_a_tool_that_says_otherwise_than_strict_is_refused() -> None:
    """A dict with its own `strict` is not overruled silently."""
    with pytest.raises(ConfigurationError, match="strict"):
        format_tool({"type": "function", "function": {"name": "f", "parameters": SCHEMA, "strict": False}}, strict=True)


TOOLS = [format_tool(weather), {"type": "custom", "custom": {"name": "calc"}}, {"type": "web_search_preview"}]
NAMED = {"type": "function", "function": {"name": "weather"}}
CALC = {"type": "custom", "custom": {"name": "calc"}}


@pytest.mark.parametrize(
    ("choice", "wire"),
    [
        (None, None),
        (False, None),
        (True, "required"),
        ("any", "required"),
        ("required", "required"),
        ("auto", "auto"),
        ("none", "none"),
        ("weather", NAMED),
        ("calc", CALC),
        ("web_search_preview", {"type": "web_search_preview"}),
        (NAMED, NAMED),
        ({"function": {"name": "weather"}}, NAMED),
        ({"custom": {"name": "calc"}}, CALC),
        ({"type": "function", "name": "weather"}, NAMED),
        ({"type": "custom", "name": "calc"}, CALC),
        ({"type": "tool", "name": "weather"}, NAMED),
        ({"name": "weather"}, NAMED),
        ({"type": "any"}, "required"),
        ({"type": "auto", "disable_parallel_tool_use": True}, "auto"),
        ({"type": "none"}, "none"),
        ({"type": "web_search_preview"}, {"type": "web_search_preview"}),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [NAMED]}},
            {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [NAMED]}},
        ),
        (
            {"type": "allowed_tools", "tools": ["weather", {"type": "function", "name": "weather"}]},
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [NAMED, NAMED]}},
        ),
    ],
    ids=str,
)
def test_every_spelling_of_a_choice(choice: Any, wire: Any) -> None:
    """Words, names, booleans and dicts of three vendors say what chat completions understands."""
    assert format_tool_choice(choice, TOOLS) == wire


def test_a_tools_own_name_goes_before_a_word() -> None:
    """A tool that is called `any` is meant where it is named."""
    own = [{"type": "function", "function": {"name": "any"}}]
    assert format_tool_choice("any", own) == {"type": "function", "function": {"name": "any"}}


@pytest.mark.parametrize(
    ("choice", "hint"),
    [("wether", "did you mean 'weather'"), ("zzz", r"\['weather', 'calc'"), (3, "not 3"), ({"mode": "x"}, "names no tool")],
)
def test_a_choice_of_nothing_is_refused(choice: Any, hint: str) -> None:
    """A choice that names no declared tool is refused, with the nearest name."""
    with pytest.raises(ConfigurationError, match=hint):
        format_tool_choice(choice, TOOLS)


def test_a_name_without_declared_tools_is_taken_as_a_function() -> None:
    """Where the tools are not known here, a name is believed."""
    assert format_tool_choice("weather", []) == NAMED


class Leaf(BaseModel):
    kind: Literal["leaf"]
    size: int = 1


class Branch(BaseModel):
    kind: Literal["branch"]
    parts: "list[Annotated[Branch | Leaf, Field(discriminator='kind')]]" = []


def test_a_strict_tool_is_written_as_strict_mode_has_it() -> None:
    """Defaults go, all properties are required, `oneOf` is `anyOf`, and a schema that refers to itself keeps its reference."""

    def grow(tree: Branch, times: int = 2) -> str:
        """Grow."""
        return ""

    declared = format_tool(grow, strict=True)["function"]
    schema = declared["parameters"]
    assert (schema["required"], schema["properties"]["times"]) == (["tree", "times"], {"type": "integer", "description": "{default: 2}"})
    branch = schema["$defs"]["Branch"]
    assert (branch["required"], branch["additionalProperties"]) == (["kind", "parts"], False)
    assert branch["properties"]["parts"]["items"] == {"anyOf": [{"$ref": "#/$defs/Branch"}, {"$ref": "#/$defs/Leaf"}]}
    check_request(
        ChatCompletionsMapper().encode_request([HumanMessage("q")], {"model": "any", "tools": [format_tool(grow, strict=True)]}), Rules()
    )
    loose = format_tool(grow)["function"]["parameters"]
    assert loose["$defs"]["Branch"]["properties"]["parts"]["default"] == []


@pytest.mark.parametrize(
    ("property", "why"),
    [
        ({"type": "object"}, r"keys of its own choosing \(x\)"),
        (
            {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "string"}}},
            r"keys of its own choosing \(x.items\)",
        ),
        ({"description": "anything"}, r"any type \(x\)"),
        ({"type": "string", "not": {"const": "a"}}, r"'not' \(x\)"),
        ({"allOf": [{"type": "string"}, {"minLength": 1}]}, r"'allOf' \(x\)"),
    ],
)
def test_what_strict_mode_cannot_express_is_refused(property: Any, why: str) -> None:
    """The error names what cannot be said and where; without `strict` the tool is declared as it is."""
    form = {"title": "f", "type": "object", "properties": {"x": property}}
    with pytest.raises(ConfigurationError, match=rf"tool 'f' cannot be declared: strict mode cannot express .*{why}"):
        format_tool(form, strict=True)
    assert format_tool(form)["function"]["parameters"]["properties"] == {"x": property}
