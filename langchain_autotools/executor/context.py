"""`ToolContext`: what a tool may know of the conversation around its call, and how it reports progress while it runs.

Progress goes to the listeners (`on_progress`), to LangChain's custom events and to the stream writer of a graph around. Nothing here is
entered for a tool that asks for no context.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.callbacks import BaseCallbackManager, adispatch_custom_event, dispatch_custom_event
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticOmit, core_schema

from ..compat import InjectedByType, graph_runtime
from ..messages.calls import ToolCallRecord
from .background import running_loop
from .threads import NoThreadError, run_beside

__all__ = ["PROGRESS_EVENT", "AsyncProgress", "Progress", "ProgressReport", "Reporting", "ToolContext"]

_logger = logging.getLogger("langchain_autotools")

PROGRESS_EVENT: Final = "tool_progress"
"""The name of the custom event that tells of progress."""


class ToolContext(InjectedByType):
    """What a tool may know of the conversation around its call. A parameter of this type is filled in and hidden from the model.

    The parameter may have any name, and stand in a function or in a class's `_run`; `ToolContext | None` and `Annotated` count too.

    Args:
        call: The tool call.
        messages: The conversation so far, the AI message with the call included.
        turn: The number of the model's turn that made the call, from 1 on; 0 for a call that the run found in its input, None where an
            executor runs alone.
        config: LangChain's configuration for what the tool itself runs.
        report: Called with each value that the tool reports; for tests of a tool.

    Attributes:
        call: As it was given.
        messages: As it was given.
        turn: As it was given.
        config: As it was given.
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
        """Report progress: to `on_progress`, LangChain's custom events and the graph around. From any thread, and from asynchronous tools.

        Once the call has ended it does nothing, which is logged.

        Args:
            value: What there is to tell.
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
    """A value that a running tool has reported.

    Attributes:
        index: The place of the call in its batch.
        call: The call.
        value: What was reported.
        config: The configuration inside the tool's run.
        writer: The stream writer of the graph around, or None.
    """

    index: int
    call: ToolCallRecord
    value: Any
    config: RunnableConfig
    writer: Callable[[Any], None] | None

    def dispatch(self) -> None:
        """Tell LangChain's callback handlers and the graph."""
        self._write()
        if self._is_traced():
            dispatch_custom_event(PROGRESS_EVENT, self._data(), config=self.config)

    async def adispatch(self) -> None:
        """Like `dispatch`, asynchronously."""
        self._write()
        if self._is_traced():
            await adispatch_custom_event(PROGRESS_EVENT, self._data(), config=self.config)

    def _data(self) -> dict[str, Any]:
        return {"tool_call_id": self.call.id, "name": self.call.spelling, "value": self.value}

    def _write(self) -> None:
        if self.writer is not None:
            self.writer({"type": PROGRESS_EVENT, **self._data()})

    def _is_traced(self) -> bool:
        """Whether somebody can hear of it: a custom event needs a run around it, and handlers."""
        manager = self.config.get("callbacks")
        return isinstance(manager, BaseCallbackManager) and manager.parent_run_id is not None and bool(manager.handlers)


class _Reports:
    """Reports of the running tools of one batch that have not been told yet, in the order in which they came.

    Args:
        fail: Notes what a listener raised for a call.
    """

    def __init__(self, fail: Callable[[int, BaseException], None]) -> None:
        self._fail = fail
        self._waiting: deque[Any] = deque()
        self._ended: set[int] = set()
        self._late: set[int] = set()
        self._closed = False

    def close(self) -> "list[asyncio.Task[None]]":
        """Tell nobody any more; returns what is to be cancelled."""
        self._closed = True
        self._waiting.clear()
        return []

    def report(self, report: ProgressReport) -> bool:
        """Take a report; False if its call has ended."""
        if self._is_late(report):
            return False
        self._waiting.append(report)
        self._wake()
        return True

    def _wake(self) -> None:
        raise NotImplementedError

    def _is_late(self, report: ProgressReport) -> bool:
        late = self._closed or report.index in self._ended
        if late and report.index not in self._late:
            self._late.add(report.index)
            _logger.warning("tool %s reports progress after its call %s has ended: nobody is told", report.call.name, report.call.id)
        return late


@dataclass(frozen=True)
class Reporting:
    """Where one call of a batch reports to.

    Attributes:
        reports: The batch's.
        index: The place of the call in the batch.
        turn: The number of the model's turn, where there is one.
    """

    reports: _Reports
    index: int
    turn: int | None

    def context(self, call: ToolCallRecord, messages: Sequence[BaseMessage], config: RunnableConfig) -> ToolContext:
        """The context that the call's tool is given."""
        writer = getattr(graph_runtime(), "stream_writer", None)

        def report(value: Any) -> bool:
            return self.reports.report(ProgressReport(self.index, call, value, context.config, writer))

        context = ToolContext(call, messages=tuple(messages), turn=self.turn, config=config, report=report)
        return context


class Progress(_Reports):
    """Reports in a synchronous run. Listeners are called in the tool's own thread, never two at a time.

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
        """Tell what waits; later reports of this call are none."""
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
                if not self._is_late(report):
                    self._tell_one(report)

    def _tell_one(self, report: ProgressReport) -> None:
        try:
            self._tell(report)
        except BaseException as error:
            self._ended.add(report.index)
            self._late.add(report.index)
            self._fail(report.index, error)
            if not isinstance(error, Exception):
                raise


class AsyncProgress(_Reports):
    """Reports in an asynchronous run. Listeners are called on its event loop, one after another.

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

    def close(self) -> list[asyncio.Task[None]]:
        """Tell nobody any more; returns what is to be cancelled."""
        super().close()
        return [] if self._task is None else [self._task]

    async def end(self, index: int) -> None:
        """Tell what waits; later reports of this call are none."""
        if self._closed:
            return
        told = self._loop.create_future()
        self._waiting.append(told)
        self._start()
        await told
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
                await self._take(self._waiting.popleft())
        finally:
            self._task = None

    async def _take(self, report: ProgressReport | asyncio.Future[None]) -> None:
        if isinstance(report, ProgressReport):
            if not self._is_late(report):
                await self._tell_one(report)
        elif not report.done():
            report.set_result(None)

    async def _tell_one(self, report: ProgressReport) -> None:
        try:
            await self._tell(report)
        except BaseException as error:
            if self._closed and isinstance(error, asyncio.CancelledError):
                raise
            self._ended.add(report.index)
            self._late.add(report.index)
            self._fail(report.index, error)
