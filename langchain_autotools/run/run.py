"""The steps of one call of a model: of a run when it has tools, of a single answer when it has none.

`drive` takes a call from step to step. It only carries: it fetches the parts of a turn or the results of calls, gives them to the `Run` or
the `SingleAnswer`, and hands on the chunks that these return. A `Run` joins the loop, which is free of I/O, to what leaves of it.
"""

import logging
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar, cast

from langchain_core.callbacks import AsyncCallbackManager, AsyncCallbackManagerForChainRun, CallbackManager, CallbackManagerForChainRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, BaseMessageChunk, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, patch_config

from ..chunks import ChunkSum, sum_chunks
from ..compat import should_stream, unvalidated
from ..errors import AlreadyResumedError, ConfigurationError, LimitReachedError
from ..executor import AsyncToolCallBatch, PendingCall, ToolCallBatch, ToolCallResult, pending_calls
from ..executor.approvals import Approvals
from ..executor.claims import Claims
from ..executor.nested_runs import current_nested_runs
from ..history import repair
from ..messages.blocks import without_provisional
from ..messages.calls import ToolCallRecord, awaited_calls, call_ids, calls_of, open_end, with_records
from ..messages.metadata import CACHED_ID, KEY, attach_messages, known_of_cut_reply, take_reply, text_of, without_cached_id
from ..messages.run_messages import is_paused, numbered_result, open_results, result_id, stop_reason
from ..turn.accumulator import ai_message
from ..turn.stored_messages import caller_metadata, canonical_message, with_output_version
from ..turn.tools import ToolChoice, format_request_tools
from .decisions import open_calls
from .loop import Action, CallModel, RunOutcome, RunTools, TurnCut, tool_loop, turn_calls
from .output import RunOutput, is_unreadable
from .settings import RunParts, RunSettings, compose, drop_settings
from .turn_wrappers import NOTHING_DECLARED, Discarded, Emitted, EndRun, Stored, TurnPart, TurnRequest, WireForm

_logger = logging.getLogger("langchain_autotools")
_Batch = ToolCallBatch | AsyncToolCallBatch

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


def drive(driven: "Driven", trace: "Trace") -> Iterator[Chunks]:
    """Drive a call to its end and yield its chunks as they are made."""
    yield driven.begin(trace)
    while (action := driven.next()) is not None:
        steps, take, done = driven.phase(action, trace.child)
        try:
            for step in steps:
                yield take(step)
        finally:
            if hasattr(steps, "close"):
                steps.close()
        yield done()
    yield driven.end()


async def adrive(driven: "Driven", trace: "Trace") -> AsyncGenerator[Chunks, None]:
    """Like `drive`, asynchronously."""
    try:
        yield driven.begin(trace)
        while (action := driven.next()) is not None:
            steps, take, done = driven.aphase(action, trace.child)
            async with aclosing(steps):
                async for step in steps:
                    yield take(step)
            yield done()
    except BaseException:
        await driven.aabandon()
        raise
    yield driven.end()


# ---------------------------------------------------------------------------------------------- a run


_NOT_SENT: Final = "the message of a resumed run was not sent, because the run ended before another request: %s"
_ON_CLIENT: Mapping[str, bool] = {"client_tool": True}
"""The record of a call of a vendor's tool for the user's machine."""


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
        self._whole_form: Callable[[AIMessage], AIMessage] = request.model._whole_message
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
        found = open_calls(history, plan.decisions, settings.executor, plan.caller_tools, settings.approvals, messages)
        history = history if plan.decisions is None else _without_open_results(history)
        self._loop = tool_loop(history, plan, parts.clock, found, parts.end.is_set, parts.meter(request, history))
        self._cache: dict[str, Any] = {}
        if (around := current_nested_runs.get()) is not None:
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
        self._waiting = plan.waiting
        if plan.waiting and not {one.id for one in history if one.id}.isdisjoint(one.id for one in plan.waiting):
            raise ConfigurationError("the history has a message with the id of message= already: give it an id of its own, or none")

    def trace(self, model: BaseChatModel, config: RunnableConfig | None) -> "Trace":
        """Begin the trace, the parent run of turns and tool calls."""
        return _start_trace(model, config, self.input)

    async def atrace(self, model: BaseChatModel, config: RunnableConfig | None) -> "Trace":
        """Like `trace`, asynchronously."""
        return await _astart_trace(model, config, self.input)

    def begin(self, trace: "Trace") -> Chunks:
        """Begin the run; return the chunks that leave at once."""
        self._observer.begin(*trace.identity())
        return [self._output.hand_over()] if self._observer.due else ()

    # ------------------------------------------------------------------------------------------ steps

    def next(self, *, unread: bool = False) -> Action | EndRun | None:
        """Return the next action, also of a run that nobody reads any more where it is to be `unread`; None at the end of the run."""
        if not unread:
            self._observer.check()
        if self.outcome is not None:
            return None
        sent, self._sent = self._sent, None
        self._tools = self._batch = None
        try:
            action = self._loop.send(sent)
        except StopIteration as end:
            self.outcome = end.value
            return self._end_run(end.value, claims) if (claims := self._parts.claimed.claims) is not None else None
        self._tools = action if isinstance(action, RunTools) else None
        self._last = isinstance(action, CallModel) and action.choice == "none"
        return action

    def phase(self, action: Action | EndRun, config: RunnableConfig | None) -> Phase:
        """Return the processing of an action."""
        if isinstance(action, CallModel):
            return Phase(self._parts.turns.make(self._request_of(action, config)), self.part, self.turn_done)
        if isinstance(action, RunTools):
            return self._answering(ToolCallBatch, action, config)
        if isinstance(action, EndRun):
            return Phase(self._parts.claimed.ending(action.value), self.part, tuple)
        return Phase((), self.part, partial(self._taken, action.asked, action.messages))

    def aphase(self, action: Action | EndRun, config: RunnableConfig | None) -> Phase:
        """Return the processing of an action by an asynchronous driver."""
        if isinstance(action, CallModel):
            return Phase(self._parts.turns.amake(self._request_of(action, config)), self.part, self.turn_done)
        if isinstance(action, RunTools):
            return self._answering(AsyncToolCallBatch, action, config)
        if isinstance(action, EndRun):
            return Phase(self._parts.claimed.aending(action.value), self.part, tuple)
        return Phase(_no_steps(), self.part, partial(self._taken, action.asked, action.messages))

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
        elif isinstance(part, BaseMessage):
            return self.part(ai_message(part))
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
        stored = self._request.model._stored_message(whole, self.settings.output_version)
        if self.settings.executor.handlers is not None:
            calls = self.settings.executor.handled(calls)
        if self.settings.approvals is not None and not self._last:
            stored, calls = self._judged(self.settings.approvals, stored, calls)
        if self.settings.client_tools and calls:
            stored = with_records(stored, {call.id: _ON_CLIENT for call in calls if call.name in self.settings.client_tools})
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
        if parts and (known := known_of_cut_reply(self._parts.end.reply)) is not None:
            parts.add(known)
        said = cut_message(parts.message()) if parts else None
        message, brings = None, []
        if said is not None:
            message, chunk = self._output.message(self._whole_form(with_output_version(said, self.settings.output_version)))
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
            "in_run": True,
            "cache": self._cache,
            "observer": self._observer.watch(),
            "admissions": self._parts.admissions,
            "wrappers": self._parts.call_wrappers,
            "placed": partial(self._placed, action),
            "claims": self._parts.claimed.claims if action.turn or self.settings.plan.decisions is not None else None,
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
        """End the answering of calls; return the chunks of the run that has answered them before, if that is known."""
        self._sent, self._results = self._results, []
        claims = self._parts.claimed.claims
        return () if claims is None or claims.finished is None else self._repeat(claims.finished, cast("RunTools", self._tools), self._sent)

    # ------------------------------------------------------------------------------------------ claims

    def _end_run(self, outcome: RunOutcome, claims: Claims) -> EndRun:
        """Return what the store of claims is told at the end of the run."""
        from .claimed_turn import kept_value  # here, because it costs every other program its import

        return EndRun(kept_value(outcome, self._output.handed_out, owned=claims.owned))

    def _repeat(self, finished: Mapping[str, Any], tools: RunTools, results: Sequence[ToolCallResult]) -> Chunks:
        """End as another run has ended, and return the chunks of what it has brought besides these results."""
        from .claimed_turn import repeated

        chunks, outcome = repeated(finished, tools, results, self._output, self._observer, withholds=self.settings.last_text_only)
        sent = [message.content for message in self._output.handed_out if isinstance(message, HumanMessage)]
        self._waiting = [message for message in self._waiting if message.content not in sent]
        self.outcome = replace(outcome, not_taken=self._waiting)
        return chunks

    def _taken(self, asked: AIMessage, messages: Sequence[HumanMessage]) -> Chunks:
        """Take messages of the user into the run, each with an id; return the chunks that carry them."""
        named = [
            one if one.id else one.model_copy(update={"id": self._parts.new_uuid(str(asked.id), f"message {number}")})
            for number, one in enumerate(messages)
        ]
        self._waiting, self._sent = (), named
        chunks = [self._output.carrier_chunk(message) for message in named]
        self._observer.messages_taken(named)
        return chunks

    def end(self) -> Chunks:
        """Return the last chunks of the run."""
        if self.outcome is None:
            raise RuntimeError("the run has not ended")
        outcome = self.outcome
        _logger.debug("run done: %s after %d turns", outcome.stop_reason, outcome.turns)
        if outcome.not_taken:
            _logger.warning(_NOT_SENT, outcome.stop_reason)
        if (around := current_nested_runs.get()) is not None:
            around.leave_open(self._open_calls(outcome))
        if outcome.asked is not None:
            readable = [call for call in outcome.pending if not is_unreadable(call)]
            self._observer.pending(outcome.asked, readable, outcome.opened)
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
        whole = self._whole_form(sum_chunks([*chunks, *output.end(outcome)]))
        attach_messages(whole, self._output.handed_out)
        return whole

    def message(self, chunks: Sequence[AIMessageChunk]) -> AIMessage:
        """Return the run message of all chunks of a run that was not streamed."""
        message = self._whole_form(sum_chunks(chunks))
        attach_messages(message, self._output.undelivered())
        return message

    # ------------------------------------------------------------------------------------------ failure

    def failed(self, error: BaseException, *, streamed: bool) -> None:
        """Attach the completed messages that the caller does not have to the exception, every call of them answered."""
        if streamed:
            self._output.delivered()
        if self._waiting:
            _logger.warning(_NOT_SENT, type(error).__name__)
        if (reply := take_reply(error)) is not None:
            self._take_up(reply)
        if self._tools is not None and self._batch is not None and not isinstance(error, AlreadyResumedError):  # whose calls still wait
            for result in self._batch.settled()[len(self._results) :]:
                self.result(self._tools, result)
        self._parts.claimed.abandon()
        attach_messages(error, self._output.undelivered())
        self._observer.stopped(error)

    def _take_up(self, reply: AIMessage) -> None:
        """End the turn whose reply was whole when an exception ended the run, such as a callback handler's. None of its calls runs."""
        chunks = self._chunks.chunks
        if self._whole is self._stored is None and not (chunks and chunks[-1].chunk_position == "last"):  # it had not come so far
            self._chunks, self._whole = ChunkSum(), reply
        if self.settings.plan.inbox is not None:
            self.settings.plan.inbox.close()
        with suppress(Exception):  # the first exception is the one to raise
            self.turn_done()
            if isinstance(action := self.next(unread=True), RunTools):
                self._answering(ToolCallBatch, action, None)

    async def aabandon(self) -> None:
        """Give up what is claimed of a run that has failed or was left."""
        await self._parts.claimed.aabandon()

    def left(self) -> None:
        """Record that the run was left before its end."""
        self._parts.claimed.abandon()
        self._observer.leave()


async def _no_steps() -> AsyncGenerator[None, None]:
    """The steps of an action that is done at once."""
    return
    yield


def _without_open_results(history: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return a history without the results that it ends in and inside whose calls runs wait."""
    opened = [id(one) for one in open_results(open_end(history)[1])]
    return [message for message in history if id(message) not in opened]


def cut_message(message: AIMessage) -> AIMessage | None:
    """Return the text of a cut reply as a message; None without text. Unfinished reasoning and calls are dropped."""
    content = message.content
    if isinstance(content, list):
        content = [block for block in content if isinstance(block, str) or block.get("type") == "text"]
    said = AIMessage(content=content, id=message.id, response_metadata=message.response_metadata, usage_metadata=message.usage_metadata)
    return said if text_of(said) else None


# ---------------------------------------------------------------------------------------------- a single answer
#
# The side of the driver that has no loop, no run message and no trace of its own. Core gets the input as the caller gave it, and the chunks
# leave as they are. There is no stop reason: as of any reply that broke off, the message's finish reason says how it ended.


class SingleAnswer:
    """The state of one reply of a model without tools. Never shared.

    Args:
        model: The model.
        input: The input, as the caller gave it.
        keywords: The keywords of the call. All run settings are removed from them.
        streamed: Whether the caller streams the reply.
        async_api: Whether the caller is asynchronous.

    Raises:
        ConfigurationError: A keyword cannot work.
    """

    def __init__(self, model: Any, input: LanguageModelInput, keywords: dict[str, Any], *, streamed: bool, async_api: bool) -> None:
        if keywords.pop("resume", None) is not None:
            raise ConfigurationError("resume takes a model with tools=[...] or handlers={...}; elsewhere a message answers a call")
        cancel, limits = keywords.pop("cancel", None), drop_settings(model, keywords) or model
        self._seconds, self._raises = limits.deadline, limits.on_limit == "raise"
        self._parts: RunParts = compose(cancel, self._seconds, wrappers=model._turn_wrappers())
        self._observer = self._parts.observer
        self._stored_form = model._reply_message
        self._streamed = streamed
        self._actions: list[Action] = [CallModel((), "requested")]
        self._request = _single_request(model, input, keywords, self._parts, streamed=streamed, async_api=async_api)
        self._chunks = ChunkSum()
        self._last: AIMessageChunk | None = None
        self._whole: BaseMessage | None = None
        self._stored: AIMessage | None = None
        self._message: BaseMessage | None = None
        self._is_told = False

    def trace(self, model: BaseChatModel, config: RunnableConfig | None) -> "Trace":
        """Return the trace: the caller's own, with the reply's LLM run in it."""
        return Trace(model, config)

    async def atrace(self, model: BaseChatModel, config: RunnableConfig | None) -> "Trace":
        """Like `trace`."""
        return Trace(model, config)

    def begin(self, trace: "Trace") -> Chunks:
        """Begin the reply."""
        if self._observer.listens:
            self._observer.begin(*trace.identity())
        return ()

    def next(self) -> Action | None:
        """Return the request, once."""
        self._observer.check()
        return self._actions.pop() if self._actions else None

    def phase(self, action: Action | EndRun, config: RunnableConfig | None) -> Phase:
        """Return the processing of the turn."""
        return Phase(self._parts.turns.make(replace(self._request, config=config)), self.part, self.turn_done)

    def aphase(self, action: Action | EndRun, config: RunnableConfig | None) -> Phase:
        """Return the processing of the turn by an asynchronous driver."""
        return Phase(self._parts.turns.amake(replace(self._request, config=config)), self.part, self.turn_done)

    def part(self, part: TurnPart) -> Chunks:
        """Process a part of the turn (a chunk, the whole message or a mark); return the chunk, which leaves at once.

        The last one too: core tells its handlers of the end when it is asked for more. It knows the whole message."""
        if isinstance(part, AIMessageChunk):
            self._chunks.add(part)
            self._message = None
            return (part,) if part.__dict__["chunk_position"] != "last" else (self._ending(part),)
        if isinstance(part, BaseMessageChunk):  # of another kind, which leaves as it is
            self._chunks.add(cast("AIMessageChunk", ai_message(part)))
            return (cast("AIMessageChunk", part),)  # whoever reads the stream of such a class knows
        if isinstance(part, BaseMessage):
            self._whole = part
        elif isinstance(part, Stored):
            self._stored = part.message
        elif isinstance(part, Emitted) and self._observer.due:
            return (part.chunk,)
        return ()

    def _ending(self, last: AIMessageChunk) -> AIMessageChunk:
        """Return the last chunk for the caller. Core keeps the given one for its handlers."""
        metadata = caller_metadata(last.response_metadata)
        self._last = made = unvalidated(type(last), {**last.__dict__, "response_metadata": metadata}, last.model_fields_set, {})
        self._message = self._as_stored(self._chunks.message())
        attach_messages(made, [self._message])
        return made

    def turn_done(self) -> Chunks:
        """End the turn; return the last chunk of a reply that was cut, or the message that came in place of chunks."""
        cut = self._last is None and self._whole is None and self._parts.end.cut is not None
        left = self.part(self._cut()) if cut else ()
        whole = self._stored or self._whole
        if whole is not None or self._message is None:
            self._message = self._as_stored(whole or self._chunks.message())
            if self._last is not None:
                attach_messages(self._last, [self._message])
        message = cast("AIMessage", self._message)
        self._tell()
        if self._last is not None or self._whole is None:
            return left
        if self._streamed:
            attach_messages(message, [message])
        return (cast("AIMessageChunk", message),)  # as core hands on what `invoke` returns

    def _as_stored(self, message: BaseMessage) -> BaseMessage:
        """Return a whole message as it leaves; one that is no AI message as it came, as LangChain does."""
        if not isinstance(message, AIMessage):
            return message
        own = message.response_metadata.get(KEY)
        is_cached = isinstance(own, Mapping) and CACHED_ID in own
        stored: AIMessage = self._stored_form(without_cached_id(message) if is_cached else message)
        return stored

    def _cut(self) -> AIMessageChunk:
        """Return the last chunk of a reply that the deadline or the caller has cut."""
        reason = self._parts.end.reason
        if reason == "deadline":
            _logger.warning("a reply has ended at its limit deadline=%s", self._seconds)
        last = known_of_cut_reply(self._parts.end.reply) or AIMessageChunk(content="")
        last.id = self._chunks.message().id or str(uuid.uuid4())
        last.response_metadata["finish_reason"] = reason
        last.chunk_position = "last"
        return last

    def _tell(self) -> None:
        """Notify the observer, once, of the whole message, and of the end, as of a run of one turn."""
        observer = self._observer
        if self._is_told or not observer.listens:
            return
        self._is_told, message = True, ai_message(cast("BaseMessage", self._message))
        observer.turn_done(message)
        if pending_calls(message):
            observer.pending(message, [*(call for call in calls_of(message) if call.args is not None), *awaited_calls(message)])
        observer.ended(stop_reason(message) or "complete", 1, message.usage_metadata, lambda: message)

    def end(self) -> Chunks:
        """Return no chunks.

        Raises:
            LimitReachedError: The deadline has cut the reply, and that is an error.
        """
        if self._raises and self._message is not None and stop_reason(self._message) == "deadline":
            raise LimitReachedError("the reply reached its limit: deadline", "deadline")
        return ()

    def message(self, chunks: Sequence[AIMessageChunk]) -> AIMessage:
        """Return the whole message."""
        return cast("AIMessage", self._message)

    def failed(self, error: BaseException, *, streamed: bool) -> None:
        """Attach a message that the caller does not have to the exception."""
        reply = take_reply(error)
        if reply is not None and self._message is None:
            self._message = self._as_stored(reply if self._last is None else self._chunks.message())
        delivered = streamed and (self._last is not None or reply is None)
        if self._message is not None and not delivered:
            attach_messages(error, [self._message])
        self._observer.stopped(error)

    async def aabandon(self) -> None:
        """Do nothing: nothing is claimed."""

    def left(self) -> None:
        """Record that the reply was left. With its last chunk it had come whole."""
        if self._message is not None:
            self._tell()
        self._observer.leave()


def _single_request(
    model: Any, input: LanguageModelInput, keywords: dict[str, Any], parts: RunParts, *, streamed: bool, async_api: bool
) -> TurnRequest:
    streams = (streamed or parts.observer.listens) and should_stream(model, keywords, async_api=async_api)
    declared = keywords.pop("tools") if keywords.get("tools") else ()
    choice = keywords.pop("tool_choice") if keywords.get("tool_choice") is not None else None
    form = NOTHING_DECLARED
    if declared or choice is not None:
        form = WireForm(model, format_request_tools(model, declared), ToolChoice(asked=choice))
    return TurnRequest(
        model=model,
        messages=input,
        choice="requested",
        keywords=keywords,
        end=parts.end,
        tools=declared,
        tool_choice=choice,
        form=form,
        streams=streams,
        output_version=model.output_version,
    )


Driven = Run | SingleAnswer
"""What is driven."""


# ---------------------------------------------------------------------------------------------- the trace in LangChain's callbacks


def _start_trace(
    model: BaseChatModel, config: RunnableConfig | None, messages: Sequence[BaseMessage]
) -> "_RunTrace[CallbackManagerForChainRun]":
    """Begin the parent run of a synchronous run."""
    config = ensure_config(config)
    manager = CallbackManager.configure(*_arguments(model, config))
    start = _start(model, config, messages)
    started: CallbackManagerForChainRun = manager.on_chain_start(**start)
    return _RunTrace(model, started, config, start["name"])


async def _astart_trace(
    model: BaseChatModel, config: RunnableConfig | None, messages: Sequence[BaseMessage]
) -> "_RunTrace[AsyncCallbackManagerForChainRun]":
    """Begin the parent run of an asynchronous run."""
    config = ensure_config(config)
    manager = AsyncCallbackManager.configure(*_arguments(model, config))
    start = _start(model, config, messages)
    started: AsyncCallbackManagerForChainRun = await manager.on_chain_start(**start)
    return _RunTrace(model, started, config, start["name"])


def _start(model: BaseChatModel, config: RunnableConfig, messages: Sequence[BaseMessage]) -> dict[str, Any]:
    name = config.get("run_name") or model.get_name()
    return {"serialized": None, "inputs": {"messages": list(messages)}, "name": name, "run_id": config.pop("run_id", None)}


def _arguments(model: BaseChatModel, config: RunnableConfig) -> tuple[Any, ...]:
    tags, metadata = config.get("tags"), config.get("metadata")
    return config.get("callbacks"), model.callbacks, model.verbose, tags, model.tags, metadata, model.metadata


_Manager = TypeVar("_Manager", CallbackManagerForChainRun, AsyncCallbackManagerForChainRun)


class Trace:
    """The trace of one call. This base class makes no parent run: the LLM run is the caller's.

    Args:
        model: The model.
        config: LangChain's configuration.

    Attributes:
        child: The configuration of turns and tool calls.
        records: Whether the chunks of the call are recorded.
    """

    records = False

    def __init__(self, model: BaseChatModel, config: RunnableConfig | None) -> None:
        self._model = model
        self.child = config

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None: ...

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None: ...

    def identity(self) -> tuple[str, str]:
        """Return the id and the name by which listeners know the call."""
        known = ensure_config(self.child)
        return str(known.get("run_id") or uuid.uuid4()), known.get("run_name") or self._model.get_name()

    def record(self, chunks: Iterable[AIMessageChunk]) -> None:
        """Record chunks for the output of the parent run."""

    def end(self, message: AIMessage | None = None) -> None:
        """Report the end of the parent run, with the message or the sum of the recorded chunks."""

    async def aend(self, message: AIMessage | None = None) -> None:
        """Like `end`, asynchronously."""


class _RunTrace(Trace, Generic[_Manager]):
    """The trace of a call with a parent run. As a context manager it reports the error that ends the run."""

    def __init__(self, model: BaseChatModel, manager: _Manager, config: RunnableConfig, name: str) -> None:
        super().__init__(model, patch_config(config, callbacks=manager.get_child()))
        self._manager: _Manager = manager
        self._name = name
        self._sum = ChunkSum()
        self.records = bool(manager.handlers)

    def __exit__(self: "_RunTrace[CallbackManagerForChainRun]", kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self._manager.on_chain_error(error)

    async def __aexit__(
        self: "_RunTrace[AsyncCallbackManagerForChainRun]", kind: object, error: BaseException | None, trace: object
    ) -> None:
        if error is not None:
            await self._manager.on_chain_error(error)

    def identity(self) -> tuple[str, str]:
        """Return the id and the name of the parent run."""
        return str(self._manager.run_id), self._name

    def record(self, chunks: Iterable[AIMessageChunk]) -> None:
        """Record chunks for the output of the parent run."""
        for chunk in chunks:
            self._sum.add(chunk)

    def _output(self, message: AIMessage | None) -> AIMessage | None:
        return message or (self._sum.message() if self._sum else None)

    def end(self: "_RunTrace[CallbackManagerForChainRun]", message: AIMessage | None = None) -> None:
        """Report the end of the parent run, with the message or the sum of the recorded chunks."""
        self._manager.on_chain_end(self._output(message))

    async def aend(self: "_RunTrace[AsyncCallbackManagerForChainRun]", message: AIMessage | None = None) -> None:
        """Like `end`, asynchronously."""
        await self._manager.on_chain_end(self._output(message))
