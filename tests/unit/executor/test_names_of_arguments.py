"""What is declared of a tool's arguments, whatever their names, is what is shown, approved and received."""

from __future__ import annotations

import datetime
import json
import warnings
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired, Optional, Unpack

import pytest
from langchain_core.callbacks import CallbackManagerForToolRun, Callbacks
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, StructuredTool, tool
from langgraph.prebuilt import InjectedState, ToolRuntime
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, create_model
from pydantic.alias_generators import to_camel
from pydantic.v1 import BaseModel as BaseModelV1
from pydantic.v1 import Field as FieldV1
from typing_extensions import TypedDict

from langchain_autotools import ConfigurationError, ToolCallRecord, ToolContext, ToolExecutor
from tests.laws.ways import waited
from tests.support.approved_runs import FORGED, WAYS, City, Heard, Run, Two, declared, deploy_with, refusals, ways
from tests.support.desk import call
from tests.support.pairwise import by_turns

# ---------------------------------------------------------------------------------------------- 1: names

NAMES = ("config", "run_manager", "callbacks", "runtime", "self", "model_extra", "model_fields_set", "context_of_call")


def named(name: str, received: list[Any], *, default: str = " = None", is_async: bool = False) -> Callable[..., Any]:
    """A function `deploy` with a parameter of a name."""
    space: dict[str, Any] = {"received": received}
    source = f"{'async ' * is_async}def deploy(service: str, {name}: dict | None{default}):\n    'Deploy.'\n    received.append({name})\n"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(source, space)
    made: Callable[..., Any] = space["deploy"]
    return made


@pytest.mark.filterwarnings("ignore:Field name:UserWarning")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("default", ["", " = None"], ids=["required", "optional"])
def test_an_argument_of_any_name_is_shown_approved_and_received(name: str, default: str) -> None:
    """Also one that LangChain or pydantic uses itself: required or not, approved or edited, in each way to run."""
    for way in WAYS:
        received: list[Any] = []
        function = named(name, received, default=default, is_async=way == "astream")
        assert {*declared(function)["properties"]} == {"service", name}
        written = {"service": "api", name: {"replicas": 3}}
        ran = Run(way, function, written, written, edits={1: {"service": "api", name: {"replicas": 4}}})
        assert [one.args for one in ran.pending] == [written, written]
        assert (ran.succeeded, received) == ([True, True], [{"replicas": 3}, {"replicas": 4}])
        assert '"replicas": 4' in ran.results[1].text.replace('\\"', '"')


@pytest.mark.filterwarnings("ignore:Field name:UserWarning")
@pytest.mark.parametrize("name", ["_id", "model_config", "args", "kwargs"])
def test_an_argument_of_an_impossible_name_is_received_or_refused_in_words(name: str) -> None:
    """The words name the tool and the argument, and say nothing of what is inside."""
    received: list[Any] = []
    try:
        ToolExecutor([named(name, received)])
    except ConfigurationError as error:
        assert "deploy" in str(error) and name in str(error) and "llipsis" not in str(error)
        return
    assert name in declared(named(name, received))["properties"]
    Run("executor", named(name, received), {"service": "api", name: {"replicas": 3}})
    assert received == [{"replicas": 3}]


@ways
@pytest.mark.parametrize("name", ["config", "run_manager", "callbacks", "runtime", "self"])
def test_a_schema_of_ones_own_may_have_any_name(way: str, name: str) -> None:
    """A JSON schema and a class, before a function of keywords and before one that has the parameter."""
    schema = {"type": "object", "properties": {name: {"type": "object"}}, "required": [name]}
    made = type("Arguments", (BaseModel,), {"__annotations__": {name: dict[str, int]}})
    received: list[Any] = []

    def anything(**arguments: Any) -> str:
        received.append(arguments)
        return "Done."

    space: dict[str, Any] = {"anything": anything}
    exec(f"def exact({name}: dict): return anything(**{{{name!r}: {name}}})", space)
    for args_schema in (schema, made):
        for function in (anything, space["exact"]):
            given = StructuredTool(name="deploy", description="Deploy.", args_schema=args_schema, func=function)
            assert {*declared(given)["properties"]} == {name}
            assert Run(way, given, {name: {"replicas": 3}}).succeeded == [True]
    assert received == [{name: {"replicas": 3}}] * 4


# ---------------------------------------------------------------------------------------------- 2: aliases


class _Pay(BaseModel):
    amount: int = 0


class Alias(_Pay):
    currency: str = Field("USD", alias="ccy")


class Required(_Pay):
    currency: str = Field(alias="ccy")


class Generated(_Pay):
    model_config = ConfigDict(alias_generator=lambda name: "ccy" if name == "currency" else to_camel(name))
    currency: str = "USD"


class ByName(Generated):
    model_config = ConfigDict(populate_by_name=True)


class Validation(_Pay):
    currency: str = Field("USD", validation_alias="ccy")


class Choices(_Pay):
    currency: str = Field("USD", validation_alias=AliasChoices("ccy", "iso"))


class Deep(_Pay):
    currency: str = Field("USD", validation_alias=AliasPath("order", "ccy"))


class Excluded(_Pay):
    currency: str = Field("USD", exclude=True)


class Serialised(_Pay):
    currency: str = Field("USD", serialization_alias="ccy")


class Older(BaseModelV1):
    amount: int = 0
    currency: str = FieldV1("USD", alias="ccy")


ALIASED: list[Any] = [Alias, Required, Generated, ByName, Validation, Choices, Deep, Excluded, Serialised, Older]
aliased = pytest.mark.parametrize("schema", ALIASED, ids=[one.__name__ for one in ALIASED])


def paying(schema: Any, received: list[Any]) -> StructuredTool:
    """A tool with this schema."""

    def pay(amount: int = 0, currency: str = "USD") -> str:
        received.append(currency)
        return f"Paid in {currency}."

    return StructuredTool(name="pay", description="Pay.", func=pay, args_schema=schema)


@aliased
@ways
def test_an_argument_with_an_alias_runs_as_it_was_shown(way: str, schema: Any) -> None:
    """Declared, shown, approved and received under one name; a human edits it under that name; a rule is asked about the same value."""
    received: list[Any] = []
    given = paying(schema, received)
    (name,) = {*declared(given)["properties"]} - {"amount"}
    assert name == "currency"
    asked: list[Any] = []

    def rule(record: ToolCallRecord) -> bool:
        asked.append(record.args)
        return True

    ran = Run(way, given, {name: "EUR"}, {name: "EUR"}, edits={1: {name: "CHF"}}, requires_approval=rule)
    assert [one.args for one in ran.pending] == [{name: "EUR"}] * 2
    assert (ran.succeeded, received) == ([True, True], ["EUR", "CHF"])
    assert {"EUR"} <= {args.get("currency", args.get(name)) for args in asked} <= {"EUR", "CHF"}


_READ = {"Deep": {"order": {"ccy": "EUR"}}, "Choices": {"iso": "EUR"}}


@pytest.mark.parametrize("schema", [one for one in ALIASED if one not in (Excluded, Serialised)], ids=lambda one: one.__name__)
@ways
def test_an_alias_that_the_model_writes_is_read(way: str, schema: Any) -> None:
    """In place of the declared name; both with different values are an error that the model reads, and nothing runs."""
    received: list[Any] = []
    given = paying(schema, received)
    written = _READ.get(schema.__name__, {"ccy": "EUR"})
    assert Run(way, given, {"amount": 1, **written}).succeeded == [True]
    assert received == ["EUR"]
    if "currency" not in declared(given)["properties"]:
        return
    assert Run(way, given, {"amount": 1, "currency": "CHF", **written}).succeeded == [False]
    assert received == ["EUR"]


@pytest.mark.parametrize("key", ["callbacks", "run_manager", "config"])
@ways
def test_an_alias_may_be_a_name_that_the_function_takes_from_the_program(way: str, key: str) -> None:
    """Only the argument is read under it: `as_tool` makes functions that take `callbacks` and `config`."""
    schema = create_model("Arguments", amount=(int, Field(..., validation_alias=AliasChoices(AliasPath(key, "inner"), "other"))))
    received: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LangChain's beta warning
        given = RunnableLambda(lambda given: received.append(dict(given)) or "Paid.").as_tool(schema, name="pay", description="Pay.")
    assert Run(way, given, {key: {"inner": 3}}, {"amount": 4}).succeeded == [True, True]
    assert received == [{"amount": 3}, {"amount": 4}]


def test_the_trace_has_the_declared_names() -> None:
    """Whatever the model wrote."""
    received: list[Any] = []
    heard = Heard()
    executor = ToolExecutor([paying(Alias, received)])
    calls = [call("pay", "1", ccy="EUR"), call("pay", "2", currency="EUR")]
    executor.execute_all(calls, config={"callbacks": [heard]})
    assert [{name: value for name, value in one.items() if value != 0} for one in heard.inputs] == [{"currency": "EUR"}] * 2


class ReadTwice(BaseModel):
    """A schema that reads one key for two fields, of which one is the program's."""

    name: str
    user: Annotated[str, InjectedToolArg] = Field("nobody", alias="name")


class ReadInside(BaseModel):
    """The same by a path."""

    caller: dict[str, str]
    user: Annotated[str, InjectedToolArg] = Field("nobody", validation_alias=AliasPath("caller", "name"))


class ReadForTheModel(BaseModel):
    """A schema that reads the program's value as an argument too."""

    model_config = ConfigDict(populate_by_name=True)
    name: Any = Field(validation_alias="user")
    user: Annotated[str, InjectedToolArg] = "nobody"


@pytest.mark.parametrize("schema", [ReadTwice, ReadInside, ReadForTheModel])
def test_an_argument_that_would_set_what_is_the_programs_is_refused(schema: Any) -> None:
    """Where it is given: what the model writes would be taken for both."""

    def act(user: str, **others: Any) -> str:
        raise AssertionError

    given = StructuredTool(name="act", description="Act.", args_schema=schema, func=act)
    for text in refusals(given, "executor", "model", "bound"):
        assert "'act' cannot be called as a tool: what" in text and " would be read as " in text and "'user'" in text


def test_a_fallback_that_cannot_be_called_is_refused_with_the_tool() -> None:
    """Where they are given together, and not at the first failure."""
    broken = StructuredTool(
        name="other", description="Other.", func=lambda: "x", args_schema={"type": "object", "properties": {"lost": {}}}
    )
    for text in refusals(deploy_with().with_fallbacks([broken]), "executor", "model"):
        assert "'other' cannot be called as a tool: its argument 'lost' is declared" in text


class Zoned(TypedDict):
    """A place."""

    zone_code: int


class Renaming(BaseModel):
    """A schema whose generator of aliases renames what is in it too."""

    model_config = ConfigDict(alias_generator=to_camel)
    sent_to: Zoned


def test_keys_inside_are_declared_as_they_are_read() -> None:
    """TypedDicts have the generator of the class around them; the argument itself keeps its name."""
    received: list[Any] = []
    given = StructuredTool(name="send", description="Send.", args_schema=Renaming, func=lambda sent_to: received.append(sent_to))
    assert list(declared(given)["properties"]["sent_to"]["properties"]) == ["zoneCode"]
    assert Run("executor", given, {"sent_to": {"zoneCode": 5}}).succeeded == [True]
    assert received == [{"zone_code": 5}]


# ---------------------------------------------------------------------------------------------- 3: what is the program's


def _user(value: Any, call_id: str) -> bool:
    return value is not None and value["configurable"]["user"] == "alice"


def _own(value: Any, call_id: str) -> bool:
    return bool(value == call_id)


def _of_call(value: Any, call_id: str) -> bool:
    return value is not None and (value.call.id if isinstance(value, ToolContext) else value.tool_call_id) == call_id


def _state(value: Any, call_id: str) -> bool:
    return value is not None and value["messages"][0].text == "Go."


def _not_forged(value: Any, call_id: str) -> bool:
    return value != FORGED


INJECTED: Mapping[str, tuple[Any, Callable[[Any, str], bool]]] = {
    "RunnableConfig": (RunnableConfig, _user),
    "Optional[RunnableConfig]": (Optional[RunnableConfig], _user),  # noqa: UP045 - as it is written in programs
    "RunnableConfig | None": (RunnableConfig | None, _user),
    "Annotated[RunnableConfig | None]": (Annotated[RunnableConfig | None, "the configuration"], _user),
    "Optional[ToolRuntime]": (Optional[ToolRuntime], _of_call),  # noqa: UP045
    "Optional[InjectedState]": (Optional[Annotated[dict[str, Any], InjectedState]], _state),  # noqa: UP045
    "Optional[InjectedToolCallId]": (Optional[Annotated[str, InjectedToolCallId]], _own),  # noqa: UP045
    "Optional[InjectedToolArg]": (Optional[Annotated[str, InjectedToolArg]], lambda value, _: value is None),  # noqa: UP045
    "ToolContext | None": (ToolContext | None, _of_call),
    "CallbackManagerForToolRun | None": (CallbackManagerForToolRun | None, _not_forged),
    "Callbacks": (Callbacks, _not_forged),
}


@pytest.mark.parametrize(("form", "kind"), by_turns(["function", "tool", "schema", "class"], INJECTED))
def test_what_belongs_to_the_program_is_neither_declared_nor_taken(kind: str, form: str) -> None:
    """The annotation decides, in any union and under any name."""
    annotation, holds = INJECTED[kind]
    received: list[Any] = []

    def look(city: str, setting: Any = None) -> str:
        """Look."""
        received.append(setting)
        return city

    look.__annotations__ = {"city": str, "setting": annotation, "return": str}
    given: Any = look
    if form == "tool":
        given = tool(look)
    elif form == "schema":
        given = StructuredTool(name="look", description="Look.", args_schema=City, func=look)
    elif form == "class":
        run_method: Any = lambda self, city, setting=None: look(city, setting)  # noqa: E731
        run_method.__annotations__ = dict(look.__annotations__)
        given = type(
            "Look",
            (BaseTool,),
            {"__annotations__": {"name": str, "description": str}, "name": "look", "description": "Look.", "_run": run_method},
        )()
    assert [*declared(given)["properties"]] == ["city"]
    for way in ("executor", "invoke"):
        assert Run(way, given, {"city": "Rome"}, {"city": "Rome", "setting": FORGED}).succeeded == [True, True]
    assert len(received) == 4
    assert [holds(value, str(number % 2)) for number, value in enumerate(received)] == [True] * 4, received


@pytest.mark.parametrize("name", ["callbacks", "run_manager", "runtime"])
def test_a_name_without_annotation_belongs_to_the_program(name: str) -> None:
    """As LangChain and LangGraph read these names; with an annotation they are the model's (above)."""
    received: list[Any] = []
    space: dict[str, Any] = {"received": received}
    exec(f"def look(city: str, {name}=None):\n    'Look.'\n    received.append({name})", space)
    for given in (space["look"], tool(space["look"])):
        assert [*declared(given)["properties"]] == ["city"]
        assert Run("executor", given, {"city": "Rome", name: FORGED}).succeeded == [True]
    assert all(value != FORGED for value in received)


def adapted(properties: Mapping[str, Any], received: list[Any]) -> StructuredTool:
    """A tool as langchain-mcp-adapters makes it."""

    async def call_tool(runtime: Any = None, **arguments: dict[str, Any]) -> Any:
        received.append(arguments)
        return "Done.", {"structured_content": {"size": 1}}

    schema = {"type": "object", "properties": dict(properties), "required": [*properties]}
    return StructuredTool(
        name="serve",
        description="Serve.",
        args_schema=schema,
        coroutine=call_tool,
        response_format="content_and_artifact",
        metadata={"_meta": 1},
    )


@ways
@pytest.mark.parametrize("name", ["config", "run_manager", "callbacks", "self", "name", "tool_call_id", "run_id", "arguments"])
def test_the_tools_of_adapters_pass_on_any_name(way: str, name: str) -> None:
    """Everything that is declared reaches the server, the artifact comes back, and `runtime` is the program's."""
    received: list[Any] = []
    ran = Run(way, adapted({name: {"type": "object"}, "city": {}}, received), {name: {"a": 1}, "city": "Rome", "runtime": FORGED})
    assert ran.succeeded == [True] and ran.results[0].artifact == {"structured_content": {"size": 1}}
    assert received == [{name: {"a": 1}, "city": "Rome"}]


def test_an_adapters_tool_that_declares_runtime_is_refused_or_declares_it_no_more() -> None:
    """Its function keeps the name: what the model writes for it could reach no server."""
    received: list[Any] = []
    given = adapted({"runtime": {"type": "string"}, "city": {}}, received)
    try:
        properties = declared(given)["properties"]
    except ValueError as error:
        assert "serve" in str(error) and "runtime" in str(error)
        return
    assert [*properties] == ["city"]


# ---------------------------------------------------------------------------------------------- 4: whose last step is not ours


class Timed(StructuredTool):
    """A tool with an `invoke` of its own."""

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        """Invoke it."""
        return super().invoke(input, config, **kwargs)

    async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        """Invoke it, asynchronously."""
        return await super().ainvoke(input, config, **kwargs)


class Deployment(BaseModel):
    """A deployment."""

    config: dict[str, int] = Field({}, alias="settings")


def deploying(received: list[Any], kind: type[StructuredTool] = StructuredTool, error: Exception | None = None) -> StructuredTool:
    """A tool with a `config` that has an alias, and a configuration of the program's."""

    def deploy(config: dict[str, int], setting: RunnableConfig) -> str:
        received.append((config, (setting.get("configurable") or {}).get("user")))
        if error is not None:
            raise error
        return "Done."

    return kind(name="deploy", description="Deploy.", args_schema=Deployment, func=deploy)


WRAPPED: Mapping[str, Callable[[list[Any]], Any]] = {
    "with_retry": lambda received: deploying(received).with_retry(),
    "with_config": lambda received: deploying(received).with_config(tags=["t"]),
    "both": lambda received: deploying(received).with_config(tags=["t"]).with_retry(),
    "with_fallbacks": lambda received: deploying(received).with_fallbacks([deploying([])]),
    "own invoke": lambda received: deploying(received, Timed),
}


@ways
@pytest.mark.parametrize("wrapper", WRAPPED)
def test_a_wrapped_tool_receives_what_was_approved(way: str, wrapper: str) -> None:
    """Whatever wraps and invokes it; the tool and the wrapper of the program stay as they are."""
    received: list[Any] = []
    given = WRAPPED[wrapper](received)
    ran = Run(way, given, {"config": {"replicas": 3}}, {"config": {"replicas": 3}}, edits={1: {"config": {"replicas": 4}}})
    assert (ran.succeeded, received) == ([True, True], [({"replicas": 3}, "alice"), ({"replicas": 4}, "alice")])


@ways
def test_a_fallback_receives_what_was_approved(way: str) -> None:
    """The same as the tool that failed."""
    first, second = list[Any](), list[Any]()
    given = deploying(first, error=ValueError("no")).with_fallbacks([deploying(second)])
    assert Run(way, given, {"config": {"replicas": 3}}).succeeded == [True]
    assert first == second == [({"replicas": 3}, "alice")]


class OwnRun(StructuredTool):
    """A tool that runs itself."""

    def run(self, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        """Run it."""
        return super().run(tool_input, *args, **kwargs)


class OwnParsing(StructuredTool):
    """A tool that reads its arguments itself."""

    def _parse_input(self, tool_input: Any, tool_call_id: str | None) -> Any:
        return super()._parse_input(tool_input, tool_call_id)


class OwnArguments(StructuredTool):
    """A tool that makes its arguments itself."""

    def _to_args_and_kwargs(self, tool_input: Any, tool_call_id: str | None) -> Any:
        return super()._to_args_and_kwargs(tool_input, tool_call_id)


def _only(name: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "object"}}}


@pytest.mark.parametrize("kind", [OwnRun, OwnParsing, OwnArguments])
def test_a_tool_with_a_run_of_its_own_cannot_have_the_names_that_core_fills(kind: type[StructuredTool]) -> None:
    """Such names, and aliases at the top, are refused with its name where it is given; others work."""
    received: list[Any] = []

    def pay(**arguments: Any) -> str:
        received.append(arguments)
        return "Done."

    def made(schema: Any) -> StructuredTool:
        return kind(name="pay", description="Pay.", args_schema=schema, func=pay)

    for name in ("config", "run_manager"):
        assert all("pay" in text and name in text for text in refusals(made(_only(name)), "executor", "model"))
    assert all("pay" in text and "currency" in text for text in refusals(made(Alias), "executor", "model"))
    assert Run("executor", made(City), {"city": "Rome"}).succeeded == [True]
    assert received == [{"city": "Rome"}]


# ---------------------------------------------------------------------------------------------- 5 and 6: what has no parameter


@pytest.mark.parametrize("schema", [Two, Two.model_json_schema()], ids=["class", "dict"])
def test_a_declared_argument_without_a_parameter_is_refused(schema: Any) -> None:
    """With the names of the tool and the argument, where the tool is given; a function of keywords takes any."""

    def look(city: str) -> str:
        return city

    async def alook(city: str) -> str:
        return city

    class Look(BaseTool):
        name: str = "look"
        description: str = "Look."
        args_schema: Any = schema

        def _run(self, city: str) -> str:
            return city

    for given in (
        StructuredTool(name="look", description="Look.", args_schema=schema, func=look),
        StructuredTool(name="look", description="Look.", args_schema=schema, coroutine=alook),
        Look(),
    ):
        assert all("look" in text and "unit" in text for text in refusals(given, "executor", "model"))

    def anything(**arguments: Any) -> str:
        return json.dumps(arguments)

    taken = StructuredTool(name="look", description="Look.", args_schema=schema, func=anything)
    assert Run("executor", taken, {"city": "Rome", "unit": "F"}).results[0].text == '{"city": "Rome", "unit": "F"}'


class Removal(TypedDict):
    """What is removed."""

    path: str
    force: NotRequired[bool]


@pytest.mark.filterwarnings("ignore:typing.Unpack")
@ways
def test_typed_keyword_arguments_are_declared_and_bound_or_refused(way: str) -> None:
    """They are never dropped in silence."""
    received: list[Any] = []

    def rm(**kw: Unpack[Removal]) -> str:
        """Remove."""
        received.append(kw)
        return "Removed."

    async def arm(**kw: Unpack[Removal]) -> str:
        """Remove."""
        received.append(kw)
        return "Removed."

    rm.__annotations__ = arm.__annotations__ = {"kw": Unpack[Removal], "return": str}
    for given, name in ((rm, "rm"), (arm, "arm"), (tool(rm), "rm")):
        received.clear()
        try:
            schema = declared(given)
        except ConfigurationError as error:
            assert name in str(error)
            continue
        assert {*schema["properties"]} == {"path", "force"} and schema["required"] == ["path"]
        ran = Run(way, given, {"path": "/tmp/x"}, {"path": "/tmp/x", "force": True}, {}, requires_approval=None)
        assert (ran.succeeded, received) == ([True, True, False], [{"path": "/tmp/x"}, {"path": "/tmp/x", "force": True}])


# ---------------------------------------------------------------------------------------------- 7: strict arguments


class Colour(Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


class Red(BaseModel):
    kind: Literal[Colour.RED]
    depth: int = 1


class Blue(BaseModel):
    kind: Literal[Colour.BLUE]
    height: int = 1


class StrictDay(BaseModel):
    model_config = ConfigDict(strict=True)
    day: datetime.date
    colour: Colour


class StrictArguments(BaseModel):
    model_config = ConfigDict(strict=True)
    day: datetime.date
    colour: Colour
    pair: tuple[int, str]
    told: Red | Blue


WRITTEN = {"day": "2026-11-28", "colour": "red"}
DAY = datetime.date(2026, 11, 28)


@ways
def test_strict_arguments_can_be_written(way: str) -> None:
    """What the model writes is JSON, and is read as JSON: dates, members, tuples, and unions that members tell apart."""
    received: list[Any] = []

    def book(day: datetime.date, colour: Colour, pair: Any, told: Any) -> str:
        received.append((day, colour, pair, told))
        return "Done."

    given = StructuredTool(name="book", description="Book.", args_schema=StrictArguments, func=book)
    written = {**WRITTEN, "pair": [1, "x"], "told": {"kind": "blue", "height": 2}}
    ran = Run(way, given, written, written, edits={1: {**written, "colour": "blue"}}, requires_approval=lambda record: True)
    assert ran.succeeded == [True, True]
    assert received == [(DAY, colour, (1, "x"), Blue(kind=Colour.BLUE, height=2)) for colour in (Colour.RED, Colour.BLUE)]
    assert Run(way, given, {**written, "day": 7}, requires_approval=None).succeeded == [False]


@ways
def test_strict_models_and_members_as_parameters_can_be_written(way: str) -> None:
    """The same of a function's parameters, nested too."""
    received: list[Any] = []

    def book(when: StrictDay, colour: Literal[Colour.RED], one: Red | Blue, more: list[StrictDay]) -> str:
        """Book."""
        received.append((when, colour, one, more))
        return "Done."

    written = {"when": WRITTEN, "colour": "red", "one": {"kind": "red"}, "more": [WRITTEN]}
    for given in (book, tool(book)):
        assert Run(way, given, written, requires_approval=lambda record: True).succeeded == [True]
    day = StrictDay(day=DAY, colour=Colour.RED)
    assert received == [(day, Colour.RED, Red(kind=Colour.RED), [day])] * 2


@pytest.mark.filterwarnings("ignore:Field name:UserWarning")
@pytest.mark.parametrize("name", ["model_json_schema", "copy", "json", "model_fields_set"])
@ways
def test_a_default_is_the_one_that_was_written(way: str, name: str) -> None:
    """Also that of a parameter which has the name of a method of pydantic, the program's or the model's, beside strict arguments."""
    for kind in ("Annotated[str, InjectedToolArg]", "str"):
        received: list[Any] = []
        space: dict[str, Any] = {**globals(), "received": received}
        parameters = f"when: StrictDay, said: Annotated[list, InjectedState('messages')], {name}: {kind} = 'written'"
        source = f"def book({parameters}):\n    'Book.'\n    received.append({name})\n"
        exec(source, space)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = tool(space["book"])
        for one in (space["book"], given):
            assert Run(way, one, {"when": WRITTEN}, requires_approval=None).succeeded == [True]
        assert received == ["written", "written"]


# ---------------------------------------------------------------------------------------------- what is left as it is


def test_the_programs_own_tool_is_never_changed() -> None:
    """After a model has had it, it has the same fields, and works as before by itself."""
    received: list[Any] = []
    given, look = paying(Alias, received), tool(named("replicas", received))
    before = [dict(one.__dict__) for one in (given, look)]
    wrapper = given.with_retry()
    for one in (given, look, wrapper):
        Run("invoke", one, {"service": "api"} if one is look else {"currency": "EUR"})
    assert wrapper.bound is given  # type: ignore[attr-defined]
    for one, fields in zip((given, look), before, strict=True):
        assert all(one.__dict__[name] is value for name, value in fields.items())
    received.clear()
    assert given.invoke({"ccy": "CHF"}) == "Paid in CHF."
    assert waited(given.ainvoke({"type": "tool_call", "id": "1", "name": "pay", "args": {"ccy": "GBP"}})).content == "Paid in GBP."
    look.invoke({"service": "api", "replicas": {"a": 1}})
    assert received == ["CHF", "GBP", {"a": 1}]
