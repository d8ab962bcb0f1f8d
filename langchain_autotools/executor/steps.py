"""What a call is carried out by: the steps that a wrapper of calls yields, and the outcome that it returns.

A wrapper is a generator that does nothing by itself. It yields what has to be waited for or carried out and is sent what came of it, so
that one text serves threads and tasks. It returns a result, or `LEFT`.
"""

from collections.abc import Callable, Generator
from enum import Enum
from typing import Any, Final, Literal, NamedTuple, Protocol

from ..retry.attempts import Awaited
from .plan import PlannedCall
from .policy.cache import Flight
from .results import ToolCallResult


class _Left(Enum):
    LEFT = "left"


LEFT: Final = _Left.LEFT
"""The outcome of a call that has no result and stays pending, as though nobody had decided about it."""

Outcome = ToolCallResult | Literal[_Left.LEFT]
"""What becomes of a call."""


class BatchEnded(BaseException):
    """Raised where a call would go on although its batch has ended. Nothing is recorded of such a call; no wrapper can swallow it as an
    error of the tool's."""


class Attempt(NamedTuple):
    """Run the tool; sent back: its result.

    Attributes:
        number: Which attempt it is. `on_executing` is called before the first.
    """

    number: int


class Pause(NamedTuple):
    """Wait before the next step.

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
    """Call a function of the caller's, which may be asynchronous; sent back: what it returns, or `NOTHING` where the batch ended first.

    Attributes:
        function: The function.
        argument: Its argument.
        keeps: Whether it keeps what has been done: it has a second more than the batch.
    """

    function: Callable[[Any], Any]
    argument: Any
    keeps: bool = False


class Within(NamedTuple):
    """Call a function in the thread of the call; sent back: what it returns. For threads only.

    Attributes:
        function: Gets what carries out further steps there, and returns their outcome.
    """

    function: Callable[["Carry"], Outcome | None]


Step = Attempt | Pause | Follow | Ask | Within | Awaited
Steps = Generator[Step, Any, Outcome]
Carry = Callable[[Steps], Outcome]
Proceed = Callable[[PlannedCall], Steps]
"""Goes on with a call, as far inwards as its tool."""


class CallWrapper(Protocol):
    """Stands around a planned call, and goes on with it by `proceed`, or does not."""

    def __call__(self, planned: PlannedCall, proceed: Proceed) -> Steps:
        """Yield steps around those of `proceed(planned)`, and return the outcome."""


def ends_as(outcome: Outcome) -> Steps:
    """Return an outcome, without a step."""
    return outcome
    yield  # makes it a generator


def attempted_once() -> Steps:
    """Run the tool once, and return its result."""
    result: ToolCallResult = yield Attempt(1)
    return result
