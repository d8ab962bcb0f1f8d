"""Drivers of a run, which make its requests and execute its calls, synchronous and asynchronous."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, closing
from typing import cast

from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.runnables import RunnableConfig

from .loop import CallModel
from .run import Run


def drive(run: Run, config: RunnableConfig) -> Iterator[AIMessageChunk]:
    """Drive the run to its end and yield its chunks."""
    while (action := run.next()) is not None:
        if isinstance(action, CallModel):
            for part in run.turn(action, config):
                yield from run.part(part)
            yield from run.turn_done()
        else:
            with closing(run.execute(action, config)) as results:
                for result in results:
                    yield run.result(action, result)
            run.tools_done()
    yield from run.end()


async def adrive(run: Run, config: RunnableConfig) -> AsyncGenerator[AIMessageChunk, None]:
    """Like `drive`, asynchronously."""
    while (action := run.next()) is not None:
        if isinstance(action, CallModel):
            async with aclosing(_chunks_of(run, action, config)) as chunks:
                async for chunk in chunks:
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
    """Return core's stream as a generator, which it is though typed as an iterator; closing it closes its request."""
    return cast("AsyncGenerator[AIMessage, None]", chunks)


async def _chunks_of(run: Run, action: CallModel, config: RunnableConfig) -> AsyncGenerator[AIMessageChunk, None]:
    """Yield the chunks that leave at once for each part of a turn."""
    async with aclosing(run.aturn(action, config)) as parts:
        async for part in parts:
            for chunk in run.part(part):
                yield chunk
