"""Turns in place of errors: some vendors refuse a call that their model wrote badly as if the request were at fault."""

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, closing

from langchain_core.messages import AIMessageChunk

__all__ = ["Instead", "arescued", "rescued"]

Instead = Callable[[Exception], AIMessageChunk | None]
"""Given an error: the turn that it stands for, or None."""


def rescued(chunks: Generator[AIMessageChunk, None, None], instead: Instead) -> Generator[AIMessageChunk, None, None]:
    """A stream that ends in the turn that stands for its error."""
    with closing(chunks):
        try:
            yield from chunks
        except Exception as error:
            turn = instead(error)
            if turn is None:
                raise
            yield turn


async def arescued(chunks: AsyncGenerator[AIMessageChunk, None], instead: Instead) -> AsyncGenerator[AIMessageChunk, None]:
    """Like `rescued`, asynchronously."""
    async with aclosing(chunks):
        try:
            async for chunk in chunks:
                yield chunk
        except Exception as error:
            turn = instead(error)
            if turn is None:
                raise
            yield turn
