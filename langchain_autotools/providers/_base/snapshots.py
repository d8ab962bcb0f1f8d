"""Partial outputs: values that a structured output parser yields from a stream before the output is complete.

A snapshot is the output as far as it has been written: in the text, or in the arguments of the call that stands for the schema. Pieces of
arguments come as provisional events, for no chunk holds them, and so does text that another model may yet write anew. A snapshot is parsed
and never run; after the last one comes what `invoke` returns or raises.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Final

from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.tool import tool_call
from langchain_core.output_parsers import BaseTransformOutputParser
from langchain_core.outputs import ChatGeneration, Generation
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import run_in_executor

from ... import event_types as kinds
from ... import vendor_event_types as vendor_kinds
from ...chunks import ChunkSum, is_blank
from ...event_bus import Tap, listening, stop_listening
from ...event_tables import NOTHING, EventTable
from ...event_types import partial_arguments
from ...messages.metadata import text_of

_END: Any = object()


class SnapshotParser(BaseTransformOutputParser[Any]):
    """A parser that yields each new snapshot of a stream, then the output. `parse_result` with `partial` parses a snapshot.

    Attributes:
        expected: The name of the tool whose call is the output; None where the text is.
        withheld: Whether the run holds its text back until the turn is whole. The snapshots are then made of its events.
    """

    expected: str | None = None
    withheld: bool = False

    def snapshot(self, written: str) -> Any:
        """Return the output parsed from an incomplete text; None if nothing can be parsed yet.

        Args:
            written: The text, or the arguments of the call, so far.
        """
        calls = [tool_call(name=self.expected, args=partial_arguments(written), id=None)] if self.expected else []
        message = AIMessage(content="" if self.expected else written, tool_calls=calls)
        try:
            return self.parse_result([ChatGeneration(message=message)], partial=True)
        except Exception:  # validators of the schema, which are not made for halves: of the whole their error is raised
            return None

    def transform(self, input: Iterator[Any], config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        """Yield the snapshots and the output of a stream of message chunks. Closing it closes the stream and its request."""
        reading = _Reading(self)
        outputs = self._transform_stream_with_config(reading.chunks(input), reading.outputs, config, run_type="parser")
        try:
            for output in outputs:  # noqa: UP028 - of a `yield from` core would read the stream to its end first
                yield output
        finally:
            reading.left = True
            getattr(input, "close", lambda: None)()

    async def atransform(self, input: AsyncIterator[Any], config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Any]:
        """Like `transform`, asynchronously."""
        reading = _Reading(self)
        outputs: Any = self._atransform_stream_with_config(reading.achunks(input), reading.aoutputs, config, run_type="parser")
        try:
            async with aclosing(outputs):
                async for output in outputs:
                    yield output
        finally:
            if hasattr(input, "aclose"):
                await input.aclose()


class _Written(Tap):
    """Collects the growing output: the arguments of the tool call that holds it, or the text of a run that holds its text back.

    Args:
        name: The name of the tool; None: the text is the output.
    """

    def __init__(self, name: str | None) -> None:
        super().__init__(listening.get())
        self._name = name
        self._call_id: str | None = None
        self._written = ""

    def handle(self, event: Any) -> None:
        """Record the longer text, or the longer arguments of the turn's first call of the name."""
        note = _NOTES.get(type(event))
        if note is not None:
            note(self, event)

    def _text(self, event: kinds.TextDelta) -> None:
        if self._name is None:
            self._written += event.text
            self._keep(self._written)

    def _anew(self, _: kinds.MessageDiscarded) -> None:
        self._written = ""

    def _started(self, event: kinds.CallStarted) -> None:
        if self._call_id is None and event.provisional and event.name == self._name:
            self._call_id, self._written = event.call_id, ""
            self._keep("")

    def _arguments(self, event: kinds.CallArgumentsDelta) -> None:
        if event.call_id == self._call_id:
            self._written += event.text
            if self.waiting and not self.waiting[-1]:
                self.waiting.pop()  # it began with this piece
            self._keep(self._written)

    def _discarded(self, event: kinds.CallDiscarded) -> None:
        if event.call_id == self._call_id:
            self._call_id = None

    def _message_done(self, _: kinds.MessageDone) -> None:
        self._call_id, self._written, self.delivered = None, "", False

    def drain(self) -> list[str]:
        """Return what was recorded since the last time this method was called."""
        recorded = [*self.waiting]
        self.waiting.clear()
        return recorded


_NOTES: Final = EventTable[Callable[[_Written, Any], None]](
    "partial outputs",
    {
        kinds.RunStarted: NOTHING,
        kinds.TextDelta: _Written._text,
        kinds.ReasoningDelta: NOTHING,
        kinds.CallStarted: _Written._started,
        kinds.CallArgumentsDelta: _Written._arguments,
        kinds.CallReady: NOTHING,
        kinds.CallDiscarded: _Written._discarded,
        kinds.CallProgress: NOTHING,
        kinds.CallResult: NOTHING,
        kinds.MessageDone: _Written._message_done,
        kinds.MessageDiscarded: _Written._anew,
        kinds.ModelChanged: NOTHING,
        kinds.MessagesAdded: NOTHING,
        kinds.TurnUsage: NOTHING,
        kinds.CallsPending: NOTHING,
        vendor_kinds.VendorCallStarted: NOTHING,
        vendor_kinds.VendorCallProgress: NOTHING,
        vendor_kinds.VendorCallDone: NOTHING,
        vendor_kinds.SourceFound: NOTHING,
        vendor_kinds.FileMade: NOTHING,
        kinds.RunEnded: NOTHING,
        kinds.RunFailed: NOTHING,
    },
)


class _Reading:
    """One pass of a stream through a parser.

    Attributes:
        left: Whether nobody reads it any more.
    """

    def __init__(self, parser: SnapshotParser) -> None:
        self.left = False
        self._parser = parser
        self._tap = _Written(parser.expected) if parser.expected or parser.withheld else None
        self._parts = ChunkSum()
        self._message: AIMessage | None = None  # that came whole
        self._text: list[str] = []
        self._last: Any = None

    # ------------------------------------------------------------------------------------------ the stream

    def chunks(self, input: Iterator[Any]) -> Iterator[Any]:
        """Yield the chunks of the stream while listening for what is written."""
        while not self.left:
            before = listening.set(self._tap.place) if self._tap else None
            try:
                chunk = next(input, _END)
            finally:
                if before is not None:
                    stop_listening(before)
            if chunk is _END:
                return
            if self._brings(chunk):
                yield chunk

    async def achunks(self, input: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Like `chunks`, asynchronously."""
        while True:
            before = listening.set(self._tap.place) if self._tap else None
            try:
                chunk = await anext(input, _END)
            finally:
                if before is not None:
                    stop_listening(before)
            if chunk is _END:
                return
            if self._brings(chunk):
                yield chunk

    def _brings(self, chunk: Any) -> bool:
        """Whether a chunk contributes to the message, or events have brought more of the output."""
        return not (isinstance(chunk, AIMessageChunk) and is_blank(chunk)) or bool(self._tap and self._tap.waiting)

    # ------------------------------------------------------------------------------------------ what comes of it

    def outputs(self, chunks: Iterator[Any]) -> Iterator[Any]:
        """Yield each new snapshot once, then the output."""
        for chunk in chunks:
            for written in self._written(chunk):
                if self._is_new(snapshot := self._parser.snapshot(written)):
                    yield snapshot
        if (result := self._result()) and self._differs(output := self._parser.parse_result(result)):
            yield output

    async def aoutputs(self, chunks: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Like `outputs`, asynchronously."""
        async for chunk in chunks:
            for written in self._written(chunk):
                if self._is_new(snapshot := await run_in_executor(None, self._parser.snapshot, written)):
                    yield snapshot
        if (result := self._result()) and self._differs(output := await self._parser.aparse_result(result)):
            yield output

    def _written(self, chunk: Any) -> Sequence[str]:
        """Process a chunk and return the texts written since the previous one, each from the start of the output."""
        if not isinstance(chunk, AIMessageChunk):
            self._message = chunk
        else:
            self._parts.add(chunk)
        if self._tap is not None:
            return self._tap.drain()
        text = text_of(chunk)
        self._text.append(text)
        return ["".join(self._text)] if text else ()

    def _is_new(self, snapshot: Any) -> bool:
        """Whether a snapshot is yet to be yielded."""
        if snapshot is None or not self._differs(snapshot):
            return False
        self._last = snapshot
        if self._tap is not None:
            self._tap.delivered = True
        return True

    def _differs(self, output: Any) -> bool:
        """Whether this differs from the last yielded output; False if there was none."""
        return bool(output != self._last)

    def _result(self) -> list[Generation]:
        """Return the whole message in the form that parsers accept; empty for an empty stream."""
        message = self._parts.message() if self._message is None and self._parts else self._message
        return [] if message is None else [ChatGeneration(message=message)]
