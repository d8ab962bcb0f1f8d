"""The phases of a call of a model: each a turn, or the answering of calls, in the form that a driver takes step by step."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from langchain_core.messages import AIMessageChunk

_T = TypeVar("_T")

Chunks = Sequence[AIMessageChunk]
"""Chunks that leave at once."""


class Phase(NamedTuple):
    """The processing of one action of a call.

    Attributes:
        steps: The parts of a turn, or the results of calls; an asynchronous generator for an asynchronous driver.
        take: Processes a step, and returns the chunks that leave at once.
        done: Ends the phase after its last step, and returns such chunks.
    """

    steps: Any
    take: Callable[[Any], Chunks]
    done: Callable[[], Chunks]


def generator_of(parts: AsyncIterator[_T]) -> AsyncGenerator[_T, None]:
    """Return core's stream as a generator, which it is though typed as an iterator; closing it closes its request."""
    return cast("AsyncGenerator[_T, None]", parts)
