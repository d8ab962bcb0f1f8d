"""Carries out what a run asks for: its requests and its calls, once synchronously and once asynchronously."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, closing
from typing import cast

from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.runnables import RunnableConfig

from .loop import CallModel
from .run import Run

TurnMaker = Callable[[CallModel], Iterator[AIMessage]]
"""Makes a request of a run."""

AsyncTurnMaker = Callable[[CallModel], AsyncGenerator[AIMessage, None]]
"""Makes a request of a run asynchronously."""


def drive(run: Run, turn: TurnMaker, config: RunnableConfig) -> Iterator[AIMessageChunk]:
    """Carry out what the run asks for."""
    while (action := run.next()) is not None:
        if isinstance(action, CallModel):
            for part in run.parts(turn(action)):
                yield from run.part(part)
            yield from run.turn_done()
        else:
            with closing(run.execute(action, config)) as results:
                for result in results:
                    yield run.result(action, result)
            run.tools_done()
    yield from run.end()


async def adrive(run: Run, turn: AsyncTurnMaker, config: RunnableConfig) -> AsyncGenerator[AIMessageChunk, None]:
    """Like `drive`, asynchronously."""
    while (action := run.next()) is not None:
        if isinstance(action, CallModel):
            async with aclosing(run.aparts(turn(action))) as parts:
                async for chunk in _chunks_of(run, parts):
                    yield chunk
            for chunk in run.turn_done():
                yield chunk
        else:
            async with aclosing(run.aexecute(action, config)) as results:
                async for result in results:
                    yield run.result(action, result)
            run.tools_done()
    for chunk in run.end():
        yield chunk


def generator_of(chunks: AsyncIterator[AIMessage]) -> AsyncGenerator[AIMessage, None]:
    """Core's streams are generators, though typed as iterators; closing one closes the request under it."""
    return cast("AsyncGenerator[AIMessage, None]", chunks)


async def _chunks_of(run: Run, parts: AsyncIterator[AIMessage]) -> AsyncIterator[AIMessageChunk]:
    """What leaves at once of each part of a turn."""
    async for part in parts:
        for chunk in run.part(part):
            yield chunk
