"""One question to an agent and its answer."""

import asyncio
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableConfig

from ..chunks import ChunkSum, is_blank, new_chunk
from ..event_bus import listening
from ..event_types import MessagesAdded
from ..history import repair
from ..messages.calls import calls_of, open_end
from ..messages.carrier import new_messages
from ..messages.live import attach_messages
from ..messages.places import numbered_result, result_id
from .floor import Floor, busy
from .memory import Memory
from .output import Output, complete
from .results import AgentResult


class OpenStream(Protocol):
    """An answer that is read as a stream."""

    def supersede(self) -> None:
        """End the stream for the next question."""

    async def asupersede(self) -> None:
        """Like `supersede`, asynchronously."""


class Exchange:
    """One question and its answer: the input messages, and the new ones.

    A context manager around the run, synchronously and asynchronously: what is completed is kept in the conversation, also of a run that
    fails or is left. (No generator makes it: when an event loop ends it closes all that it knows at once, in any order.)

    Args:
        question: The question; None where a run is resumed.
        system_prompt: The system prompt before the conversation.
        memory: The conversation before the question, which gets the new messages.
        floor: Lets one question at a time into that conversation.
        output: Reads structured output out of the answer; None for none.

    Attributes:
        stream: Gives the stream by which the answer is read, None where that is gone; itself None for an answer at a stroke.
        outcome: The result of the question, when known.
    """

    def __init__(
        self, question: HumanMessage | None, system_prompt: SystemMessage | None, memory: Memory, floor: Floor, output: Output | None
    ) -> None:
        self.stream: Callable[[], OpenStream | None] | None = None
        self.outcome: AgentResult | None = None
        self._question = question
        self._prompt = [] if system_prompt is None else [system_prompt]
        self._memory = memory
        self._floor = floor
        self._output = output
        self._results: list[ToolMessage] = []
        self._before: list[BaseMessage] = []
        self._answered: list[ToolMessage] = []
        self._new: list[BaseMessage] = [] if question is None else [question]
        self._asked = len(self._new)
        self._undelivered = list(self._new)  # what no chunk has brought yet
        self._parts = ChunkSum()
        self._ended = False
        self._saving: asyncio.Task[None] | None = None

    def __enter__(self) -> list[BaseMessage]:
        """Begin the question and return the input messages.

        Raises:
            ConfigurationError: Another question is being answered.
        """
        self._floor.enter(self)
        try:
            return self._messages(self._memory.read())
        except BaseException:
            self.end()
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._fail(error)
        self.end()

    async def __aenter__(self) -> list[BaseMessage]:
        """Like `__enter__`, asynchronously."""
        await self._floor.aenter(self)
        try:
            return self._messages(await self._memory.aread())
        except BaseException:
            self.end()
            raise

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._fail(error)
        await self.aend()

    def _messages(self, history: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Return the input messages. Calls at the end of the history are answered before a question, permanently."""
        self._answered = [] if self._question is None else answers_to_open_calls(history)
        self._before = [*self._prompt, *history, *self._answered]
        return [*self._before, *self._new]

    # ------------------------------------------------------------------------------------------ what comes of it

    def announced(self, config: RunnableConfig | None) -> RunnableConfig | None:
        """Emit the question as the run's first event if somebody listens; return the configuration that names the run."""
        place = listening.get()
        if place is None or place.call_id is not None or self._question is None:
            return config
        run_id = (config or {}).get("run_id") or uuid.uuid4()
        place.listener.tell(MessagesAdded(run_id=str(run_id), messages=(self._question,)))
        return cast("RunnableConfig", {**(config or {}), "run_id": run_id})

    def closing(self) -> Iterator[AIMessageChunk]:
        """Yield the chunk with the results of calls that were the output."""
        if self._results:
            yield _bringing(self._results)

    def add(self, chunk: AIMessageChunk) -> AIMessageChunk:
        """Record the next chunk of the answer and return it; the first one also carries the question."""
        self._parts.add(chunk)
        new = new_messages(chunk)
        self._new += new
        return self._with_question(chunk, new) if self._undelivered and (new or not is_blank(chunk)) else chunk

    def _with_question(self, chunk: AIMessageChunk, new: Sequence[BaseMessage]) -> AIMessageChunk:
        """Return the chunk with the question added. (A separate chunk would need content of the answer's kind, text or blocks.)"""
        bringing = chunk.model_copy()
        attach_messages(bringing, [*self._undelivered, *new])
        self._undelivered = []
        return bringing

    def finish(self, message: AIMessage | None = None) -> AgentResult:
        """Return the result, from the run message or from the sum of the recorded chunks."""
        if message is None:
            message = self._parts.message()
        else:
            self._new += new_messages(message)
        output = self._read(message)
        self.outcome = AgentResult(complete(message, self._results), tuple(self._new), output)
        return self.outcome

    def _read(self, message: AIMessage) -> Any:
        """Return the output of a run."""
        if self._output is None:
            return None
        try:
            output = self._output.read(message)
        except Exception as error:
            attach_messages(error, [] if self.stream is not None else self._new)
            raise
        if output is not None:
            self._results = self._output.results(message, [*self._before, *self._new])
            self._new += self._results
        return output

    def _fail(self, error: BaseException | None) -> None:
        """Record the messages that a failed run had completed. Unless streamed, the error carries the question with them."""
        if error is None or isinstance(error, GeneratorExit):
            return
        known = {message.id for message in (*self._before, *self._new)}  # an error before this one may have brought these
        self._new += [message for message in new_messages(error) if message.id not in known]
        if (self.stream is None or self._undelivered) and self._has_news:
            attach_messages(error, self._new)

    @property
    def _has_news(self) -> bool:
        return len(self._new) > self._asked

    # ------------------------------------------------------------------------------------------ the end

    def end(self) -> None:
        """Keep the completed messages, and allow the next question."""
        if self._ended:
            return
        self._ended = True
        try:
            if self._has_news:
                self._memory.add([*self._answered, *self._new])
        except BaseException as error:
            attach_messages(error, self._new)
            raise
        finally:
            self._floor.leave(self)

    async def aend(self) -> None:
        """Like `end`, asynchronously."""
        if self._memory.is_local or not self._has_news:
            self.end()
        elif not self._ended:
            self._ended = True
            self._saving = asyncio.ensure_future(self._save())
            await asyncio.shield(self._saving)

    async def _save(self) -> None:
        try:
            await self._memory.aadd([*self._answered, *self._new])
        except BaseException as error:
            attach_messages(error, self._new)
            raise
        finally:
            self._floor.leave(self)

    def give_way(self) -> None:
        """End the answer for the next question.

        Raises:
            ConfigurationError: It is being made.
        """
        stream = self._left_stream()
        if stream is None:  # it was asynchronous, and its event loop is about to close it
            self.end()
        else:
            stream.supersede()

    async def agive_way(self) -> None:
        """Like `give_way`, asynchronously."""
        if self._saving is not None and self._saving.get_loop() is asyncio.get_running_loop():
            await asyncio.wait([self._saving])
            return
        stream = self._left_stream()
        if stream is None:
            await self.aend()
        else:
            await stream.asupersede()

    def _left_stream(self) -> OpenStream | None:
        """Return the stream that was left unread; None if it is gone."""
        if self.stream is None or self._ended:
            raise busy()
        return self.stream()


def answers_to_open_calls(history: Sequence[BaseMessage]) -> list[ToolMessage]:
    """Return results that tell the model that the open calls of a history did not run."""
    last, results = open_end(history)
    answered = {result.tool_call_id for result in results}
    calls = [] if last is None else calls_of(last)
    if last is None or all(call.id in answered for call in calls):
        return []
    repaired = {one.tool_call_id: one for one in repair(history) if isinstance(one, ToolMessage)}
    answers = []
    for place, call in enumerate(calls):
        if call.id not in answered and call.id in repaired:
            message_id = result_id(last, call.id) or str(uuid.uuid4())
            answers.append(numbered_result(repaired[call.id].model_copy(update={"id": message_id}), last, place))
    return answers


def _bringing(messages: Sequence[BaseMessage]) -> AIMessageChunk:
    """Return a chunk without content from which `new_messages` returns these messages."""
    chunk = new_chunk("", {}, None)
    attach_messages(chunk, messages)
    return chunk
