"""`ToolContext`: a tool's access to the conversation around its call, with progress reports.

Progress goes to the listeners (`on_progress`), to LangChain's custom events and to the stream writer of a graph around. Nothing here is
entered for a tool that asks for no context.
"""

import asyncio
import functools
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, aclosing, closing, suppress
from contextvars import copy_context
from dataclasses import dataclass
from inspect import isasyncgen, isasyncgenfunction, isgenerator
from typing import Any, Final

from langchain_core.callbacks import BaseCallbackManager, adispatch_custom_event, dispatch_custom_event
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool, StructuredTool, Tool
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticOmit, core_schema

from ..compat import InjectedByType, graph_runtime
from ..messages.calls import ToolCallRecord
from .user_functions import NoThreadError, run_beside, running_loop

_logger = logging.getLogger("langchain_autotools")

PROGRESS_EVENT: Final = "tool_progress"
"""The name of the custom event for progress."""


class ToolContext(InjectedByType):
    """The conversation around a tool call. A parameter of this type is injected and hidden from the model.

    The parameter may have any name, and be in a function or in a class's `_run`; `ToolContext | None` and `Annotated` count too.

    Args:
        call: The tool call.
        messages: The conversation so far, the AI message with the call included.
        turn: The number of the model's turn that made the call, from 1 on; 0 for a call that the run found in its input, None where an
            executor runs alone.
        config: LangChain's configuration for what the tool itself runs.
        report: Called with each value that the tool reports; for tests of a tool.

    Attributes:
        call: The value of the argument.
        messages: The value of the argument.
        turn: The value of the argument.
        config: The value of the argument.
    """

    def __init__(
        self,
        call: ToolCallRecord,
        *,
        messages: Sequence[BaseMessage] = (),
        turn: int | None = None,
        config: RunnableConfig | None = None,
        report: Callable[[Any], Any] | None = None,
    ) -> None:
        self.call = call
        self.messages = messages
        self.turn = turn
        self.config: RunnableConfig = {} if config is None else config
        self._report = report

    def __repr__(self) -> str:
        return f"ToolContext({self.call.name!r}, {self.call.id!r})"

    def report(self, value: Any) -> None:
        """Report progress: to `on_progress`, LangChain's custom events and the surrounding graph. Callable from any thread.

        Once the call has ended it does nothing, which is logged.

        Args:
            value: The progress to report.
        """
        if self._report is not None:
            self._report(value)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.is_instance_schema(cls)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> Any:
        raise PydanticOmit  # leaves the field out of the JSON schema of whatever model has it


@dataclass(frozen=True)
class ProgressReport:
    """A value reported by a running tool.

    Attributes:
        index: The place of the call in its batch.
        call: The call.
        value: The reported value.
    """

    index: int
    call: ToolCallRecord
    value: Any


class _Reports:
    """Undelivered reports of the running tools of one batch, in order of arrival.

    Args:
        fail: Notes what a listener raised for a call.
    """

    def __init__(self, fail: Callable[[int, BaseException], None]) -> None:
        self._fail = fail
        self._waiting: deque[Any] = deque()
        self._ended: set[int] = set()
        self._late: set[int] = set()
        self._closed = False

    def stop(self) -> list[asyncio.Task[None]]:
        """Stop delivering reports; return the tasks of listeners, to be cancelled."""
        self._closed = True
        self._waiting.clear()
        return []

    def report(self, report: ProgressReport) -> None:
        """Queue a report for the listeners."""
        self._waiting.append(report)
        self._wake()

    def fail(self, index: int, error: BaseException) -> None:
        """Record an exception raised while a report was delivered: its call reports nothing more."""
        self._ended.add(index)
        self._late.add(index)
        self._fail(index, error)

    def _wake(self) -> None:
        raise NotImplementedError

    def is_late(self, report: ProgressReport) -> bool:
        """Whether the report's call has ended, which is logged once."""
        late = self._closed or report.index in self._ended
        if late and report.index not in self._late:
            self._late.add(report.index)
            _logger.warning("tool %s reports progress after its call %s has ended: nobody is told", report.call.name, report.call.id)
        return late


class Progress(_Reports):
    """Progress reports in a synchronous run. Listeners are called in the tool's own thread, one at a time.

    Args:
        fail: Notes what a listener raised for a call.
        tell: Calls the listeners.
        telling: Is held while listeners are called; the batch's other listeners have it too.
    """

    def __init__(
        self, fail: Callable[[int, BaseException], None], tell: Callable[[ProgressReport], None], telling: AbstractContextManager[Any]
    ) -> None:
        super().__init__(fail)
        self._tell = tell
        self._telling = telling

    def end(self, index: int) -> None:
        """Deliver waiting reports; later reports of this call are dropped."""
        self._drain()
        self._ended.add(index)

    def _wake(self) -> None:
        if running_loop() is None:
            self._drain()
            return
        try:  # an event loop must not wait for listeners: one of them may need it
            run_beside(self._drain_beside)
        except NoThreadError:
            _logger.debug("no thread can be started to tell of progress: it is told when a call ends")

    def _drain_beside(self) -> None:
        with suppress(BaseException):  # it is noted
            self._drain()

    def _drain(self) -> None:
        with self._telling:
            while self._waiting:
                report = self._waiting.popleft()
                if not self.is_late(report):
                    self._tell_one(report)

    def _tell_one(self, report: ProgressReport) -> None:
        try:
            self._tell(report)
        except BaseException as error:
            self.fail(report.index, error)
            if not isinstance(error, Exception):
                raise


class AsyncProgress(_Reports):
    """Progress reports in an asynchronous run. Listeners are called on its event loop, one after another.

    Args:
        fail: Notes what a listener raised for a call.
        tell: Calls the listeners.
    """

    def __init__(self, fail: Callable[[int, BaseException], None], tell: Callable[[ProgressReport], Awaitable[None]]) -> None:
        super().__init__(fail)
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        self._task: asyncio.Task[None] | None = None

    def stop(self) -> list[asyncio.Task[None]]:
        """Stop delivering reports; return the listeners' task, to be cancelled."""
        super().stop()
        return [] if self._task is None else [self._task]

    async def end(self, index: int) -> None:
        """Deliver waiting reports; later reports of this call are dropped."""
        if self._closed:
            return
        reported = self._loop.create_future()
        self._waiting.append(reported)
        self._start()
        await reported
        self._ended.add(index)

    def _wake(self) -> None:
        if running_loop() is self._loop:
            self._start()
            return
        try:
            self._loop.call_soon_threadsafe(self._start)
        except RuntimeError:  # it is closed: nobody listens any more
            self._closed = True

    def _start(self) -> None:
        if self._task is None and not self._closed:
            self._task = self._loop.create_task(self._drain(), context=self._context.copy())

    async def _drain(self) -> None:
        try:
            while self._waiting:
                report = self._waiting.popleft()
                if isinstance(report, ProgressReport) and not self.is_late(report):
                    await self._tell_one(report)
                elif isinstance(report, asyncio.Future) and not report.done():
                    report.set_result(None)
        finally:
            self._task = None

    async def _tell_one(self, report: ProgressReport) -> None:
        try:
            await self._tell(report)
        except BaseException as error:
            if self._closed and isinstance(error, asyncio.CancelledError):
                raise
            self.fail(report.index, error)


class Reporting:
    """One running call that may report progress.

    Args:
        reports: Takes its reports, for the listeners of its batch.
        index: The place of the call in the batch.
        call: The call.
        yields: Whether what a generator yields is progress.
        **about: Further data for the tool's context (`messages`, `turn`, `config`).

    Attributes:
        context: The context that its tool is given.
    """

    def __init__(self, reports: Progress | AsyncProgress, index: int, call: ToolCallRecord, *, yields: bool, **about: Any) -> None:
        self.context = ToolContext(call, **about, report=self.report)
        self._reports = reports
        self._index = index
        self._yields = yields
        self._write: Callable[[Any], None] | None = getattr(graph_runtime(), "stream_writer", None)
        self._loop: asyncio.AbstractEventLoop | None = None  # that of an asynchronous tool
        self._event: asyncio.Task[None] | None = None  # the last one that is on its way

    def run(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call the tool's own function, inside the tool's run."""
        self.context.config = ensure_config()
        output: Any = function(*args, **kwargs)
        return self._result(output) if self._yields and isgenerator(output) else output

    async def arun(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Like `run`, for an asynchronous tool. Ends when every reported event has been sent."""
        self.context.config = ensure_config()
        self._loop = asyncio.get_running_loop()
        try:
            output: Any = function(*args, **kwargs)
            if not (self._yields and isasyncgen(output)):
                output = await output
            return await self._aresult(output) if self._yields and isasyncgen(output) else output
        finally:
            if self._event is not None:
                await self._event

    def _result(self, generator: Any) -> Any:
        """Return a generator's return value, else its last yielded value. Closes it if the result is no longer awaited."""
        last = None
        with closing(generator):
            try:
                while self.report(last := next(generator)):
                    pass
            except StopIteration as end:
                return last if end.value is None else end.value
        return last

    async def _aresult(self, generator: Any) -> Any:
        last = None
        async with aclosing(generator):
            async for last in generator:
                self.report(last)
        return last

    def report(self, value: Any) -> bool:
        """Report progress; return False if reports are no longer delivered."""
        context = self.context
        report = ProgressReport(self._index, context.call, value)
        if self._reports.is_late(report):
            return False
        data = {"tool_call_id": context.call.id, "name": context.call.spelling, "value": value}
        try:
            if self._write is not None:
                self._write({"type": PROGRESS_EVENT, **data})
            self._dispatch(data, context.config)
        except Exception as error:  # of a callback handler that is to raise, or of the graph
            self._reports.fail(self._index, error)
        else:
            self._reports.report(report)
        return True

    def _dispatch(self, data: dict[str, Any], config: RunnableConfig) -> None:
        """Send LangChain's custom event, which requires a surrounding run and a listener."""
        manager = config.get("callbacks")
        if not isinstance(manager, BaseCallbackManager) or manager.parent_run_id is None or not manager.handlers:
            return
        if self._loop is not None and self._loop is running_loop():
            self._event = self._loop.create_task(self._send(self._event, data, config))
        else:
            dispatch_custom_event(PROGRESS_EVENT, data, config=config)

    async def _send(self, before: asyncio.Task[None] | None, data: dict[str, Any], config: RunnableConfig) -> None:
        if before is not None:
            await before
        try:
            await adispatch_custom_event(PROGRESS_EVENT, data, config=config)
        except Exception as error:
            self._reports.fail(self._index, error)


def as_asynchronous(tool: BaseTool) -> BaseTool:
    """Return a tool made of an asynchronous generator function as one that LangChain runs on an event loop; others unchanged."""
    function = (tool.func or tool.coroutine) if isinstance(tool, StructuredTool | Tool) else None
    if not isasyncgenfunction(function):
        return tool

    @functools.wraps(function)
    async def begin(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return tool.model_copy(update={"func": None, "coroutine": begin})
