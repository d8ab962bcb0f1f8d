"""`show`: a run in a notebook, while it happens."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import aclosing, closing
from typing import Any, Final, overload

from langchain_core.messages import AIMessage

from ..following import AsyncEventStream, EventStream, aevents, events
from ..messages.endings import HoldsRun
from ..messages.live import mark_shown
from .ended import events_of
from .screens import screen

_NOTICED_SECONDS: Final = 0.5


@overload
def show(stream: Iterator[Any]) -> AIMessage: ...


@overload
def show(stream: AsyncIterator[Any]) -> Coroutine[Any, Any, AIMessage]: ...


@overload
def show(stream: HoldsRun) -> AIMessage: ...


def show(stream: Any) -> Any:
    """Show a run while it happens: `run = show(model.stream(messages))`.

    In a cell of Jupyter or marimo the model's text is shown as Markdown, its reasoning folded, each call with its arguments (already while
    they are written), progress and result, what runs inside a tool under its call, calls that wait with what can be done about them,
    and at the end the tokens and why the run ended, where that is unusual. Anywhere else the same is printed as plain text, without
    reasoning.

    Args:
        stream: What `stream` or `astream` of a model, an agent, a chain or a graph returned, before anything of it was read; or what `run`
            of an agent returned, which is shown as it ended.

    Returns:
        The run message, as `invoke` returns it; of an asynchronous stream something to await that gives it:
        `await show(model.astream(...))`. Of a chain or a graph, the message of the last run that was made in it.

    Raises:
        ConfigurationError: `stream` is none, or no run was made in it.
        BaseException: What ended the run, after it has been shown that it failed or, at an interrupt, that it was interrupted. The run
            is closed then.
    """
    if isinstance(stream, HoldsRun):
        return _show_ended(stream)
    return _ashow(aevents(stream)) if isinstance(stream, AsyncIterator) else _show(events(stream))


def _show(stream: EventStream) -> AIMessage:
    with screen() as shown, closing(stream):
        for event in stream:
            shown.take(event)
    return _message(stream)


def _show_ended(run: HoldsRun) -> AIMessage:
    with screen() as shown:
        for event in events_of(run):
            shown.take(event)
    mark_shown(run.message)
    return run.message


async def _ashow(stream: AsyncEventStream) -> AIMessage:
    awake = asyncio.create_task(_stay_awake())
    try:
        with screen() as shown:
            async with aclosing(stream):
                async for event in stream:
                    shown.take(event)
    finally:
        awake.cancel()
    return _message(stream)


async def _stay_awake() -> None:
    """Let an idle event loop notice that its cell was interrupted: a kernel cancels the cell's task without waking the loop."""
    while True:
        await asyncio.sleep(_NOTICED_SECONDS)


def _message(stream: EventStream | AsyncEventStream) -> AIMessage:
    message = stream.message
    mark_shown(message)
    return message
