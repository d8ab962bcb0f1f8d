"""LangChain's `wrap_tool_call` as a wrapper of calls."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

from langchain_core.messages import ToolMessage

from ..compat import middleware_types
from ..errors import ConfigurationError
from ..executor.call import ToolRun
from ..executor.content import answered
from ..executor.plan import PlannedCall
from ..executor.results import ToolCallResult, is_changed
from ..executor.steps import LEFT, Around, CallWrapper, Outcome, Proceed, Steps
from ..executor.workers.asking import NOTHING
from ..messages.memo import copy_containers
from .middleware import hook_of, name_of


def call_wrapper(middleware: Any) -> CallWrapper:
    """Return a middleware's `wrap_tool_call` and its asynchronous twin as a wrapper of calls."""
    return partial(_wrapped, middleware)


def _wrapped(middleware: Any, planned: PlannedCall, proceed: Proceed) -> Steps:
    handling = _Handling(middleware, planned, proceed)
    outcome: Any = yield Around(handling.handled, handling.ahandled)
    return planned.unfinished(None) if outcome is NOTHING else outcome


class _Left(BaseException):
    """Raised inside a middleware around a call that stays pending, with its outcome. No `except Exception` catches it."""


class _Handling:
    """One call inside one middleware."""

    def __init__(self, middleware: Any, planned: PlannedCall, proceed: Proceed) -> None:
        self._middleware = middleware
        self._planned = planned
        self._proceed = proceed
        self._last: ToolCallResult | None = None
        self._attempts = 0

    def handled(self, carry: Callable[[Steps], Outcome]) -> Outcome:
        """Call the middleware, whose handler carries out the call."""
        wrap = hook_of(self._middleware, "wrap_tool_call", twin="awrap_tool_call")
        try:
            return self._outcome(wrap(self._request(), lambda request: self._answer(carry(self._steps(request)))))
        except _Left as left:
            outcome: Outcome = left.args[0]
            return outcome
        except Exception as error:
            return self._failed(error)

    async def ahandled(self, carry: Callable[[Steps], Awaitable[Outcome]]) -> Outcome:
        """Like `handled`, asynchronously."""

        async def handler(request: Any) -> Any:
            return self._answer(await carry(self._steps(request)))

        wrap = hook_of(self._middleware, "awrap_tool_call", twin="wrap_tool_call")
        try:
            return self._outcome(await wrap(self._request(), handler))
        except _Left as left:
            outcome: Outcome = left.args[0]
            return outcome
        except Exception as error:
            return self._failed(error)

    @property
    def _run(self) -> ToolRun:
        assert self._planned.run is not None  # only calls that run have wrappers
        return self._planned.run

    def _request(self) -> Any:
        call, context = self._planned.call, self._run.graph_runtime()
        known = {"name": call.name, "args": copy_containers(call.args or {}), "id": call.id, "type": "tool_call"}
        return middleware_types().ToolCallRequest(tool_call=known, tool=self._run.prepared.tool, state=context.state, runtime=context)

    def _steps(self, request: Any) -> Steps:
        """Return the steps of the call as a middleware wants it.

        Raises:
            ConfigurationError: It is another call, not the same with other arguments.
        """
        call, asked = self._planned.call, request.tool_call
        if (asked["name"], asked["id"]) != (call.name, call.id) or request.tool is not self._run.prepared.tool:
            raise ConfigurationError(f"{name_of(self._middleware)} makes another call of {call.name!r}: it may change the arguments alone")
        if self._last is not None:
            self._run.begin_anew()
        if asked["args"] == call.args:
            return self._proceed(self._planned)
        changed = replace(call, args=dict(asked["args"]), arguments=json.dumps(asked["args"], ensure_ascii=False))
        return self._proceed(replace(self._planned, call=changed))

    def _answer(self, outcome: Outcome) -> ToolMessage:
        """Return a call's message, or raise what its tool raised."""
        if outcome is LEFT or is_changed(outcome):
            raise _Left(outcome)
        self._last = outcome
        self._attempts += outcome.attempts
        if outcome.executed and not outcome.success and isinstance(outcome.error, Exception):
            raise outcome.error
        return outcome.message

    def _failed(self, error: Exception) -> ToolCallResult:
        """Return the result of a tool whose exception the middleware has let through; raise any other exception."""
        if self._last is None or error is not self._last.error:
            raise error
        return replace(self._last, attempts=self._attempts)

    def _outcome(self, answer: Any) -> ToolCallResult:
        """Return what a middleware has returned as the result of the call."""
        last = self._last
        if last is not None and answer is last.message:
            return replace(last, attempts=self._attempts)
        call = self._planned.call if last is None else last.call
        message, commands = answered(call, answer)
        known: dict[str, Any] = {"executed": last is not None and last.executed, "attempts": self._attempts, "commands": commands}
        direct = self._run.prepared.tool.return_direct and message.status != "error"
        return ToolCallResult(call, message, duration=0.0 if last is None else last.duration, return_direct=direct, **known)
