"""Execution of one tool call: its input, and the result for its output or exception.

Nothing here decides when a call runs, or in which thread or task: `batch` and `async_batch` do.
"""

import asyncio
import dis
import functools
import inspect
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, Tool
from pydantic import ValidationError
from pydantic.v1 import ValidationError as ValidationErrorV1

from ..compat import as_injected, is_core, is_graph_signal, raised_by_handler, with_methods
from ..deadline import DeadlinePassed
from ..errors import AlreadyResumedError, ConfigurationError
from ..messages.calls import ToolCallRecord
from .arguments import ToolArguments
from .content import answered, does_more, output_content, preceded
from .context import AsyncProgress, Progress, Reporting, as_asynchronous
from .injection import InjectedArguments, InjectionContext, tool_runtime, type_hints
from .nested_runs import InnerBudget, NestedRuns, inside
from .policy.cache import CachedCall
from .policy.policies import ToolPolicy
from .results import ToolCallResult, cancelled_result, describe, describe_arguments, failed
from .workers.background import Home
from .wrapped import WrappedTool

_logger = logging.getLogger("langchain_autotools")

NOT_CONTINUED = (ConfigurationError, AlreadyResumedError)
"""The errors of a run inside a call that does not go on with what was decided, and waits as before."""

_current: ContextVar["ToolRun"] = ContextVar("autotools_current_run")


class PreparedTool:
    """A tool with the properties needed to run it, computed once.

    Attributes:
        tool: The tool.
        injected: Its injected arguments.
        asynchronous: Whether it has an asynchronous implementation of its own.
        only_asynchronous: Whether it has no other.
        observed: Its `_run` and `_arun`, so wrapped that a `ToolRun` sees what they return before LangChain makes it text.
        reports: Whether it may report progress.
        yields: Whether it reports what it yields.
    """

    def __init__(self, tool: BaseTool, *, yields: bool = False) -> None:
        self.tool = tool
        self.yields = yields
        inside = tool.inside if isinstance(tool, WrappedTool) else tool
        self.injected = InjectedArguments(inside)
        self.asynchronous, self.only_asynchronous = _implementations(inside)
        self.observed = _observed(tool)
        contexts = self.injected.contexts
        self.reports = bool(contexts) or yields
        if contexts and self.observed:
            self.observed = {**self.observed, **as_injected(inside, contexts)}

    @functools.cached_property
    def arguments(self) -> ToolArguments:
        """The validator of the tool's arguments."""
        return ToolArguments(self.tool.inside if isinstance(self.tool, WrappedTool) else self.tool, self.injected)

    @functools.cached_property
    def yielding(self) -> "PreparedTool":
        """Return the same tool with its yielded values as progress reports."""
        return PreparedTool(as_asynchronous(self.tool), yields=True)


class PreparedTools:
    """The prepared tools of an executor, by name.

    Args:
        tools: The tools by name. They may change.
    """

    def __init__(self, tools: Mapping[str, BaseTool]) -> None:
        self._tools = tools
        self._known: dict[str, PreparedTool] = {}

    def __getitem__(self, name: str) -> PreparedTool:
        tool, known = self._tools[name], self._known.get(name)
        if known is None or known.tool is not tool:
            known = self._known[name] = PreparedTool(tool)
        return known

    def arguments_of(self, name: str) -> ToolArguments | None:
        """Return the argument validator of a tool; None if no tool has exactly this name."""
        return self[name].arguments if name in self._tools else None


def _implementations(tool: BaseTool) -> tuple[bool, bool]:
    kind: Any = type(tool)
    if isinstance(tool, StructuredTool | Tool) and kind._arun in (StructuredTool._arun, Tool._arun):
        return tool.coroutine is not None, tool.func is None and tool.coroutine is not None
    asynchronous = kind._arun is not BaseTool._arun or not is_core(kind.ainvoke)
    return asynchronous, asynchronous and _only_raises(kind._run)


def _only_raises(function: Any) -> bool:
    """Whether a function is a placeholder that only raises NotImplementedError."""
    code = getattr(function, "__code__", None)
    if code is None or "NotImplementedError" not in code.co_names:
        return False
    operations = {instruction.opname for instruction in dis.get_instructions(code)}
    return not operations & {"RETURN_VALUE", "RETURN_CONST"}


def _observed(tool: BaseTool) -> dict[str, Any]:
    """Return the tool's own `_run` and `_arun`, wrapped for observation. None if the tool replaces the public methods that call them."""
    kind: Any = type(tool)
    if not all(map(is_core, (kind.invoke, kind.ainvoke, kind.run, kind.arun))):
        return {}
    run, arun = tool._run, tool._arun

    @functools.wraps(run)
    def observed_run(*args: Any, **kwargs: Any) -> Any:
        current = _current.get()
        current.executed = True
        if current.stopped_by is not None:  # given up in the moment in which it would have begun
            raise current.stopped_by
        if current.reporting is not None:
            return _presented(tool, current.reporting.run(run, *args, **kwargs))
        return _presented(tool, run(*args, **kwargs))

    _resolve(observed_run, run)
    if kind._arun is BaseTool._arun:  # it calls `_run`
        return {"_run": observed_run}

    @functools.wraps(arun)
    async def observed_arun(*args: Any, **kwargs: Any) -> Any:
        current = _current.get()
        current.executed = True
        try:
            if current.reporting is None:
                return _presented(tool, await arun(*args, **kwargs))
            return _presented(tool, await current.reporting.arun(arun, *args, **kwargs))
        except asyncio.CancelledError as error:
            # LangChain ends the tool's run in the callbacks for an Exception only.
            raise current.stopped_by or _Cancelled("cancelled") from error
        except (KeyboardInterrupt, SystemExit, GeneratorExit) as error:
            raise _NoException(error) from error

    _resolve(observed_arun, arun)
    return {"_run": observed_run, "_arun": observed_arun}


def _resolve(observed: Any, original: Callable[..., Any]) -> None:
    """Precompute what LangChain inspects on every call of a tool's method: its signature and resolved annotations."""
    hints = type_hints(original)
    if hints:
        observed.__annotations__ = hints
    observed.__signature__ = inspect.signature(original)


def _presented(tool: BaseTool, output: Any) -> Any:
    if tool.response_format != "content_and_artifact":
        return output_content(output)
    if isinstance(output, tuple) and len(output) == 2:
        content, artifact = output_content(output[0]), output[1]
        return content.model_copy(update={"artifact": artifact}) if isinstance(content, ToolMessage) else content, artifact
    return output  # not what the tool promised: LangChain says so


class _Cancelled(Exception):
    """Stands for `asyncio.CancelledError` in places that only handle Exception."""


class _NoException(Exception):
    """Stands for exceptions that would end the event loop instead of passing through LangChain's task of an asynchronous tool."""


class ToolRun:
    """One execution of one tool call.

    Attributes:
        call: The call.
        prepared: The prepared tool.
        timeout: The timeout in seconds; None for no limit.
        home: Gives the event loop that the tool belongs to, if that is known.
        policy: The rest of the tool's policy; None if there is none.
        cached: The sharing of its result with equal calls; None if it is not shared.
        executed: Whether the tool's own code began to run.
        tried: The number of finished attempts.
        ended: Whether it has ended.
        stopped_by: Why it is being stopped, if so.
        started: When it began to run, by `time.perf_counter`.
        is_late: Whether it took too long.
        ends_with_batch: Whether the time it may take is all that there is for its batch.
        reporting: Takes what its tool reports; None where that reports nothing.
        messages: The conversation so far.
        approvals: The approvals of the run that made the call; None for none.
        within: The runs among which that run is, inside a tool; None outside of tools.
        budget: What bounds and counts runs inside; None if nothing does.
    """

    def __init__(
        self,
        call: ToolCallRecord,
        prepared: PreparedTool,
        config: RunnableConfig,
        messages: Sequence[BaseMessage],
        tools: Mapping[str, BaseTool],
        timeout: float | None,
        home: Home,
        approvals: Any = None,
    ) -> None:
        self.call = call
        self.messages = messages
        self.approvals = approvals
        self.within = inside.get()
        self.budget: InnerBudget | None = None
        self.prepared = prepared
        self.timeout = timeout
        self.home = home
        self.policy: ToolPolicy | None = None
        self.cached: CachedCall | None = None
        self.executed = not prepared.observed  # where its code is not seen, it must be taken to have run
        self.tried = 0
        self.ended = False
        self.stopped_by: Exception | None = None
        self.started = time.perf_counter()
        self.is_late = self.ends_with_batch = False
        self.reporting: Reporting | None = None
        self._nested = NestedRuns(self)
        self._context = InjectionContext(call, config, messages, tuple(tools.values()))
        self._late = f"timed out after {timeout:g} s" if timeout is not None else ""

    def change(self, call: ToolCallRecord) -> None:
        """Set the arguments of a changed call; its result is then not shared with equal calls."""
        self.call, self.cached, self._context = call, None, replace(self._context, call=call)
        if self.reporting is not None:
            self.reporting.context.call = call

    def end_within(self, seconds: float) -> None:
        """Limit the call to this many seconds, whatever its own timeout: the run ends then."""
        if self.timeout is None or seconds < self.timeout:
            self.ends_with_batch = True
            self.timeout, self._late = seconds, "stopped: the time for this run is over; what it did until then may remain"

    def begin_anew(self) -> None:
        """Reset the outcome of a finished attempt before the next one."""
        self.tried += int(self.executed)
        self.executed = not self.prepared.observed
        self.ended = self.is_late = False
        self.stopped_by = None
        self._nested = NestedRuns(self)

    def graph_runtime(self) -> Any:
        """Return the runtime that a tool of a graph would get, of LangGraph's class; requires that the program has loaded it."""
        return tool_runtime(self._context)

    def report_to(self, reports: Progress | AsyncProgress, index: int, turn: int | None) -> None:
        """Enable progress reports of the tool.

        Args:
            reports: Takes it.
            index: The place of the call in its batch.
            turn: The number of the model's turn that made the call, where there is one.
        """
        known = self._context
        about: dict[str, Any] = {"messages": tuple(known.messages), "turn": turn, "config": known.config}
        self.reporting = Reporting(reports, index, self.call, yields=self.prepared.yields, **about)

    def invoke(self) -> ToolCallResult:
        """Run the tool in this thread. Requires a context of its own.

        Raises:
            BaseException: what must not be told to the model, see `_passes_through`.
        """
        try:
            tool, call, config = self._begin()
            return self._answered(tool.invoke(call, config))
        except BaseException as error:
            return self._failed(error)
        finally:
            self.ended = True

    async def ainvoke(self) -> ToolCallResult:
        """Run the tool on the running loop. Requires a task of its own.

        Raises:
            BaseException: what must not be told to the model, see `_passes_through`.
        """
        try:
            tool, call, config = self._begin()
            return self._answered(await tool.ainvoke(call, config))
        except BaseException as error:
            return self._failed(error)
        finally:
            self.ended = True

    def stop_for_good(self) -> None:
        """Record that the result is no longer awaited: a call that has not begun never will."""
        self.stopped_by = _Cancelled("cancelled")

    def stop_for_timeout(self) -> None:
        """Record, before a cancellation, that the call timed out."""
        self.stopped_by = TimeoutError(self._late)

    def timed_out(self) -> ToolCallResult:
        """Return the result of a call that timed out."""
        self.is_late = True
        error = TimeoutError(self._late)
        return failed(self.call, str(error), error, duration=self.duration(), executed=self.executed)

    def _begin(self) -> tuple[BaseTool, Any, RunnableConfig]:
        self.started = time.perf_counter()
        _logger.debug("tool %s starts, call %s", self.prepared.tool.name, self.call.id)
        _current.set(self)
        inside.set(self._nested)
        args = self.prepared.injected.apply(self.call.args or {}, self._context)
        if self.reporting is not None:
            args.update(dict.fromkeys(self.prepared.injected.contexts, self.reporting.context))
        tool = self.prepared.tool
        if self.prepared.observed:
            tool = with_methods(tool, self.prepared.observed)
        call = {"name": tool.name, "args": args, "id": self.call.id, "type": "tool_call"}
        return tool, call, self._context.config

    def duration(self) -> float:
        """Return the seconds that the call has run so far."""
        return time.perf_counter() - self.started

    def _answered(self, output: Any) -> ToolCallResult:
        message, commands = answered(self.call, output)
        if (note := self._nested.note(self.call)) is not None:
            message = preceded(message, note)
        duration = self.duration()
        if _logger.isEnabledFor(logging.DEBUG):
            size = len(str(message.content))
            _logger.debug("tool %s ends, call %s: %s, %d characters, %.3f s", message.name, self.call.id, message.status, size, duration)
        if any(map(does_more, commands)):
            _logger.warning("tool %s returned a graph command; a model takes its tool message and leaves the rest", self.prepared.tool.name)
        direct = self.prepared.tool.return_direct and message.status != "error"
        return ToolCallResult(self.call, message, None, duration, direct, self.executed, commands, attempts=int(self.executed))

    def _failed(self, error: BaseException) -> ToolCallResult:
        if isinstance(error, DeadlinePassed) and error.deadline.reason == "deadline":  # that of a run around, in a run inside the tool
            return self.timed_out()
        if isinstance(error, asyncio.CancelledError | _Cancelled | DeadlinePassed):
            return cancelled_result(self.call, executed=self.executed, duration=self.duration())
        if isinstance(error, _NoException):
            error = error.args[0]
        if _passes_through(error) or (self.call.run is not None and isinstance(error, NOT_CONTINUED)):
            raise error
        _logger.debug("tool %s fails, call %s", self.prepared.tool.name, self.call.id, exc_info=error)
        text = " ".join(filter(None, [self._explained(error), self._nested.note(self.call)]))
        return failed(self.call, text, error, duration=self.duration(), executed=self.executed)

    def _explained(self, error: BaseException) -> str:
        if isinstance(error, ValidationError | ValidationErrorV1) and self._concerns_arguments(error):
            return describe_arguments(error, self.call.name, self.prepared.injected.conceals)
        return str(error) if isinstance(error, ConfigurationError) else describe(error)

    def _concerns_arguments(self, error: ValidationError | ValidationErrorV1) -> bool:
        """Whether an error concerns the call's arguments, and not something that the tool did with them."""
        if self.prepared.observed:
            return not self.executed
        schema = getattr(error, "title", None) or getattr(getattr(error, "model", None), "__name__", None)
        return schema == getattr(self.prepared.tool.args_schema, "__name__", "")


def _passes_through(error: BaseException) -> bool:
    """Whether an exception ends the run instead of becoming a result for the model.

    That is what is no `Exception` (KeyboardInterrupt, SystemExit; not a stray GeneratorExit), LangGraph's interrupts and parent
    commands, a resume value that the graph must ask for again, and what a callback handler with `raise_error=True` raised.
    """
    if not isinstance(error, Exception | GeneratorExit):
        return True
    return is_graph_signal(error) or raised_by_handler(error, __name__)


async def outcome_of(run: ToolRun) -> ToolCallResult | BaseException:
    """Return the result or exception of an asynchronous tool, because SystemExit or KeyboardInterrupt in a task would end the loop."""
    try:
        return await run.ainvoke()
    except (KeyboardInterrupt, SystemExit) as error:
        return error


def result_of(outcome: ToolCallResult | BaseException) -> ToolCallResult:
    """Return the result, or raise the exception, from `outcome_of`."""
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome
