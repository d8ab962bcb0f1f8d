"""ToolExecutor: injected arguments come from the program, never from the model."""

import asyncio
import dataclasses
import json
from typing import Annotated, Any, Optional

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, StructuredTool, tool
from pydantic import AliasChoices, AliasPath, BaseModel, Field
from pydantic.v1 import BaseModel as OldModel
from typing_extensions import TypedDict

from langchain_autotools.executor import ToolExecutor


class UserId(InjectedToolArg):
    """An injection mark of a user's own."""


def answers(given: Any, args: dict[str, Any], config: RunnableConfig | None = None) -> list[str]:
    """What a tool answers to `args`, in a synchronous and in an asynchronous run."""
    executor = ToolExecutor([given])
    name = next(iter(executor.tools))
    turn = [{"name": name, "args": args, "id": "call_7"}]
    one = executor.execute_all(turn, config)
    two = asyncio.run(executor.aexecute_all(turn, config))
    assert [message.content for message in one] == [message.content for message in two]
    return [str(message.content) for message in one]


def inner_of(value: Any) -> Any:
    """Data of a nested model as plain data."""
    return value.model_dump() if isinstance(value, BaseModel) else value


class Address(BaseModel):
    street: str
    owner: Annotated[str, InjectedToolArg] = "nobody"


class Order(BaseModel):
    item: str
    to: Address | None = None
    others: list[Address] = []
    named: dict[str, Address] = {}
    pair: tuple[Address, int] | None = None


class Tag(TypedDict):
    label: str
    owner: Annotated[str, InjectedToolArg]


@dataclasses.dataclass
class Box:
    size: int
    owner: Annotated[str, InjectedToolArg] = "nobody"


@pytest.mark.parametrize(
    "annotation",
    [
        Annotated[str, InjectedToolArg],
        Annotated[str, InjectedToolArg()],
        Annotated[str, UserId],
        Annotated[Annotated[str, UserId()], "more"],
        Optional[Annotated[str, InjectedToolArg]],  # noqa: UP045
        Annotated[str, InjectedToolArg] | None,
    ],
)
def test_a_forged_injected_argument_is_dropped(annotation: Any) -> None:
    """However an argument is marked as injected, the model's value for it never arrives."""

    def delete(path: str, user: Any = "nobody") -> str:
        return f"{path} as {user}"

    delete.__annotations__["user"] = annotation
    assert answers(delete, {"path": "/x", "user": "root"}) == ["/x as nobody"]


def test_a_forged_argument_of_a_tool_class_is_dropped() -> None:
    """A tool that is a class of its own, with or without a schema, is protected as well."""

    class Schema(BaseModel):
        path: str
        user: Annotated[str, InjectedToolArg] = Field("nobody", alias="userId")

    class Delete(BaseTool):
        name: str = "delete"
        description: str = "Delete."

        def _run(self, path: str, user: Annotated[str, InjectedToolArg] = "nobody") -> str:
            return f"{path} as {user}"

    class DeleteBySchema(Delete):
        args_schema: Any = Schema

    assert answers(Delete(), {"path": "/x", "user": "root"}) == ["/x as nobody"]
    for key in ("user", "userId"):
        assert answers(DeleteBySchema(), {"path": "/x", key: "root"}) == ["/x as nobody"]


def test_a_forged_argument_under_an_alias_is_dropped() -> None:
    """A field can be reached by all its aliases; the model reaches it by none."""

    class Schema(BaseModel):
        path: str
        user: Annotated[str, InjectedToolArg] = Field("nobody", validation_alias=AliasChoices("user", "user_id", "uid"))

    def delete(path: str, user: str) -> str:
        return f"{path} as {user}"

    given = StructuredTool.from_function(delete, args_schema=Schema, description="Delete.")
    for key in ("user", "user_id", "uid"):
        assert answers(given, {"path": "/x", key: "root"}) == ["/x as nobody"]


def test_a_forged_argument_under_a_path_is_dropped() -> None:
    """An alias may be a path into an object: the object that it begins in is not the model's to give."""

    class Schema(BaseModel):
        path: str
        user: Annotated[str, InjectedToolArg] = Field("nobody", validation_alias=AliasPath("caller", "name"))

    def delete(path: str, user: str) -> str:
        return f"{path} as {user}"

    given = StructuredTool.from_function(delete, args_schema=Schema, description="Delete.")
    assert answers(given, {"path": "/x", "caller": {"name": "root"}}) == ["/x as nobody"]


def test_a_forged_argument_for_an_older_schema_is_dropped() -> None:
    """Schemas of pydantic 1 too."""

    class Schema(OldModel):
        path: str
        user: Annotated[str, InjectedToolArg] = "nobody"

    def delete(path: str, user: str) -> str:
        return f"{path} as {user}"

    given = StructuredTool.from_function(delete, args_schema=Schema, description="Delete.")
    assert answers(given, {"path": "/x", "user": "root"}) == ["/x as nobody"]


def test_a_forged_argument_beside_a_json_schema_is_dropped() -> None:
    """A tool described by JSON schema gets everything the model wrote, except what its function marks as injected."""

    def delete(path: str, user: Annotated[str, InjectedToolArg] = "nobody", **more: Any) -> str:
        return json.dumps([path, user, more])

    schema = {"type": "object", "properties": {"path": {"type": "string"}, "callbacks": {"type": "string"}}}
    given = StructuredTool(name="delete", description="Delete.", func=delete, args_schema=schema)
    args = {"path": "/x", "user": "root", "run_manager": 1, "note": "n"}
    assert answers(given, args) == ['["/x", "nobody", {"note": "n"}]']


def test_forged_arguments_inside_nested_models_are_dropped() -> None:
    """An injected field is protected at any depth: models, lists, mappings, tuples, alternatives, TypedDicts, dataclasses."""

    @tool
    def order(order: Order, tag: Tag | None = None, box: Box | None = None, plain: Any = None) -> str:
        """Order."""
        return json.dumps([order.model_dump(), tag, box and dataclasses.asdict(box), plain])

    forged = {"street": "s", "owner": "root"}
    args = {
        "order": {"item": "i", "to": forged, "others": [forged, {"street": "t"}], "named": {"owner": forged}, "pair": [forged, 1]},
        "box": {"size": 1, "owner": "root"},
        "plain": {"owner": "is data here"},
    }
    clean = {"street": "s", "owner": "nobody"}
    expected = {
        "item": "i",
        "to": clean,
        "others": [clean, {"street": "t", "owner": "nobody"}],
        "named": {"owner": clean},
        "pair": [clean, 1],
    }
    assert json.loads(answers(order, args)[0]) == [expected, None, {"size": 1, "owner": "nobody"}, {"owner": "is data here"}]
    (text,) = answers(order, {**args, "tag": {"label": "l", "owner": "root"}})
    assert "caller must supply" in text  # a TypedDict has no default for what was dropped


def test_a_missing_injected_argument_is_no_fault_of_the_model() -> None:
    """The model is not asked for what it must not give; its own mistakes are named alone."""

    class Held(BaseModel):
        owner: Annotated[str, InjectedToolArg]

    @tool
    def delete(path: str, user: Annotated[str, InjectedToolArg], held: Held | None = None) -> str:
        """Delete."""
        raise AssertionError("not run")

    (text,) = answers(delete, {"path": "/x", "user": "root"})
    assert (
        json.loads(text)["error"] == "The tool 'delete' cannot run here: an argument that its caller must supply is missing or not valid."
    )
    (text,) = answers(delete, {"path": 5, "held": {"owner": "me"}})
    assert "path: " in text
    assert "user" not in text
    assert "owner" not in text


def test_the_tool_call_id_is_injected() -> None:
    """InjectedToolCallId is the call's id, whatever the parameter is called and whatever the model wrote there."""

    def who(a: int, mine: Annotated[str, InjectedToolCallId]) -> str:
        return mine

    class Schema(BaseModel):
        a: int

    assert answers(who, {"a": 1, "mine": "forged"}) == ["call_7"]
    by_schema = StructuredTool.from_function(who, args_schema=Schema, description="Who.")
    assert answers(by_schema, {"a": 1, "mine": "forged"}) == ["call_7"]


def test_the_configuration_is_injected() -> None:
    """A RunnableConfig parameter gets the run's configuration; the model cannot forge it."""

    def tags(a: int, config: RunnableConfig) -> Any:
        return [config["tags"], config["configurable"], config["metadata"]]

    async def atags(a: int, config: RunnableConfig) -> Any:
        return [config["tags"], config["configurable"], config["metadata"]]

    config: RunnableConfig = {"tags": ["T"], "configurable": {"user": "u"}, "metadata": {"m": 1}}
    for given in (tags, atags):
        assert answers(given, {"a": 1, "config": {"tags": ["forged"]}}, config) == ['[["T"], {"user": "u"}, {"m": 1}]']


def test_injected_values_do_not_reach_the_model_through_callbacks_or_schema() -> None:
    """What a tracer is told of the inputs has no injected argument in it, and the declared schema neither."""
    seen: list[Any] = []

    class Recorder(BaseCallbackHandler):
        def on_tool_start(self, serialized: Any, input_str: str, *, inputs: Any = None, **kwargs: Any) -> None:
            seen.append(inputs)

    def who(a: int, mine: Annotated[str, InjectedToolCallId]) -> str:
        return mine

    answers(who, {"a": 1, "mine": "forged"}, {"callbacks": [Recorder()]})
    assert seen == [{"a": 1}, {"a": 1}]
    assert list(ToolExecutor([who]).tools["who"].args) == ["a"]


def test_a_parameter_named_runtime_is_the_models_own_unless_it_is_untyped() -> None:
    """A typed argument that happens to be called `runtime` (of a film) comes from the model."""

    def film(runtime: int) -> str:
        return f"{runtime} minutes"

    assert answers(film, {"runtime": 120}) == ["120 minutes"]


def test_an_annotation_that_cannot_be_resolved_does_no_harm() -> None:
    """A name that exists for type checkers only leaves the other arguments protected as far as LangChain sees them."""

    def delete(path: "str", other: "Unknown" = None, user: Annotated[str, InjectedToolArg] = "nobody") -> str:  # type: ignore[name-defined]  # noqa: F821
        return f"{path} as {user}"

    class Schema(BaseModel):
        path: str

    given = StructuredTool.from_function(delete, args_schema=Schema, description="Delete.")
    assert answers(given, {"path": "/x", "user": "root"}) == ["/x as nobody"]


def test_unmarked_extra_arguments_are_left_to_the_schema() -> None:
    """An argument that a tool does not know is not smuggled in."""

    def add(a: int) -> int:
        return a

    assert answers(add, {"a": 1, "b": 2, "callbacks": [], "run_manager": None}) == ["1"]


def test_the_ai_message_of_a_call_is_not_needed() -> None:
    """Tools without injected arguments run without any conversation."""
    assert ToolExecutor({"f": lambda: 1}).execute_all(AIMessage(content="", tool_calls=[{"name": "f", "args": {}, "id": "1"}]))
