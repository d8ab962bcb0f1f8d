"""Structured output over every wire: the schema that is asked for is the schema that is sent, and a valid reply is read."""

import datetime
import json
import uuid
from enum import Enum
from typing import Any, Generic, TypeVar

import pytest
from langchain_core.messages import HumanMessage
from pydantic import BaseModel, ConfigDict, Field, RootModel

from langchain_autotools import ConfigurationError
from tests.compositions.test_output_retries import run
from tests.contract.wires import PRESETS, WIRES, Wire
from tests.support.http_server import Exchange
from tests.support.script import Call, Turn

QUESTION = [HumanMessage("Answer as JSON.")]
NAMES = ("openai-chat", "openai-responses", "anthropic", "google", "ollama", "mistralai")
ROWS = [wire for wire in (*WIRES, *PRESETS) if wire.name in NAMES]
rows = pytest.mark.parametrize("wire", ROWS, ids=lambda wire: wire.name)
methods = pytest.mark.parametrize("method", ["json_schema", "function_calling"])
WAYS = ("invoke", "stream", "ainvoke", "astream")


def declared(exchange: Exchange) -> tuple[str | None, Any]:
    """The name of the schema's tool, if it was sent as one, and the schema that was sent."""
    body = exchange.json
    for tool in body.get("tools") or ():
        inner = (tool.get("functionDeclarations") or [tool.get("function", tool)])[0]
        keys = ("parameters", "input_schema", "parametersJsonSchema")
        return inner["name"], next(inner[key] for key in keys if key in inner)
    form = body.get("response_format") or (body.get("text") or {}).get("format") or (body.get("output_config") or {}).get("format")
    if form is not None:
        return None, form.get("json_schema", form)["schema"]
    return None, body["format"] if "format" in body else body["generationConfig"]["responseJsonSchema"]


def obeying(value: Any) -> Any:
    """A script of a model that writes the value in the form that it was asked for."""

    def reply(exchange: Exchange) -> Turn:
        name, schema = declared(exchange)
        wrapped = {*schema.get("properties", ())} == {"value"} and schema.get("type") == "object"
        written = {"value": value} if wrapped else value
        return Turn(calls=[Call(name, written)]) if name else Turn(json.dumps(written))

    return reply


class Prices(RootModel[dict[str, int]]):
    """The price of each thing."""


class Numbers(RootModel[list[int]]):
    """Some numbers."""


class Tree(RootModel[list["Tree"]]):
    """Lists in lists."""


A = {"title": "A", "type": "object", "properties": {"alpha": {"type": "integer"}}, "required": ["alpha"]}
B = {"title": "B", "type": "object", "properties": {"beta": {"type": "string"}}, "required": ["beta"]}
EITHER = {"title": "Either", "description": "One of two.", "anyOf": [A, B]}
LIST = {"title": "Many", "type": "array", "items": {"type": "integer"}}
ITSELF = {"title": "Nested", "type": "array", "items": {"$ref": "#"}}
POINTED = {"$defs": {"A": A}, "$ref": "#/$defs/A"}
TOPS: dict[str, tuple[Any, Any, Any, tuple[str, ...]]] = {
    "either": (EITHER, {"beta": "x"}, {"beta": "x"}, ("alpha", "beta")),
    "list": (LIST, [1, 2], [1, 2], ("array", "integer")),
    "enum": ({"title": "Word", "enum": ["red", "blue"]}, "red", "red", ("red", "blue")),
    "reference": (POINTED, {"alpha": 1}, {"alpha": 1}, ("alpha",)),
    "free keys": (Prices, {"a": 1}, Prices({"a": 1}), ("integer",)),
    "root model": (Numbers, [1, 2], Numbers([1, 2]), ("array", "integer")),
    "type": (list[datetime.date], ["2026-11-28"], [datetime.date(2026, 11, 28)], ("array",)),
    "union": (int | str, "x", "x", ("integer", "string")),
}


@rows
@methods
async def test_any_schema_is_sent_whole_and_its_value_read(wire: Wire, method: Any) -> None:
    """What is no object with named fields goes out whole, or as the one field of an object and is taken out of it; or it is refused by
    name. The ways of a run take turns."""
    for number, (schema, value, expected, words) in enumerate(TOPS.values()):
        with wire.serve(obeying(value)) as server:
            if (wire.name, method, schema) == ("anthropic", "json_schema", Prices):
                with pytest.raises(ConfigurationError, match="keys of its own choosing"):
                    wire.model(server).with_structured_output(schema, method=method)
                continue
            chain = wire.model(server).with_structured_output(schema, method=method)
            assert await run(chain, WAYS[(number + NAMES.index(wire.name)) % 4]) == expected
            assert not server.rejections
        assert [word for word in words if word not in json.dumps(declared(server.exchanges[0])[1])] == []


@rows
async def test_a_schema_that_refers_to_its_own_top_is_moved_with_its_references(wire: Wire) -> None:
    """Inside an object the whole is another one: references to it lead to where it is now."""
    for schema, made in ((ITSELF, lambda value: value), (Tree, Tree)):
        with wire.serve(obeying([[], [[]]])) as server:
            chain = wire.model(server).with_structured_output(schema, method="function_calling")
            assert await chain.ainvoke(QUESTION) == made([[], [[]]])  # type: ignore[operator]
            assert not server.rejections


def test_a_tool_whose_parameters_are_no_object_is_refused() -> None:
    """Where it is declared, by name, on every wire: arguments have names."""
    for wire in ROWS:
        with wire.serve([]) as server:
            for tool in (LIST, {"name": "Many", "description": "", "parameters": LIST}):
                with pytest.raises(ConfigurationError, match=r"Many.*object"):
                    wire.model(server).bind_tools([tool])


class Colour(Enum):
    """A colour."""

    RED = "red"


class Strict(BaseModel):
    """What JSON has no types for."""

    model_config = ConfigDict(strict=True)

    when: datetime.date
    colour: Colour
    id: uuid.UUID
    marks: set[str]
    pair: tuple[int, str]
    amount: float = Field(strict=True)


STRICT = {"when": "2026-11-28", "colour": "red", "id": str(uuid.UUID(int=7)), "marks": ["a"], "pair": [1, "x"], "amount": 1}


@rows
@methods
async def test_a_strict_class_reads_the_forms_that_json_has(wire: Wire, method: Any) -> None:
    """The JSON text is validated: a date, a set or a member of an enumeration has no other form in it. The last piece of a stream, too."""
    expected = Strict.model_validate_json(json.dumps(STRICT))
    for way in WAYS:
        with wire.serve(obeying(STRICT)) as server:
            try:
                chain = wire.model(server).with_structured_output(Strict, method=method)
            except ConfigurationError as error:
                assert (wire.name, method) == ("anthropic", "json_schema") and "prefixItems" in str(error)
                return
            assert await run(chain, way) == expected
            assert not server.rejections


T = TypeVar("T")


class Cat(BaseModel):
    """A cat."""

    lives: int


class Page(BaseModel, Generic[T]):
    """A page."""

    items: list[T]


@rows
@methods
async def test_a_generic_class_has_a_name_that_every_vendor_takes(wire: Wire, method: Any) -> None:
    """`Page[Cat]` is no name of a tool: it is cleaned, by both methods, and what comes out is of the class itself."""
    with wire.serve(obeying({"items": [{"lives": 9}]})) as server:
        found = await wire.model(server).with_structured_output(Page[Cat], method=method).ainvoke(QUESTION)
        assert (found, type(found)) == (Page[Cat](items=[Cat(lives=9)]), Page[Cat])
        assert not server.rejections
        sent = json.dumps(server.exchanges[0].json)
    assert "lives" in sent and "Page[Cat]" not in sent.replace('"title": "Page[Cat]"', "")


class Basket(BaseModel):
    """What is bought."""

    prices: dict[str, int]


class Node(BaseModel):
    """A tree."""

    children: list["Node"] = []


ANTHROPIC = next(wire for wire in ROWS if wire.name == "anthropic")
THINKS = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2048}


@pytest.mark.parametrize("way", WAYS)
async def test_where_the_form_cannot_say_it_the_automatic_choice_is_the_tool(way: str) -> None:
    """A model that thinks cannot be forced to call one, so it is asked for JSON; where that cannot express the schema the call is asked
    for, and an answer without it is an error. `json_schema` by name is refused by the name of the part, on every entrance."""
    for schema, value in ((Basket, {"prices": {"a": 1}}), (Node, {"children": [{"children": []}]})):
        with ANTHROPIC.serve(obeying(value)) as server:
            found = await run(ANTHROPIC.model(server, **THINKS).with_structured_output(schema), way)
            assert found == schema.model_validate(value)
            assert server.exchanges[0].json["tool_choice"]["type"] == "auto"
            assert not server.rejections
        with ANTHROPIC.serve([Turn("I would rather talk.")]) as server:
            with pytest.raises(ValueError, match="has not called"):
                await run(ANTHROPIC.model(server, **THINKS).with_structured_output(schema), way)
    with ANTHROPIC.serve(obeying({"lives": 9})) as server:
        assert await run(ANTHROPIC.model(server, **THINKS).with_structured_output(Cat), way) == Cat(lives=9)
        assert "output_config" in server.exchanges[0].json
        model = ANTHROPIC.model(server)
        with pytest.raises(ConfigurationError, match="own choosing.*prices.*function_calling"):
            model.with_structured_output(Basket, method="json_schema")
        with pytest.raises(ConfigurationError, match="refers to itself"):
            model.with_structured_output(Node, method="json_schema")
        form = {"type": "json_schema", "json_schema": {"name": "Basket", "schema": Basket.model_json_schema()}}
        with pytest.raises(ConfigurationError, match="ToolStrategy"):  # as create_agent binds it
            await run(model.bind_tools([], response_format=form), way)


async def test_a_schema_is_wrapped_where_a_fallback_wants_an_object() -> None:
    """One parser reads the replies of all models of a run, so they are asked alike: the first, which takes any schema, too."""
    google, openai = (next(wire for wire in ROWS if wire.name == name) for name in ("google", "openai-chat"))
    with google.serve(obeying([1, 2])) as server, openai.serve(obeying([1, 2])) as other:
        chain = google.model(server, fallbacks=[openai.model(other)]).with_structured_output(LIST)
        assert await chain.ainvoke(QUESTION) == [1, 2]
        assert declared(server.exchanges[0])[1]["required"] == ["value"]


@pytest.mark.parametrize("wire", [wire for wire in ROWS if wire.name.startswith("openai")], ids=lambda wire: wire.name)
async def test_the_strict_format_of_an_agent_is_closed(wire: Wire) -> None:
    """`create_agent` with `ProviderStrategy(Schema, strict=True)` sends pydantic's schema: it goes as OpenAI takes it."""
    from langchain.agents import create_agent
    from langchain.agents.structured_output import ProviderStrategy

    class Part(BaseModel):
        size: int = 3

    class Whole(BaseModel):
        """A whole."""

        part: Part
        note: str | None = None

    with wire.serve([Turn('{"part": {"size": 1}, "note": null}')]) as server:
        agent: Any = create_agent(wire.model(server), [], response_format=ProviderStrategy(Whole, strict=True))
        assert (await agent.ainvoke({"messages": QUESTION}))["structured_response"] == Whole(part=Part(size=1))
        assert declared(server.exchanges[0])[1]["required"] == ["part", "note"]
        assert not server.rejections


@pytest.mark.further
def test_the_page_says_what_is_sent() -> None:
    """docs/schemas.md is what the strict servers get of each part of a schema: `python -m tests.compositions.schema_table` writes it."""
    from tests.compositions.schema_table import PAGE, page  # which imports from here

    assert PAGE.read_text(encoding="utf-8") == page()
