"""One run of a model with tools, in the part common to synchronous and asynchronous callers.

A `Run` joins the I/O-free loop to what it hands out. A driver only carries: it fetches the chunks of a turn or the results
of calls, gives them to the run, and hands the returned chunks to the caller.
"""

import logging
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.runnables import RunnableConfig

from ..chunks import ChunkSum, sum_chunks
from ..errors import AlreadyResumedError
from ..executor import AsyncToolCallBatch, PendingCall, ToolCallBatch, ToolCallResult, ToolExecutor, pending_calls
from ..executor.approval.approvals import Approvals
from ..executor.approval.pending import ON_CLIENT
from ..executor.nested_runs import inside
from ..history import repair
from ..messages.calls import ToolCallRecord, call_ids, calls_of, with_records
from ..messages.live import attach_messages, known_reply
from ..messages.metadata import text_of
from ..messages.pauses import is_paused
from ..messages.places import numbered_result, result_id
from ..messages.provisional import without_provisional
from ..turn.accumulator import canonical_message
from ..turn.output_version import stored_message, with_output_version
from .composing import RunParts
from .decisions import open_calls, without_open_results
from .keywords import CallSettings
from .loop import Action, CallModel, RunOutcome, RunPlan, RunTools, TurnCut, tool_loop, turn_calls
from .output import RunOutput
from .phases import Chunks, Phase
from .tracing import Trace, astart_trace, start_trace
from .turn_wrappers import NOTHING_DECLARED, Discarded, Stored, TurnPart, TurnRequest, WireForm

_logger = logging.getLogger("langchain_autotools")
_Batch = ToolCallBatch | AsyncToolCallBatch


@dataclass(frozen=True)
class RunSettings:
    """The presentation settings of a run, fixed before it starts.

    Attributes:
        plan: Limits, and whose calls are whose.
        call: What the model's fields and the keywords of the call say.
        executor: Executes the calls.
        form: What requests declare, in the form of the model's wire.
        approvals: What calls need before they run; None for nothing.
        tools: The declared tools: objects where they are known as such, else as the caller declared them.
        tool_choice: The tool choice as the caller gave it.
        last_text_only: Whether the texts of turns that call tools are withheld: a parser reads what the run says.
        output_version: The model's output version.
        lists_content: Whether the content of its replies is always a list of blocks.
        client_tools: The names of tools of the vendor's that run on the caller's machine: pending calls say so.
    """

    plan: RunPlan
    call: CallSettings
    executor: ToolExecutor
    form: WireForm = NOTHING_DECLARED
    tools: Sequence[Any] = ()
    tool_choice: Any = None
    last_text_only: bool = False
    output_version: str | None = None
    lists_content: bool = False
    usage_limits: Sequence[str] = ()
    approvals: Approvals | None = None
    client_tools: frozenset[str] = frozenset()


class Run:
    """The state of one run. Never shared: each `invoke` or `stream` has its own.

    Args:
        messages: The input.
        settings: What the run is to do.
        parts: What is optional of it.
        request: Its requests, but for their messages, choice and configuration.
        open_start: Whether the messages go on with a conversation that the server keeps.
    """

    def __init__(
        self, messages: Sequence[BaseMessage], settings: RunSettings, parts: RunParts, request: TurnRequest, *, open_start: bool = False
    ) -> None:
        history = repair(messages, open_end=True, open_start=open_start)
        self.input = list(messages)  # as the caller gave it: what wraps a run counts its messages
        self.settings = settings
        self.outcome: RunOutcome | None = None
        self._parts = parts
        self._request = request
        self._observer = parts.observer
        self._output = RunOutput(
            position=len(history),
            separator=settings.call.separator,
            carry_messages=settings.call.carry_messages,
            blocks=settings.output_version == "v1",
            listed=settings.lists_content,
            withholds=settings.last_text_only,
        )
        plan = settings.plan
        if settings.approvals is not None and (plan.decisions is not None or settings.approvals.concerns_calls):
            settings.approvals.check_key()
        found = open_calls(history, plan.decisions, settings.executor, plan.caller_tools, settings.approvals, messages)
        history = history if plan.decisions is None else without_open_results(history)
        self._loop = tool_loop(history, plan, parts.clock, found, parts.end.is_set, parts.meter(request, history))
        self._cache: dict[str, Any] = {}
        if (around := inside.get()) is not None:
            around.take_up(call_id for message in history if isinstance(message, AIMessage) for call_id in call_ids(message))
        self._counts_usage = bool(settings.usage_limits)
        self._chunks = ChunkSum()
        self._whole: AIMessage | None = None
        self._stored: AIMessage | None = None
        self._sent: Any = None
        self._tools: RunTools | None = None
        self._batch: _Batch | None = None
        self._results: list[ToolCallResult] = []
        self._failure: Exception | None = None
        self._last = False

    def trace(self, model: BaseChatModel, config: RunnableConfig | None) -> Trace:
        """Begin the trace, the parent run of turns and tool calls."""
        return start_trace(model, config, self.input)

    async def atrace(self, model: BaseChatModel, config: RunnableConfig | None) -> Trace:
        """Like `trace`, asynchronously."""
        return await astart_trace(model, config, self.input)

    def begin(self, trace: Trace) -> Chunks:
        """Begin the run; return the chunks that leave at once."""
        self._observer.begin(*trace.identity())
        return [self._output.hand_over()] if self._observer.due else ()

    # ------------------------------------------------------------------------------------------ steps

    def next(self) -> Action | None:
        """Return the next action; None at the end of the run."""
        self._observer.check()
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

    def phase(self, action: Action, config: RunnableConfig | None) -> Phase:
        """Return the processing of an action."""
        if isinstance(action, CallModel):
            return Phase(self._parts.turns.make(self._request_of(action, config)), self.part, self.turn_done)
        return self._answering(ToolCallBatch, action, config)

    def aphase(self, action: Action, config: RunnableConfig | None) -> Phase:
        """Return the processing of an action by an asynchronous driver."""
        if isinstance(action, CallModel):
            return Phase(self._parts.turns.amake(self._request_of(action, config)), self.part, self.turn_done)
        return self._answering(AsyncToolCallBatch, action, config)

    def _request_of(self, action: CallModel, config: RunnableConfig | None) -> TurnRequest:
        return replace(self._request, messages=list(action.messages), choice=action.choice, number=action.number, config=config)

    def part(self, part: TurnPart) -> Chunks:
        """Process a part of a turn (a chunk, the whole message or a mark); return the chunks that leave at once."""
        out: Sequence[AIMessageChunk] = ()
        if isinstance(part, AIMessageChunk):
            self._chunks.add(part)
            out = () if self.settings.last_text_only else self._output.chunk(part)
        elif isinstance(part, AIMessage):
            self._whole = part
            out = () if self.settings.last_text_only else self._turn_chunks(self._chunks, part)
        elif isinstance(part, Stored):
            self._stored = part.message
        elif isinstance(part, Discarded):
            self._void()
        return out if out or not self._observer.due else [self._output.hand_over()]

    def _void(self) -> None:
        """Discard the reply so far; what of it has left stays in the run message."""
        parts, self._chunks = self._chunks, ChunkSum()
        if parts and not self.settings.last_text_only:
            self._output.leave_apart(parts.chunks, replaces=False)

    def _turn_chunks(self, parts: ChunkSum, message: AIMessage | None = None) -> list[AIMessageChunk]:
        """Return the outgoing chunks for a turn's chunks, or for the message in their place."""
        if message is None:
            return [out for part in parts.chunks for out in self._output.chunk(part)]
        return self._output.from_message(with_output_version(without_provisional(message), self.settings.output_version))

    def turn_done(self) -> Chunks:
        """End the turn; return the chunks that were withheld, and the chunk that carries its message."""
        if self._parts.end.cut is not None:
            return self._turn_cut(self._parts.end.cut.__cause__, self._parts.end.reason)
        parts, came_whole, stored = self._chunks, self._whole, self._stored
        self._chunks, self._whole, self._stored = ChunkSum(), None, None
        if stored is not None and parts and not self.settings.last_text_only:
            self._output.leave_apart(parts.chunks, replaces=True)
        whole = stored or came_whole or parts.message()
        calls, blocked = turn_calls(canonical_message(whole))
        withheld: list[AIMessageChunk] = []
        if self.settings.last_text_only and not calls and not is_paused(whole):
            withheld = self._turn_chunks(parts, came_whole)
        stored = stored_message(whole, self.settings.output_version)
        if self.settings.executor.handlers is not None:
            calls = self.settings.executor.handled(calls)
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
        self._observer.turn_done(message)
        self._sent = (message, calls, blocked)
        return [*withheld, chunk]

    def _judged(self, approvals: Approvals, message: AIMessage, calls: list[ToolCallRecord]) -> tuple[AIMessage, list[ToolCallRecord]]:
        """Return the turn's message with records of its waiting calls, and the calls with the reason why each waits."""
        executor, plan = self.settings.executor, self.settings.plan
        in_order, callers = executor.parallel is False, plan.caller_tools
        try:
            meant, known = plan.meant(calls, caller_tools=callers), executor.prepared.arguments_of
            judged = approvals.judge(meant, known, in_order=in_order, callers=callers)
            return approvals.recorded(message, judged, partial(self._parts.new_uuid, str(message.id))), judged
        except Exception as error:  # the run ends where the calls would run: the turn is whole, and is handed out
            self._failure = error
            return message, calls

    def _turn_cut(self, cause: BaseException | None, reason: Literal["deadline", "cancelled"]) -> Chunks:
        """End a turn cut by the deadline or the caller; its text so far becomes a message."""
        if reason == "deadline":
            because = f", after {type(cause).__name__}" if cause else ""
            _logger.debug("the deadline of a run has ended a turn before its reply was whole%s", because)
        parts, self._chunks = self._chunks, ChunkSum()
        withheld = self._turn_chunks(parts) if self.settings.last_text_only else []
        if parts and (known := known_reply(self._parts.end.reply)) is not None:
            parts.add(known)
        said = cut_message(parts.message()) if parts else None
        message, brings = None, []
        if said is not None:
            message, chunk = self._output.message(with_output_version(said, self.settings.output_version))
            brings = [chunk]
        self._observer.turn_cut(message)
        self._sent = TurnCut(message, reason)
        return [*withheld, *brings]

    def _answering(self, kind: Callable[..., _Batch], action: RunTools, config: RunnableConfig | None) -> Phase:
        """Return the answering of calls, whose steps are results in call order, and None when a listener needs control first."""
        self._batch = batch = self.settings.executor.batch(kind, action.calls, config, **self._options(action))
        self._calls_begin(action)
        return Phase(batch.delivery, partial(self.result, action), self.tools_done)

    def _calls_begin(self, action: RunTools) -> None:
        """Notify the observer that calls are about to be answered.

        Raises:
            Exception: What was raised when it was asked whether they need approval.
        """
        self._observer.calls_begin(action.message, action.calls)
        if self._failure is not None:
            raise self._failure

    def _options(self, action: RunTools) -> dict[str, Any]:
        return {
            "messages": list(action.messages),
            "only": self.settings.form.choice.allowed,
            "end": self._parts.end,
            "turn": action.turn,
            "cache": self._cache,
            "observer": self._observer.watch(),
            "admissions": self._parts.admissions,
            "wrappers": self._parts.call_wrappers,
            "placed": partial(self._placed, action),
        }

    def result(self, action: RunTools, result: ToolCallResult | None) -> Chunks:
        """Process the next result, in call order, and return its chunk. For None: an empty chunk."""
        if result is None:
            self._observer.check()
            return [self._output.hand_over()]
        self._observer.result_done(result)
        self._results.append(result)
        return [self._output.carrier_chunk(result.message)]

    def _placed(self, action: RunTools, result: ToolCallResult) -> ToolCallResult:
        """Return a result in its stored form: with an id and its position."""
        message = result.message
        if not message.id:
            message = message.model_copy(update={"id": result_id(action.message, message.tool_call_id) or str(uuid.uuid4())})
        return replace(result, message=numbered_result(message, action.message, action.positions[message.tool_call_id]))

    def tools_done(self) -> Chunks:
        """End the answering of calls."""
        self._sent, self._results = self._results, []
        return ()

    def end(self) -> Chunks:
        """Return the last chunks of the run."""
        if self.outcome is None:
            raise RuntimeError("the run has not ended")
        outcome = self.outcome
        _logger.debug("run done: %s after %d turns", outcome.stop_reason, outcome.turns)
        if (around := inside.get()) is not None:
            around.leave_open(self._open_calls(outcome))
        if outcome.asked is not None:
            self._observer.pending(outcome.asked, outcome.pending, outcome.opened)
        self._observer.ended(outcome.stop_reason, outcome.turns, outcome.usage, partial(self._run_message, outcome))
        return list(self._output.end(outcome))

    def _open_calls(self, outcome: RunOutcome) -> Sequence[ToolCallRecord | PendingCall]:
        """Return the calls that the run ends with, except those that were forced to end it."""
        awaited = pending_calls(self._output.handed_out) if outcome.stop_reason == "calls_pending" and not outcome.pending else ()
        left = [replace(call, name=call.shown_name) for call in outcome.pending]  # the tool around says which they are
        return [call for call in left or awaited if call.name not in self.settings.plan.ends]

    def _run_message(self, outcome: RunOutcome) -> AIMessage:
        """Return the run message, composed of the messages of the run."""
        output, chunks = self._output.anew(), list[AIMessageChunk]()
        for number, message in enumerate(self._output.handed_out):
            chunks += output.again(self._output.left_apart.get(number, ()))
            if number in self._output.replaced:
                pass  # what left stands there already
            elif isinstance(message, AIMessage) and not (self.settings.last_text_only and (calls_of(message) or is_paused(message))):
                chunks += output.from_message(message)
            chunks.append(output.message(message)[1] if isinstance(message, AIMessage) else output.carrier_chunk(message))
        whole = sum_chunks([*chunks, *output.end(outcome)])
        attach_messages(whole, self._output.handed_out)
        return whole

    def message(self, chunks: Sequence[AIMessageChunk]) -> AIMessage:
        """Return the run message of all chunks of a run that was not streamed."""
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
        self._observer.stopped(error)

    def left(self) -> None:
        """Record that the run was left before its end."""
        self._observer.leave()


def cut_message(message: AIMessage) -> AIMessage | None:
    """Return the text of a cut reply as a message; None without text. Unfinished reasoning and calls are dropped."""
    content = message.content
    if isinstance(content, list):
        content = [block for block in content if isinstance(block, str) or block.get("type") == "text"]
    said = AIMessage(content=content, id=message.id, response_metadata=message.response_metadata, usage_metadata=message.usage_metadata)
    return said if text_of(said) else None
