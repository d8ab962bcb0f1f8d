"""The outgoing chunks of a run: the chunks of every turn, made parts of one message.

`RunOutput` holds the state of one run's stream to its caller. It does no I/O and returns the chunks to hand on; `invoke` sums the
very same chunks, so both always say the same (design: "The run message and its carrier").
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.messages.tool import ToolCallChunk

from ..chunks import growing_text, new_chunk
from ..compat import UNPARSABLE
from ..messages.blocks import is_call_block
from ..messages.calls import AWAITS, ToolCallRecord, entries_of_awaited, id_of_item, records_of
from ..messages.metadata import ASKED, CACHED_ID, KEY, attach_messages, text_of, without_cached_id
from ..messages.run_messages import OPEN_CALLS, Separators, generation_id, numbered, serialize_messages, shown_entries
from ..strict_json import read_object
from .loop import RunOutcome

_OF_VENDOR = {"model_provider"}
_TEXT = "text"
"""The index of the block that a turn's text becomes where the content of other turns is blocks."""
_PART_OF_TURN = frozenset({KEY, "generation_id", "message_order_idx", "tool_call_idx", "output_version"})


@dataclass(eq=False, repr=False)
class RunOutput:
    """The outgoing message chunks of one run.

    Args:
        position: The number of messages in the run's history before its first new message.
        separator: The separator between the texts of two turns.
        carry_messages: Whether the chunks carry the new messages as data.
        blocks: Whether content is a list of v1 content blocks.
        listed: Whether the turns' content is always a list of the vendor's blocks.
        withholds: Whether what turns that call tools say does not leave.

    Attributes:
        handed_out: The new messages so far.
        left_apart: The chunks that have left and are not those of a message: of replies that are void, and of messages that are stored in
            another form. By the number of the new message before which they left, or in whose place.
        replaced: The numbers of the messages in whose place chunks have left.
    """

    position: int
    separator: InitVar[str]
    carry_messages: bool
    blocks: bool
    listed: bool = False
    withholds: bool = False
    handed_out: list[BaseMessage] = field(default_factory=list, init=False)
    left_apart: dict[int, list[Sequence[AIMessage]]] = field(default_factory=dict, init=False)
    replaced: set[int] = field(default_factory=set, init=False)
    _generation: str | None = field(default=None, init=False)
    _message: AIMessage | None = field(default=None, init=False)
    _indices: dict[object, int] = field(default_factory=dict, init=False)
    _next_index: int = field(default=0, init=False)
    _grows: tuple[str, int, dict[str, Any]] = field(default=("", 0, {}), init=False)  # kind, index and metadata of the last block
    _provider: str | None = field(default=None, init=False)  # the vendor of the blocks that left first
    _said: dict[str, Any] = field(default_factory=dict, init=False)  # the metadata with which the block that grows leaves
    _delivered: int = field(default=0, init=False)

    def __post_init__(self, separator: str) -> None:
        self._joints = Separators(separator)
        self._listed = self.listed
        self._version = {"output_version": "v1"} if self.blocks else {}

    def anew(self) -> "RunOutput":
        """Return the outward side of the same run, of which nothing has left yet."""
        return replace(self, separator=self._joints.separator)

    # ------------------------------------------------------------------------------------------ turns

    def chunk(self, chunk: AIMessageChunk) -> list[AIMessageChunk]:
        """Return a turn's chunk for the caller: its text and reasoning, without ids, calls and metadata."""
        fields = chunk.__dict__
        content, extra, metadata = fields["content"], fields["additional_kwargs"], fields["response_metadata"]
        if fields["chunk_position"] or (self._listed and content and content.__class__ is str):
            return self._general(content, extra, metadata)
        if content.__class__ is str:
            if not extra:
                if not content:
                    return []
                text = new_chunk(content, {}, None)
                if self._joints.is_due:
                    return self._separated(text, content)
                self._joints.last = content
                return [text]
            if len(extra) == 1 and not (content or metadata or self.blocks):
                ((name, value),) = extra.items()
                return [new_chunk([] if self._listed else "", {name: value}, None)] if isinstance(value, str) else []
        elif len(content) == 1 and not (extra or self.blocks or self._joints.is_due):
            block = content[0]
            if block.__class__ is dict and len(block) == 3 and (block.get("type"), block.get("index"), metadata) == self._grows:
                kind, place, _ = self._grows  # of which nothing but its text is new, as of most: no call of a function
                more, number = block.get(kind), self._indices.get((self._generation, place))
                if more and more.__class__ is str and number is not None:
                    self._joints.last = more if kind == "text" else self._joints.last
                    return [new_chunk([{**block, "index": number}], {}, None, self._said.copy())]
            return self._block_chunk(block, metadata)
        return self._general(content, extra, metadata)

    def _block_chunk(self, block: Any, metadata: dict[str, Any]) -> list[AIMessageChunk]:
        """Return the chunk for one block of a turn's content, before which no separator is due."""
        text = growing_text(block)
        if not text or (metadata and metadata.keys() != _OF_VENDOR):
            return self._general([block], {}, metadata)
        self._listed = True
        if block["type"] == "text":
            self._joints.last = text
        self._grows, self._said = (block["type"], block["index"], metadata.copy()), self._of_vendor(metadata)
        return [new_chunk([self._numbered(block)], {}, None, self._said.copy())]

    def leave_apart(self, chunks: Sequence[AIMessage], *, replaces: bool) -> None:
        """Record chunks of the current turn that have left and that its message does not hold.

        Args:
            chunks: The chunks.
            replaces: Whether they stand for the whole message; else their reply is void, and the next one's blocks are others.
        """
        self.left_apart.setdefault(len(self.handed_out), []).append(chunks)
        if replaces:
            self.replaced.add(len(self.handed_out))
        else:
            self._indices = {}

    def again(self, replies: Iterable[Iterable[AIMessage]]) -> Iterable[AIMessageChunk]:
        """Yield the outgoing chunks of replies that left apart."""
        for chunks in replies:
            for chunk in chunks:
                yield from self.from_message(chunk)
            self._indices = {}

    def from_message(self, message: AIMessage) -> list[AIMessageChunk]:
        """Return the chunks for a turn that came as one message."""
        return self._general(message.content, message.additional_kwargs, message.response_metadata)

    def _general(self, content: str | list[Any], extra: dict[str, Any], metadata: dict[str, Any]) -> list[AIMessageChunk]:
        kept = {key: value for key, value in extra.items() if isinstance(value, str)}
        if isinstance(content, list):
            content = [block for block in content if not is_call_block(block)]
        if not content and not kept:
            return []
        if isinstance(content, str):
            if self._listed:  # core's `+` drops a text behind an empty list
                content = [{"type": "text", "text": content, "index": _TEXT}] if content else []
                if self._indices.get((self._generation, _TEXT)) != self._next_index - 1:  # behind another block it is a block of its own
                    self._indices.pop((self._generation, _TEXT), None)
        elif self._joints.last and not self._listed and content and isinstance(content[0], str):  # as of a stream, whose blocks come later
            return [*self._general(content[0], {}, {}), *self._general(content[1:], extra, metadata)]
        first = _first_text(content) if self._joints.is_due else 0
        before = [self._chunk(self._renumbered(content[:first]), {}, metadata)] if first else []  # reasoning, before the separator
        chunk = self._chunk(content[first:], kept, metadata)
        separated = self._separated(chunk, text_of(chunk))
        chunk.content = self._renumbered(chunk.content)  # after the separator: numbers are in the order of the run
        return [*before, *separated]

    def _chunk(self, content: str | list[Any], extra: dict[str, Any], metadata: dict[str, Any]) -> AIMessageChunk:
        of_blocks = {}
        if isinstance(content, list):
            self._listed = True
            of_blocks = self._of_vendor(metadata)
        return new_chunk(content, extra, None, {**of_blocks, **self._version})

    def _of_vendor(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Return the vendor's name, by which core reads blocks; nothing behind another one's, as `+` would put both together."""
        name = metadata.get("model_provider")
        self._provider = self._provider or name
        return {"model_provider": name} if name and name == self._provider else {}

    def _separated(self, chunk: AIMessageChunk, text: str) -> list[AIMessageChunk]:
        """Return the chunk, preceded by a separator if one is due."""
        separator = self._joints.before(text)
        return [self._text_chunk(separator), chunk] if separator else [chunk]

    def _text_chunk(self, text: str) -> AIMessageChunk:
        """Return a chunk with text of the run's own, as a block if the run's content is blocks."""
        if not self.blocks and not self._listed:
            return AIMessageChunk(content=text)
        block = {"type": "text", "text": text, "index": self._new_index()}
        return AIMessageChunk(content=[block], response_metadata=self._version)

    def _new_index(self) -> int:
        self._next_index += 1
        return self._next_index - 1

    def _renumbered(self, content: str | list[Any]) -> str | list[Any]:
        """Return the content with indices that no block of another turn has."""
        return [self._numbered(block) for block in content] if isinstance(content, list) else content

    def _numbered(self, block: Any) -> Any:
        if not isinstance(block, dict):
            return block
        if "index" not in block:
            self._indices.pop((self._generation, _TEXT), None)
            return {**block, "index": self._new_index()} if self.blocks else block
        known = (self._generation, block["index"])
        number = self._indices.get(known)
        if number is None:
            number = self._indices[known] = self._new_index()
        return {**block, "index": number}

    # ------------------------------------------------------------------------------------------ messages

    def message(self, message: AIMessage) -> tuple[AIMessage, AIMessageChunk]:
        """Return a turn's AI message with its position, and the chunk that carries it."""
        own = message.response_metadata.get(KEY)
        cached = own.get(CACHED_ID) if isinstance(own, Mapping) else None
        self._generation = generation_id(message, self.position + len(self.handed_out), cached)
        message = message if cached is None else without_cached_id(message)
        self._message = numbered(message, self._generation, 0)
        self._joints.ended(message)
        return self._message, self.carrier_chunk(self._message)

    def carrier_chunk(self, message: BaseMessage) -> AIMessageChunk:
        """Return the chunk that carries a message."""
        self.handed_out.append(message)
        if isinstance(message, HumanMessage):
            self._joints.ask()
        metadata: dict[str, Any] = {KEY: {"messages": serialize_messages([message])}} if self.carry_messages else {}
        chunk = AIMessageChunk(content=[] if self.blocks or self._listed else "", response_metadata={**metadata, **self._version})
        attach_messages(chunk, [message])
        return chunk

    def hand_over(self) -> AIMessageChunk:
        """Return a chunk without content, with which a stream yields control to its reader."""
        return new_chunk([] if self.blocks or self._listed else "", {}, None)

    def delivered(self) -> None:
        """Record that the caller has received all messages so far."""
        self._delivered = len(self.handed_out)

    def undelivered(self) -> list[BaseMessage]:
        """Return the messages that no chunk has delivered; for `invoke` all messages so far."""
        return self.handed_out[self._delivered :]

    # ------------------------------------------------------------------------------------------ the end

    def end(self, outcome: RunOutcome) -> Iterable[AIMessageChunk]:
        """Return the last chunks: the text of direct results, then the metadata of the whole run."""
        for result in outcome.direct:
            self._joints.ask()
            text = text_of(result)
            if text:
                yield from self._separated(self._text_chunk(text), text)
        message = self._message or AIMessage(content="")
        metadata = {key: value for key, value in message.response_metadata.items() if key not in _PART_OF_TURN | _OF_VENDOR}
        metadata |= self._of_vendor(message.response_metadata)
        run = {"stop_reason": outcome.stop_reason, "turns": outcome.turns, "usage": outcome.usage}
        run |= {"message_sent": False} if outcome.not_taken else {}
        brought: dict[str, Any] = {"messages": []} if self.carry_messages else {}
        calls = [_call_chunk(call, self._new_index()) for call in outcome.pending if call.answer is None]
        chunk = AIMessageChunk(
            content=[*self._call_blocks(message, calls), *self._found_items(outcome)] or ([] if self.blocks else ""),
            id=message.id,
            additional_kwargs={key: value for key, value in message.additional_kwargs.items() if not isinstance(value, str)},
            response_metadata={**metadata, KEY: {**self._records(outcome), **brought, **run}, **self._version},
            tool_call_chunks=calls,
            usage_metadata=message.usage_metadata,
            chunk_position="last",
        )
        attach_messages(chunk, [])
        yield chunk

    def _call_blocks(self, message: AIMessage, calls: Sequence[ToolCallChunk]) -> str | list[Any]:
        """Return the calls left to the caller as content blocks if the content of messages contains calls."""
        if self.blocks:
            return [{"type": "tool_call_chunk", **call} for call in calls]
        if not calls or isinstance(message.content, str):
            return ""
        wanted = {call["id"] for call in calls}
        blocks = [block for block in message.content if is_call_block(block) and _id_of(block) in wanted]
        return [{**block, "index": self._new_index()} for block in blocks] or ""

    def _found_items(self, outcome: RunOutcome) -> list[Any]:
        """Return the vendor's own items left to the caller that no turn has yielded: those that the input ended in, or withheld ones."""
        wanted = {call.id for call in outcome.pending if call.answer is not None}
        content = outcome.asked.content if wanted and (self._message is None or self.withholds) and outcome.asked else ""
        items = [block for block in content if isinstance(block, dict) and id_of_item(block.get("value", block)) in wanted]
        return [{**block, "index": self._new_index()} for block in items]

    def _records(self, outcome: RunOutcome) -> dict[str, Any]:
        """Return the records of the calls left to the caller, so that they are sent back as the model wrote them."""
        own = (self._message.response_metadata.get(KEY) or {}) if self._message else {}
        kept = {key: value for key, value in own.items() if key not in ("calls", AWAITS)}
        asked, wanted = outcome.asked, {call.id for call in outcome.pending}
        if outcome.opened:
            kept[OPEN_CALLS] = shown_entries(None, outcome.opened)
        if asked is not None and wanted:
            entries = {AWAITS: entries_of_awaited(asked), "calls": records_of(asked)}
            left = {key: [entry for call_id, entry in known.items() if call_id in wanted] for key, known in entries.items()}
            kept |= {key: known for key, known in left.items() if known}
            kept |= {ASKED: asked.id} if self._message is None else {}
        return kept


def _first_text(content: str | list[Any]) -> int:
    """Return the number of blocks before the first text; 0 without text."""
    if isinstance(content, str):
        return 0
    return next((number for number, block in enumerate(content) if isinstance(block, str) or block.get("type") == "text"), 0)


def _id_of(block: Mapping[str, Any]) -> Any:
    return block.get("call_id") or block.get("id")


def is_unreadable(call: ToolCallRecord) -> bool:
    """Whether a call that is left to the caller is no call, but an output that nobody can read."""
    return call.args is None and not call.waits and read_object(call.arguments) is None


def _call_chunk(call: ToolCallRecord, index: int) -> ToolCallChunk:
    arguments = UNPARSABLE + call.arguments if is_unreadable(call) else call.arguments or json.dumps(call.args)
    return ToolCallChunk(name=call.spelling, args=arguments, id=call.id, index=index, type="tool_call_chunk")
