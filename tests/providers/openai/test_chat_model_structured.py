"""with_structured_output of ChatOpenAI: what is asked for, what comes out, and what is refused."""

import asyncio
import datetime
import json
from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any, Literal, TypedDict
from uuid import UUID

import pytest
from langchain_core.exceptions import OutputParserException
from langchain_core.runnables import AddableDict, Runnable
from langchain_core.tools import tool
from pydantic import AnyUrl, BaseModel, ConfigDict, Field, SecretStr
from pydantic.v1 import BaseModel as BaseModelV1

from langchain_autotools import ChatOpenAI, ConfigurationError, ModelRefusalError
from langchain_autotools.providers.openai.tools import format_tool, response_format
from tests.support.openai_server import OpenAIServer
from tests.support.responses_server import ResponsesServer
from tests.support.script import Call, Reply, Turn


class Person(BaseModel):
    """Somebody."""

    name: str
    age: int | None = None


class PersonV1(BaseModelV1):
    """Somebody, in pydantic's first version."""

    name: str


class PersonDict(TypedDict):
    """Somebody."""

    name: str


SCHEMA = {"title": "Person", "description": "Somebody.", "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
QUESTION = "Who? Answer in JSON."
ANNA = '{"name": "Anna", "age": 7}'


def model_of(server: OpenAIServer, **more: Any) -> ChatOpenAI:
    """A model that talks to the server."""
    return ChatOpenAI(**{"model": "any", "base_url": server.url, "api_key": "key", "max_retries": 0, **more})


def invoked(chain: Runnable[Any, Any]) -> Any:
    """What the chain gives."""
    return chain.invoke(QUESTION)


def streamed(chain: Runnable[Any, Any]) -> Any:
    """The last thing that its stream gives; of dicts with one key each the sum."""
    return whole([None, *chain.stream(QUESTION)])


def whole(given: list[Any]) -> Any:
    """The last of the things that a stream gave, or the sum of its last three."""
    return reduce(add, given[-3:]) if isinstance(given[-1], AddableDict) else given[-1]


def ainvoked(chain: Runnable[Any, Any]) -> Any:
    """The same asynchronously."""
    return asyncio.run(chain.ainvoke(QUESTION))


def astreamed(chain: Runnable[Any, Any]) -> Any:
    """The same asynchronously."""

    async def last() -> Any:
        return whole([None, *[item async for item in chain.astream(QUESTION)]])

    return asyncio.run(last())


Way = Callable[[Runnable[Any, Any]], Any]
every_way = pytest.mark.parametrize("way", [invoked, streamed, ainvoked, astreamed])
CALL = Turn(calls=[Call("Person", {"name": "Anna", "age": 7})])
CALL_V1 = Turn(calls=[Call("PersonV1", {"name": "Anna"})])


@every_way
@pytest.mark.parametrize(
    ("schema", "method", "reply", "expected"),
    [
        (Person, "json_schema", Turn(ANNA), Person(name="Anna", age=7)),
        (Person, "json_mode", Turn(f"```json\n{ANNA}\n```"), Person(name="Anna", age=7)),
        (Person, "function_calling", CALL, Person(name="Anna", age=7)),
        (PersonDict, "json_schema", Turn(ANNA), {"name": "Anna", "age": 7}),
        (PersonDict, "function_calling", Turn(calls=[Call("PersonDict", {"name": "Anna"})]), {"name": "Anna"}),
        (SCHEMA, "json_schema", Turn(ANNA), {"name": "Anna", "age": 7}),
        (SCHEMA, "function_calling", CALL, {"name": "Anna", "age": 7}),
        (None, "json_mode", Turn(ANNA), {"name": "Anna", "age": 7}),
        (PersonV1, "json_schema", CALL_V1, PersonV1(name="Anna")),
        (PersonV1, "json_mode", Turn('{"name": "Anna"}'), PersonV1(name="Anna")),
        (Person, "function_calling", Turn("I will not call anything."), None),
    ],
)
def test_output_of_every_schema_by_every_method(way: Way, schema: Any, method: Any, reply: Reply, expected: Any) -> None:
    """Pydantic classes give objects, other schemas dicts; without the schema's call there is nothing."""
    with OpenAIServer([reply]) as server:
        assert way(model_of(server).with_structured_output(schema, method=method)) == expected
        assert server.rejections == []


def test_dicts_and_objects_grow_while_they_stream() -> None:
    """A dict from its first piece on, an object as soon as its text fits the class; both end in what is whole."""
    with OpenAIServer([Turn(ANNA)] * 2) as server:
        dicts = list(model_of(server).with_structured_output(SCHEMA).stream("Who?"))
        objects = list(model_of(server).with_structured_output(Person).stream("Who?"))
    assert dicts[0] != dicts[-1] == {"name": "Anna", "age": 7}
    assert objects == [Person(name="An"), Person(name="Anna"), Person(name="Anna", age=7)]


@every_way
@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
@pytest.mark.parametrize("schema", [Person, SCHEMA], ids=["pydantic", "dict"])
@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Turn(refusal="I'd rather not."), ModelRefusalError),
        (Turn("", finish="content_filter"), ModelRefusalError),
        (Turn('{"name": "An', finish="length"), OutputParserException),
        (Turn('{"name": "Anna"}', finish="length"), OutputParserException),
    ],
    ids=["refused", "filtered", "cut", "at the limit"],
)
def test_an_incomplete_or_refused_reply_is_an_error(way: Way, method: Any, schema: Any, reply: Turn, error: type[Exception]) -> None:
    """Half an object is never completed, and a refusal never parsed."""
    with OpenAIServer([reply]) as server, pytest.raises(error) as raised:
        way(model_of(server).with_structured_output(schema, method=method))
    if reply.refusal:
        assert reply.refusal in str(raised.value)
        assert raised.value.raw_message.additional_kwargs["refusal"] == reply.refusal  # type: ignore[attr-defined]


@pytest.mark.parametrize("schema", [Person, SCHEMA], ids=["pydantic", "dict"])
def test_a_call_that_does_not_parse_is_an_error(schema: Any) -> None:
    """Arguments that are not one complete JSON object are shown, not repaired."""
    with OpenAIServer([Turn(calls=[Call("Person", '{"name": "An')])]) as server:
        with pytest.raises(OutputParserException, match=r'Person are not one complete JSON object: .*"An'):
            model_of(server).with_structured_output(schema, method="function_calling").invoke("Who?")


@pytest.mark.parametrize("text", ["Anna is seven.", '{"name": "Anna"} {"name": "Otto"}', '{"age": 7}'])
def test_text_that_does_not_fit_is_an_error(text: str) -> None:
    """No JSON, too much of it, or JSON that is not of the class."""
    with OpenAIServer([Turn(text)]) as server, pytest.raises(OutputParserException):
        model_of(server).with_structured_output(Person).invoke("Who?")


@every_way
@pytest.mark.parametrize(("reply", "parsed"), [(Turn(ANNA), Person(name="Anna", age=7)), (Turn("Anna"), None), (Turn(refusal="No."), None)])
def test_the_raw_message_may_come_along(way: Way, reply: Turn, parsed: Any) -> None:
    """`include_raw` gives the message, what was parsed, and the error instead of raising it; streamed too."""
    with OpenAIServer([reply]) as server:
        said = way(model_of(server).with_structured_output(Person, include_raw=True))
    assert said["parsed"] == parsed
    assert said["raw"].content == reply.text
    assert (said["parsing_error"] is None) is (parsed is not None)


@every_way
def test_a_call_that_was_cut_off_is_shown_as_the_model_wrote_it(way: Way) -> None:
    """The error has the arguments, and nothing of the mark that keeps them from being completed."""
    with OpenAIServer([Turn(calls=[Call("Person", '{"name":"An')])]) as server, pytest.raises(OutputParserException) as raised:
        way(model_of(server).with_structured_output(Person, method="function_calling"))
    assert raised.value.llm_output == '{"name":"An'
    assert "!}" not in str(raised.value)


# ---------------------------------------------------------------------------------------------- with tools


@tool
def look_up(name: str) -> str:
    """Look somebody up."""
    return f"{name} is 7"


@every_way
@pytest.mark.parametrize("method", ["json_schema", "json_mode", "function_calling"])
@pytest.mark.parametrize("schema", [Person, SCHEMA], ids=["pydantic", "dict"])
def test_the_models_own_tools_run_first(way: Way, method: Any, schema: Any) -> None:
    """A talkative first turn calls a tool; the output is the last turn's."""
    first = Turn("Let me look {", calls=[Call("look_up", {"name": "Anna"})])
    last = CALL if method == "function_calling" else Turn(ANNA)
    with OpenAIServer([first, last]) as server:
        found = way(model_of(server, tools=[look_up]).with_structured_output(schema, method=method))
        assert server.rejections == []
        assert len(server.requests) == 2
        choices = [request.get("tool_choice") for request in server.requests]
    assert dict(found) == {"name": "Anna", "age": 7}
    assert choices == (["required", "required"] if method == "function_calling" else [None, None])


@every_way
def test_a_choice_that_leaves_the_output_out_is_refused(way: Way) -> None:
    """Where the output is a call that may never come, no turn is spent; a choice that allows it holds."""
    named = {"type": "function", "function": {"name": "look_up"}}
    output = {"type": "function", "function": {"name": "Person"}}
    with OpenAIServer([CALL]) as server:
        chain: Any = model_of(server, tools=[look_up]).with_structured_output(Person, method="function_calling")
        for choice in ("none", {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [named]}}):
            with pytest.raises(ConfigurationError, match="call of 'Person', which this tool_choice leaves out"):
                way(chain.bind(tool_choice=choice))
        assert server.exchanges == []
        both = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named, output]}}
        assert way(chain.bind(tool_choice=both)) == Person(name="Anna", age=7)


def test_tools_may_be_declared_along_with_a_schema() -> None:
    """Their calls are left to the caller: the output is then nothing, and the raw message has the calls."""
    with OpenAIServer([Turn(calls=[Call("look_up", {"name": "Anna"})])]) as server:
        chain = model_of(server).with_structured_output(Person, tools=[look_up], strict=True, include_raw=True)
        said = chain.invoke("Who?")
        request = server.requests[0]
    assert (said["parsed"], said["parsing_error"]) == (None, None)
    assert [call["name"] for call in said["raw"].tool_calls] == ["look_up"]
    assert request["tools"][0]["function"]["strict"] is True
    assert request["response_format"]["json_schema"]["strict"] is True


# ---------------------------------------------------------------------------------------------- what is asked for


class Lid(BaseModel):
    size: int


def test_what_function_calling_sends() -> None:
    """The schema as the only tool, forced, one call at a time, unless these parameters, or these values of them, are disabled."""
    with OpenAIServer([Turn(calls=[Call("Lid", {"size": 1})]), CALL, CALL]) as server:
        model_of(server).with_structured_output(Lid, method="function_calling", strict=True).invoke("Who?")
        disabled = model_of(server, disabled_params={"parallel_tool_calls": None})
        disabled.with_structured_output(Person, method="function_calling", temperature=0).invoke("Who?")
        unforced = model_of(server, disabled_params={"tool_choice": None, "parallel_tool_calls": [True]})
        assert unforced.with_structured_output(Person, method="function_calling").invoke("Who?") == Person(name="Anna", age=7)
        first, second, third = server.requests
    assert first["tool_choice"] == {"type": "function", "function": {"name": "Lid"}}
    assert (first["parallel_tool_calls"], first["tools"][0]["function"]["strict"]) == (False, True)
    assert "parallel_tool_calls" not in second
    assert second["temperature"] == 0
    assert ("tool_choice" in third, third["parallel_tool_calls"]) == (False, False)


@pytest.mark.parametrize("name", ["gpt-4", "gpt-4-0613", "gpt-4-1106-preview", "gpt-3.5-turbo-0125", "gpt-35-turbo"])
def test_a_model_that_is_known_to_lack_schemas_calls_a_function(name: str) -> None:
    """`json_schema` becomes `function_calling` where the profile says that the server cannot hold the model to a schema."""
    with OpenAIServer([CALL]) as server:
        assert model_of(server, model=name).with_structured_output(Person).invoke("Who?") == Person(name="Anna", age=7)
        assert "response_format" not in server.requests[0]


class Inner(BaseModel):
    size: int = 3


class Outer(BaseModel):
    """Many things."""

    kind: Literal["a", "b"] = "a"
    inner: Inner = Field(description="the inner one", default_factory=Inner)
    more: list[Inner] = []
    maybe: str | None = None
    again: "Outer | None" = Field(description="one more", default=None)


class Free(BaseModel):
    counts: dict[str, int]


class Anything(BaseModel):
    anything: Any


class Pair(BaseModel):
    two: tuple[int, str]
    either: int | list[Inner]


class Address(BaseModel):
    page: AnyUrl


class Raw(BaseModel):
    raw: bytes


class Hidden(BaseModel):
    secret: SecretStr


class Password(BaseModel):
    model_config = ConfigDict(regex_engine="python-re")
    word: str = Field(pattern=r"^(?=.*\d).+$")


class Odd(BaseModel):
    @classmethod
    def model_json_schema(cls, **_: Any) -> dict[str, Any]:  # type: ignore[override]
        """A schema with a foreign reference."""
        return {"title": "Odd", "type": "object", "properties": {"a": {"$ref": "http://elsewhere/a", "description": "b"}}}


class When(BaseModel):
    """Of the formats that are known."""

    at: datetime.datetime
    id: UUID
    words: set[str] = Field(default={"a"}, description="the words")


def test_a_strict_schema_is_closed() -> None:
    """Every object lists all its properties and admits no others; no reference has a neighbour; the strict server takes it."""
    made = response_format(Outer)
    schema = made["json_schema"]["schema"]
    assert (made["type"], made["json_schema"]["name"], made["json_schema"]["strict"]) == ("json_schema", "Outer", True)
    assert made["json_schema"]["description"] == "Many things."
    assert schema["required"] == ["kind", "inner", "more", "maybe", "again"]

    def look(node: Any) -> None:
        if isinstance(node, dict):
            assert "$ref" not in node or set(node) == {"$ref"}
            assert not isinstance(node.get("type"), str) or "default" not in node
            assert node.get("type") != "object" or node["additionalProperties"] is False
            for item in node.values():
                look(item)
        elif isinstance(node, list):
            for item in node:
                look(item)

    look(schema)
    with OpenAIServer([Turn("{}")]) as server:
        model_of(server).bind(response_format=Outer).invoke("Who?")
        assert server.rejections == []
        assert server.requests[0]["response_format"] == made


def test_what_strict_mode_has_no_word_for_is_told() -> None:
    """Nine formats stay; a default and unique items are told in the description, which the model reads."""
    schema = response_format(When)["json_schema"]["schema"]
    assert [schema["properties"][name]["format"] for name in ("at", "id")] == ["date-time", "uuid"]
    assert schema["properties"]["words"] == {
        "title": "Words",
        "type": "array",
        "items": {"type": "string"},
        "description": "the words {default: ['a'], uniqueItems: True}",
    }


def test_a_schema_that_cannot_be_strict_is_not() -> None:
    """Free keys, values of any type, tuples, other formats and look-around cannot be said strictly: strict is off and the schema as it
    was, or, insisted on, refused by the name of the part; a tool alike."""
    parts = ((Pair, "two"), (Address, "page"), (Raw, "raw"), (Hidden, "secret"), (Password, "word"), (Odd, "a"))
    for schema, place in ((Free, "counts"), (Anything, "anything"), *parts):
        made = response_format(schema)["json_schema"]
        assert (made["strict"], made["schema"]) == (False, schema.model_json_schema())
        with pytest.raises(ConfigurationError, match=rf"strict mode cannot express .*\({place}\)"):
            response_format(schema, strict=True)
        if schema is not Odd:  # which core asks for its fields
            with pytest.raises(ConfigurationError, match=rf"strict mode cannot express .*{place}"):
                format_tool(schema, strict=True)
    with OpenAIServer([Turn("{}")] * len(parts)) as server:
        for schema, _ in parts[:-1]:
            model_of(server).bind(response_format=schema).invoke("Who?")
        assert server.rejections == []


@pytest.mark.parametrize("served", [OpenAIServer, ResponsesServer])
def test_a_format_that_says_itself_that_it_is_strict_is_closed(served: Any) -> None:
    """As `create_agent` binds it, with a schema as pydantic writes it: nested objects, optional fields and defaults. A tool that says so,
    too; and what strict mode cannot express is refused by name."""
    declared = {"name": "Outer", "schema": Outer.model_json_schema(), "strict": True}
    function = {"name": "Inner", "description": "In.", "parameters": Outer.model_json_schema(), "strict": True}
    with served([Turn("{}")] * 3) as server:
        model = model_of(server, use_responses_api=served is ResponsesServer)
        for form in ({"type": "json_schema", "json_schema": declared}, declared):
            model.bind_tools([{"type": "function", "function": function}], response_format=form).invoke("Who?")
        model.bind_tools([get_nothing], response_format=Outer, strict=True).invoke("Who?")
        assert server.rejections == []
        first, second, third = (one.json.get("response_format") or one.json["text"]["format"] for one in server.exchanges)
        assert first == second and first.get("json_schema", first)["schema"] == third.get("json_schema", third)["schema"]
        free = {"type": "json_schema", "json_schema": {"name": "Free", "schema": Free.model_json_schema(), "strict": True}}
        with pytest.raises(ConfigurationError, match=r"keys of its own choosing \(counts\)"):
            model.bind(response_format=free).invoke("Who?")


def get_nothing() -> None:
    """Get nothing."""


@pytest.mark.parametrize(
    ("schema", "strict", "expected"),
    [
        (SCHEMA, None, False),
        (SCHEMA, True, True),
        ({**SCHEMA, "strict": True}, None, True),
        (PersonDict, None, False),
        ({"name": "Person", "schema": SCHEMA}, None, None),
        ({"name": "Person", "schema": SCHEMA}, True, True),
        ({"type": "json_schema", "json_schema": {"name": "Person", "schema": SCHEMA, "strict": True}}, True, True),
        ({"name": "Person", "description": "x", "parameters": SCHEMA}, None, False),
    ],
)
def test_schemas_in_every_form(schema: Any, strict: bool | None, expected: bool | None) -> None:
    """Name, schema and strictness end up where the wire has them."""
    made = response_format(schema, strict=strict)
    assert made["json_schema"]["name"].startswith("Person")
    assert made["json_schema"]["schema"]["properties"].keys() == {"name"}
    assert made["json_schema"].get("strict") is expected
    json.dumps(made)


def test_a_format_of_the_wires_own_is_untouched() -> None:
    """`json_object` and `text` go as they are."""
    assert response_format({"type": "json_object"}) == {"type": "json_object"}
    assert response_format({"type": "text"}, strict=True) == {"type": "text"}


class Box(BaseModel):
    """A name that the wire does not take."""

    model_config = {"title": "Box of [things], " + "x" * 80}
    size: int


def test_an_illegal_name_is_made_legal() -> None:
    """Other characters become underscores; 64 characters are left."""
    name = response_format(Box)["json_schema"]["name"]
    assert name.startswith("Box_of_things_xxx")
    assert len(name) == 64


@pytest.mark.parametrize(
    ("schema", "arguments", "said"),
    [
        (None, {}, "needs a schema"),
        (None, {"method": "function_calling"}, "needs a schema"),
        (Person, {"method": "json_mode", "strict": True}, "strict has no meaning"),
        (Person, {"method": "magic"}, "is none of"),
        (Person, {"method": "function_calling", "tools": [look_up]}, "tools go with"),
        ({"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA, "strict": True}}, {"strict": False}, "contradicts"),
        ({"type": "object", "properties": {}}, {}, "no JSON schema|cannot be declared"),
    ],
)
def test_arguments_that_cannot_work_are_refused(schema: Any, arguments: dict[str, Any], said: str) -> None:
    """When the chain is made, not when it runs."""
    with pytest.raises(ConfigurationError, match=said):
        ChatOpenAI(model="any").with_structured_output(schema, **arguments)
