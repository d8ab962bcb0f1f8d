"""ToolExecutor: LangChain's callbacks, configuration and context, and the callbacks of its own."""

import asyncio
import threading
import uuid
from contextvars import ContextVar
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import tool

from langchain_autotools.executor import ToolCallResult, ToolExecutor, ToolPolicy
from langchain_autotools.messages.calls import ToolCallRecord
from tests.support.calls import call

USER: ContextVar[str] = ContextVar("user", default="nobody")


class Recorder(BaseCallbackHandler):
    """Notes every run it is told of."""

    def __init__(self) -> None:
        self.started: dict[uuid.UUID, dict[str, Any]] = {}
        self.ended: dict[uuid.UUID, Any] = {}
        self.lock = threading.Lock()

    def _start(self, name: str, run_id: uuid.UUID, kwargs: dict[str, Any]) -> None:
        with self.lock:
            assert run_id not in self.started
            self.started[run_id] = {**kwargs, "run_name": kwargs.get("name"), "name": name}

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: uuid.UUID, **kwargs: Any) -> None:
        """Something other than a tool begins."""
        self._start("chain", run_id, kwargs)

    def on_tool_start(self, serialized: Any, input_str: str, *, run_id: uuid.UUID, **kwargs: Any) -> None:
        """A tool begins."""
        self._start(serialized["name"], run_id, kwargs)

    def on_chain_end(self, outputs: Any, *, run_id: uuid.UUID, **kwargs: Any) -> None:
        """Something other than a tool ends."""
        self.ended[run_id] = outputs

    def on_tool_end(self, output: Any, *, run_id: uuid.UUID, **kwargs: Any) -> None:
        """A tool ends well."""
        self.ended[run_id] = output

    def on_tool_error(self, error: BaseException, *, run_id: uuid.UUID, **kwargs: Any) -> None:
        """A tool fails."""
        self.ended[run_id] = error

    def named(self, name: str) -> list[dict[str, Any]]:
        """The runs of one name."""
        return [run for run in self.started.values() if run["name"] == name]


def plain(number: int) -> str:
    """A synchronous tool that runs something inside."""
    return str(RunnableLambda(lambda value: value + 1).invoke(number))


async def asynchronous(number: int) -> str:
    """An asynchronous tool that runs something inside."""
    return str(await RunnableLambda(lambda value: value + 1).ainvoke(number))


def fails() -> str:
    """A tool that raises."""
    raise ValueError("no")


TURN = [call("plain", "a", number=1), call("asynchronous", "b", number=2), call("fails", "c"), call("plain", "d", number=3)]


@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize("is_async", [True, False])
async def test_each_call_is_one_tool_run_under_the_callers_run(parallel: bool, is_async: bool) -> None:
    """One tool run per call, child of the run that executes them; what a tool runs is a child of its tool run; all end."""
    recorder = Recorder()
    executor = ToolExecutor([plain, asynchronous, fails], parallel=parallel)

    async def arun(_: Any, config: RunnableConfig) -> Any:
        return [message.content for message in await executor.aexecute_all(TURN, config)]

    def run(_: Any, config: RunnableConfig) -> Any:
        return [message.content for message in executor.execute_all(TURN, config)]

    config: RunnableConfig = {"callbacks": [recorder], "tags": ["T"], "metadata": {"m": 1}, "run_name": "mine", "run_id": uuid.uuid4()}
    if is_async:
        found = await RunnableLambda(arun).ainvoke(0, config)
    else:
        found = await asyncio.to_thread(RunnableLambda(run).invoke, 0, config)
    assert found == ["2", "3", '{"error": "ValueError: no"}', "4"]
    (root,) = [run_id for run_id, one in recorder.started.items() if one["parent_run_id"] is None]
    assert root == config["run_id"]
    tools = {one["tool_call_id"]: run_id for run_id, one in recorder.started.items() if "tool_call_id" in one}
    assert set(tools) == set("abcd")
    for run_id in tools.values():
        assert recorder.started[run_id]["parent_run_id"] == root
        assert recorder.started[run_id]["tags"] == ["T"]
        assert recorder.started[run_id]["metadata"]["m"] == 1
        assert recorder.started[run_id]["run_name"] != "mine"
    inner = [one["parent_run_id"] for one in recorder.named("chain") if one["parent_run_id"] not in (None, root)]
    assert sorted(inner, key=str) == sorted([tools["a"], tools["b"], tools["d"]], key=str)
    assert set(recorder.ended) == set(recorder.started)
    assert isinstance(recorder.ended[tools["c"]], ValueError)


async def test_a_configuration_with_a_run_id_is_no_trouble_for_several_calls() -> None:
    """A run id and a run name name one run; each tool run has its own."""
    recorder = Recorder()
    config: RunnableConfig = {"callbacks": [recorder], "run_id": uuid.uuid4(), "run_name": "mine"}
    executor = ToolExecutor([plain])
    executor.execute_all([call("plain", str(number), number=number) for number in range(3)], config)
    assert len(recorder.named("plain")) == 3
    assert config["run_name"] == "mine"


async def test_context_variables_and_the_surrounding_configuration_reach_every_tool() -> None:
    """Whatever thread or loop a tool runs in, it sees its caller's context; what it sets there stays there."""

    def who() -> Any:
        seen = [USER.get(), ensure_config()["tags"], ensure_config()["configurable"]]
        USER.set("changed")
        return seen

    async def awho() -> Any:
        return who()

    executor = ToolExecutor([who, awho])
    expected = '["me", ["T"], {"k": 1}]'
    turns = ([call("who"), call("awho", "2"), call("who", "3")], [call("who")], [call("awho")])

    async def arun(_: Any) -> list[Any]:
        USER.set("me")
        return [message.content for turn in turns for message in await executor.aexecute_all(turn)]

    def run(_: Any) -> list[Any]:
        USER.set("me")
        found = [message.content for turn in turns for message in executor.execute_all(turn)]
        timed = ToolExecutor([who, awho], default_policy=ToolPolicy(timeout=20))
        found += [message.content for turn in turns for message in timed.execute_all(turn)]
        return found if USER.get() == "me" else []

    config: RunnableConfig = {"tags": ["T"], "configurable": {"k": 1}}
    assert await RunnableLambda(arun).ainvoke(0, config) == [expected] * 5
    assert await asyncio.to_thread(RunnableLambda(run).invoke, 0, config) == [expected] * 10
    assert USER.get() == "nobody"


@pytest.mark.parametrize("at", ["on_tool_start", "on_tool_end", "on_tool_error"])
async def test_a_handler_that_is_to_raise_ends_the_run(at: str) -> None:
    """raise_error=True means that the handler's error is the caller's: it is not told to the model."""

    class Strict(BaseCallbackHandler):
        raise_error = True

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise PermissionError("not allowed")

    handler = Strict()
    setattr(handler, at, refuse)
    executor = ToolExecutor([plain, asynchronous, fails])
    turn = [call("fails")] if at == "on_tool_error" else [call("plain", number=1), call("asynchronous", "2", number=1)]
    for one in turn:
        with pytest.raises(PermissionError):
            executor.execute_all([one], {"callbacks": [handler]})
        with pytest.raises(PermissionError):
            await executor.aexecute_all([one], {"callbacks": [handler]})


async def test_a_broken_handler_that_is_not_to_raise_does_no_harm() -> None:
    """A tracer's error is LangChain's to log."""

    class Broken(AsyncCallbackHandler):
        async def on_tool_start(self, *args: Any, **kwargs: Any) -> None:
            raise RuntimeError

    executor = ToolExecutor([plain, asynchronous])
    turn = [call("plain", number=1), call("asynchronous", "2", number=1)]
    assert [message.content for message in await executor.aexecute_all(turn, {"callbacks": [Broken()]})] == ["2", "2"]


# ---------------------------------------------------------------------------------------------- on_executing, on_executed


async def test_listeners_hear_in_real_time() -> None:
    """on_executing comes just before each tool, on_executed when it has ended: in that order, not in call order."""
    quick_done = threading.Event()

    def slow() -> str:
        assert quick_done.wait(20)
        return "slow"

    def quick() -> str:
        return "quick"

    heard: list[str] = []

    def executing(one: ToolCallRecord) -> None:
        heard.append(f"+{one.id}")

    def executed(result: ToolCallResult) -> None:
        heard.append(f"-{result.call.id}={result.message.content}")
        if result.call.id == "2":
            quick_done.set()

    executor = ToolExecutor([slow, quick], on_executing=executing, on_executed=executed)
    turn = [call("slow", "1"), call("quick", "2")]
    for is_async in (False, True):
        heard.clear(), quick_done.clear()
        found = await executor.aexecute_all(turn) if is_async else await asyncio.to_thread(executor.execute_all, turn)
        assert [message.content for message in found] == ["slow", "quick"]
        assert heard[0] == "+1"
        assert heard[-2:] == ["-2=quick", "-1=slow"]
        assert sorted(heard) == ["+1", "+2", "-1=slow", "-2=quick"]


async def test_listeners_of_the_executor_and_of_a_call_may_be_synchronous_or_not() -> None:
    """Those of the call take the place of the executor's, each for itself; asynchronous ones are awaited before the tool runs or its
    result is delivered."""
    heard: list[str] = []

    async def aexecuting(one: ToolCallRecord) -> None:
        await asyncio.sleep(0)
        heard.append(f"async +{one.name}")

    async def aexecuted(result: ToolCallResult) -> None:
        await asyncio.sleep(0)
        heard.append(f"async -{result.message.content}")

    def tool_() -> str:
        heard.append("run")
        return "ok"

    executor = ToolExecutor({"f": tool_}, on_executing=aexecuting, on_executed=lambda result: heard.append("-"))  # type: ignore[arg-type,func-returns-value]
    turns: list[tuple[Any, list[str]]] = [
        ({}, ["async +f", "run", "-"]),
        ({"on_executed": aexecuted}, ["async +f", "run", "async -ok"]),
        ({"on_executing": lambda one: heard.append("+"), "on_executed": aexecuted}, ["+", "run", "async -ok"]),
    ]
    for options, expected in turns:
        heard.clear()
        executor.execute_all([call("f")], **options)
        assert heard == expected
        heard.clear()
        await executor.aexecute_all([call("f")], **options)
        assert heard == expected


async def test_a_call_that_does_not_run_is_reported_without_having_begun() -> None:
    """on_executing speaks of tools that run; on_executed of every result."""
    heard: list[Any] = []
    executor = ToolExecutor([plain], on_executing=heard.append, on_executed=lambda result: heard.append(result.executed))
    turn: list[Any] = [call("unknown"), ToolCallRecord("2", "plain", "{")]
    executor.execute_all(turn)
    await executor.aexecute_all(turn)
    assert heard == [False] * 4


@pytest.mark.parametrize("is_async", [True, False])
async def test_an_error_of_on_executing_stops_the_call_and_ends_the_run(is_async: bool) -> None:
    """A listener may forbid a call by raising: the tool does not run, and the caller gets the error, not the model."""
    ran: list[str] = []

    @tool
    def act(name: str) -> str:
        """Act."""
        ran.append(name)
        return name

    def guard(one: ToolCallRecord) -> None:
        if (one.args or {}).get("name") == "bad":
            raise PermissionError("stop")

    executor = ToolExecutor([act], on_executing=guard, parallel=False)
    turn = [call("act", "1", name="good"), call("act", "2", name="bad"), call("act", "3", name="late")]
    if is_async:
        stream = executor.astream(turn)
        with pytest.raises(PermissionError):
            [result async for result in stream]
        settled = stream.settled()
    else:
        plain_stream = executor.stream(turn)
        with pytest.raises(PermissionError):
            list(plain_stream)
        settled = plain_stream.settled()
    assert ran == ["good"]
    assert [(result.message.status, result.executed) for result in settled] == [("success", True), ("error", False), ("error", False)]
    assert isinstance(settled[1].error, PermissionError)


@pytest.mark.parametrize("is_async", [True, False])
async def test_an_error_of_on_executed_ends_the_run_after_running_calls_have_ended(is_async: bool) -> None:
    """Nothing is swallowed and no result is lost: calls that were running are finished and can be looked up."""
    begun, go = threading.Event(), threading.Event()

    def first() -> str:
        assert begun.wait(20)
        return "first"

    def second() -> str:
        begun.set()
        assert go.wait(20)
        return "second"

    def listen(result: ToolCallResult) -> None:
        if result.call.name == "first":
            go.set()
            raise OSError("disk full")

    executor = ToolExecutor([first, second], on_executed=listen)
    turn = [call("first", "1"), call("second", "2")]
    if is_async:
        stream = executor.astream(turn)
        with pytest.raises(OSError, match="disk full"):
            [result async for result in stream]
        settled = stream.settled()
    else:
        plain_stream = executor.stream(turn)
        with pytest.raises(OSError, match="disk full"):
            list(plain_stream)
        settled = plain_stream.settled()
    assert [result.message.content for result in settled] == ["first", "second"]


@pytest.mark.parametrize("is_async", [True, False])
async def test_calls_that_wait_for_their_turn_do_not_begin_after_a_failure(is_async: bool) -> None:
    """Of six calls, two at a time, the first fails in a listener: the second ends, the others never begin."""
    failed = threading.Event()
    ran: list[str] = []

    def act(who: str) -> str:
        assert failed.wait(20)
        threading.Event().wait(0.1)  # the failure is on its way from the listener to the batch
        ran.append(who)
        return who

    def guard(one: ToolCallRecord) -> None:
        if one.id == "0":
            failed.set()
            raise PermissionError("stop")

    executor = ToolExecutor([act], on_executing=guard, max_concurrency=2)
    turn = [call("act", str(number), who=str(number)) for number in range(6)]
    stream: Any = executor.astream(turn) if is_async else executor.stream(turn)
    with pytest.raises(PermissionError):
        _ = [result async for result in stream] if is_async else list(stream)
    assert len(ran) <= 1
    assert [result.call.id for result in stream.settled()] == list("012345")
    assert [result.message.status for result in stream.settled()].count("error") == 6 - len(ran)


async def test_a_listener_that_was_cancelled_ends_the_run() -> None:
    """A CancelledError of a listener's own is an error of the listener, and is raised."""

    async def listen(one: ToolCallRecord) -> None:
        raise asyncio.CancelledError

    executor = ToolExecutor([plain], on_executing=listen)
    turn = [call("plain", "1", number=1), call("plain", "2", number=1)]
    with pytest.raises(asyncio.CancelledError):
        await executor.aexecute_all(turn)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.to_thread(executor.execute_all, turn)


@pytest.mark.parametrize("is_async", [True, False])
async def test_every_on_executing_is_followed_by_one_on_executed(is_async: bool) -> None:
    """Whatever a tool does, also if it ends the run: listeners never wait for an end that does not come."""

    def stop() -> str:
        raise SystemExit

    def listen(one: Any) -> None:
        heard.append((one.id, "+") if isinstance(one, ToolCallRecord) else (one.call.id, "-"))

    heard: list[tuple[str, str]] = []
    tools = {"fails": fails, "ok": lambda: "ok"} | ({} if is_async else {"stop": stop})  # a loop never survives a SystemExit
    executor = ToolExecutor(tools, on_executing=listen, on_executed=listen)
    turn = [call("fails", "1"), call("ok", "2"), call("stop", "3"), call("ok", "4")]
    if is_async:
        await executor.aexecute_all(turn)
    else:
        with pytest.raises(SystemExit):
            executor.execute_all(turn)
    begun = [one for one, mark in heard if mark == "+"]
    assert sorted(one for one, mark in heard if mark == "-" and one in begun) == sorted(begun)
    assert len(heard) == len(set(heard))
