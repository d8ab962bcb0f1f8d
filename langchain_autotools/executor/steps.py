"""The steps that a wrapper of calls yields, and the outcome that it returns.

A wrapper is a generator that does nothing by itself. It yields what has to be waited for or carried out and is sent what came of it, so
that one text serves threads and tasks. It returns a result, or `LEFT`.
"""

from collections.abc import Awaitable, Callable, Generator
from enum import Enum
from typing import Any, Final, Literal, NamedTuple, Protocol

from ..retry.attempts import Awaited
from .plan import PlannedCall
from .policy.cache import Flight
from .results import ToolCallResult


class _Left(Enum):
    LEFT = "left"


LEFT: Final = _Left.LEFT
"""The outcome of a call without a result that stays pending, as if there were no decision about it."""

Outcome = ToolCallResult | Literal[_Left.LEFT]
"""The outcome of a call."""


class BatchEnded(BaseException):
    """Raised to stop a call whose batch has ended, without a record. Wrappers cannot swallow it as an error of the tool."""


class Attempt(NamedTuple):
    """A step: run the tool. The generator receives its result.

    Attributes:
        number: Which attempt it is. `on_executing` is called before the first.
    """

    number: int


class Pause(NamedTuple):
    """A step: wait before the next step.

    Attributes:
        seconds: How long.
    """

    seconds: float


class Follow(NamedTuple):
    """A step: wait for an equal call that is already running, within the available time.

    Attributes:
        flight: That call.
    """

    flight: Flight


class Ask(NamedTuple):
    """A step: call a caller's function, possibly asynchronous. The generator receives its result, or `NOTHING` if the batch ended first.

    Attributes:
        function: The function.
        argument: Its argument.
        keeps: Whether it keeps what has been done: it has a second more than the batch.
    """

    function: Callable[[Any], Any]
    argument: Any
    keeps: bool = False


class Within(NamedTuple):
    """A step: call a function in the thread of the call. The generator receives its result. For threads only.

    Attributes:
        function: Gets what carries out further steps there, and returns their outcome.
    """

    function: Callable[["Carry"], Outcome | None]


class Around(NamedTuple):
    """A step: call a caller's function that carries out further steps itself. The generator receives its result, or `NOTHING` if the
    batch ended first.

    Attributes:
        function: Gets what carries out further steps, and returns their outcome.
        afunction: The same for tasks: a coroutine function, whose argument returns an awaitable.
        keeps: Whether it has a second more than the batch.
    """

    function: Callable[["Carry"], Any]
    afunction: Callable[[Any], Awaitable[Any]]
    keeps: bool = True


Step = Attempt | Pause | Follow | Ask | Within | Around | Awaited
Steps = Generator[Step, Any, Outcome]
Carry = Callable[[Steps], Outcome]
Proceed = Callable[[PlannedCall], Steps]
"""A function that continues a call with the inner wrappers, down to its tool."""


class CallWrapper(Protocol):
    """A wrapper around a planned call, which continues it with `proceed`, or does not."""

    def __call__(self, planned: PlannedCall, proceed: Proceed) -> Steps:
        """Yield steps around those of `proceed(planned)`, and return the outcome."""


def ends_as(outcome: Outcome) -> Steps:
    """Return an outcome without yielding any step."""
    return outcome
    yield  # makes it a generator


def attempted_once() -> Steps:
    """Run the tool once, and return its result."""
    result: ToolCallResult = yield Attempt(1)
    return result
