"""Calls of the caller's functions, possibly slow or asynchronous, which end with the run."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Future, wait
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from .background import BackgroundTask, awaited
from .threads import deeper, run_beside, run_in_thread

NOTHING: Any = object()
"""The return value if the run has ended first."""

Question = tuple[Callable[[Any], Any], Any]
"""A function of the caller's, possibly asynchronous, and its argument."""

_Step = TypeVar("_Step")
_Result = TypeVar("_Result")


def driven(steps: Generator[_Step, Any, _Result], execute: Callable[[_Step], Any]) -> _Result:
    """Run a generator whose steps are carried out by `execute`; exceptions are raised at the yield. Returns its result."""
    proceed, value = steps.send, None
    while True:
        try:
            step = proceed(value)
        except StopIteration as end:
            result: _Result = end.value
            return result
        try:
            proceed, value = steps.send, execute(step)
        except BaseException as error:
            proceed, value = steps.throw, error


async def adriven(steps: Generator[_Step, Any, _Result], execute: Callable[[_Step], Awaitable[Any]]) -> _Result:
    """Like `driven`, asynchronously."""
    proceed, value = steps.send, None
    while True:
        try:
            step = proceed(value)
        except StopIteration as end:
            result: _Result = end.value
            return result
        try:
            proceed, value = steps.send, await execute(step)
        except BaseException as error:
            proceed, value = steps.throw, error


def ask(
    function: Callable[[Any], Any],
    argument: Any,
    is_over: Callable[[], bool],
    patience: Callable[[], float | None],
    threads: int | None = None,
) -> Any:
    """Return the result of a caller's function; `NOTHING` if the run ended first.

    Args:
        function: The function. It is called here, or in a thread where the run may end meanwhile.
        argument: Its argument.
        is_over: Whether it is to be waited for no longer.
        patience: Returns the seconds until the next check; None for no limit.
        threads: The maximum number of threads that wait for such functions in this process; None for no limit.
    """
    if patience() is None:
        result = function(argument)
    else:
        outcome, forget = _in_thread(function, argument, is_over, threads)
        while not wait([outcome], patience()).done:
            if is_over():
                forget()
                return NOTHING
        result = outcome.result()
    if not inspect.isawaitable(result):
        return result
    task = BackgroundTask(awaited(result))
    task.start()
    while not task.wait(patience()):
        if is_over():
            task.cancel()
            return NOTHING
    return task.result()


async def aask(
    function: Callable[[Any], Any],
    argument: Any,
    is_over: Callable[[], bool],
    patience: Callable[[], float | None],
    threads: int | None = None,
) -> Any:
    """Like `ask`, asynchronously. A synchronous function, which may wait for a human, is called in a thread."""
    task = asyncio.create_task(_result_of(function, argument, is_over, threads))
    try:
        while not (await asyncio.wait([task], timeout=patience()))[0]:
            if is_over():
                return NOTHING
        return task.result()
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=1.0)


async def _result_of(function: Callable[[Any], Any], argument: Any, is_over: Callable[[], bool], threads: int | None) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(argument)
    outcome, forget = _in_thread(function, argument, is_over, threads)
    try:
        result = await asyncio.wrap_future(outcome)
    finally:
        forget()
    return await result if inspect.isawaitable(result) else result


def _in_thread(
    function: Callable[[Any], Any], argument: Any, is_over: Callable[[], bool], threads: int | None
) -> tuple[Future[Any], Callable[[], object]]:
    """Return a caller's function as a job in a thread, and a function to abandon it, after which it does not begin."""
    outcome: Future[Any] = Future()
    work = partial(deeper(copy_context()).run, _answer_into, outcome, function, argument, is_over)
    if threads is not None:
        return outcome, run_in_thread(work, threads, "question").abandon
    run_beside(work)
    return outcome, outcome.cancel


def _answer_into(outcome: Future[Any], function: Callable[[Any], Any], argument: Any, is_over: Callable[[], bool]) -> None:
    if not outcome.set_running_or_notify_cancel():
        return
    try:
        outcome.set_result(NOTHING if is_over() else function(argument))  # it may have waited for its thread
    except BaseException as error:
        outcome.set_exception(error)
