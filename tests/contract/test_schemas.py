"""Tools of every shape on every wire: what the server is told it accepts, what the model writes arrives as the right Python values."""

from __future__ import annotations

import datetime
import json
import warnings
from collections.abc import Iterator
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool, StructuredTool, tool
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from langchain_autotools import ConfigurationError
from tests.contract.talk import Start, run_in
from tests.support.script import Call, Turn

QUESTION = [HumanMessage("Go.")]


class Node(BaseModel):
    """A tree."""

    name: str
    children: list[Node] = []


class Colour(Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


class Cat(BaseModel):
    """A cat."""

    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    good: bool = True


class Place(TypedDict):
    """A place."""

    city: str
    zip_code: int


def recursive(tree: Node) -> Any:
    """Count a tree."""
    return tree


def of_many_kinds(
    colour: Colour,
    pet: Cat | Dog,
    pair: tuple[int, str],
    marks: set[str],
    when: datetime.date,
    größe: float = 1.5,
    note: str | None = None,
    counts: dict[str, int] = {"a": 1},  # noqa: B006
    level: Literal[1, 2] = 2,
) -> Any:
    """Take many kinds of values."""
    return colour, pet, pair, marks, when, größe, note, counts, level


def told_apart(pet: Annotated[Cat | Dog, Field(discriminator="kind")], others: list[Cat | Dog] = []) -> Any:  # noqa: B006
    """Take a pet."""
    return pet, others


def nothing() -> Any:
    """Take nothing."""
    return "nothing"


def of_a_typed_dict(place: Place, 都市: str = "京都") -> Any:
    """Take a place."""
    return place, 都市


TREE = {"name": "a", "children": [{"name": "b", "children": [{"name": "c"}]}]}
MANY = {"colour": "blue", "pet": {"kind": "dog", "good": False}, "pair": [1, "x"], "marks": ["m"], "when": "2026-11-22", "größe": 2}
MANY_VALUES = (Colour.BLUE, Dog(kind="dog", good=False), (1, "x"), {"m"}, datetime.date(2026, 11, 22), 2.0, None, {"a": 1}, 2)

SHAPES = {
    "recursive": (recursive, {"tree": TREE}, Node(**TREE), ("tree", "children")),  # type: ignore[arg-type]
    "many kinds": (of_many_kinds, MANY, MANY_VALUES, ("größe", "lives", "good", "blue", "counts")),
    "told apart": (
        told_apart,
        {"pet": {"kind": "cat"}, "others": [{"kind": "dog"}]},
        (Cat(kind="cat"), [Dog(kind="dog")]),
        ("lives", "good", "others"),
    ),
    "nothing": (nothing, {}, "nothing", ()),
    "typed dict": (
        of_a_typed_dict,
        {"place": {"city": "Köln", "zip_code": 50667}},
        ({"city": "Köln", "zip_code": 50667}, "京都"),
        ("zip_code",),
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
async def test_values_arrive_as_their_types(start: Start, shape: str) -> None:
    """A tool of every shape is declared whole and called with Python's values, whatever the wire's dialect of schemas."""
    function, arguments, expected, words = SHAPES[shape]
    seen: list[Any] = []

    def note(**values: Any) -> str:
        seen.append(function(**values))
        return "noted"

    made = StructuredTool.from_function(note, name="note", description="Note it.", args_schema=tool(function).args_schema)
    talk = start([Turn(calls=[Call("note", arguments)]), Turn("Done.")], tools=[made])
    ran = await run_in("astream", talk.model, QUESTION)
    assert (ran.message.text, seen) == ("Done.", [expected])
    declared = json.dumps(talk.server.exchanges[0].json["tools"], ensure_ascii=False)
    assert [word for word in words if word not in declared] == []


SCHEMA: dict[str, Any] = {
    "type": "object",
    "title": "note",
    "description": "Note it.",
    "properties": {
        "tree": {"$ref": "#/$defs/Node"},
        "kind": {"enum": ["a", "b", 1, None]},
        "either": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}], "default": "x"},
        "größe": {"type": ["number", "null"], "minimum": 0},
    },
    "required": ["tree"],
    "$defs": {
        "Node": {"type": "object", "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/Node"}}, "required": ["name"]}
    },
}


async def test_a_json_schema_is_declared_as_it_is(start: Start) -> None:
    """A tool that describes itself by a JSON schema, with references to itself, is called with the plain values."""
    seen: list[Any] = []

    def note(**values: Any) -> str:
        seen.append(values)
        return "noted"

    arguments = {"tree": {"name": "a", "next": {"name": "b"}}, "either": [1], "größe": None}
    made = StructuredTool(name="note", description="Note it.", args_schema=SCHEMA, func=note)
    talk = start([Turn(calls=[Call("note", arguments)]), Turn("Done.")], tools=[made])
    assert (await run_in("astream", talk.model, QUESTION)).message.text == "Done."
    assert seen == [arguments]
    declared = json.dumps(talk.server.exchanges[0].json["tools"], ensure_ascii=False)
    assert all(word in declared for word in ("größe", "next", "either"))


@pytest.fixture
def legacy() -> Iterator[type[Any]]:
    """A class of pydantic 1 with a tuple and a class inside it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pydantic.v1 import BaseModel as OldModel

        class Inner(OldModel):
            city: str

        class Old(OldModel):
            """Note it."""

            inner: Inner
            pair: tuple[int, str]
            size: float = 1.5

        Old.update_forward_refs(Inner=Inner)
        yield Old


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_classes_of_pydantic_1(start: Start, legacy: type[Any]) -> None:
    """A tool whose arguments are a class of pydantic 1 is declared in today's dialect and called with its objects."""
    seen: list[Any] = []

    def note(inner: Any, pair: Any, size: Any = None) -> str:
        seen.append((inner.city, pair, size))
        return "noted"

    made = StructuredTool(name="note", description="Note it.", args_schema=legacy, func=note)
    talk = start([Turn(calls=[Call("note", {"inner": {"city": "Bern"}, "pair": [1, "x"], "size": 2})]), Turn("Done.")], tools=[made])
    assert (await run_in("astream", talk.model, QUESTION)).message.text == "Done."
    assert seen == [("Bern", (1, "x"), 2.0)]


def nested(form: Any) -> list[Any]:
    """The schemas in a dict that declares a tool."""
    inner = form.get("function", form) if isinstance(form, dict) else {}
    return [inner.get("parameters"), inner.get("input_schema")]


FORMS: dict[str, Any] = {
    "function": recursive,
    "class": Node,
    "typed dict": Place,
    "schema with a title": SCHEMA,
    "OpenAI": {"type": "function", "function": {"name": "note", "description": "Note it.", "parameters": SCHEMA}},
    "Anthropic": {"name": "note", "description": "Note it.", "input_schema": SCHEMA},
}


@pytest.mark.parametrize("form", FORMS)
async def test_every_form_can_be_bound(start: Start, form: str) -> None:
    """What LangChain calls a tool is one to `bind_tools`, in whatever form it comes; the call is the caller's. A vendor that knows no
    references to a schema within itself says so at once."""
    talk = start([Turn(calls=[Call("anything", {"a": 1})])])
    try:
        bound = talk.model.bind_tools([FORMS[form]])
    except ConfigurationError as error:
        assert "refers to itself" in str(error) and SCHEMA in (FORMS[form], *nested(FORMS[form]))
        return
    message = bound.invoke(QUESTION)
    assert [(call["name"], call["args"]) for call in message.tool_calls] == [("anything", {"a": 1})]
    assert len(talk.server.exchanges[0].json["tools"]) == 1


@pytest.mark.parametrize(
    "shape",
    [recursive, of_many_kinds, told_apart, nothing, of_a_typed_dict, Cat, {**SCHEMA, "additionalProperties": False}],
    ids=["recursive", "many kinds", "told apart", "nothing", "typed dict", "class", "schema"],
)
async def test_strict_is_kept_or_refused_when_bound(start: Start, shape: Any) -> None:
    """A strict tool is in the dialect that the server asks of strict tools, or `bind_tools` says why it cannot be."""
    talk = start([Turn("Fine.")])
    try:
        bound = talk.model.bind_tools([shape], strict=True)
    except ConfigurationError as error:
        assert "strict" in str(error) or "refers to itself" in str(error)
        return
    assert bound.invoke(QUESTION).text == "Fine."


def named(name: str) -> BaseTool:
    """A tool of this name."""
    return StructuredTool.from_function(nothing, name=name, description="Do nothing.")


NAMES = {"space": "two words", "letters": "größe", "signs": "a.b:c", "long": "x" * 65, "longer": "x" * 129, "digit": "1st", "dash": "-"}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
async def test_a_name_is_accepted_or_refused_when_bound(start: Start, name: str) -> None:
    """A name that the vendor does not take is an error that names it, when the tool is bound and not when the model is asked."""
    talk = start([Turn("Fine.")])
    try:
        bound = talk.model.bind_tools([named(name)])
    except ConfigurationError as error:
        assert name[:60] in str(error)
        with pytest.raises(ValueError, match="tool name"):
            start([], tools=[named(name)])
        return
    assert bound.invoke(QUESTION).text == "Fine."


async def test_two_tools_of_one_name_are_refused(start: Start) -> None:
    """Two tools that the model could not tell apart are an error that names them, given to the model or bound; the same one bound
    twice is sent once."""
    other = StructuredTool.from_function(recursive, name="same", description="Another.")
    with pytest.raises(ConfigurationError, match="two tools are named 'same'"):
        start([]).model.bind_tools([named("same"), named("other"), other])
    with pytest.raises(ValueError, match="two tools are named 'same'"):
        start([], tools=[named("same"), other])
    talk = start([Turn("Fine.")])
    assert talk.model.bind_tools([Cat, Cat.model_json_schema()]).invoke(QUESTION).text == "Fine."
    assert json.dumps(talk.server.exchanges[0].json["tools"]).count("lives") == 1
