"""One run of a model with tools, as far as it is the same for synchronous and asynchronous callers.

A `Run` joins the I/O-free loop to what it hands out. A driver only carries: it fetches the chunks of a turn or the results
of calls, gives them to the run, and hands the returned chunks to the caller.
"""

import logging
import time
import uuid
from collections.abc import AsyncGenerator, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.runnables import RunnableConfig

from ..cancelling import Cancel
from ..chunks import ChunkSum, sum_chunks
from ..deadline import NEVER, Deadline, abounded, bounded, current_deadline
from ..errors import AlreadyResumedError, ConfigurationError
from ..executor import AsyncToolCallBatch, PendingCall, ToolCallBatch, ToolCallResult, ToolExecutor, pending_calls
from ..executor.admission import Reservation
from ..executor.approval.approvals import Approvals
from ..executor.approval.pending import ON_CLIENT
from ..executor.nested_runs import inside
from ..executor.observer import NOBODY
from ..history import repair
from ..listening import listening
from ..messages.calls import ToolCallRecord, call_ids, calls_of, with_records
from ..messages.live import attach_messages
from ..messages.metadata import text_of
from ..messages.pauses import is_paused
from ..messages.places import numbered_result, result_id
from ..messages.provisional import without_provisional
from ..turn.accumulator import canonical_message
from ..turn.output_version import with_output_version
from ..turn.tool_choice import ToolChoice
from .decisions import open_calls
from .keywords import CallSettings
from .loop import Action, CallModel, RunOutcome, RunPlan, RunTools, TurnCut, tool_loop, turn_calls
from .output import RunOutput

if TYPE_CHECKING:
    from .telling import RunEvents

_logger = logging.getLogger("langchain_autotools")


@dataclass(frozen=True)
class RunSettings:
    """How a run speaks: fixed before it starts.

    Attributes:
        plan: Limits, and whose calls are whose.
        call: What the model's fields and the keywords of the call say.
        executor: Executes the calls.
        approvals: What calls need before they run; None for nothing.
        tools: All declared tools in the wire's form, constructor tools first.
        tool_choice: What the caller asked for, and which tools it allows.
        last_choice: What the last request at a limit says: the wire's word that forbids calls, or for the call that must end the run.
        last_text_only: Whether the texts of turns that call tools are withheld: a parser reads what the run says.
        output_version: The model's output version.
        lists_content: Whether the content of its replies is always a list of blocks.
        client_tools: The names of tools of the vendor's that run on the caller's machine: pending calls say so.
        first_request_only: The names of parameters of this run that its later requests are sent without.
    """

    plan: RunPlan
    call: CallSettings
    executor: ToolExecutor
    tools: Sequence[Mapping[str, Any]]
    tool_choice: ToolChoice
    last_choice: Any = "none"
    last_text_only: bool = False
    output_version: str | None = None
    lists_content: bool = False
    usage_limits: Sequence[str] = ()
    approvals: Approvals | None = None
    client_tools: frozenset[str] = frozenset()
    first_request_only: frozenset[str] = frozenset()


class Run:
    """The state of one run. Never shared: each `invoke` or `stream` makes its own."""

    def __init__(self, messages: Sequence[BaseMessage], settings: RunSettings, *, open_start: bool = False) -> None:
        history = repair(messages, open_end=True, open_start=open_start)
        self.input = list(messages)  # as the caller gave it: what wraps a run counts its messages
        self.settings = settings
        self.outcome: RunOutcome | None = None
        self._output = RunOutput(
            position=len(history),
            separator=settings.call.separator,
            carry_messages=settings.call.carry_messages,
            blocks=settings.output_version == "v1",
            listed=settings.lists_content,
        )
        plan = settings.plan
        if settings.approvals is not None and (plan.decisions is not None or settings.approvals.concerns_calls):
            settings.approvals.check_key()
        found = open_calls(history, plan.decisions, settings.executor, plan.caller_tools, settings.approvals, messages)
        flag, seconds = settings.call.cancel, plan.limits.deadline
        self._journal = journal = settings.call.journal
        if journal is not None:
            flag, seconds = journal.is_cancelled, journal.left(seconds)
        self._cancel = None if flag is None else Cancel(flag, seconds)
        endless = seconds is None and current_deadline() is None
        self._deadline = self._cancel or (None if endless else Deadline(seconds))
        clock = time.monotonic if journal is None else journal.now
        self._loop = tool_loop(history, plan, clock, found, None if self._cancel is None else self._cancel.is_set)
        self._cache: dict[str, Any] = {}
        if (around := inside.get()) is not None:
            around.take_up(call_id for message in history if isinstance(message, AIMessage) for call_id in call_ids(message))
        self._counts_usage = bool(settings.usage_limits)
        self._parts = ChunkSum()
        self._whole: AIMessage | None = None
        self._sent: Any = None
        self._tools: RunTools | None = None
        self._batch: ToolCallBatch | AsyncToolCallBatch | None = None
        self._results: list[ToolCallResult] = []
        self._failure: Exception | None = None
        self._last = False
        self._events: RunEvents | None = None

    def begin(self, run_id: object, name: str) -> Iterable[AIMessageChunk]:
        """Tell whoever listens that the run begins; returns what leaves at once."""
        place = listening.get()
        if place is not None:
            from .telling import RunEvents  # here, because it costs every other program its import

            self._events = RunEvents(place, str(run_id), name, self.settings.call.separator)
        return [self._output.hand_over()] if self._events is not None and self._events.due else ()

    # ------------------------------------------------------------------------------------------ steps

    def next(self) -> Action | None:
        """What to do next; None at the end of the run."""
        self._check_reader()
        sent, self._sent = self._sent, None
        self._tools = self._batch = None
        try:
            action = self._loop.send(sent)
        except StopIteration as end:
            self.outcome = end.value
            return None
        self._tools = action if isinstance(action, RunTools) else None
        self._last = isinstance(action, CallModel) and action.choice == "none"
        return action

    def _check_reader(self) -> None:
        """End the run where somebody listened, and has left."""
        if self._events is not None:
            self._events.check()

    def request(self, action: CallModel) -> dict[str, Any]:
        """The keyword arguments of a turn's request."""
        settings = self.settings
        keywords: dict[str, Any] = {"tools": list(settings.tools)} if settings.tools else {}
        asked = settings.tool_choice
        choice = {"requested": asked.asked, "auto": asked.lasting, "none": settings.last_choice}[action.choice]
        if action.choice != "requested":
            keywords |= dict.fromkeys(settings.first_request_only)
        return keywords if choice is None and asked.asked is None else {**keywords, "tool_choice": choice}

    def parts(self, parts: Iterator[AIMessage]) -> Iterator[AIMessage]:
        """The parts of a turn, as long as there is time."""
        in_time = parts if self._deadline is None else bounded(parts, self._deadline)
        return in_time if self._journal is None or self._cancel is None else self._journal.turn(in_time, self._cancel)

    def aparts(self, parts: AsyncGenerator[AIMessage, None]) -> AsyncGenerator[AIMessage, None]:
        """Like `parts`, asynchronously."""
        if self._journal is not None:
            raise ConfigurationError("a journal is for invoke and stream: an asynchronous run has none")
        return parts if self._deadline is None else abounded(parts, self._deadline)

    def part(self, part: AIMessage) -> Iterable[AIMessageChunk]:
        """Take what a turn brought, a chunk or the whole message; returns what leaves at once."""
        if self._events is not None:
            self._events.part(part)
        if isinstance(part, AIMessageChunk):
            self._parts.add(part)
            out = [] if self.settings.last_text_only else self._output.chunk(part)
        else:
            self._whole = part
            out = [] if self.settings.last_text_only else self._turn_chunks(self._parts, part)
        return out if self._events is None or out or not self._events.due else [self._output.hand_over()]

    def _turn_chunks(self, parts: ChunkSum, message: AIMessage | None = None) -> list[AIMessageChunk]:
        """What is handed out of a turn's chunks, or of the message that came in their place."""
        if message is None:
            return [out for part in parts.chunks for out in self._output.chunk(part)]
        return self._output.from_message(with_output_version(without_provisional(message), self.settings.output_version))

    def turn_done(self) -> list[AIMessageChunk]:
        """End the turn; returns what was withheld and may leave now, and the chunk that brings its message."""
        if self._deadline is not None and self._deadline.cut is not None:
            return self._turn_cut(self._deadline.cut.__cause__, self._deadline.reason)
        parts, came_whole = self._parts, self._whole
        self._parts, self._whole = ChunkSum(), None
        whole = parts.message() if came_whole is None else came_whole
        calls, blocked = turn_calls(canonical_message(whole))
        withheld: list[AIMessageChunk] = []
        if self.settings.last_text_only and not calls and not is_paused(whole):
            withheld = self._turn_chunks(parts, came_whole)
        stored = stored_message(whole, self.settings.output_version)
        if self.settings.approvals is not None and not self._last:
            stored, calls = self._judged(self.settings.approvals, stored, calls)
        if self.settings.client_tools and calls:
            stored = with_records(stored, {call.id: ON_CLIENT for call in calls if call.name in self.settings.client_tools})
        message, chunk = self._output.message(stored)
        if self._counts_usage and message.usage_metadata is None:
            self._counts_usage = False  # told once
            limits = " and ".join(self.settings.usage_limits)
            _logger.warning("a reply says nothing of the tokens that it used: %s cannot end the run as long as that is so", limits)
        _logger.debug("turn done: message %s, %d calls, blocked: %s", message.id, len(calls), blocked)
        if self._events is not None:
            self._events.turn_done(message)
        self._sent = (message, calls, blocked)
        return [*withheld, chunk]

    def _judged(self, approvals: Approvals, message: AIMessage, calls: list[ToolCallRecord]) -> tuple[AIMessage, list[ToolCallRecord]]:
        """The turn's message with a record of the calls that wait, and the calls, each saying what it waits for."""
        executor, plan = self.settings.executor, self.settings.plan
        in_order, callers = executor.parallel is False, plan.caller_tools
        try:
            meant, known = plan.meant(calls, caller_tools=callers), executor.prepared.arguments_of
            judged = approvals.judge(meant, known, in_order=in_order, callers=callers)
            new_uuid = None if self._journal is None else partial(self._journal.uuid, str(message.id))
            return approvals.recorded(message, judged, new_uuid), judged
        except Exception as error:  # the run ends where the calls would run: the turn is whole, and is handed out
            self._failure = error
            return message, calls

    def _turn_cut(self, cause: BaseException | None, reason: Literal["deadline", "cancelled"]) -> list[AIMessageChunk]:
        """End a turn that the deadline or the caller has cut; what has come of its text makes a message."""
        if reason == "deadline":
            because = f", after {type(cause).__name__}" if cause else ""
            _logger.debug("the deadline of a run has ended a turn before its reply was whole%s", because)
        parts, self._parts = self._parts, ChunkSum()
        withheld = self._turn_chunks(parts) if self.settings.last_text_only else []
        said = _cut_message(parts.message()) if parts else None
        message, brings = None, []
        if said is not None:
            message, chunk = self._output.message(with_output_version(said, self.settings.output_version))
            brings = [chunk]
        if self._events is not None:
            self._events.turn_cut(message)
        self._sent = TurnCut(message, reason)
        return [*withheld, *brings]

    def execute(self, action: RunTools, config: RunnableConfig) -> Generator[ToolCallResult | None, None, None]:
        """Answer the calls, each result as soon as all before it are there; None where whoever listens is to hear of something first."""
        self._batch = batch = self.settings.executor.batch(ToolCallBatch, action.calls, config, **self._options(action))
        self._calls_begin(action)
        return batch.delivery

    def aexecute(self, action: RunTools, config: RunnableConfig) -> AsyncGenerator[ToolCallResult | None, None]:
        """Like `execute`, asynchronously."""
        self._batch = batch = self.settings.executor.batch(AsyncToolCallBatch, action.calls, config, **self._options(action))
        self._calls_begin(action)
        return batch.delivery

    def _calls_begin(self, action: RunTools) -> None:
        """Tell whoever listens that calls are about to be answered.

        Raises:
            Exception: What was raised when it was asked whether they need approval.
        """
        if self._events is not None:
            self._events.calls_begin(action.message, action.calls)
        if self._failure is not None:
            raise self._failure

    def _options(self, action: RunTools) -> dict[str, Any]:
        return {
            "messages": list(action.messages),
            "only": self.settings.tool_choice.allowed,
            "end": NEVER if self._deadline is None else self._deadline,
            "turn": action.turn,
            "cache": self._cache,
            "observer": NOBODY if self._events is None else self._events.watch(),
            "admissions": () if self._journal is None else (Reservation(self._journal.entries),),
            "placed": partial(self._placed, action),
        }

    def result(self, action: RunTools, result: ToolCallResult | None) -> AIMessageChunk:
        """Take the next result, in call order; returns the chunk that brings it. None in its place: one that brings nothing."""
        if result is None:
            self._check_reader()
            return self._output.hand_over()
        if self._events is not None:
            self._events.answered(result)
            self._events.result_done(result.message)
        self._results.append(result)
        return self._output.carrier_chunk(result.message)

    def _placed(self, action: RunTools, result: ToolCallResult) -> ToolCallResult:
        """A result as it is stored: with an id, and where it stands."""
        message = result.message
        if not message.id:
            message = message.model_copy(update={"id": result_id(action.message, message.tool_call_id) or str(uuid.uuid4())})
        return replace(result, message=numbered_result(message, action.message, action.positions[message.tool_call_id]))

    def tools_done(self) -> None:
        """End the answering of calls."""
        self._sent, self._results = self._results, []

    def end(self) -> Iterable[AIMessageChunk]:
        """The last chunks of the run."""
        if self.outcome is None:
            raise RuntimeError("the run has not ended")
        outcome = self.outcome
        _logger.debug("run done: %s after %d turns", outcome.stop_reason, outcome.turns)
        if (around := inside.get()) is not None:
            around.leave_open(self._open_calls(outcome))
        if self._events is not None:
            if outcome.asked is not None:
                self._events.pending(outcome.asked, outcome.pending)
            self._events.ended(outcome.stop_reason, outcome.turns, outcome.usage, partial(self._run_message, outcome))
        return self._output.end(outcome)

    def _open_calls(self, outcome: RunOutcome) -> Sequence[ToolCallRecord | PendingCall]:
        """The calls that the run ends with, save those that were forced to end it."""
        awaited = pending_calls(self._output.handed_out) if outcome.stop_reason == "calls_pending" and not outcome.pending else ()
        return [call for call in outcome.pending or awaited if call.name not in self.settings.plan.ends]

    def _run_message(self, outcome: RunOutcome) -> AIMessage:
        """The run message, made anew of the messages of the run."""
        output, chunks = self._output.anew(), []
        for message in self._output.handed_out:
            if isinstance(message, AIMessage) and not (self.settings.last_text_only and (calls_of(message) or is_paused(message))):
                chunks += output.from_message(message)
            chunks.append(output.message(message)[1] if isinstance(message, AIMessage) else output.carrier_chunk(message))
        whole = sum_chunks([*chunks, *output.end(outcome)])
        attach_messages(whole, self._output.handed_out)
        return whole

    def message(self, chunks: Sequence[AIMessageChunk]) -> AIMessage:
        """The run message, of all chunks of a run that nobody saw piece by piece."""
        message = sum_chunks(chunks)
        attach_messages(message, self._output.undelivered())
        return message

    # ------------------------------------------------------------------------------------------ failure

    def failed(self, error: BaseException, *, streamed: bool) -> None:
        """Attach the completed messages that the caller does not have to the exception, every call of them answered."""
        if streamed:
            self._output.delivered()
        if self._tools is not None and self._batch is not None and not isinstance(error, AlreadyResumedError):  # whose calls still wait
            for result in self._batch.settled()[len(self._results) :]:
                self.result(self._tools, result)
        attach_messages(error, self._output.undelivered())
        if self._events is not None:
            self._events.stopped(error)

    def left(self) -> None:
        """Tell whoever listens that the run was left before its end."""
        if self._events is not None:
            self._events.leave()


@contextmanager
def failing(run: Run, *, streamed: bool = False) -> Iterator[None]:
    """Attach the messages completed so far to an exception that ends the run; of a streamed run, those that no chunk has delivered."""
    try:
        yield
    except GeneratorExit:
        run.left()
        raise
    except BaseException as error:
        run.failed(error, streamed=streamed)
        raise


def _cut_message(message: AIMessage) -> AIMessage | None:
    """The text of a reply that was cut, as a message; None where it had none. Reasoning and calls mean nothing without their end."""
    content = message.content
    if isinstance(content, list):
        content = [block for block in content if isinstance(block, str) or block.get("type") == "text"]
    said = AIMessage(content=content, id=message.id, response_metadata=message.response_metadata, usage_metadata=message.usage_metadata)
    return said if text_of(said) else None


def stored_message(message: AIMessage, output_version: str | None, *, brief: bool = False) -> AIMessage:
    """A turn's message as it is stored: its calls as the verdict has them, its content as the model is configured."""
    return with_output_version(canonical_message(message, stored=True, brief=brief), output_version)
