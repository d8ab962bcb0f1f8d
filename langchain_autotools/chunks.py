"""Message chunks: their creation, copies, sums, fast enough for long streams."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.messages.utils import message_chunk_to_message
from pydantic import BaseModel

from .compat import new_chunk as new_chunk
from .compat import unvalidated

_B = TypeVar("_B", bound=BaseModel)


def copier(model: _B, names: Iterable[str]) -> Callable[[Mapping[str, Any]], _B]:
    """Return a function that copies a message (or other pydantic model) with new values for some fields, without validation.

    What `model_copy` does, at a third of its cost: a copy is made for every chunk of a stream.

    Args:
        model: The model to copy.
        names: The fields that each copy is given. Containers in other fields would be shared by all copies.
    """
    cls, values_of = model.__class__, model.__dict__.copy
    known, extra = {*model.__pydantic_fields_set__, *names}.copy, model.__pydantic_extra__

    def copy(fields: Mapping[str, Any]) -> _B:
        values = values_of()
        values.update(fields)
        return unvalidated(cls, values, known(), None if extra is None else extra.copy())

    return copy


def _detached(chunk: AIMessageChunk) -> AIMessageChunk:
    """Return a copy of the chunk that shares no containers or blocks with it, safe from later changes."""
    values = {
        name: value.copy()
        if isinstance(value, dict)
        else [part.copy() if part.__class__ is dict else part for part in value]
        if isinstance(value, list)
        else value
        for name, value in chunk.__dict__.items()
    }
    return unvalidated(chunk.__class__, values, chunk.__pydantic_fields_set__.copy(), dict(chunk.__pydantic_extra__ or {}))


_GROWS = {"text": "text", "thinking": "thinking", "reasoning": "reasoning"}
"""The kinds of content blocks that grow, and the key under which each has its text."""
_KEPT = frozenset({"model_provider", "output_version"})
"""Metadata that `+` keeps if two chunks agree; other texts would be concatenated."""
_NEVER_GLUED = frozenset({"id", "index", "type", *_KEPT})
"""Additional keywords of which `+` does not put the texts together."""
_Shape = tuple[str | None, str, Any, dict[str, Any]]
"""What chunks that grow one text have in common: the message's id, the kind of the text, its place, the metadata."""


class ChunkSum:
    """The sum of a stream's chunks, computed incrementally in linear time, unlike repeated `+`.

    Of chunks that add text, reasoning or thinking to what is there and nothing else only the text is kept: core would look at
    every field of each, and a caller may change the chunks that they were given.
    """

    def __init__(self, chunks: Iterable[AIMessageChunk] = ()) -> None:
        self._chunks: list[AIMessageChunk] = []
        self._texts: list[str] = []
        self._shape: str | _Shape | None = None
        for chunk in chunks:
            self.add(chunk)

    def __bool__(self) -> bool:
        return bool(self._chunks or self._texts)

    def add(self, chunk: AIMessageChunk) -> None:
        """Add the stream's next chunk."""
        fields = chunk.__dict__
        text: Any = fields["content"]
        shape: str | _Shape | None = fields["id"]
        says_more = fields["additional_kwargs"] or fields["response_metadata"]
        is_other = fields["tool_call_chunks"] or fields["usage_metadata"] or fields["chunk_position"] or fields["name"]
        if not (text or says_more or is_other) and is_blank(chunk):
            return
        if text.__class__ is list and len(text) == 1 and text[0].__class__ is dict and len(text[0]) == 3 and not is_other:
            block = text[0]  # of which nothing but its text may be new, as of most: no call of a function
            kind = block.get("type")
            more = (shape, kind, block.get("index"), fields["response_metadata"]) == self._shape and block.get(kind)
            if more.__class__ is str and not fields["additional_kwargs"]:
                self._texts.append(more)
                return
        if says_more or is_other or text.__class__ is not str:
            piece = None if is_other else _growing_piece(text, fields["additional_kwargs"], fields["response_metadata"], shape)
            if piece is None:
                self._join()
                self._chunks.append(_detached(chunk))
                return
            shape, text = piece
        if shape != self._shape:
            self._join()
            self._shape = shape
        self._texts.append(text)

    def _join(self) -> None:
        """Merge the texts since the last other chunk to one chunk."""
        if not self._texts:
            return
        text, shape = "".join(self._texts), self._shape
        self._texts = []
        if not isinstance(shape, tuple):
            self._chunks.append(new_chunk(text, {}, shape))
            return
        message_id, kind, place, metadata = shape
        if kind in _GROWS:
            self._chunks.append(new_chunk([{"type": kind, _GROWS[kind]: text, "index": place}], {}, message_id, metadata.copy()))
        else:
            self._chunks.append(new_chunk(place(), {kind.removeprefix("+"): text}, message_id, metadata.copy()))

    @property
    def chunks(self) -> list[AIMessageChunk]:
        """Return the chunks, with neighbours that bring nothing but text of one kind merged."""
        self._join()
        return self._chunks

    def message(self) -> AIMessage:
        """Return the message that the chunks form together."""
        first, *others = self.chunks or [new_chunk("", {}, None)]
        return message_chunk_to_message(add_ai_message_chunks(first, *others))  # type: ignore[return-value]


def sum_chunks(chunks: Iterable[AIMessageChunk]) -> AIMessage:
    """Return the message that the chunks of a stream form together."""
    return ChunkSum(chunks).message()


def is_blank(chunk: AIMessageChunk) -> bool:
    """Whether a chunk has no part in its message: it brings nothing but a note (`messages.metadata`), or is empty and hands over."""
    fields = chunk.__dict__
    extra = fields["additional_kwargs"]
    says = fields["content"] or extra or fields["response_metadata"] or fields["tool_call_chunks"] or fields["usage_metadata"]
    return not (says or fields["chunk_position"] or fields["name"] or (fields["id"] and extra.__class__ is dict))


def _growing_piece(content: Any, extra: Mapping[str, Any], metadata: Mapping[str, Any], message_id: Any) -> tuple[_Shape, str] | None:
    """Return the text that a chunk with these adds to one block, and the rest of the chunk; None if it adds anything else.

    The text may also belong to one additional keyword, such as `reasoning_content`."""
    kind: Any
    place: Any
    if metadata and not metadata.keys() <= _KEPT:
        return None
    if extra:
        if content or len(extra) != 1:
            return None
        ((name, text),) = extra.items()
        kind, place = f"+{name}", content.__class__
        if name in _NEVER_GLUED:
            return None
    else:
        text = growing_text(content[0]) if len(content) == 1 else None
        if text is None:
            return None
        kind, place = content[0]["type"], content[0]["index"]
    return ((message_id, kind, place, {**metadata}), text) if text.__class__ is str else None


def growing_text(block: Any) -> str | None:
    """Return the text of a numbered block of text, reasoning or thinking that says nothing else; None for all other blocks."""
    if block.__class__ is not dict or len(block) != 3 or block.get("index").__class__ is not int:
        return None
    kind = block.get("type")
    text = block.get(_GROWS.get(kind)) if kind.__class__ is str else None
    return text if text.__class__ is str else None


def as_chunk(message: AIMessage) -> AIMessageChunk:
    """Return an AI message as one chunk; chunks are returned unchanged."""
    if isinstance(message, AIMessageChunk):
        return message
    values = {name: getattr(message, name) for name in AIMessage.model_fields if name != "type"}
    return AIMessageChunk(**values)


_GROWING = frozenset({"text", "thinking", "citations"})


def merge_given(*chunks: AIMessageChunk | None) -> AIMessageChunk | None:
    """Merge the raw chunks that are not None; None if there is none."""
    given = [chunk for chunk in chunks if chunk is not None]
    return merge_chunks(given) if given else None


def merge_chunks(chunks: list[AIMessageChunk]) -> AIMessageChunk:
    """Merge raw chunks. (Core's sum would also merge fragments of calls, which the assembler needs separately.)"""
    if len(chunks) == 1:
        return chunks[0]
    fragments = [fragment for chunk in chunks for fragment in chunk.additional_kwargs.get("tool_calls", ())]
    whole = new_chunk(_joined_contents(chunks), {"tool_calls": fragments} if fragments else {}, chunks[0].id)
    for chunk in chunks:
        whole.__dict__["response_metadata"] |= chunk.response_metadata
        whole.__dict__["usage_metadata"] = chunk.usage_metadata or whole.usage_metadata
    return whole


def _joined_contents(chunks: list[AIMessageChunk]) -> str | list[Any]:
    """Return the contents in order, with parts of one block merged."""
    if all(isinstance(chunk.content, str) for chunk in chunks):
        return "".join(str(chunk.content) for chunk in chunks)
    parts: list[Any] = []
    for chunk in chunks:
        for part in [chunk.content] if isinstance(chunk.content, str) else chunk.content:
            last = parts[-1] if parts else None
            if isinstance(part, dict) and isinstance(last, dict) and part["index"] == last["index"]:
                grown = {key: last[key] + part[key] for key in _GROWING & part.keys() & last.keys()}
                parts[-1] = {**last, **part, **grown}
            elif isinstance(part, str) and isinstance(last, str):
                parts[-1] = last + part
            elif part:
                parts.append(part)
    return parts
