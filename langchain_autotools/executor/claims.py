"""Claims: one decision is carried out once, by whichever of the processes that resume a history comes first.

A store that tells who owns what (`ClaimStore`) takes the waiting AI message as one turn, then its calls, before any of them begins; each
begins when the store still has it as ours. Of any number of resumes one goes on, and what a dead process has left is taken over. A store
that only takes keys (`KeyStore`, or a function) takes what was decided as a whole, then each call directly before it begins.
"""

import hashlib
import inspect
import json
import logging
import threading
import time
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, messages_from_dict

from ..errors import AlreadyResumedError, ConfigurationError
from ..messages.calls import ToolCallRecord, open_end
from ..messages.run_messages import open_run, serialize_messages
from ..strict_json import interchanged
from .call import ToolRun
from .pending import CallIdentity, identities
from .plan import Answer, PlannedCall
from .results import ToolCallResult, failed, is_changed, overdue_result
from .steps import PENDING, BatchEnded, CallUser, Proceed, Step, Steps
from .user_functions import NOTHING, UserCall, acall_user, call_user, running_loop

_logger = logging.getLogger("langchain_autotools")

_TAKEN = "Not run here: another run has taken this call, and its outcome is not known. Check what became of it before it is repeated."
_ALL_TAKEN = "these calls were decided before: other runs have taken them, and nothing ran here"
_RUNNING = "another run is carrying out decisions about these calls: nothing ran here, and the history is as it was"
_DECIDED = "these decisions were carried out before, or are being carried out: nothing ran here"
_LOST = "another run has taken over what this one had claimed: it ends here, and the other one goes on"
_NOT_UNIQUE = (
    "claim needs to know call {id!r} from equal ones: its message has no id, or is not given; give the AI message with an id, or its calls "
    "and messages= that end in it"
)
_UNTOLD = "claim could not be told that a run has ended"
_GRACE_SECONDS = 1.0


class KeyStore(Protocol):
    """A store that takes keys. `done` and `release` are optional; each of the three may be asynchronous.

    `done(key, value)` keeps what came of a key that was taken, a dict of JSON data, for later runs. `release(key)` gives back a key under
    which nothing has begun.
    """

    def take(self, key: str) -> Any:
        """Claim a key atomically, once for all processes.

        Returns:
            True; False where it was taken before and what came of it is not known; else the value that `done` was given.
        """


class ClaimStore(Protocol):
    """A store that tells who owns what: a row has a key, an owner, `taken`, `begun` or `done`, and a value.

    Each method compares the owner and sets the row in one step. All of them may be asynchronous. `claims(url)` is one for SQLite and
    PostgreSQL.
    """

    def take(self, key: str, owner: str) -> Any:
        """Claim a key.

        Args:
            key: The turn or the call.
            owner: The run that claims it.

        Returns:
            "mine": It is the owner's now, which was nobody's, or that of an owner who died before it began. "left": It is the owner's now,
            but had begun under an owner who has died. "running": A living owner has it. Else the value that `done` was given.
        """

    def begin(self, key: str, owner: str) -> Any:
        """Mark a key as begun, again too; return False where it is not the owner's."""

    def done(self, key: str, owner: str, value: dict[str, Any]) -> Any:
        """Keep what came of a key, a dict of JSON data; return False where it is not the owner's."""

    def release(self, key: str, owner: str) -> Any:
        """Give back a key of the owner's, as though it had never been taken."""

    def end(self, owner: str) -> Any:
        """Treat the owner as dead: what it has taken is free, what it has begun is left."""


Claim = Callable[[str], Any] | KeyStore | ClaimStore
"""A store of claims, or only the function that takes a key."""


def checked_claim(claim: Any) -> Any:
    """Return the store of claims, or None; raise if it is invalid.

    Raises:
        ConfigurationError: It can take nothing, or has `begin` without what belongs to it.
    """
    if claim is None:
        return claim
    if hasattr(claim, "begin"):
        lacking = [name for name in ("take", "begin", "done", "release", "end") if not callable(getattr(claim, name, None))]
        if lacking:
            raise ConfigurationError(f"claim has a method begin, so it needs {', '.join(lacking)} too")
    elif not callable(claim) and not callable(getattr(claim, "take", None)):
        text = f"claim must be a function that is called, or an object with a method take, not {type(claim).__name__}"
        raise ConfigurationError(text)
    return claim


# ---------------------------------------------------------------------------------------------- what a run has claimed


class Claims:
    """What one run, or one batch of an executor alone, has claimed in a store.

    Args:
        claim: The store.

    Attributes:
        owned: Whether the store tells who owns what.
        turn: The key of the turn that it holds; None where it holds none.
        finished: What came of the turn in the run that has carried the decisions out; None where it is carried out here.
        open: The keys of calls that it holds and that have no result yet.
    """

    def __init__(self, claim: Any) -> None:
        self.owned = hasattr(claim, "begin")
        self.turn: str | None = None
        self.finished: Mapping[str, Any] | None = None
        self.open: set[str] = set()
        self._claim = claim
        self._owner = uuid.uuid4().hex
        self._store_take: Callable[..., Any] = getattr(claim, "take", claim)
        self._lock = threading.Lock()
        self._answers: dict[str, Any] = {}
        self._left: set[str] = set()
        self._over = True  # until something is claimed, the store need not be told of the end

    # ------------------------------------------------------------------------------------------ the store's methods, as calls

    def take(self, key: str) -> UserCall:
        """Claim a key."""
        self._over = False
        return self._take, key

    def _take(self, key: str) -> Any:
        """Claim a key; what is claimed after the wait for it has ended is given back."""
        answer = self._store_take(key, self._owner) if self.owned else self._store_take(key)
        if inspect.isawaitable(answer):
            return answer
        with self._lock:
            self._answers[key] = answer
            is_late = key in self._left or self._over
        undo = self.release(key) if (answer == "mine" if self.owned else answer is True) else None
        if self.owned and answer == "left":
            undo = self._claim.end, self._owner
        if undo is not None and is_late:
            call_user(*undo, lambda: False, lambda: None)
        return answer

    def late_answer(self, key: str) -> Any:
        """Return the store's answer about a key if it came as the wait ended; `NOTHING` if there was none."""
        with self._lock:
            self._left.add(key)
            return self._answers.get(key, NOTHING)

    def begin(self, key: str) -> UserCall:
        """Mark a key as begun; False where another run has taken it over."""
        return partial(self._claim.begin, key), self._owner

    def done(self, key: str, value: dict[str, Any]) -> UserCall | None:
        """Keep what came of a key; False where another run has taken it over. None where the store keeps nothing."""
        if self.owned:
            return partial(self._claim.done, key, self._owner), value
        done = getattr(self._claim, "done", None)
        return None if done is None else (partial(done, key), value)

    def release(self, key: str) -> UserCall | None:
        """Give back a key under which nothing has begun; None where the store cannot."""
        if self.owned:
            return partial(self._claim.release, key), self._owner
        release = getattr(self._claim, "release", None)
        return None if release is None else (release, key)

    # ------------------------------------------------------------------------------------------ the turn

    def lost(self) -> AlreadyResumedError:
        """Return the error of a run whose claims another one has taken over."""
        return AlreadyResumedError(_LOST)

    def held(self) -> UserCall | None:
        """Compare the owner of the turn, as is done before each further request; None where there is nothing to compare."""
        return self.begin(self.turn) if self.owned and self.turn is not None else None

    def ending(self, value: dict[str, Any] | None) -> Generator[UserCall, Any, None]:
        """Yield what the store is told at the end of the run.

        Args:
            value: What came of the turn; None where some of its calls wait again, and it is given back.

        Raises:
            AlreadyResumedError: Another run has taken over the turn.
        """
        turn, self.turn = self.turn, None
        told = None if turn is None else self.release(turn) if value is None else self.done(turn, value)
        answer = None if told is None else (yield told)
        if answer is False and self.owned:
            raise self.lost()
        if answer is NOTHING:
            _logger.warning("the run has ended before claim kept what it has brought")
        if self.owned and (self.open or answer is NOTHING):
            yield self._claim.end, self._owner
        self._over = True

    def abandoning(self) -> UserCall | None:
        """Return what the store is told of a run that has failed or was left; None if it has been told of the end."""
        turn, self.turn, over, self._over = self.turn, None, self._over, True
        if over:
            return None
        return (self._claim.end, self._owner) if self.owned else None if turn is None else self.release(turn)

    def abandon(self) -> None:
        """Give up what is still claimed, for a run that has failed or was left. It waits for the store a second at most."""
        if (told := self.abandoning()) is not None:
            _call_within(*told)

    async def aabandon(self) -> None:
        """Like `abandon`, asynchronously."""
        if (told := self.abandoning()) is not None:
            end = time.monotonic() + _GRACE_SECONDS
            try:
                answer = await acall_user(*told, lambda: time.monotonic() >= end, lambda: max(0.0, end - time.monotonic()))
            except Exception:
                _logger.warning(_UNTOLD, exc_info=True)
            else:
                _note_silence(answer)


def _call_within(function: Callable[[Any], Any], argument: Any) -> None:
    """Call a store's method and wait for it a second at most; log what it raises. On a loop an asynchronous one goes on alone."""
    loop = running_loop()
    if loop is not None and inspect.iscoroutinefunction(function):
        task = loop.create_task(function(argument))
        _telling.add(task)
        task.add_done_callback(_note_end)
        return
    end = time.monotonic() + _GRACE_SECONDS
    try:
        answer = call_user(function, argument, lambda: time.monotonic() >= end, lambda: max(0.0, end - time.monotonic()))
    except Exception:
        _logger.warning(_UNTOLD, exc_info=True)
    else:
        _note_silence(answer)


def _note_silence(answer: Any) -> None:
    if answer is NOTHING:
        _logger.warning("claim has not answered within %g s as a run ended", _GRACE_SECONDS)


_telling: set[Any] = set()


def _note_end(task: Any) -> None:
    _telling.discard(task)
    if not task.cancelled() and task.exception() is not None:
        _logger.warning(_UNTOLD, exc_info=task.exception())


# ---------------------------------------------------------------------------------------------- the claims before a batch begins


@dataclass(frozen=True)
class Reserved:
    """Claims a turn and its calls before any of them begins. An admission of a batch, behind the gate of approvals.

    Attributes:
        claims: What the run claims.
        known: The identities of all calls of the AI message.
        waiting: How many of these are without a result.
        turn: The number of the turn in its run; 0 where its calls were found in the input, None where an executor is alone.
    """

    claims: Claims
    known: Sequence[CallIdentity]
    waiting: int
    turn: int | None

    def admit(self, answers: Sequence[Answer]) -> Generator[UserCall, Any, Sequence[Answer]]:
        """Yield the claims, and return the answers of the calls that are this run's, or have a result.

        Raises:
            AlreadyResumedError: Another run carries the decisions out.
        """
        if not (self.turn == 0 or any(answer.claim_key or answer.call.decision for answer in answers)):
            return answers
        if not self.turn and answers and (not self.claims.owned or len(answers) == self.waiting):
            key = self._turn() if self.claims.owned else self._decided(answers)
            yield from self._takes_turn(key)
        if not self.claims.owned:
            return answers if self.claims.finished is None else []
        claimed: list[Answer] = []
        for answer in answers:
            claimed.append(answer if answer.claim_key is None else (yield from self._takes(answer, answer.claim_key)))
        if any(answer.claim_key for answer in claimed):  # what that run has brought answers other calls than these
            self.claims.finished = None
        return claimed

    def _turn(self) -> str:
        """Return the key of the turn: the identities of all calls of the message, with what is shown of them."""
        calls = [
            [one.uuid, one.call.id, one.call.spelling, one.call.arguments if one.call.args is None else one.call.args] for one in self.known
        ]
        return f"turn.{_digest(interchanged(calls))}"

    def _decided(self, answers: Sequence[Answer]) -> str:
        """Return the key of all that was decided about the turn."""
        decided = []
        for call in (answer.call for answer in answers):
            inside = [] if call.run is None else [one.to_dict() for one in call.run.decisions]
            decided.append([call.id, call.args, call.why, None if call.decision is None else call.decision.to_dict(), inside])
        return f"decided.{_digest([self._turn(), decided])}"

    def _takes_turn(self, key: str) -> Generator[UserCall, Any, None]:
        """Claim the turn, or what was decided, or note what came of it in another run."""
        claims = self.claims
        answer = yield claims.take(key)
        if answer is NOTHING:
            answer = claims.late_answer(key)
        if answer in (("mine", "left") if claims.owned else (True,)):
            claims.turn = key
        elif answer is False or answer == "running":
            raise AlreadyResumedError(_RUNNING if claims.owned else _DECIDED)
        elif isinstance(answer, Mapping):
            claims.finished = answer if self.turn == 0 and "stop_reason" in answer else None
        elif answer is not NOTHING:
            raise _no_answer(answer, claims)

    def _takes(self, answer: Answer, key: str) -> Generator[UserCall, Any, Answer]:
        """Claim a call; return its answer, from the store where there is one."""
        claims, call = self.claims, answer.call
        said = yield claims.take(key)
        if said is NOTHING:
            said = claims.late_answer(key)
        runs = any(one.run is not None for one in answer.planned)
        if said in ("mine", "left"):
            claims.open.add(key)
        if said == "left" and (brought := self._brought(answer)) is not None:
            return _with_result(answer, brought)
        if said == "mine" or (said == "left" and (not runs or goes_on_by_itself(answer))):
            return answer
        if said == "left":
            return _with_result(answer, failed(call, _TAKEN, AlreadyResumedError), key)
        if said == "running":
            raise AlreadyResumedError(_RUNNING)
        if said is NOTHING:
            _logger.warning("the run has ended before claim said anything about call %s, which does not run", call.id)
            return _with_result(answer, overdue_result(call))
        return _with_result(answer, _kept_result(answer, said, claims))

    def _brought(self, answer: Answer) -> ToolCallResult | None:
        """Return what the run that has carried the decisions out has said of a call that had not ended; None if there is nothing."""
        messages = () if self.claims.finished is None else self.claims.finished["messages"]
        found = (one for one in messages if one["type"] == "tool" and one["data"].get("tool_call_id") == answer.call.id)
        return next((_kept_result(answer, one, self.claims) for one in found), None)


def reserved(
    claims: Claims, given: Any, messages: Sequence[BaseMessage], turn: int | None, read: Callable[[AIMessage], Sequence[ToolCallRecord]]
) -> Reserved:
    """Return the admission that claims calls before any of them begins.

    Args:
        claims: What the run, or the batch of an executor alone, claims.
        given: The calls, or their message.
        messages: The conversation so far.
        turn: The number of the turn that made the calls; 0 where they were found in a run's input, None without a run.
        read: Reads the calls of a message.
    """
    end, results = open_end(messages)
    message = given if isinstance(given, AIMessage) else end
    known = [] if message is None else identities(message, read(message), results)
    waiting = sum(one.result is None or open_run(one.result) is not None for one in known)
    return Reserved(claims, known, waiting, turn)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def claim_key(call: ToolCallRecord, identity: CallIdentity, record: Mapping[str, Any]) -> str:
    """Return the key under which a call is claimed: for a changed call, or one that goes on, that of what was decided.

    Args:
        call: The call.
        identity: Its identity.
        record: Its record, or an equivalent one.

    Raises:
        ConfigurationError: It cannot be told from an equal call of another message.
    """
    if call.approved is not None and call.decision is not None:
        return f"{call.decision.uuid}.{call.decision.digest}"
    if identity.record is None and not identity.message_id:
        raise ConfigurationError(_NOT_UNIQUE.format(id=call.id))
    inside = "" if call.run is None else f".{_digest([one.uuid for one in call.run.decisions])}"
    return f"{record['uuid']}.{record['digest']}{inside}"


def goes_on_by_itself(answer: Answer) -> bool:
    """Whether a call goes on with a run inside it, which claims its own calls; a call of a server's tool does not."""
    run = answer.planned[0].run
    return answer.call.run is not None and run is not None and not hasattr(run.prepared.tool, "check_continued")


def _with_result(answer: Answer, result: ToolCallResult, key: str | None = None) -> Answer:
    """Return the answer to a call that does not run here: the result, under this key where the store is to keep it."""
    call = replace(answer.call, edited=False, approved=None, inner=())
    return replace(answer, call=call, planned=[PlannedCall(call, replace(result, call=call))], claim_key=key)


def _kept_result(answer: Answer, said: Any, claims: Claims) -> ToolCallResult:
    """Return the result that the store has of a call.

    Raises:
        ConfigurationError: It is none.
    """
    message: Any = None
    if isinstance(said, Mapping):
        try:
            (message,) = messages_from_dict([dict(said)])
        except (KeyError, TypeError, ValueError):
            message = None
    if not isinstance(message, ToolMessage):
        raise _no_answer(said, claims)
    call = answer.call
    planned = answer.planned[0]
    direct = planned.call is call and planned.run is not None and planned.run.prepared.tool.return_direct and message.status != "error"
    return ToolCallResult(call, message.model_copy(update={"tool_call_id": call.id}), return_direct=direct, executed=False, attempts=0)


def _no_answer(answer: Any, claims: Claims) -> ConfigurationError:
    offered = "'mine', 'running', 'left'" if claims.owned else "True, False"
    return ConfigurationError(f"claim must return {offered}, or the result of the call as `done` was given it, not {type(answer).__name__}")


# ---------------------------------------------------------------------------------------------- the claims around each call


WholeMessage = Callable[[ToolCallResult], ToolMessage | None]
"""A function that makes the message that answers a call, where a result was the last of its planned calls."""


class CallClaims:
    """The claims of the calls of one batch, in a store that tells who owns what: they are claimed before the batch begins.

    Args:
        claims: What the run claims.
        answers: What answers each call, in call order; those with a `claim_key` are claimed.
        is_ending: Whether no further call begins.

    Attributes:
        given: The results of calls that do not run here, by number.
        kept: The results of calls that have run, by the index of the planned call: telling the store of one may fail.
        holds: Whether results are held back until one of the calls has been claimed.
        keeps_all: Whether results of calls that do not run are kept too.
    """

    holds = False
    keeps_all = True

    def __init__(self, claims: Claims, answers: Sequence[Answer], is_ending: Callable[[], bool]) -> None:
        self._claims = claims
        self._answers = answers
        self._is_ending = is_ending
        self._begun: set[int] = set()
        self._ran: set[int] = set()
        self._turn_begun = False
        self.given: dict[int, ToolCallResult] = {}
        self.kept: dict[int, ToolCallResult] = {}

    def concerns(self, number: int) -> bool:
        """Whether a call is claimed."""
        return self._answers[number].claim_key is not None

    def waits(self, number: int) -> bool:
        """Whether a call that is claimed has not begun: it stays pending where the batch ends."""
        return self.concerns(number) and number not in self._begun

    def begins(self, number: int) -> None:
        """Record that a call begins that needs no claim."""

    def end(self) -> None:
        """Record that no more calls are claimed."""

    def wrap(self, number: int, index: int, whole: WholeMessage, planned: PlannedCall, proceed: Proceed) -> Steps:
        """Store the result of a call; give the call back if it stays pending, or if its tool has not begun when an exception ends it.

        Args:
            number: The number of the call.
            index: The index of the planned call.
            whole: Makes the message that answers the call, where this was the last of its planned calls.
            planned: The planned call.
            proceed: Goes on with it.
        """
        key = str(self._answers[number].claim_key)
        try:
            outcome = yield from proceed(planned)
        except _TakenOver:
            raise self._claims.lost() from None
        except BaseException:
            if not _has_run(planned.run):
                yield from self._give_back(number, key)
            raise
        if outcome is PENDING:
            yield from self._give_back(number, key)
            return outcome
        self._begun.add(number)
        yield from self._keep(number, key, index, outcome, whole(outcome))
        return outcome

    def _keep(self, number: int, key: str, index: int, result: ToolCallResult, message: ToolMessage | None) -> Generator[Step, Any, None]:
        """Store the message that answers a call, if there is one already."""
        self.kept[index] = result
        self._ran.add(number)
        done = None if message is None else self._claims.done(key, serialize_messages([message])[0])
        if done is None:
            return
        kept = yield CallUser(*done, keeps=True)
        if kept is not NOTHING:
            self._claims.open.discard(key)
        if kept is NOTHING:
            _logger.warning("the run has ended before claim kept the result of call %s", result.call.id)
        elif kept is False and self._claims.owned:
            raise self._claims.lost()

    def begin(self, number: int, planned: PlannedCall, proceed: Proceed) -> Steps:
        """Mark a call as begun directly before its tool; stop it if another run has taken it over."""
        answer, claims = self._answers[number], self._claims
        if answer.claim_key is not None and not goes_on_by_itself(answer):
            keys = [answer.claim_key] if self._turn_begun or claims.turn is None else [claims.turn, answer.claim_key]
            for key in keys:
                begun = yield CallUser(*claims.begin(key))
                if begun is NOTHING:
                    return overdue_result(planned.call)
                if begun is not True:
                    raise _TakenOver
            self._turn_begun = True
        self._begun.add(number)
        return (yield from proceed(planned))

    def _give_back(self, number: int, key: str) -> Generator[Step, Any, None]:
        """Give back a call that has not begun."""
        if number in self._ran:
            return
        self._begun.discard(number)
        release = self._claims.release(key)
        if release is not None:
            yield CallUser(*release, keeps=True)
            self._claims.open.discard(key)


class _TakenOver(BaseException):
    """Raised directly before a tool that another run has taken over. No wrapper of a call can swallow it."""


class KeyClaims(CallClaims):
    """The claims of the calls of one batch, in a store that takes keys: each call is claimed directly before it begins.

    Nothing of the batch is handed out before one of its calls has begun: where other runs have taken all of them, it is as though it had
    never been.
    """

    keeps_all = False

    def __init__(self, claims: Claims, answers: Sequence[Answer], is_ending: Callable[[], bool]) -> None:
        super().__init__(claims, answers, is_ending)
        self._taken: set[int] = set()
        self._refused = False
        self._progress = False

    def waits(self, number: int) -> bool:
        """Whether a call that is claimed before it runs has not been: it is not asked yet, or stays pending."""
        return self.concerns(number) and number not in self._taken and number not in self.given

    def begins(self, number: int) -> None:
        """Record that a call begins that needs no claim."""
        self._progress = self._progress or not self.concerns(number)

    @property
    def holds(self) -> bool:  # type: ignore[override]
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

    def wrap(self, number: int, index: int, whole: WholeMessage, planned: PlannedCall, proceed: Proceed) -> Steps:
        """Claim a call before it begins; store its result, or release the claim if its tool has not begun.

        A call that waits again since it was changed is not released: what was decided has had its effect, for all processes.
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
            if not _has_run(run):
                yield from self._give_back(number, key)
            raise
        if outcome is PENDING or not (_has_run(run) or outcome.success or is_changed(outcome)):
            yield from self._give_back(number, key)
            return outcome
        yield from self._keep(number, key, index, outcome, whole(outcome))
        return outcome

    def begin(self, number: int, planned: PlannedCall, proceed: Proceed) -> Steps:
        """Go on with a call, which was claimed before its wrappers."""
        return proceed(planned)

    def _taking(self, number: int, key: str) -> Generator[Step, Any, Any]:
        """Return the store's answer for a call; one that comes after the wait for it has ended is given back."""
        try:
            answer = yield CallUser(*self._claims.take(key))
        except BaseException:
            if self._claims.late_answer(key) is True:
                yield from self._give_back(number, key)
            raise
        return self._claims.late_answer(key) if answer is NOTHING else answer

    def _read(self, number: int, call: ToolCallRecord, answer: Any) -> None:
        """Apply the store's answer for a call."""
        if answer is True:
            self._taken.add(number)
        elif answer is NOTHING:
            _logger.warning("the run has ended before claim said anything about call %s, which does not run", call.id)
            self.given[number] = overdue_result(call)
        elif answer is False:
            self.given[number] = failed(call, _TAKEN, AlreadyResumedError)
            self._refused = True
        else:
            self.given[number] = _kept_result(self._answers[number], answer, self._claims)
        self._progress = self._progress or number in self._taken or isinstance(answer, Mapping)

    def _give_back(self, number: int, key: str) -> Generator[Step, Any, None]:
        self._taken.discard(number)
        yield from super()._give_back(number, key)


def _has_run(run: ToolRun | None) -> bool:
    """Whether the tool of a call has begun."""
    return run is not None and run.tried + int(run.executed) > 0
