"""The interfaces of what stands around calls: their wrappers, what admits a batch, who observes it.

A wrapper is a generator that does nothing by itself. It yields what has to be waited for or carried out and is sent what came of it, so
that one text serves threads and tasks. It returns a result, or `PENDING`.
"""

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final, Literal, NamedTuple, Protocol

from ..messages.calls import ToolCallRecord
from ..retry.attempts import Awaited
from .cache import SharedFuture
from .plan import Answer, PlannedCall
from .results import ToolCallResult
from .user_functions import UserCall


class _Pending(Enum):
    LEFT = "left"


PENDING: Final = _Pending.LEFT
"""The outcome of a call without a result that stays pending, as if there were no decision about it."""

Outcome = ToolCallResult | Literal[_Pending.LEFT]
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

    flight: SharedFuture


class CallUser(NamedTuple):
    """A step: call a caller's function, possibly asynchronous. The generator receives its result, or `NOTHING` if the batch ended first.

    Attributes:
        function: The function.
        argument: Its argument.
        keeps: Whether it keeps what has been done: it has a second more than the batch.
    """

    function: Callable[[Any], Any]
    argument: Any
    keeps: bool = False


class InThread(NamedTuple):
    """A step: call a function in the thread of the call. The generator receives its result. For threads only.

    Attributes:
        function: Gets what carries out further steps there, and returns their outcome.
    """

    function: Callable[["Carry"], Outcome | None]


class Wrap(NamedTuple):
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


Step = Attempt | Pause | Follow | CallUser | InThread | Wrap | Awaited
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


# ---------------------------------------------------------------------------------------------- admission
# Admission of a batch's calls, before any of them begins.


class Admission(Protocol):
    """Admits the calls of a batch: once, in call order, in the run's thread. An exception ends the batch with nothing run."""

    def admit(self, answers: Sequence[Answer]) -> Generator[UserCall, Any, Sequence[Answer]]:
        """Decide which calls of a batch run, as a generator of questions for the caller's functions, which receives the answers.

        Args:
            answers: What answers each call.

        Returns:
            The answers of the calls that run or are answered; the others stay pending.
        """


@dataclass(frozen=True)
class Reservation:
    """Reserves a journal entry for each planned call admitted so far.

    Attributes:
        entries: Gives the places of so many calls, in call order.
    """

    entries: Callable[[int], Sequence[CallWrapper]]

    def admit(self, answers: Sequence[Answer]) -> Generator[UserCall, Any, Sequence[Answer]]:
        """Return the answers with a journal entry for each planned call."""
        entries = iter(self.entries(sum(len(answer.planned) for answer in answers)))
        return [replace(answer, planned=[replace(one, entry=next(entries)) for one in answer.planned]) for answer in answers]
        yield  # makes it a generator


# ---------------------------------------------------------------------------------------------- observer
# The observer of a batch's calls, for events and live progress, or `NOBODY`.


class CallObserver:
    """Observes the calls of a batch, at once and in any thread. It returns nothing and raises nothing.

    Attributes:
        listens: Whether anybody observes anything; nobody does here.
    """

    listens = False

    @property
    def due(self) -> bool:
        """Whether the observer needs control before the next result."""
        return False

    def waking(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """Return a context in which `wake` is called, in any thread, whenever `due` may become True."""
        return nullcontext()

    def entered(self, call: ToolCallRecord) -> None:
        """Observe that a call begins, in the context in which its tools will run."""

    def progressed(self, call: ToolCallRecord, value: Any) -> None:
        """Observe a value that a tool of the call reports."""

    def answered(self, result: ToolCallResult) -> None:
        """Observe the result of a call, as it will be handed out."""


NOBODY = CallObserver()
"""An observer that does nothing."""
