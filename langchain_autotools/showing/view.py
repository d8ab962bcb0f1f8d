"""`show`: live display of a run in a notebook."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Sequence
from contextlib import aclosing, closing
from typing import Any, Final, overload

from langchain_core.messages import AIMessage, BaseMessage

from ..errors import ConfigurationError
from ..event_reader import AsyncEventStream, EventStream, aevents, events
from ..event_types import RunEvent
from ..messages.endings import HoldsRun
from ..messages.live import mark_shown
from .ended import events_of, history_events
from .screens import screen

_NOTICED_SECONDS: Final = 0.5
_WRONG: Final = "show takes what stream() or astream() returned, a run, a message or a history (a list of messages), not {}"


@overload
def show(stream: Iterator[Any]) -> AIMessage: ...


@overload
def show(stream: AsyncIterator[Any]) -> Coroutine[Any, Any, AIMessage]: ...


@overload
def show(stream: HoldsRun) -> AIMessage: ...


@overload
def show(stream: BaseMessage | Sequence[BaseMessage]) -> None: ...


def show(stream: Any) -> Any:
    """Show a run live, `run = show(model.stream(messages))`, or a finished run, a message or a history.

    In a cell of Jupyter or marimo the model's text is shown as Markdown, its reasoning folded, each call with its arguments (already while
    they are written), progress and result, what runs inside a tool under its call, calls that wait with what can be done about them,
    and at the end the tokens and why the run ended, where that is unusual. Anywhere else the same is printed as plain text, without
    reasoning.

    Args:
        stream: What `stream` or `astream` of a model, an agent, a chain or a graph returned, before anything of it was read. Or what has
            ended: what `invoke` of a model or `run` of an agent returned, any other message, or a history (a list of messages), which is
            shown with its questions.

    Returns:
        The run message, as `invoke` returns it; of an asynchronous stream something to await that gives it:
        `await show(model.astream(...))`. Of a chain or a graph, the message of the last run that was made in it. Of a message or a history
        that was given nothing: what a cell ends in would be shown again.

    Raises:
        ConfigurationError: `stream` is none of these, or no run was made in it.
        BaseException: What ended the run, after it has been shown that it failed or, at an interrupt, that it was interrupted. The run
            is closed then.
    """
    if isinstance(stream, HoldsRun):
        return _show_ended(stream)
    if isinstance(stream, AIMessage):
        return _show_all(events_of(stream))
    if isinstance(stream, BaseMessage | list | tuple):
        return _show_all(history_events([stream] if isinstance(stream, BaseMessage) else _messages_of(stream)))
    if not isinstance(stream, Iterator | AsyncIterator):
        raise ConfigurationError(_WRONG.format(type(stream).__name__))
    return _ashow(aevents(stream)) if isinstance(stream, AsyncIterator) else _show(events(stream))


def _show(stream: EventStream) -> AIMessage:
    with screen() as output, closing(stream):
        for event in stream:
            output.show(event)
    return _message(stream)


def _show_ended(run: HoldsRun) -> AIMessage:
    _show_all(events_of(run))
    mark_shown(run.message)
    return run.message


def _show_all(happened: Iterable[RunEvent | BaseMessage]) -> None:
    with screen() as output:
        for one in happened:
            if isinstance(one, BaseMessage):
                output.show_input(one)
            else:
                output.show(one)


def _messages_of(history: Sequence[Any]) -> Sequence[BaseMessage]:
    strange = next((one for one in history if not isinstance(one, BaseMessage)), None)
    if strange is not None:
        raise ConfigurationError(f"show takes a history as a list of messages, and this one has a {type(strange).__name__} in it")
    return history


async def _ashow(stream: AsyncEventStream) -> AIMessage:
    awake = asyncio.create_task(_stay_awake())
    try:
        with screen() as output:
            async with aclosing(stream):
                async for event in stream:
                    output.show(event)
    finally:
        awake.cancel()
    return _message(stream)


async def _stay_awake() -> None:
    """Keep an idle event loop awake to interrupts: a kernel cancels a cell's task without waking the loop."""
    while True:
        await asyncio.sleep(_NOTICED_SECONDS)


def _message(stream: EventStream | AsyncEventStream) -> AIMessage:
    message = stream.message
    mark_shown(message)
    return message
