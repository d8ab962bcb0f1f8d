"""Driver of one call of a model, synchronous and asynchronous: it makes the requests and executes the calls.

What it drives is a run, or the single reply of a model without tools.
"""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager

from .phases import Chunks
from .reply import Reply
from .run import Run
from .tracing import Trace

Driven = Run | Reply
"""What is driven."""


def drive(driven: Driven, trace: Trace) -> Iterator[Chunks]:
    """Drive a call to its end and yield its chunks as they are made."""
    yield driven.begin(trace)
    while (action := driven.next()) is not None:
        steps, take, done = driven.phase(action, trace.child)
        try:
            for step in steps:
                yield take(step)
        finally:
            getattr(steps, "close", _nothing)()
        yield done()
    yield driven.end()


async def adrive(driven: Driven, trace: Trace) -> AsyncGenerator[Chunks, None]:
    """Like `drive`, asynchronously."""
    yield driven.begin(trace)
    while (action := driven.next()) is not None:
        steps, take, done = driven.aphase(action, trace.child)
        async with aclosing(steps):
            async for step in steps:
                yield take(step)
        yield done()
    yield driven.end()


@contextmanager
def failing(driven: Driven, *, streamed: bool = False) -> Iterator[None]:
    """Return a context manager that reports an exception that ends the call, or that it was left."""
    try:
        yield
    except GeneratorExit:
        driven.left()
        raise
    except BaseException as error:
        driven.failed(error, streamed=streamed)
        raise


def _nothing() -> None: ...
