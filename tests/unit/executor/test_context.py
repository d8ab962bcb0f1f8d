"""`ToolContext`: injected by its type, hidden from models and from traces."""

from typing import Annotated, Any, Optional

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool, StructuredTool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel

from langchain_autotools.executor import ToolContext, ToolExecutor
from langchain_autotools.messages.calls import ToolCallRecord
from langchain_autotools.testing import ScriptedChatModel
from tests.support.calls import call, contents, run_calls

# ---------------------------------------------------------------------------------------------- injection


def plain(city: str, here: ToolContext) -> str:
    """A function."""
    return here.call.id


def optional(city: str, context: Optional[ToolContext] = None) -> str:  # noqa: UP045 - the older form, which users write
    """A function that can be called without one."""
    return "none" if context is None else context.call.id


def annotated(city: str, context: Annotated[ToolContext, "where I am"]) -> str:
    """A function whose parameter is annotated.

    Args:
        city: The city.
        context: Where it is.
    """
    return context.call.id


@tool
def decorated(context: ToolContext | None, city: str) -> str:
    """A tool of LangChain's."""
    return "none" if context is None else context.call.id


@tool
async def asynchronous(city: str, runtime: ToolContext) -> str:
    """An asynchronous tool whose parameter has a name that LangGraph reads."""
    return runtime.call.id


class OfCity(BaseModel):
    """What a model gives."""

    city: str


class OfContext(BaseModel):
    """What a model gives, and what it does not."""

    city: str
    context: ToolContext | None = None


class WithSchema(BaseTool):
    """A tool whose schema does not have the parameter."""

    name: str = "with_schema"
    description: str = "A class."
    args_schema: Any = OfCity

    def _run(self, city: str, context: ToolContext | None = None) -> str:
        return "none" if context is None else context.call.id


class WithField(BaseTool):
    """An asynchronous tool whose schema has the parameter."""

    name: str = "with_field"
    description: str = "A class."
    args_schema: Any = OfContext

    def _run(self, city: str, context: ToolContext | None = None) -> str:
        raise NotImplementedError

    async def _arun(self, city: str, context: ToolContext | None = None) -> str:
        return "none" if context is None else context.call.id


JSON_SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@tool
def calls(city: str, function: str = "f", index: int = 0, *, context: ToolContext) -> str:
    """A tool whose parameters have names that code around it has too."""
    return context.call.id + function * index


WITH_JSON_SCHEMA = StructuredTool(name="with_json_schema", description="A schema.", args_schema=JSON_SCHEMA, func=plain)
TOOLS = [calls, plain, optional, annotated, decorated, asynchronous, WithSchema(), WithField(), WITH_JSON_SCHEMA]
NAMES = list(ToolExecutor(TOOLS).tools)


@pytest.mark.parametrize("name", NAMES)
def test_a_context_is_injected_by_its_type_whatever_the_model_writes(name: str) -> None:
    """Under any name, in functions and classes, with any schema; what a model writes in its place is dropped."""
    parameter = {"plain": "here", "with_json_schema": "here", "asynchronous": "runtime"}.get(name, "context")
    forged = {"city": "Rome", parameter: {"call": "forged"}}
    assert contents(ToolExecutor(TOOLS), call(name, city="Rome"), call(name, **forged)) == ["1", "1"]


@pytest.mark.parametrize("name", NAMES)
def test_no_model_is_told_of_the_context(name: str) -> None:
    """The declaration names the city alone."""
    parameters = convert_to_openai_tool(ToolExecutor(TOOLS).tools[name])["function"]["parameters"]
    others = ["function", "index"] if name == "calls" else []
    assert (list(parameters["properties"]), parameters["required"]) == (["city", *others], ["city"])


def test_no_parameter_of_a_tool_is_mistaken_for_one_of_the_code_around_it() -> None:
    """A tool may call its own parameters `function` and the like."""
    assert contents(ToolExecutor([calls]), call("calls", city="Rome", function="g", index=2)) == ["1gg"]


@pytest.mark.parametrize("name", NAMES)
def test_no_trace_has_the_context(name: str) -> None:
    """Callback handlers are shown what the model wrote."""
    seen: list[Any] = []

    class Handler(BaseCallbackHandler):
        def on_tool_start(self, serialized: Any, input_str: str, *, inputs: Any = None, **kwargs: Any) -> None:
            seen.append((input_str, inputs))

    ToolExecutor(TOOLS).execute_all([call(name, city="Rome")], {"callbacks": [Handler()]})
    assert seen == [("{'city': 'Rome'}", {"city": "Rome"})]


def test_a_context_comes_through_what_is_around_a_tool() -> None:
    """A tool with a retry of LangChain's has it too."""
    assert contents(ToolExecutor([decorated.with_retry()]), call("decorated", city="Rome")) == ["1"]


def test_a_context_has_the_conversation_and_the_call() -> None:
    """The messages that were given, the turn and the call under its tool's own name; by default the AI message alone."""
    seen: list[ToolContext] = []

    def look(word: str, context: ToolContext) -> None:
        """Look."""
        seen.append(context)

    answer = AIMessage("", tool_calls=[call("functions.look", word="x")])
    history = [HumanMessage("?"), answer]
    ToolExecutor([look]).execute_all(answer)
    ToolExecutor([look]).execute_all(answer, messages=history, turn=3)
    assert [list(context.messages) for context in seen] == [[answer], history]
    assert [(context.turn, context.call.name, context.call.args) for context in seen] == [
        (None, "look", {"word": "x"}),
        (3, "look", {"word": "x"}),
    ]
    assert repr(seen[0]) == "ToolContext('look', '1')"


@pytest.mark.parametrize("is_async", [False, True])
async def test_what_a_tool_runs_with_its_configuration_lies_in_its_own_run(is_async: bool) -> None:
    """`config` has the caller's tags and values, and makes children of the tool's run; so does a model that is given as a tool."""
    parents: dict[str, Any] = {}

    class Handler(BaseCallbackHandler):
        def on_tool_start(self, *args: Any, run_id: Any, **kwargs: Any) -> None:
            parents["tool"] = run_id

        def on_chain_start(self, *args: Any, parent_run_id: Any, **kwargs: Any) -> None:
            parents["inner"] = parent_run_id

    def inside(context: ToolContext) -> str:
        """Run something."""
        value = context.config["configurable"]["user"]
        return str(RunnableLambda(lambda _: value).invoke(1, context.config))

    config: Any = {"callbacks": [Handler()], "configurable": {"user": "Anna"}}
    asks = ScriptedChatModel(tools=[inside], replies=["Anna"]).as_tool(name="inside")
    for given, args in ((inside, {}), (asks, {"question": "Who?"})):
        parents.clear()
        assert await run_calls(ToolExecutor([given]), is_async, call("inside", **args), config=config) == ["Anna"]
        assert parents["inner"] == parents["tool"]


def test_a_context_of_ones_own_tests_a_tool() -> None:
    """It can be made by hand, with a function that takes the reports, or none."""
    values: list[Any] = []
    record = ToolCallRecord("1", "plain", "{}")
    context = ToolContext(record, report=values.append)
    context.report("half")
    ToolContext(record).report("nobody hears")
    assert (plain("Rome", context), values, context.config) == ("1", ["half"], {})
