"""Claims: a decided call runs once, in any number of processes.

A store takes each call directly before it begins. Nothing of the batch is handed out before one of its calls has begun: where other runs
have taken all of them, it is as though it had never been.
"""

import inspect
import logging
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from langchain_core.messages import ToolMessage, messages_from_dict

from ..errors import AlreadyResumedError, ConfigurationError
from ..messages.calls import ToolCallRecord
from ..messages.run_messages import serialize_messages
from .call import ToolRun
from .plan import Answer, PlannedCall
from .results import ToolCallResult, failed, is_changed, overdue_result
from .steps import PENDING, BatchEnded, CallUser, Proceed, Step, Steps
from .user_functions import NOTHING, call_user

_logger = logging.getLogger("langchain_autotools")

_TAKEN = "Not run here: another run has taken this call, and its outcome is not known. Check what became of it before it is repeated."
_ALL_TAKEN = "these calls were decided before: other runs have taken them, and nothing ran here"


class ClaimStore(Protocol):
    """A store that claims calls. `done` and `release` are optional; each of the three may be asynchronous.

    `done(key, message)` keeps the result of a call that was taken, a message as a dict, for later runs. `release(key)` gives back a
    call that was taken and whose tool never began.
    """

    def take(self, key: str) -> Any:
        """Claim a call atomically, once for all processes.

        Args:
            key: The identity of the call, and its digest.

        Returns:
            True; False where it was taken before and its result is not known; else its result, as `done` was given it.
        """


Claim = Callable[[str], Any] | ClaimStore
"""A store of claims, or only its `take` function."""


class Claims:
    """The claims of the calls of one batch.

    Args:
        claim: The store.
        answers: What answers each call, in call order; those with a `claim_key` are taken before they run.
        is_ending: Whether no further call begins.

    Attributes:
        given: The results of calls that do not run here, by number.
        kept: The results of calls that have run, by the index of the planned call: telling the store of one may fail.
    """

    def __init__(self, claim: Any, answers: Sequence[Answer], is_ending: Callable[[], bool]) -> None:
        self._claim = claim
        self._store_take: Callable[[str], Any] = getattr(claim, "take", claim)
        self._is_ending = is_ending
        self._lock = threading.Lock()
        self._store_answers: dict[str, Any] = {}
        self._left: set[str] = set()
        self._answers = answers
        self._taken: set[int] = set()
        self._began: set[int] = set()
        self._refused = False
        self._progress = False
        self.given: dict[int, ToolCallResult] = {}
        self.kept: dict[int, ToolCallResult] = {}

    def take(self, key: str) -> Any:
        """Claim a call; a claim that succeeds after the wait for it has ended is released."""
        answer = self._store_take(key)
        if inspect.isawaitable(answer):
            return answer
        with self._lock:
            self._store_answers[key] = answer
            is_late = key in self._left
        release = getattr(self._claim, "release", None)
        if is_late and answer is True and release is not None:
            call_user(release, key, lambda: False, lambda: None)
        return answer

    def _late_answer(self, key: str) -> Any:
        """Return the store's answer for a call if it arrived as the wait ended; `NOTHING` if there was none."""
        with self._lock:
            self._left.add(key)
            return self._store_answers.get(key, NOTHING)

    def concerns(self, number: int) -> bool:
        """Whether a call is claimed before it runs."""
        return self._answers[number].claim_key is not None

    def waits(self, number: int) -> bool:
        """Whether a call that is claimed before it runs has not been: it is not asked yet, or stays pending."""
        return self.concerns(number) and number not in self._taken and number not in self.given

    def begins(self, number: int) -> None:
        """Record that a call begins that needs no claim."""
        self._progress = self._progress or not self.concerns(number)

    @property
    def holds(self) -> bool:
        """Whether results are still held back."""
        return not self._progress

    def end(self) -> None:
        """Record that no more calls are claimed.

        Raises:
            AlreadyResumedError: All calls that were to run were taken before.
        """
        if self._refused and self.holds:
            raise AlreadyResumedError(_ALL_TAKEN)
        self._progress = True

    def wrap(
        self, number: int, index: int, whole: Callable[[ToolCallResult], ToolMessage | None], planned: PlannedCall, proceed: Proceed
    ) -> Steps:
        """Claim a call before it begins; store its result, or release the claim if its tool has not begun.

        A call that waits again since it was changed is not released: what was decided has had its effect, for all processes.

        Args:
            number: The number of the call.
            index: The index of the planned call.
            whole: Makes the message that answers the call, where this was the last of its planned calls.
            planned: The planned call.
            proceed: Goes on with it.
        """
        key, call, run = str(self._answers[number].claim_key), self._answers[number].call, planned.run
        if self.waits(number):
            if self._is_ending():
                raise BatchEnded
            answer = yield from self._taking(number, key)
            self._read(number, call, answer)
        if number in self.given:
            return self.given[number]
        try:
            outcome = yield from proceed(planned)
        except BaseException:
            if not _began(run):
                yield from self._release(number, key)
            raise
        if outcome is PENDING or not (_began(run) or outcome.success or is_changed(outcome)):
            yield from self._release(number, key)
            return outcome
        self._began.add(number)
        self.kept[index] = outcome
        message, done = whole(outcome), getattr(self._claim, "done", None)
        if message is not None and done is not None:
            kept = yield CallUser(partial(done, key), serialize_messages([message])[0], keeps=True)
            if kept is NOTHING:
                _logger.warning("the run has ended before claim kept the result of call %s", call.id)
        return outcome

    def _taking(self, number: int, key: str) -> Generator[Step, Any, Any]:
        """Return the store's answer for a call; one that comes after the wait for it has ended is given back."""
        try:
            answer = yield CallUser(self.take, key)
        except BaseException:
            if self._late_answer(key) is True:
                yield from self._release(number, key)
            raise
        return self._late_answer(key) if answer is NOTHING else answer

    def _read(self, number: int, call: ToolCallRecord, answer: Any) -> None:
        """Apply the store's answer for a call."""
        if answer is True:
            self._taken.add(number)
        elif answer is NOTHING:
            _logger.warning("the run has ended before claim said anything about call %s, which does not run", call.id)
            self.given[number] = overdue_result(call)
        elif answer is False:
            self.given[number] = failed(call, _TAKEN, AlreadyResumedError(_TAKEN))
            self._refused = True
        else:
            message = _stored(answer).model_copy(update={"tool_call_id": call.id})
            direct = self._answers[number].returns_direct and message.status != "error"
            self.given[number] = ToolCallResult(call, message, return_direct=direct, executed=False, attempts=0)
        self._progress = self._progress or number in self._taken or isinstance(answer, Mapping)

    def _release(self, number: int, key: str) -> Generator[Step, Any, None]:
        """Release the claim of a call that has not begun."""
        if number in self._began:
            return
        self._taken.discard(number)
        release = getattr(self._claim, "release", None)
        if release is not None:
            yield CallUser(release, key, keeps=True)


def _began(run: ToolRun | None) -> bool:
    """Whether the tool of a call has begun."""
    return run is not None and run.tried + int(run.executed) > 0


def _stored(answer: Any) -> ToolMessage:
    """Return the message of a stored result.

    Raises:
        ConfigurationError: It is none.
    """
    message: Any = None
    if isinstance(answer, Mapping):
        try:
            (message,) = messages_from_dict([dict(answer)])
        except (KeyError, TypeError, ValueError):
            message = None
    if not isinstance(message, ToolMessage):
        text = f"claim must return True, False, or the result of the call as `done` was given it, not {type(answer).__name__}"
        raise ConfigurationError(text)
    return message
