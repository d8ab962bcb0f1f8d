"""ToolExecutor: whatever goes wrong with a call is an answer that the model can act on."""

import asyncio
import concurrent.futures
import logging
from typing import Any, Literal

import pytest
from langchain_core.tools import BaseTool, StructuredTool, ToolException, tool
from pydantic import BaseModel, Field, SecretStr, field_validator

from langchain_autotools.executor import ToolCallResult, ToolExecutor
from langchain_autotools.messages.calls import ToolCallRecord
from tests.support.calls import error


def results(executor: ToolExecutor, *turn: Any) -> list[ToolCallResult]:
    """The results of a turn; synchronous and asynchronous ones say the same."""
    found = list(executor.stream(turn))

    async def run() -> list[ToolCallResult]:
        return [result async for result in executor.astream(turn)]

    assert [result.message for result in asyncio.run(run())] == [result.message for result in found]
    return found


def call(name: str, call_id: str = "1", /, **args: Any) -> dict[str, Any]:
    """One call."""
    return {"name": name, "args": args, "id": call_id, "type": "tool_call"}


def test_an_exception_is_told_by_type_and_message() -> None:
    """No traceback, and the calls beside it are not touched."""

    def fail() -> str:
        raise KeyError("Grüße")

    def empty() -> str:
        raise RuntimeError

    def gone() -> str:
        raise concurrent.futures.CancelledError

    found = results(
        ToolExecutor({"fail": fail, "empty": empty, "gone": gone, "ok": lambda: "ok"}), *map(call, ("fail", "ok", "empty", "gone"))
    )
    assert error(found[0]) == "KeyError: 'Grüße'"
    assert "Grüße" in str(found[0].message.content)
    assert found[1].message.content == "ok"
    assert error(found[2]) == "RuntimeError"
    assert error(found[3]) == "CancelledError"
    assert isinstance(found[0].error, KeyError)
    assert [result.executed for result in found] == [True] * 4


class Problems(ToolException):
    """An exception that is false, as one is that holds no problem."""

    def __len__(self) -> int:
        return 0


class Silent(Exception):
    """An exception that cannot be asked whether it is true."""

    def __bool__(self) -> bool:
        raise RuntimeError("do not ask")


def test_an_exception_that_is_false_is_a_failure() -> None:
    """LangChain takes an exception that is not true for a success. It is told as any other, and handled where the tool says so."""

    def empty() -> str:
        raise Problems

    def silent() -> str:
        raise Silent

    async def later() -> str:
        raise Problems

    handling = StructuredTool.from_function(empty, name="handling", description="Handles.", handle_tool_error="handled")
    tools = [StructuredTool.from_function(coroutine=later, name="later", description="Fails."), handling]
    found = results(ToolExecutor([empty, silent, *tools]), *map(call, ("empty", "silent", "later", "handling")))
    assert [error(one) for one in found[:3]] == ["Problems", "Silent", "Problems"]
    assert [type(one.error) for one in found[:3]] == [Problems, Silent, Problems]
    assert (found[3].message.content, found[3].message.status) == ("handled", "error")


def test_a_tool_exception_speaks_for_itself() -> None:
    """The message of a ToolException is written for the model, so it is all that the model reads."""

    def refuse(why: str = "the shop is closed") -> str:
        raise ToolException(*([why] if why else []))

    (first,) = results(ToolExecutor([refuse]), call("refuse"))
    assert error(first) == "the shop is closed"
    (second,) = results(ToolExecutor([refuse]), call("refuse", why=""))
    assert error(second) == "ToolException"


@pytest.mark.parametrize(
    ("setting", "content"),
    [(True, "no"), ("Do not.", "Do not."), (lambda problem: f"handled {problem}", "handled no")],
    ids=["true", "text", "callable"],
)
def test_a_tools_own_error_handling_is_honoured(setting: Any, content: str) -> None:
    """With handle_tool_error the tool's own words are kept, with status error."""

    def refuse() -> str:
        raise ToolException("no")

    tool_ = StructuredTool.from_function(refuse, description="Refuse.", handle_tool_error=setting)
    (result,) = results(ToolExecutor([tool_]), call("refuse"))
    assert (result.message.content, result.message.status, result.error) == (content, "error", None)


def test_a_tools_own_validation_handling_is_honoured() -> None:
    """With handle_validation_error the tool's own words are kept."""

    def add(a: int) -> int:
        return a

    tool_ = StructuredTool.from_function(add, description="Add.", handle_validation_error="Numbers, please.")
    (result,) = results(ToolExecutor([tool_]), call("add", a="x"))
    assert (result.message.content, result.message.status) == ("Numbers, please.", "error")


def test_bad_arguments_are_named_with_what_is_wrong_and_without_their_values() -> None:
    """Places and messages; what was written there may be a secret."""

    class Inner(BaseModel):
        unit: Literal["C", "F"]

    class Arguments(BaseModel):
        city: str
        days: int
        inner: Inner
        key: SecretStr = Field(max_length=3)

        @field_validator("city")
        @classmethod
        def check(cls, value: str) -> str:
            raise ValueError("no such city")

    @tool(args_schema=Arguments)
    def weather(**kwargs: Any) -> str:
        """Weather."""
        raise AssertionError("not run")

    (result,) = results(
        ToolExecutor([weather]), call("weather", city="s3cret-city", days="s3cret-days", inner={"unit": "K"}, key="s3cret-key")
    )
    text = error(result)
    assert text.startswith(
        "The arguments of 'weather' are not valid: city: Value error, no such city; days: Input should be a valid integer"
    )
    assert "inner.unit: Input should be 'C' or 'F'" in text
    assert text.endswith("Correct them and call the tool again.")
    assert "s3cret" not in text
    assert not result.executed
    (missing,) = results(ToolExecutor([weather]), call("weather"))
    assert "days: Field required" in error(missing)


def test_bad_arguments_for_a_schema_of_pydantic_1() -> None:
    """Tools with an older schema are told the same way."""
    from pydantic.v1 import BaseModel as OldModel

    class Arguments(OldModel):
        days: int

    tool_ = StructuredTool.from_function(lambda days: days, name="old", description="Old.", args_schema=Arguments)
    assert "days: value is not a valid integer" in error(results(ToolExecutor([tool_]), call("old", days="x"))[0])
    assert results(ToolExecutor([tool_]), call("old", days="3"))[0].message.content == "3"


def test_a_validation_error_inside_a_tool_is_not_about_its_arguments() -> None:
    """What the tool validates itself is its own exception."""

    class Reply(BaseModel):
        code: int

    def ask() -> str:
        return str(Reply.model_validate({"code": "s3cret"}))

    (result,) = results(ToolExecutor([ask]), call("ask"))
    assert error(result).startswith("ValidationError: code: Input should be a valid integer")
    assert result.executed


def test_a_validation_error_of_a_tool_that_is_called_as_it_is() -> None:
    """For a tool that replaces LangChain's methods, the schema's name tells arguments from the rest."""

    class Arguments(BaseModel):
        a: int

    class Other(BaseModel):
        b: int

    class Raw(BaseTool):
        name: str = "raw"
        description: str = "Raw."
        args_schema: Any = Arguments

        def _run(self, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError("not called")

        def run(self, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
            Arguments.model_validate(tool_input)
            return Other.model_validate({}).b

    executor = ToolExecutor([Raw()])
    assert error(next(executor.stream([call("raw", a="x")]))).startswith("The arguments of 'raw' are not valid: a: ")
    assert error(next(executor.stream([call("raw", a=1)]))).startswith("ValidationError: b: ")


def test_an_unknown_tool_is_answered_with_the_names_that_exist() -> None:
    """A hallucinated, overlong or empty name is an error result, not an exception."""
    executor = ToolExecutor({"read": lambda: 1, "write": lambda: 2})
    found = results(executor, call("delete"), call(""), call("x" * 500))
    assert error(found[0]) == "'delete' is not a valid tool. The valid tools are: read, write."
    assert len(error(found[2])) < 200
    assert [(result.executed, result.message.name) for result in found] == [(False, "delete"), (False, ""), (False, "x" * 500)]
    assert error(results(ToolExecutor([]), call("any"))[0]) == "'any' is not a valid tool. There are no tools."


def test_a_call_that_must_not_run_is_answered_with_the_reason() -> None:
    """Arguments that are not one JSON object are never executed; the reason is passed on."""
    ran: list[int] = []
    executor = ToolExecutor({"f": lambda: ran.append(1)})
    found = results(executor, ToolCallRecord("1", "f", '{"a', None, "cut off after 3 characters"), ToolCallRecord("2", "f", "[]"))
    assert error(found[0]) == "cut off after 3 characters"
    assert error(found[1]) == "the arguments are not one complete JSON object"
    assert not any(result.executed for result in found)
    assert not ran


def test_an_error_text_can_always_be_sent() -> None:
    """An exception whose text has half characters, or cannot be made, is told all the same."""

    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def fail(odd: bool) -> str:
        raise Odd if odd else ValueError("a\ud83d")

    found = results(ToolExecutor([fail]), call("fail", odd=False), call("fail", odd=True))
    assert [error(result) for result in found] == ["ValueError: a\ufffd", "Odd"]


def test_wrong_keyword_arguments_are_told() -> None:
    """A tool described by a bare JSON schema gets what the model wrote; Python's complaint is passed on."""

    def add(a: int) -> int:
        return a

    tool_ = StructuredTool(
        name="add", description="Add.", func=add, args_schema={"type": "object", "properties": {"a": {"type": "integer"}}}
    )
    assert "unexpected keyword argument 'b'" in error(results(ToolExecutor([tool_]), call("add", b=1))[0])


def test_a_failure_is_logged_for_developers(caplog: pytest.LogCaptureFixture) -> None:
    """The traceback is in the debug log of the package, and nowhere else."""

    def fail() -> str:
        raise ValueError("inner")

    with caplog.at_level(logging.DEBUG, "langchain_autotools"):
        ToolExecutor([fail]).execute_all([call("fail", "call_9")])
    (record,) = [record for record in caplog.records if record.exc_info]
    assert record.levelno == logging.DEBUG
    assert "call_9" in record.getMessage()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_is_no_exception_passes_through(kind: type[BaseException]) -> None:
    """The user's interrupt and an exit end the run, from a worker thread too."""

    def stop() -> str:
        raise kind

    executor = ToolExecutor({"stop": stop, "ok": lambda: "ok"})
    for turn in ([call("stop")], [call("ok"), call("stop", "2")]):
        stream = executor.stream(turn)
        with pytest.raises(kind):
            list(stream)
        assert [result.message.content for result in stream.settled()][:-1] == ["ok"] * (len(turn) - 1)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("observed", [True, False])
async def test_what_ends_event_loops_ends_none_here(kind: type[BaseException], observed: bool) -> None:
    """An asynchronous tool that exits ends the run of its caller; neither the caller's loop nor the one in the background."""

    async def stop() -> str:
        raise kind

    async def go_on() -> str:
        return "went on"

    class Stop(BaseTool):
        name: str = "stop"
        description: str = "Stop."

        def _run(self) -> str:
            raise NotImplementedError

        async def ainvoke(self, *_: Any, **__: Any) -> Any:
            raise kind

    executor = ToolExecutor([stop if observed else Stop(), go_on])
    with pytest.raises(kind):
        await executor.aexecute_all([call("stop")])
    (result,) = await executor.aexecute_all([call("go_on")])
    assert result.content == "went on"
    with pytest.raises(kind):
        await asyncio.to_thread(executor.execute_all, [call("stop")])
    (result,) = await asyncio.to_thread(executor.execute_all, [call("go_on")])
    assert result.content == "went on"


def test_a_tool_that_stops_its_loop_stops_no_other_tool() -> None:
    """In a synchronous run the loop belongs to all tools of the process: stopping it, or an inner task that exits, changes nothing."""

    async def stop() -> str:
        asyncio.get_running_loop().stop()
        return "stopped"

    async def leave_behind() -> str:
        async def leave() -> None:
            raise SystemExit

        task = asyncio.create_task(leave())
        await asyncio.wait([task])
        return type(task.exception()).__name__

    executor = ToolExecutor([stop, leave_behind])
    for _ in range(2):
        answers = executor.execute_all([call("stop"), call("leave_behind", "2")])
        assert [answer.content for answer in answers] == ["stopped", "SystemExit"]


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_stray_generator_exit_is_an_answer(is_async: bool) -> None:
    """It closes the generator that it was meant for, and ends no run."""

    def leave() -> str:
        raise GeneratorExit

    async def aleave() -> str:
        raise GeneratorExit

    executor = ToolExecutor([leave, aleave])
    turn = [call("leave"), call("aleave", "2")]
    answers = await executor.aexecute_all(turn) if is_async else executor.execute_all(turn)
    assert [answer.content for answer in answers] == ['{"error": "GeneratorExit"}'] * 2


def test_a_cancelled_error_of_a_tools_own_is_an_answer() -> None:
    """A tool whose inner task was cancelled by itself does not cancel the run."""

    async def lost() -> str:
        raise asyncio.CancelledError

    (result,) = results(ToolExecutor([lost]), call("lost"))
    assert error(result).startswith("cancelled")
    assert isinstance(result.error, asyncio.CancelledError)
