"""The schemas of a server's tools: as every vendor takes them, and as arguments are checked against them."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool

from langchain_autotools import (
    AzureChatOpenAI,
    ChatAnthropic,
    ChatOpenAI,
    ConfigurationError,
    new_messages,
    pending_calls,
    results_of,
)
from langchain_autotools.mcp_client.schemas import UnusableSchemaError, adapted
from langchain_autotools.testing import ScriptedChatModel
from tests.contract.wires import ROWS, WIRES, Wire
from tests.mcp.listing import NOTHING, TEXT, Lists, asks, got, lists, tool, warnings
from tests.support.random_schemas import Schemas
from tests.support.script import Call, Turn
from tests.unit.mcp_client.test_mcp_server import WAYS

__all__ = ["lists"]

pytestmark = pytest.mark.further

# ---------------------------------------------------------------------------------------------- on the wires of all vendors

PAGE = {"filename": TEXT, "content": TEXT}
LINK = {"filename": TEXT, "source_url": {"type": ["string", "null"]}}
DEFINED = {"A": {"type": "object", "properties": {"b": {"$ref": "#/$defs/A"}}}, "Odd/Name[T]": {"type": "integer"}}
LONG_KEY = "settings__approved__or__denied__countries__or__regions__approved__list"
KEYS = {"$top": 5, "filter[name]": "x", "größe": "y", LONG_KEY: "z"}
ODD: dict[str, tuple[Any, dict[str, Any]]] = {
    # names
    "files.read": (NOTHING, {}),
    "files/write": (NOTHING, {}),
    "größe": (NOTHING, {}),
    "1st": (NOTHING, {}),
    "日本": (NOTHING, {}),
    "two words": (NOTHING, {}),
    "tools.list": (NOTHING, {}),
    "list": (NOTHING, {}),
    f"long_{'x' * 60}": (NOTHING, {}),
    f"longer.{'x' * 300}": (NOTHING, {}),
    # schemas
    "empty": ({}, {}),
    "typeless": ({"properties": {"a": TEXT}}, {"a": "x"}),
    "nullable": ({"type": ["object", "null"], "properties": {"a": TEXT}}, {"a": "x"}),
    "any_of": (
        {"type": "object", "anyOf": [{"properties": PAGE, "required": [*PAGE]}, {"properties": LINK, "required": [*LINK]}]},
        {"filename": "a", "source_url": None},
    ),
    "one_of": ({"type": "object", "oneOf": [{"properties": {"a": TEXT}}, {"properties": {"a": {"type": "integer"}}}]}, {"a": 5}),
    "all_of": (
        {"allOf": [{"type": "object", "properties": PAGE}, {"$ref": "#/$defs/A"}], "$defs": DEFINED},
        {"b": {"b": {}}, "content": "c"},
    ),
    "not": ({"type": "object", "properties": {"a": TEXT}, "not": {"required": ["b"]}}, {"a": "x"}),
    "if": (
        {"type": "object", "if": {"required": ["a"]}, "then": {"properties": PAGE}, "else": {"properties": {"b": TEXT}}},
        {"content": "c"},
    ),
    "enum": ({"enum": [{"a": 1}, {"a": 2, "b": [3]}]}, {"a": 2, "b": [3]}),
    "const": ({"const": {"a": {"b": 1}}}, {"a": {"b": 1}}),
    "top_reference": ({"$ref": "#/$defs/A", "$defs": DEFINED}, {"b": {"b": {}}}),
    "itself": ({"type": "object", "properties": {"name": TEXT, "inner": {"$ref": "#"}}}, {"inner": {"inner": {"name": "x"}}}),
    "elsewhere": (
        {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": TEXT}}, "c": {"$ref": "#/properties/a"}}},
        {"c": {}},
    ),
    "escaped": ({"type": "object", "properties": {"a": {"$ref": "#/$defs/Odd~1Name%5BT%5D"}}, "$defs": DEFINED}, {"a": 4}),
    "anchored": ({"type": "object", "properties": {"a": {"$ref": "#b"}}, "$defs": {"B": {"$anchor": "b", "type": "integer"}}}, {"a": 4}),
    "named": (
        {
            "type": "object",
            "properties": {
                "tree": {"$id": "Tree", "type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "Tree"}}}},
                "other": {"$ref": "https://127.0.0.1:9/me.json#/$defs/A"},
            },
            "$defs": DEFINED,
            "$id": "https://127.0.0.1:9/me.json",
        },
        {"tree": {"kids": [{"kids": []}]}, "other": {"b": {}}},
    ),
    "dangling": ({"type": "object", "properties": {"a": {"$ref": "#/$defs/Missing"}}}, {"a": {"b": 1}}),
    "remote": ({"type": "object", "properties": {"a": {"$ref": "https://127.0.0.1:9/schema.json"}}}, {"a": [1]}),
    "circle": ({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"$ref": "#/$defs/A"}}}, {"a": 1}),
    "arrays": ({"type": "object", "properties": {"a": {"type": "array"}, "b": {"type": ["array", "null"]}}}, {"a": [1, "x"], "b": None}),
    "old": (
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "type": "object",
            "properties": {"a": {"type": "number", "minimum": 1, "exclusiveMinimum": True}},
        },
        {"a": 2},
    ),
    "letters": ({"type": "object", "properties": {"a": {"type": "string", "pattern": "^[\\p{L}]+$"}}}, {"a": "ö"}),
    "invalid": (
        {
            "type": "object",
            "properties": {"type": "object", "a": {"type": "int"}, "b": True, "c": {"enum": []}, "d": {"type": "array", "items": "string"}},
            "required": ["a", "lost", 5],
        },
        {"a": 1, "lost": "x"},
    ),
    "null": ({"type": "object", "properties": None, "required": None, "description": None}, {}),
    "keys": ({"type": "object", "properties": {"$top": {"type": "integer"}, "filter[name]": TEXT, "größe": TEXT, LONG_KEY: TEXT}}, KEYS),
    "hers": (
        {"type": "object", "properties": {"context_of_call": TEXT, "config": TEXT, "self": TEXT}},
        {"context_of_call": "a", "self": "b"},
    ),
}


def own_name(made: Any) -> str:
    """The server's name of a tool."""
    return str((made.metadata or {}).get("own_name", made.name))


def written(made: Any, args: dict[str, Any]) -> dict[str, Any]:
    """The server's arguments under the names that a model is told of."""
    told = {text: name for name, one in made.args_schema["properties"].items() if (text := one.get("description", ""))}
    names = {
        own: name for own in args for text, name in told.items() if text == f"(the server calls it {json.dumps(own, ensure_ascii=False)})"
    }
    return {names.get(own, own): value for own, value in args.items()}


@pytest.mark.parametrize("wire", ROWS, ids=[wire.name for wire in ROWS])
def test_every_vendor_takes_the_oddest_tools(wire: Wire, lists: Lists) -> None:
    """All in one request, and a call of each reaches the server under its own name, with the arguments as they were written."""
    server = lists(*(tool(name, schema) for name, (schema, _) in ODD.items()))
    offered = {own_name(one): one for one in server.tools()}
    calls = [Call(offered[name].name, written(offered[name], args)) for name, (_, args) in ODD.items()]
    with wire.serve([Turn(calls=calls), Turn("Done.")]) as vendor:
        run = wire.model(vendor, tools=[server]).invoke("Go")
    assert run.text == "Done."
    assert got(run) == [{"name": name, "arguments": args} for name, (_, args) in ODD.items()]


def test_what_every_vendor_takes_is_sent_as_before(lists: Lists) -> None:
    """Byte for byte as a tool of the caller's own with that schema, under that name, with that description."""
    schemas: list[dict[str, Any]] = [
        NOTHING,
        {"type": "object"},
        {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"a": TEXT}, "additionalProperties": False},
        {"type": "object", "properties": {"a": {"anyOf": [TEXT, {"type": "null"}], "default": None}}, "required": ["a"]},
        {"required": ["a"], "properties": {"a": {"$ref": "#/$defs/A"}}, "type": "object", "$defs": DEFINED},
        {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}, "description": "Some."}}},
    ]
    listed = [tool(f"tool-{number}", schema, description=f"The {number}.") for number, schema in enumerate(schemas)]
    own = [
        StructuredTool(name=f"tool-{number}", description=f"The {number}.", args_schema={"properties": {}, **schema}, func=lambda **_: "")
        for number, schema in enumerate(schemas)
    ]
    for wire in WIRES:
        with wire.serve([Turn("Done."), Turn("Done.")]) as vendor:
            for tools in ([lists(*listed)], own):
                wire.model(vendor, tools=tools).invoke("Go")
            sent, expected = (json.dumps(exchange.json["tools"]) for exchange in vendor.exchanges)
        assert sent == expected


# ---------------------------------------------------------------------------------------------- schemas

CIRCLE = {"kind": {"const": "circle"}, "radius": {"type": "number"}}
SQUARE = {"kind": {"const": "square"}, "side": {"type": "number"}, "colour": TEXT}
SHAPES = [
    {"type": "object", "properties": CIRCLE, "required": [*CIRCLE], "description": "A circle."},
    {"type": "object", "properties": SQUARE, "required": ["kind", "side"]},
]
FLATTENED: list[tuple[Any, dict[str, Any], list[str]]] = [
    (
        {"type": "object", "properties": {"name": TEXT}, "required": ["name"], "oneOf": SHAPES},
        {
            "type": "object",
            "properties": {
                "name": TEXT,
                "kind": {"enum": ["circle", "square"]},
                "radius": {"type": "number"},
                "side": {"type": "number"},
                "colour": TEXT,
            },
            "required": ["name", "kind"],
        },
        ['exactly one of these: 1) kind = "circle", radius (A circle.); 2) kind = "square", side, colour (optional).'],
    ),
    (
        {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}], "minProperties": 1},
        {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "minProperties": 1},
        ["at least one of these: 1) a; 2) b."],
    ),
    (
        {"anyOf": [{"type": "object", "properties": {"a": TEXT}}, {"type": "object", "properties": {"a": {"type": "integer"}}}, TEXT]},
        {"type": "object", "properties": {"a": {"anyOf": [TEXT, {"type": "integer"}]}}},
        [],
    ),
    (
        {"allOf": [{"properties": {"a": {"type": "string", "minLength": 2}}, "required": ["a"]}, {"properties": {"a": {"maxLength": 5}}}]},
        {"type": "object", "properties": {"a": {"maxLength": 5, "type": "string", "minLength": 2}}, "required": ["a"]},
        [],
    ),
    (
        {
            "type": "object",
            "allOf": [{"$ref": "#/$defs/A"}],
            "properties": {"b": TEXT},
            "$defs": {"A": {"properties": {"a": TEXT}, "required": ["a"]}},
        },
        {
            "$defs": {"A": {"properties": {"a": TEXT}, "required": ["a"]}},
            "type": "object",
            "properties": {"b": TEXT, "a": TEXT},
            "required": ["a"],
        },
        [],
    ),
    (
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/Missing", "description": "An A."}}},
        {"type": "object", "properties": {"a": {"description": 'An A. (refers to "#/$defs/Missing", which the server does not define)'}}},
        [],
    ),
    (
        {"type": "object", "properties": {"a": TEXT}, "not": {"required": ["b"]}, "if": {"required": ["a"]}, "then": {"required": ["c"]}},
        {"type": "object", "properties": {"a": TEXT}},
        ['Arguments must not match {"required": ["b"]}.', 'If arguments match {"required": ["a"]}, they must match {"required": ["c"]}.'],
    ),
]


@pytest.mark.parametrize("number", range(len(FLATTENED)))
def test_alternatives_at_the_top_are_flattened(number: int) -> None:
    """To one object, which asks for what all ask for; what is lost is said."""
    schema, expected, sentences = FLATTENED[number]
    made = adapted(schema)
    assert made.declared == expected
    text = " ".join(made.notes)
    assert len(made.notes) == len(sentences) and all(sentence in text for sentence in sentences)


def test_what_was_lost_is_told_in_the_description(lists: Lists) -> None:
    """Behind what the server says."""
    (made,) = lists(tool("draw", FLATTENED[1][0], description="Draw.")).tools()
    assert made.description == "Draw.\n\nArguments must match at least one of these: 1) a; 2) b."


VALUES = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "x", "yy"]) | st.lists(st.integers(0, 3), max_size=2)
NAMES = st.sampled_from(["a", "b", "c", "d"])
PROPERTY = st.sampled_from(
    [
        {},
        TEXT,
        {"pattern": "^x"},
        {"type": "integer"},
        {"type": ["string", "null"]},
        {"const": "x"},
        {"enum": ["x", 1]},
        {"type": "array"},
        {"$ref": "#/$defs/D"},
    ]
)
PLAIN = st.builds(
    lambda properties, required, closed: {
        "properties": properties,
        **({"required": required} if required else {}),
        **({"additionalProperties": False} if closed else {}),
    },
    st.dictionaries(NAMES, PROPERTY, max_size=3),
    st.lists(NAMES, unique=True, max_size=2),
    st.booleans(),
)


def _combined(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.lists(inner, min_size=1, max_size=3)
    parts = st.fixed_dictionaries({}, optional={"anyOf": lists, "oneOf": lists, "allOf": lists, "not": inner, "if": inner, "then": inner})
    return st.builds(lambda one, other: {**one, **other}, PLAIN, parts) | inner


@settings(max_examples=1_000, deadline=None)
@given(st.recursive(PLAIN, _combined, max_leaves=6), st.dictionaries(NAMES, VALUES, max_size=4))
def test_what_the_server_takes_the_declaration_allows(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Nothing is asked for that one alternative does not ask for, and no argument that a closed one has is ruled out."""
    own = {**schema, "type": "object", "$defs": {"D": {"type": "integer"}}}
    try:
        made = adapted(own)
    except UnusableSchemaError:
        assert not Draft202012Validator(own).is_valid(arguments)
        return
    if Draft202012Validator(own).is_valid(arguments):
        assert {*made.declared.get("required", ())} <= arguments.keys()
        assert made.declared.get("additionalProperties") is not False or arguments.keys() <= made.declared["properties"].keys()
        assert made.check.problem(arguments) is None


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**6))
def test_every_vendor_takes_random_schemas(seed: int) -> None:
    """Of every keyword, at every depth, or they are refused as no object's."""
    schema = Schemas(seed).schema()
    try:
        made = adapted(schema)
    except UnusableSchemaError as error:
        assert "no object" in str(error)
        return
    given_tool = StructuredTool(name="made", description="Made.", args_schema={"properties": {}, **made.declared}, func=lambda **_: "")
    for wire in WIRES:
        if wire.name.startswith("azure"):
            continue
        declared = json.loads(json.dumps(_MODELS[wire.name].format_tool(given_tool)))
        _check_request(wire, declared)


_MODELS: dict[str, Any] = {}


@pytest.fixture(autouse=True, scope="module")
def vendors() -> Iterator[None]:
    """A strict server and a model of each vendor."""
    opened = [(wire, wire.serve(lambda _: Turn("Done."))) for wire in WIRES if not wire.name.startswith("azure")]
    for wire, served in opened:
        _MODELS[wire.name] = wire.model(served.__enter__())
    yield
    for _, served in opened:
        served.__exit__(None, None, None)


def _check_request(wire: Wire, declared: Any) -> None:
    assert _MODELS[wire.name].invoke("Go", tools=[declared]).text == "Done."


HOSTILE: dict[str, Any] = {
    "doubling": {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/d0"}},
        "$defs": {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)} | {"d60": TEXT},
    },
    "mutual": {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/d0"}},
        "$defs": {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{m}"} for m in range(15)]} for n in range(15)},
    },
    "chain": {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/d0"}},
        "$defs": {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(5_000)} | {"d5000": TEXT},
    },
    "wide": {"type": "object", "properties": {f"a{n}": TEXT for n in range(60_000)}},
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_schema_that_would_eat_the_process_is_left_out(kind: str, lists: Lists, caplog: pytest.LogCaptureFixture) -> None:
    """Before anything is made of it."""
    with caplog.at_level(logging.WARNING):
        made = ScriptedChatModel(tools=[lists(tool(kind, HOSTILE[kind]), "plain")], replies=["Done."])
    made.invoke("Go")
    assert [one["function"]["name"] for one in made.requests[0].tools] == ["plain"]
    assert f"the tool '{kind}'" in warnings(caplog)


def test_a_deep_schema_is_left_out() -> None:
    """As it is nested, and where what it refers to is."""
    deep: dict[str, Any] = TEXT
    for _ in range(200):
        deep = {"type": "object", "properties": {"a": deep}}
    with pytest.raises(UnusableSchemaError, match="nested too deeply"):
        adapted(deep)


# ---------------------------------------------------------------------------------------------- checks of arguments


@pytest.mark.parametrize("way", WAYS)
def test_arguments_are_checked_before_the_call(way: str, lists: Lists) -> None:
    """Against the server's own schema: the model reads what is wrong, never a value, and the server gets nothing."""
    server = lists(
        tool("draw", FLATTENED[0][0]),
        tool("top", {"type": "object", "properties": {"$top": {"type": "integer"}}, "required": ["$top"]}),
        tool("plain", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}),
    )
    key = next(iter(server.tools()[1].args_schema["properties"]))  # type: ignore[index]
    calls = [
        ("draw", {"name": "hush", "kind": "circle"}),
        ("top", {}),
        ("top", {key: "hush"}),
        ("top", {key: 1, "$top": 2}),
        ("plain", {"a": "hush"}),
        ("plain", {"a": 1, "b": "hush"}),
        ("top", {key: 7}),
        ("top", {"$top": 8}),
        ("draw", {"name": "x", "kind": "circle", "radius": 2}),
    ]
    run = WAYS[way](ScriptedChatModel(tools=[server], replies=[asks(*calls), "Done."]))
    errors, reached = [one["error"] for one in got(run)[:6]], got(run)[6:]
    assert [one["arguments"] for one in reached] == [{"$top": 7}, {"$top": 8}, {"name": "x", "kind": "circle", "radius": 2}]
    assert {message.status for message in results_of(run)[:6]} == {"error"}
    assert not any("hush" in text for text in errors)
    expected = [
        "none of the alternatives fits: 1) 'radius' is missing; 2) kind: must be \"square\"",
        f"'{key}' is missing",
        f'{key}: must be of type "integer"',
        f"'{key}' and '$top' are one argument",
        'a: must be of type "integer"',
        "('b' was unexpected)",
    ]
    assert all(word in text for word, text in zip(expected, errors, strict=True)), errors
    assert all(text.endswith("Correct them and call the tool again.") for text in errors)


def test_a_call_that_cannot_run_is_not_shown_for_approval(lists: Lists) -> None:
    """And no edit can make it one."""
    server = lists(tool("draw", FLATTENED[0][0]))
    good = {"name": "x", "kind": "circle", "radius": 2}
    made = ScriptedChatModel(tools=[server], replies=[asks(("draw", {"name": "x"}), ("draw", good)), "Done."], requires_approval=True)
    run = made.invoke("Go")
    (call,) = pending_calls(run)
    assert (call.args, "alternatives" in got(run)[0]["error"]) == (good, True)
    history = [HumanMessage("Go"), *new_messages(run)]
    with pytest.raises(ConfigurationError, match="none of the alternatives fits"):
        made.resume(history, [call.edit({"name": "x", "kind": "square"})])
    ran = made.resume(history, [call.edit({"name": "x", "kind": "square", "side": 3})])
    assert '"side": 3' in next(one for one in new_messages(ran) if isinstance(one, ToolMessage)).text


def test_what_a_schema_cannot_check_the_server_does(lists: Lists, caplog: pytest.LogCaptureFixture) -> None:
    """Of a schema that is not valid the rest is checked; no expression of a server is run, and alternatives may overlap."""
    forever = {"type": "string", "pattern": "^(a+)+$"}
    itself = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"allOf": [{"$ref": "#/$defs/A"}]}}}
    server = lists(
        tool("none", {"type": "object", "properties": {"a": {"type": "integer", "minimum": "five"}}}),
        tool("remote", {"type": "object", "properties": {"a": {"$ref": "https://127.0.0.1:9/schema.json"}}}),
        tool("dangling", {"type": "object", "properties": {"a": {"$ref": "#/$defs/Missing"}}}),
        tool("itself", itself),
        tool("forever", {"type": "object", "properties": {"a": forever}, "patternProperties": {"^(a+)+$": {}}}),
        tool("forever_not", {"type": "object", "properties": {"a": {"oneOf": [{"not": forever}, forever]}}}),
        tool("letters", {"type": "object", "properties": {"a": {"type": "string", "pattern": "^\\p{L}$"}}}),
        tool("overlapping", {"type": "object", "properties": {"a": {"oneOf": [{"type": "number"}, {"type": "integer"}]}}}),
        tool("apart", {"type": "object", "allOf": [{"properties": {name: {}}, "additionalProperties": False} for name in "ab"]}),
        tool("tenth", {"type": "object", "properties": {"a": {"type": "number", "multipleOf": 0.1}}}),
        tool("nothing", {"type": "object", "properties": {}, "not": {"properties": {"a": {"type": "text"}}}}),
        tool("tuple", {"type": "object", "properties": {"a": {"type": "array", "items": [TEXT, {"type": "integer"}]}}}),
    )
    text = f"{'a' * 60}!"
    calls: list[tuple[str, Any]] = [(name, {"a": text}) for name in ("remote", "dangling", "itself", "forever", "forever_not", "letters")]
    calls += [
        ("nothing", {"a": 1}),
        ("overlapping", {"a": 1}),
        ("apart", {"a": 1, "b": 2}),
        ("tenth", {"a": 0.3}),
        ("none", {"a": 5}),
        ("forever", {text: 1}),
    ]
    calls += [("tuple", {"a": ["x", 1]}), ("itself", {"a": text}), ("none", {"a": text}), ("tuple", {"a": [1]})]
    with caplog.at_level(logging.WARNING):
        run = ScriptedChatModel(tools=[server], replies=[asks(*calls), "Done."]).invoke("Go")
    assert [one.get("name") for one in got(run)] == [*(name for name, _ in calls[:-2]), None, None]
    assert warnings(caplog).count("cannot be used to check arguments") == warnings(caplog).count("the tool 'itself'") == 1


# ---------------------------------------------------------------------------------------------- the caller's own tools


def azure(**settings: Any) -> AzureChatOpenAI:
    """A model on Azure."""
    return AzureChatOpenAI(
        azure_endpoint="https://me.openai.azure.com", azure_deployment="any", api_version="2025-04-01-preview", **settings
    )


def test_a_schema_of_the_callers_own_that_the_vendor_refuses_is_left_out_where_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    """It is not changed: it is an error where it is given, or left out with a warning by `skip_invalid_tools`."""
    schemas: list[tuple[dict[str, Any], tuple[Any, ...]]] = [
        ({"type": "object", "properties": {}, "anyOf": SHAPES}, (ChatAnthropic, ChatOpenAI, azure)),
        ({"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "array"}}}}}, (ChatOpenAI, azure)),
        ({"type": "object", "properties": {"a": {"type": "string", "pattern": "^\\p{L}$"}}}, (ChatOpenAI, azure)),
        ({"type": "object", "properties": {"$top": {"type": "integer"}}}, (ChatAnthropic,)),
    ]
    for schema, classes in schemas:
        bad = StructuredTool(name="either", description="Either.", args_schema=schema, func=lambda **_: "")
        for made in classes:
            with pytest.raises(ValueError, match="'either' cannot be sent"):
                made(model="any", api_key="key", tools=[bad])
            with caplog.at_level(logging.WARNING):
                assert not made(model="any", api_key="key", tools=[bad], skip_invalid_tools=True)._own_tools().declarations
            assert "a tool is left out: tool 'either'" in warnings(caplog)
            caplog.clear()
        elsewhere = ChatOpenAI(model="any", api_key="key", base_url="http://127.0.0.1:9/v1", tools=[bad])
        assert elsewhere._own_tools().declarations[0]["function"]["parameters"] == schema  # such a server may take it
