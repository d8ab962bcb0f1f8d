"""The steps of one call of a model: of a run when it has tools, of a single answer when it has none.

`drive` takes a call from step to step. It only carries: it fetches the parts of a turn or the results of calls, gives them to the `Run` or
the `SingleAnswer`, and hands on the chunks that these return. A `Run` joins the loop, which is free of I/O, to what leaves of it.
"""

import logging
import uuid
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from types import TracebackType
from typing import Any, Final, Literal, Self, cast

from langchain_core.callbacks import AsyncCallbackManager, CallbackManager
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, BaseMessageChunk, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, patch_config

from ..chunks import ChunkSum
from ..compat import should_stream, unvalidated
from ..errors import AlreadyResumedError, ConfigurationError, LimitReachedError
from ..executor import AsyncToolCallBatch, ToolCallBatch, ToolCallResult, pending_calls
from ..executor.approvals import Approvals
from ..executor.nested_runs import current_nested_runs
from ..history import repair
from ..messages.blocks import without_provisional
from ..messages.calls import ToolCallRecord, awaited_calls, call_ids, calls_of, open_end, with_records
from ..messages.metadata import CACHED_ID, KEY, attach_messages, known_of_cut_reply, take_reply, text_of, without_cached_id
from ..messages.run_messages import is_paused, numbered_result, open_results, result_id, stop_reason
from ..turn.accumulator import ai_message, content_in_chunks
from ..turn.stored_messages import caller_metadata, canonical_message, with_output_version
from ..turn.tools import ToolChoice, format_request_tools
from .decisions import open_calls
from .loop import Action, CallModel, RunOutcome, RunTools, TurnCut, tool_loop, turn_calls
from .output import RunOutput, is_unreadable
from .settings import RunParts, RunSettings, drop_settings, run_parts
from .turn_wrappers import NOTHING_DECLARED, Discarded, Emitted, EndRun, Stored, TurnPart, TurnRequest, WireForm

_logger = logging.getLogger("langchain_autotools")
_Batch = ToolCallBatch | AsyncToolCallBatch

Chunks = Sequence[AIMessageChunk]
"""Chunks that leave at once."""


Phase = tuple[Any, Callable[[Any], Chunks], Callable[[], Chunks]]
"""The processing of one action of a call: its steps, the function that processes a step, and the one that ends the phase. The steps are the
parts of a turn or the results of calls, for an asynchronous driver an asynchronous iterable. Both functions return chunks that leave at
once."""


def drive(
    model: Any, input: LanguageModelInput, config: RunnableConfig | None, keywords: dict[str, Any], *, streamed: bool
) -> Iterator[Any]:
    """Drive a call of a model to its end and yield its chunks as they are made; if it is not `streamed`, its whole message after them.

    Args:
        model: The model.
        input: The input.
        config: LangChain's configuration.
        keywords: The keywords of the call. Those that configure a run are removed.
        streamed: Whether the caller receives the chunks.
    """
    driven = model._driven(input, keywords, streamed=streamed)
    with driven.trace(config, streamed=streamed) as trace:
        yield from driven.begin(trace)
        while (phase := driven.phase(trace.child)) is not None:
            trace.steps, take, done = phase
            parts = map(take, trace.steps)
            yield from chain.from_iterable(parts if trace.total is None else map(trace.recorded, parts))
            yield from trace.recorded(done())
        yield from trace.recorded(driven.end())
        message = None if streamed else driven.message(trace.total)
        trace.end(message)
    if not streamed:
        yield message


async def adrive(
    model: Any, input: LanguageModelInput, config: RunnableConfig | None, keywords: dict[str, Any], *, streamed: bool
) -> AsyncGenerator[Any, None]:
    """Like `drive`, asynchronously."""
    driven = model._driven(input, keywords, streamed=streamed, async_api=True)
    async with await driven.atrace(config, streamed=streamed) as trace:
        for chunk in driven.begin(trace):
            yield chunk
        while (phase := driven.phase(trace.child)) is not None:
            trace.steps, take, done = phase
            async for step in trace.steps:
                for chunk in take(step) if trace.total is None else trace.recorded(take(step)):
                    yield chunk
            for chunk in trace.recorded(done()):
                yield chunk
        for chunk in trace.recorded(driven.end()):
            yield chunk
        message = None if streamed else driven.message(trace.total)
        await trace.aend(message)
    if not streamed:
        yield message


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
        async_api: Whether the driver is asynchronous.
    """

    def __init__(
        self,
        messages: Sequence[BaseMessage],
        settings: RunSettings,
        parts: RunParts,
        request: TurnRequest,
        *,
        open_start: bool = False,
        async_api: bool = False,
    ) -> None:
        history = repair(messages, open_end=True, open_start=open_start)
        self.input = list(messages)  # as the caller gave it: what wraps a run counts its messages
        self.settings = settings
        self.outcome: RunOutcome | None = None
        self._parts = parts
        self._async_api = async_api
        self._request = request
        self._whole_form: Callable[[AIMessage], AIMessage] = request.model._whole_message
        self._observer = parts.observer
        self._output = RunOutput(
            position=len(history),
            separator=settings.values["message_separator"],
            carry_messages=settings.values["carry_messages"],
            blocks=request.output_version == "v1",
            listed=settings.lists_content,
            withholds=settings.last_text_only,
        )
        plan = settings.plan
        found = open_calls(history, plan.decisions, settings.executor, plan.caller_tools, settings.approvals, messages)
        if plan.decisions is not None:  # the calls inside whose results runs wait are answered anew
            opened = [id(one) for one in open_results(open_end(history)[1])]
            history = [message for message in history if id(message) not in opened]
        too_costly = None if parts.meter is None else parts.meter(request, history).exceeded
        self._loop = tool_loop(history, plan, parts.clock, found, parts.end.is_set, too_costly)
        self._cache: dict[str, Any] = {}
        if (around := current_nested_runs.get()) is not None:
            around.take_up(call_id for message in history if isinstance(message, AIMessage) for call_id in call_ids(message))
        self._counts_usage = bool(settings.values["usage_limits"])
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

    def trace(self, config: RunnableConfig | None, *, streamed: bool) -> "Trace":
        """Begin the trace, the parent run of turns and tool calls."""
        config, known, start = self._parent_run(config)
        manager = CallbackManager.configure(*known).on_chain_start(**start)
        return Trace(self, patch_config(config, callbacks=manager.get_child()), streamed, manager, start["name"])

    async def atrace(self, config: RunnableConfig | None, *, streamed: bool) -> "Trace":
        """Like `trace`, asynchronously."""
        config, known, start = self._parent_run(config)
        manager = await AsyncCallbackManager.configure(*known).on_chain_start(**start)
        return Trace(self, patch_config(config, callbacks=manager.get_child()), streamed, manager, start["name"])

    def _parent_run(self, config: RunnableConfig | None) -> tuple[RunnableConfig, tuple[Any, ...], dict[str, Any]]:
        """Return the whole configuration of the parent run, what its callback manager is made of, and what it starts with."""
        config, model = ensure_config(config), self._request.model
        tags, metadata, name = config.get("tags"), config.get("metadata"), config.get("run_name") or model.get_name()
        known = config.get("callbacks"), model.callbacks, model.verbose, tags, model.tags, metadata, model.metadata
        inputs = {"messages": list(self.input)}
        return config, known, {"serialized": None, "inputs": inputs, "name": name, "run_id": config.pop("run_id", None)}

    def begin(self, trace: "Trace") -> Chunks:
        """Begin the run; return the chunks that leave at once."""
        if self._observer.listens:
            self._observer.begin(str(trace.manager.run_id), trace.name)
        return [self._output.hand_over()] if self._observer.due else ()

    # ------------------------------------------------------------------------------------------ steps

    def _next(self) -> Action | EndRun | None:
        """Return the next action; None at the end of the run."""
        if self.outcome is not None:
            return None
        sent, self._sent = self._sent, None
        self._tools = self._batch = None
        try:
            action = self._loop.send(sent)
        except StopIteration as end:
            self.outcome = end.value
            if (claims := self._parts.claimed.claims) is None:
                return None
            from .claimed_turn import kept_value  # here, because it costs every other program its import

            return EndRun(kept_value(end.value, self._output.handed_out, owned=claims.owned))
        self._tools = action if isinstance(action, RunTools) else None
        self._last = isinstance(action, CallModel) and action.choice == "none"
        return action

    def phase(self, config: RunnableConfig | None) -> Phase | None:
        """Return the processing of the next action; None at the end of the run."""
        self._observer.check()
        action, turns, claimed = self._next(), self._parts.turns, self._parts.claimed
        if action is None:
            return None
        if isinstance(action, CallModel):
            request = replace(self._request, messages=list(action.messages), choice=action.choice, number=action.number, config=config)
            return ((turns.amake if self._async_api else turns.make)(request), self.part, self.turn_done)
        if isinstance(action, RunTools):
            return self._answering(AsyncToolCallBatch if self._async_api else ToolCallBatch, action, config)
        if isinstance(action, EndRun):
            return ((claimed.aending if self._async_api else claimed.ending)(action.value), self.part, tuple)
        return (_NoSteps(), self.part, partial(self._taken, action.asked, action.messages))

    def part(self, part: TurnPart) -> Chunks:
        """Process a part of a turn (a chunk, the whole message or a mark); return the chunks that leave at once."""
        out: Sequence[AIMessageChunk] = ()
        if isinstance(part, AIMessageChunk):
            self._chunks.add(part)
            out = () if self.settings.last_text_only else self._output.chunk(part)
        elif isinstance(part, AIMessage):
            content = content_in_chunks(part)
            self._whole = part = part if content is part.content else part.model_copy(update={"content": content})
            out = () if self.settings.last_text_only else self._turn_chunks(self._chunks, part)
        elif isinstance(part, Stored):
            self._stored = part.message
        elif isinstance(part, Discarded):  # the reply so far is void; what of it has left stays in the run message
            void, self._chunks = self._chunks, ChunkSum()
            if void and not self.settings.last_text_only:
                self._output.leave_apart(void.chunks, replaces=False)
        elif isinstance(part, BaseMessage):
            return self.part(ai_message(part))
        return out if out or not self._observer.due else [self._output.hand_over()]

    def _turn_chunks(self, parts: ChunkSum, message: AIMessage | None = None) -> list[AIMessageChunk]:
        """Return the outgoing chunks for a turn's chunks, or for the message in their place."""
        if message is None:
            return [out for part in parts.chunks for out in self._output.chunk(part)]
        return self._output.from_message(with_output_version(without_provisional(message), self._request.output_version))

    def turn_done(self) -> Chunks:
        """End the turn; return the chunks that were withheld, and the chunk that carries its message."""
        if self._parts.end.cut is not None:
            return self._turn_cut(self._parts.end.cut.__cause__, self._parts.end.reason)
        parts, came_whole, stored = self._chunks, self._whole, self._stored
        self._chunks, self._whole, self._stored = ChunkSum(), None, None
        whole = canonical_message(stored or came_whole or parts.message())
        in_blocks = isinstance(whole.content, list) and self._observer.listens and not self.settings.lists_content
        if (stored is not None or in_blocks) and not self.settings.last_text_only and (parts or stored is None):
            self._output.leave_apart(parts.chunks or [whole], replaces=True)
        calls, blocked = turn_calls(whole)
        withheld: list[AIMessageChunk] = []
        if self.settings.last_text_only and not calls and not is_paused(whole):
            withheld = self._turn_chunks(parts, came_whole)
        stored = self._request.model._stored_message(whole, self._request.output_version)
        if self.settings.executor.handlers is not None:
            calls = self.settings.executor.handled(calls)
        if self.settings.approvals is not None and not self._last:
            stored, calls = self._judged(self.settings.approvals, stored, calls)
        if self.settings.client_tools and calls:
            stored = with_records(stored, {call.id: _ON_CLIENT for call in calls if call.name in self.settings.client_tools})
        message, chunk = self._output.message(stored)
        if self._counts_usage and message.usage_metadata is None:
            self._counts_usage = False  # told once
            limits = " and ".join(self.settings.values["usage_limits"])
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
            message, chunk = self._output.message(self._whole_form(with_output_version(said, self._request.output_version)))
            brings = [chunk]
        self._observer.turn_cut(message)
        self._sent = TurnCut(message, reason)
        return [*withheld, *brings]

    def _answering(self, kind: Callable[..., _Batch], action: RunTools, config: RunnableConfig | None) -> Phase:
        """Return the answering of calls, whose steps are results in call order, and None when a listener needs control first.

        Raises:
            Exception: What was raised when it was asked whether they need approval.
        """
        self._batch = batch = self.settings.executor.batch(
            kind,
            action.calls,
            config,
            messages=list(action.messages),
            only=self._request.form.choice.allowed,
            end=self._parts.end,
            turn=action.turn,
            in_run=True,
            cache=self._cache,
            observer=self._observer.watch(),
            admissions=self._parts.admissions,
            wrappers=self._parts.call_wrappers,
            placed=partial(self._placed, action),
            claims=self._parts.claimed.claims if action.turn or self.settings.plan.decisions is not None else None,
        )
        self._observer.calls_begin(action.message, action.calls)
        if self._failure is not None:
            raise self._failure
        return (batch.delivery, partial(self.result, action), self.tools_done)

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
            awaited = pending_calls(self._output.handed_out) if outcome.stop_reason == "calls_pending" and not outcome.pending else ()
            left = [replace(call, name=call.shown_name) for call in outcome.pending]  # the tool around says which they are
            around.leave_open([call for call in left or awaited if call.name not in self.settings.plan.ends])
        if outcome.asked is not None:
            readable = [call for call in outcome.pending if not is_unreadable(call)]
            self._observer.pending(outcome.asked, readable, outcome.opened)
        self._observer.ended(outcome.stop_reason, outcome.turns, outcome.usage, partial(self._run_message, outcome))
        return list(self._output.end(outcome))

    def _run_message(self, outcome: RunOutcome) -> AIMessage:
        """Return the run message, composed of the messages of the run."""
        output, chunks = self._output.anew(), list[AIMessageChunk]()
        for number, message in enumerate(self._output.handed_out):
            chunks += output.again(self._output.left_apart.get(number, ()))
            if number in self._output.replaced:
                pass  # what has left is kept already
            elif isinstance(message, AIMessage) and not (self.settings.last_text_only and (calls_of(message) or is_paused(message))):
                chunks += output.from_message(message)
            chunks.append(output.message(message)[1] if isinstance(message, AIMessage) else output.carrier_chunk(message))
        whole = self._whole_form(ChunkSum([*chunks, *output.end(outcome)]).message())
        attach_messages(whole, self._output.handed_out)
        return whole

    def message(self, chunks: ChunkSum) -> AIMessage:
        """Return the run message of all chunks of a run that was not streamed."""
        message = self._whole_form(chunks.message())
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
            if isinstance(action := self._next(), RunTools):
                self._answering(ToolCallBatch, action, None)

    async def aabandon(self) -> None:
        """Give up what is claimed of a run that has failed or was left."""
        await self._parts.claimed.aabandon()

    def left(self) -> None:
        """Record that the run was left before its end."""
        self._parts.claimed.abandon()
        self._observer.leave()


class _NoSteps(tuple[None, ...]):
    """The steps of an action that is done at once, for drivers of both kinds."""

    __slots__ = ()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> None:
        raise StopAsyncIteration


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
        cancel, values = keywords.pop("cancel", None), drop_settings(model, keywords) or vars(model)
        self._seconds, self._raises = values["deadline"], values["on_limit"] == "raise"
        if values.get("compact"):
            from .compaction import NO_RUN  # here, because it costs every other program its import

            raise ConfigurationError(NO_RUN)
        self._parts: RunParts = run_parts({"cancel": cancel, "deadline": self._seconds}, model._turn_wrappers())
        self._observer = self._parts.observer
        self._stored_form = model._reply_message
        self._streamed = streamed
        self._is_requested = False
        self._make = self._parts.turns.amake if async_api else self._parts.turns.make
        streams = (streamed or self._observer.listens) and should_stream(model, keywords, async_api=async_api)
        declared = keywords.pop("tools") if keywords.get("tools") else ()
        choice = keywords.pop("tool_choice") if keywords.get("tool_choice") is not None else None
        form = NOTHING_DECLARED
        if declared or choice is not None:
            form = WireForm(model, format_request_tools(model, declared), ToolChoice(asked=choice))
        self._request = TurnRequest(
            model=model,
            messages=input,
            choice="requested",
            keywords=keywords,
            end=self._parts.end,
            tools=declared,
            tool_choice=choice,
            form=form,
            streams=streams,
            output_version=model.output_version,
        )
        self._chunks = ChunkSum()
        self._last: AIMessageChunk | None = None
        self._whole: BaseMessage | None = None
        self._stored: AIMessage | None = None
        self._message: BaseMessage | None = None
        self._is_told = False

    def trace(self, config: RunnableConfig | None, *, streamed: bool) -> "Trace":
        """Return the trace: the caller's own, with the reply's LLM run in it."""
        return Trace(self, config, streamed)

    async def atrace(self, config: RunnableConfig | None, *, streamed: bool) -> "Trace":
        """Like `trace`."""
        return Trace(self, config, streamed)

    def begin(self, trace: "Trace") -> Chunks:
        """Begin the reply."""
        if self._observer.listens:
            known = ensure_config(trace.child)
            name = known.get("run_name") or self._request.model.get_name()
            self._observer.begin(str(known.get("run_id") or uuid.uuid4()), name)
        return ()

    def phase(self, config: RunnableConfig | None) -> Phase | None:
        """Return the processing of the turn, once."""
        self._observer.check()
        if self._is_requested:
            return None
        self._is_requested = True
        return (self._make(replace(self._request, config=config)), self.part, self.turn_done)

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

    def message(self, chunks: object) -> AIMessage:
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


Driven = Run | SingleAnswer
"""What is driven."""


# ---------------------------------------------------------------------------------------------- the trace in LangChain's callbacks


@dataclass(eq=False, repr=False)
class Trace:
    """The trace of one call: its parent run, where it has one; else the LLM run is the caller's.

    As a context manager it reports an exception that ends the call, or that it was left.

    Attributes:
        child: The configuration of turns and tool calls.
        streamed: Whether the caller receives the chunks.
        manager: The callback manager of the parent run; None without one, and once its end is reported.
        name: The name of the parent run.
        steps: The steps of the current phase, which are closed where an exception ends the call.
        total: The sum of the chunks; None if nobody needs it.
    """

    _driven: "Driven"
    child: RunnableConfig | None
    streamed: bool
    manager: Any = None
    name: str = ""
    steps: Any = ()
    total: ChunkSum | None = None

    def __post_init__(self) -> None:
        if self.manager is not None and (self.manager.handlers or not self.streamed):
            self.total = ChunkSum()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            return
        try:
            getattr(self.steps, "close", tuple)()
            if self.manager is not None:
                self.manager.on_chain_error(error)
        except BaseException as another:
            self._ended_by(another)
            raise
        self._ended_by(error)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            return
        try:
            async with AsyncExitStack() as closing:
                closing.push_async_callback(self._driven.aabandon)
                if hasattr(self.steps, "aclose"):
                    await self.steps.aclose()
            if self.manager is not None:
                await self.manager.on_chain_error(error)
        except BaseException as another:
            self._ended_by(another)
            raise
        self._ended_by(error)

    def _ended_by(self, error: BaseException) -> None:
        """Report an exception that ends the call, or that it was left."""
        if isinstance(error, GeneratorExit):
            self._driven.left()
        else:
            self._driven.failed(error, streamed=self.streamed)

    def recorded(self, chunks: Chunks) -> Chunks:
        """Return chunks that leave, recorded for their sum."""
        if self.total is not None:
            for chunk in chunks:
                self.total.add(chunk)
        return chunks

    def end(self, message: AIMessage | None) -> None:
        """Report the end of the parent run, with the message or the sum of the chunks."""
        manager, self.manager = self.manager, None
        if manager is not None:
            manager.on_chain_end(message or (self.total.message() if self.total else None))

    async def aend(self, message: AIMessage | None) -> None:
        """Like `end`, asynchronously."""
        manager, self.manager = self.manager, None
        if manager is not None:
            await manager.on_chain_end(message or (self.total.message() if self.total else None))
