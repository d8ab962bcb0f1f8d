"""ToolExecutor: what it takes as tools, how it finds them, and that it can be copied and pickled."""

import copy
import functools
import json
import pickle
import subprocess
import sys
import threading
from typing import Annotated, Any

import pytest
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool, tool
from pydantic import BaseModel
from typing_extensions import TypedDict

from langchain_autotools.errors import ConfigurationError
from langchain_autotools.executor import ToolExecutor, ToolPolicy
from tests.support.calls import call, contents


def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Args:
        a: the first
        b: the second
    """
    return a + b


async def aadd(a: int, b: int = 1) -> int:
    """Add, asynchronously."""
    return a + b


@tool
def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


class Adder:
    """An object with a method, callable itself."""

    def __init__(self, start: int) -> None:
        self.start = start

    def method(self, a: int) -> int:
        """Add to the start."""
        return self.start + a

    def __call__(self, a: int) -> int:
        """Add to the start."""
        return self.start + a


class AsyncAdder(Adder):
    """The same, asynchronous."""

    async def __call__(self, a: int) -> int:  # type: ignore[override]
        """Add to the start."""
        return self.start + a


# ---------------------------------------------------------------------------------------------- what a tool may be


@pytest.mark.parametrize(
    ("given", "name", "arguments"),
    [
        (add, "add", ["a", "b"]),
        (aadd, "aadd", ["a", "b"]),
        (multiply, "multiply", ["a", "b"]),
        (Adder(1).method, "method", ["a"]),
        (Adder(1), "Adder", ["a"]),
        (AsyncAdder(1), "AsyncAdder", ["a"]),
        (functools.partial(add, b=1), "add", ["a"]),
        (functools.partial(aadd, b=1), "aadd", ["a"]),
        (functools.partial(functools.partial(add), b=1), "add", ["a"]),
        (functools.partial(Adder(1), a=1), "Adder", []),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_may_be_a_tool(given: Any, name: str, arguments: list[str]) -> None:
    """Functions, methods, callable objects and partials, asynchronous or not, and LangChain's tools."""
    executor = ToolExecutor([given])
    (made,) = executor.tools.values()
    assert (made.name, list(made.args)) == (name, arguments)
    values = {"a": 1, "b": 1} if "b" in arguments else {"a": 1} if arguments else {}
    assert contents(executor, call(name, **values)) == ["1" if name == "multiply" else "2"]


def test_the_docstring_describes_a_function() -> None:
    """Its text is the description, its Args section describes the arguments; a docstring that does not fit is taken whole."""

    def bare(a: int) -> int:
        return a

    def wrong(a: int) -> int:
        """Wrong.

        Args:
            z: there is no z
        """
        return a

    tools = ToolExecutor([add, bare, wrong]).tools
    assert tools["add"].description == "Add two numbers."
    assert tools["add"].args["a"]["description"] == "the first"
    assert tools["bare"].description == ""
    assert tools["wrong"].description.startswith("Wrong.")


def test_what_a_partial_has_bound_is_not_for_the_model() -> None:
    """A bound argument can neither be seen nor set."""

    def greet(greeting: str, name: str) -> str:
        """Greet.

        Args:
            greeting: how
            name: whom
        """
        return f"{greeting} {name}"

    executor = ToolExecutor([functools.partial(greet, name="Ada")])
    assert list(executor.tools["greet"].args) == ["greeting"]
    assert contents(executor, call("greet", greeting="Hello", name="Eve")) == ["Hello Ada"]


def test_any_further_names_are_not_for_the_model() -> None:
    """What a function takes as `**rest` is neither an argument of that name nor filled with one."""

    def named(city: str, **rest: str) -> str:
        """Name it."""
        return f"{city} {rest}"

    async def anamed(city: str, **rest: str) -> str:
        """Name it, asynchronously."""
        return f"{city} {rest}"

    for given in (named, anamed, functools.partial(named, land="France")):
        executor = ToolExecutor({"named": given})
        assert list(executor.tools["named"].args) == ["city"]
        assert contents(executor, call("named", city="Paris", rest={"a": "b"})) == [named("Paris", **getattr(given, "keywords", {}))]


def test_a_mappings_keys_are_the_names() -> None:
    """Lambdas, functions and tools under names of the caller's choice."""
    executor = ToolExecutor({"double": lambda a: 2 * a, "sum": add, "times": multiply})
    assert list(executor.tools) == ["double", "sum", "times"]
    assert all(name == made.name for name, made in executor.tools.items())
    assert multiply.name == "multiply"
    assert contents(executor, call("double", a=2), call("sum", a=1), call("times", a=3, b=2)) == ["4", "2", "6"]
    assert repr(executor) == "ToolExecutor([double, sum, times])"


def test_a_runnable_is_a_tool_where_langchain_can_tell_its_arguments() -> None:
    """A runnable with typed input works; one without is refused with LangChain's reason."""

    class Input(TypedDict):
        a: int

    def double(value: Input) -> int:
        return 2 * value["a"]

    assert contents(ToolExecutor({"double": RunnableLambda(double)}), call("double", a=4)) == ["8"]
    assert contents(ToolExecutor({"shout": RunnableLambda(str.upper).with_types(input_type=str)}), call("shout", x="a")) == ["A"]
    with pytest.raises(ConfigurationError, match="cannot be made a tool"):
        ToolExecutor({"double": RunnableLambda(lambda value: value).with_types(input_type=list[int])})


class Declared(BaseModel):
    """A schema."""

    a: int


class DeclaredDict(TypedDict):
    """A schema."""

    a: int


@pytest.mark.parametrize(
    ("tools", "text"),
    [
        ([Declared], "the class 'Declared' is a declaration"),
        ([DeclaredDict], "the class 'DeclaredDict' is a declaration"),
        ([{"type": "function", "function": {"name": "f"}}], "the dict 'f' is a declaration"),
        ([{"title": "f"}], "the dict 'f' is a declaration"),
        ([{"type": "web_search"}], "a dict is a declaration"),
        ({"f": {"name": "g"}}, "the dict 'g' is a declaration"),
        ([5], "an object of type int is not a tool"),
        ("add", "must be a list of tools"),
        (add, "must be a list of tools"),
        (multiply, "must be a list of tools"),
        (5, "must be a list of tools"),
        ([lambda a: a], "a lambda has no name"),
        ({5: add}, "the keys of a tools mapping"),
        ({"": add}, "the keys of a tools mapping"),
        ([add, multiply, StructuredTool.from_function(add)], "two tools are named 'add'"),
        ([add, add], "two tools are named 'add'"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_is_no_tool_is_refused_with_what_would_do(tools: Any, text: str) -> None:
    """Declarations, things, lonely functions, lambdas and double names are configuration errors."""
    with pytest.raises(ConfigurationError) as caught:
        ToolExecutor(tools)
    assert text in str(caught.value)


def test_a_function_without_a_signature_that_can_be_read_is_refused() -> None:
    """What pydantic says about a signature is passed on."""

    def broken(a: "NoSuchType") -> None:  # type: ignore[name-defined]  # noqa: F821
        """Broken."""

    with pytest.raises(ConfigurationError, match="function 'broken' cannot be made a tool"):
        ToolExecutor([broken])


def test_tools_may_come_from_a_generator() -> None:
    """Any iterable is read once."""
    assert list(ToolExecutor(one for one in (add, multiply)).tools) == ["add", "multiply"]


# ---------------------------------------------------------------------------------------------- copies, processes


def test_an_executor_can_be_copied_and_pickled() -> None:
    """Copies work alike; functions and decorated functions of a module travel by name."""
    executor = ToolExecutor(
        {"add": add, "times": multiply, "part": functools.partial(add, b=5)},
        default_policy=ToolPolicy(timeout=60),
        policies={"add": ToolPolicy(timeout=50)},
        parallel=False,
    )
    executor.execute_all([call("add", a=1)])
    turn = [call("add", a=1), call("times", a=3, b=2), call("part", a=1)]
    for made in (copy.copy(executor), copy.deepcopy(executor), pickle.loads(pickle.dumps(executor))):
        assert contents(made, *turn) == ["2", "6", "6"]
        assert made.__dict__.keys() == executor.__dict__.keys()
    again = pickle.loads(pickle.dumps(ToolExecutor([multiply, aadd])))
    assert again.tools["multiply"] is multiply


def test_a_tool_exchanged_in_the_mapping_is_used() -> None:
    """`tools` may be changed between runs."""
    executor = ToolExecutor([add])
    assert contents(executor, call("add", a=1)) == ["2"]

    def add_more(a: int, hidden: Annotated[int, InjectedToolArg] = 5) -> int:
        """Add more."""
        return a + hidden

    executor.tools["add"] = StructuredTool.from_function(add_more, name="add")
    assert contents(executor, call("add", a=1, hidden=100)) == ["6"]


def test_threads_are_used_again() -> None:
    """Many turns do not mean many threads."""
    executor = ToolExecutor({"who": lambda: str(threading.current_thread().ident)})
    turn = [call("who", "1"), call("who", "2")]
    seen = {message.content for _ in range(50) for message in executor.execute_all(turn)}
    assert len(seen) < 50


@pytest.mark.further
def test_a_forked_process_and_the_end_of_a_program_work() -> None:
    """After a fork, threads and the background loop start anew; at its end a program waits for no tool that hangs."""
    code = """
import asyncio, os, sys, threading
from langchain_autotools.executor import ToolExecutor
async def one(): return "one"
def two(): return "two"
begun = threading.Event()
def hang(): begun.set(); threading.Event().wait()
async def ahang(): await asyncio.sleep(3600)
executor = ToolExecutor([one, two, hang, ahang])
turn = [{"name": name, "args": {}, "id": name} for name in ("one", "two", "one")]
def show(): print(*[message.content for message in executor.execute_all(turn)], flush=True)
show()
child = os.fork()
if child == 0:
    show()
    sys.exit(0)
os.waitpid(child, 0)
results = executor.stream([{"name": name, "args": {}, "id": name} for name in ("one", "hang", "ahang")])
next(results)
begun.wait()
print("end", flush=True)
"""
    if not hasattr(__import__("os"), "fork"):
        pytest.skip("no fork here")
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore::DeprecationWarning", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.splitlines() == ["one two one", "one two one", "end"], done.stderr
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert "ResourceWarning" not in done.stderr


def test_a_base_tool_that_cannot_be_described_by_core_is_still_a_tool() -> None:
    """A tool class with a bare `_run` gets the arguments as the model wrote them."""

    class Loose(BaseTool):
        name: str = "loose"
        description: str = "Loose."

        def _run(self, *args: Any, **kwargs: Any) -> str:
            return json.dumps(kwargs)

    assert contents(ToolExecutor([Loose()]), call("loose", anything=1)) == ['{"anything": 1}']


def test_a_function_that_says_too_little_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """A function without docstring or type hints becomes a tool of which the model has only names: one WARNING says what is missing."""

    def nameless(city, unit: str = "C"):  # type: ignore[no-untyped-def]
        return city

    for _ in range(2):
        ToolExecutor([nameless, add])
    assert [text.partition(":")[0] for text in caplog.messages] == ["the tool 'nameless' has no docstring and no type hints of city"]
