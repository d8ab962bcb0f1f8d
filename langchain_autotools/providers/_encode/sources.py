"""The source of a content block's data, for blocks of any vendor: a URL, base64 data, an uploaded file's id, or text.

Understood are LangChain's v1 and v0 blocks and the blocks of OpenAI, Anthropic, Google and MCP. What a wire cannot carry is described in
words here.
"""

import base64
import codecs
import json
import mimetypes
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeVar
from urllib.parse import unquote_to_bytes

from ...errors import UnsupportedFeatureError
from ...messages.blocks import FILE_TYPES, INLINE_KEYS, MEDIA_TYPES, media_type, size_of

Block = Mapping[str, Any]
"""A content block of any vendor."""

Kind = Literal["image", "audio", "video", "text", "pdf", "file"]
"""What data is; "file" for data that is none of the others."""

_Part = TypeVar("_Part")
FROM_TOOL = "Output of tool call {}:"
"""Heading of a tool's output within a user message."""
FROM_MODEL = "Output of the assistant:"
"""Heading of a user message with media that a model produced."""
PDF: Final = "application/pdf"

_TEXTS = ("text", "input_text", "output_text", "refusal", "custom_tool_call_output")
_SOUNDS = {"mp3": "audio/mpeg", "wav": "audio/wav"}
_TEXT_TYPES = frozenset(
    f"application/{name}"
    for name in ("json", "jsonl", "x-ndjson", "xml", "yaml", "x-yaml", "toml", "csv", "sql", "javascript", "typescript", "x-sh")
)
_DOCUMENTS = ("document", "document_url")
_FILE_PARTS = ("file part", "input_file")
_VAGUE = ("", "application/octet-stream", "binary/octet-stream")
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_LOOSE = str.maketrans({"-": "+", "_": "/", " ": None, "\n": None, "\r": None, "\t": None})
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(rb"""<(?:\?xml[^>]{0,200}encoding|meta[^>]{0,200}charset)\s*=\s*["']?([\w.:-]+)""", re.IGNORECASE)
_NOUNS: Mapping[Kind, str] = {"image": "picture", "audio": "sound", "video": "video", "text": "text", "pdf": "document", "file": "file"}


ODD: Final = (TypeError, AttributeError, LookupError, ValueError, OverflowError)
"""Errors for a block that cannot be sent, or that has none of the known forms."""


def unsupported(kind: Any, why: str) -> UnsupportedFeatureError:
    """Return the error for a content block that a wire cannot carry."""
    return UnsupportedFeatureError(f"content block of type {kind!r} cannot be sent: {why}")


def unwrapped(block: Block) -> Block:
    """Return the block, or the vendor's own block inside a non-standard LangChain block."""
    while block.get("type") == "non_standard" and isinstance(block.get("value"), Mapping):
        block = block["value"]
    return block


# ---------------------------------------------------------------------------------------------- text


def convert_block(block: Block, text_part: Callable[[str], _Part], converters: Mapping[str, Callable[[Block], _Part]], why: str) -> _Part:
    """Convert a block by its type.

    Args:
        block: The block.
        text_part: Converts the text of a block that is nothing but text.
        converters: By type, what converts the other blocks; under "media" what converts all that have data of their own.
        why: The error's text.

    Raises:
        UnsupportedFeatureError: No converter is for this type.
    """
    text = block_text(block)
    if text is not None:
        return text_part(text)
    kind = block.get("type")
    convert = converters.get(kind) if isinstance(kind, str) else None
    if convert is None and is_media(block):
        convert = converters["media"]
    if convert is None:
        raise unsupported(kind, why)
    return convert(block)


def convert_content(content: str | list[str | dict[Any, Any]], part_of: Callable[[str | Block], _Part | None]) -> list[_Part]:
    """Convert the content of a message, omitting blocks that have no form on the wire."""
    blocks = [content] if isinstance(content, str) else content
    return [part for part in map(part_of, blocks) if part is not None]


def block_text(block: Block) -> str | None:
    """Return the text of a block that holds only text or JSON, of any vendor; None for other blocks.

    So is what the caller answered to a tool of another vendor's, where a result says it (`history.repair`).
    """
    kind = block.get("type")
    if kind is None and isinstance(block.get("text"), str):
        kind = "text"
    if "is_error" in block and "call_id" in block:
        return FROM_TOOL.format(block["call_id"]) + "\n" + (_joined_or_json(block.get("output")))
    if kind == "json":
        return json.dumps(block.get("json"), ensure_ascii=False, default=str)
    if kind == "resource_link":
        lines = (f"{block.get('title') or block.get('name') or kind}: {block.get('uri', '')}", block.get("description"))
        return "\n".join(str(line) for line in lines if line)
    if kind not in _TEXTS:
        return None
    text = block.get("text") or block.get("refusal") or block.get("output") or ""
    return text if isinstance(text, str) else _joined_or_json(text)


def _joined_or_json(content: Any) -> str:
    """Return content as text: the joined texts, or JSON if it holds anything else."""
    is_text = isinstance(content, str) or (isinstance(content, list) and all(isinstance(part, dict) and "text" in part for part in content))
    return (_joined(content) if is_text else None) or json.dumps(content, ensure_ascii=False, default=str)


def _joined(content: Any) -> str | None:
    """Return the text of content that is a text or a list of text blocks."""
    if isinstance(content, list):
        return "\n".join(str(item.get("text", "")) for item in content if isinstance(item, Mapping))
    return content if isinstance(content, str) else None


def search_result_text(block: Block) -> str:
    """Return a search result as text, for wires that have no such block."""
    head = " ".join(str(block[key]) for key in ("title", "source") if block.get(key))
    return "\n".join(line for line in (head, _joined(block.get("content"))) if line)


def document_text(block: Block, source: "Source") -> str:
    """Return the text of a text document under its title, or its file's name, and its context.

    Raises:
        UnsupportedFeatureError: Its data is in no known encoding.
    """
    heads = (extra(block, "title") or source.name, extra(block, "context"))
    return "\n".join([*(str(head) for head in heads if head), source_text(source, block.get("type"))])


def source_text(source: "Source", kind: Any) -> str:
    """Return the text of a source: its data is read by the charset that its media type names, else by what it is beyond doubt.

    Raises:
        UnsupportedFeatureError: Neither says how to read it.
    """
    if source.text is not None:
        return source.text
    data = base64.b64decode(source.data or "")
    declared = _DECLARED.search(data[:1024]) if source.essence.endswith(("xml", "html")) else None
    names = (source.parameter("charset"), next((codec for mark, codec in _MARKS if data.startswith(mark)), None))
    name = next(filter(None, names), None) or (declared[1].decode() if declared else "utf-8")
    try:
        return data.decode(name).removeprefix("\ufeff")
    except (LookupError, UnicodeError):
        why = f"its text is not {name}: say its charset in mime_type, as in 'text/csv; charset=windows-1252'"
        raise unsupported(kind, why) from None


# ---------------------------------------------------------------------------------------------- data


@dataclass(frozen=True)
class Source:
    """The source of a block's data: exactly one of url, data (base64), file_id and text in a well-formed block.

    Attributes:
        url: An address.
        data: Base64 data.
        file_id: The id of an uploaded file.
        text: A text.
        mime_type: The media type, with its parameters; where the block does not say it, that of the data or of the file's name.
        name: The file's name.
        kind: What the data is.
    """

    url: str | None = None
    data: str | None = None
    file_id: str | None = None
    text: str | None = None
    mime_type: str | None = None
    name: str | None = None
    kind: Kind = "file"

    @property
    def essence(self) -> str:
        """The media type without its parameters, in small letters; empty if it is not known."""
        return str(self.mime_type or "").partition(";")[0].strip().lower()

    def parameter(self, name: str) -> str | None:
        """Return a parameter of the media type."""
        found = re.search(rf";\s*{name}\s*=\s*\"?([^\";]+)", str(self.mime_type or ""), re.IGNORECASE)
        return found[1].strip() if found else None


def is_media(block: Block) -> bool:
    """Whether a block is of a kind that has data of its own: a picture, sound, a video, a document or another file."""
    kind = block.get("type")
    return (isinstance(kind, str) and (kind in MEDIA_TYPES or kind in FILE_TYPES)) or any(
        isinstance(block.get(key), Mapping) for key in INLINE_KEYS
    )


def media_of(block: Block) -> Source:
    """Return the source of a block's data, as of `source_of`, whose data can be sent.

    Raises:
        UnsupportedFeatureError: The data is empty, or is no base64.
    """
    source = source_of(block)
    if source.data is None:
        return source
    kind, data = block.get("type"), source.data
    if not _BASE64.fullmatch(data):
        data = data.translate(_LOOSE)
    data += "=" * (-len(data) % 4) if not data.endswith("=") else ""
    if not data:
        raise unsupported(kind, "its data is empty")
    if len(data) % 4 or not _BASE64.fullmatch(data):
        raise unsupported(kind, "its data is no base64")
    return source if data == source.data else replace(source, data=data)


def source_of(block: Block) -> Source:
    """Return the source of a block's data. Data in a `data:` URL, or in the place of a URL, is extracted.

    Raises:
        UnsupportedFeatureError: The block has none of the known forms.
    """
    nested = block.get("source")
    source = _of_anthropic(nested) if isinstance(nested, Mapping) else _of_fields(_flat(block))
    values = (source.url, source.data, source.file_id, source.text, source.mime_type)
    if not all(value is None or isinstance(value, str) for value in values):
        raise unsupported(block.get("type"), "its data, its address and its media type are texts")
    name = source.name or extra(block, "filename", "file_filename", "name")
    source = replace(source, name=str(name) if name else None)
    if source.url:
        source = _from_data_url(source)
    elif source.data and source.data.startswith("data:"):
        source = _from_data_url(replace(source, data=None, url=source.data))
    return _typed(source, "file part" if isinstance(block.get("file"), Mapping) else block.get("type"))


def _of_anthropic(nested: Block) -> Source:
    kind, data = nested.get("type"), nested.get("data")
    return Source(
        url=nested.get("url"),
        data=_base64(data) if kind == "base64" else None,
        file_id=nested.get("file_id"),
        text=data if kind == "text" else _joined(nested.get("content")) if kind == "content" else None,
        mime_type=nested.get("media_type"),
    )


def _of_fields(block: Block) -> Source:
    """Return the source in LangChain's own layout."""
    v0 = block.get("source_type")
    url = block.get("url") or block.get("file_uri")
    data = block.get("base64") if block.get("base64") is not None else block.get("data")
    is_text = v0 == "text" and not block.get("text")
    return Source(
        url=url if v0 in (None, "url") else None,
        data=_base64(data) if v0 in (None, "base64") and data is not None else None,
        file_id=block.get("id") if v0 == "id" else block.get("file_id"),
        text=url if is_text else block.get("text"),
        mime_type=block.get("mime_type") or block.get("mimeType"),
        name=block.get("name"),
    )


def _flat(block: Block) -> Block:
    """Return a block of OpenAI, Google or MCP in the layout of LangChain's own blocks; other blocks unchanged."""
    for key in INLINE_KEYS:
        if isinstance(inner := block.get(key), Mapping):
            return {
                "base64": inner.get("data"),
                "url": inner.get("fileUri") or inner.get("file_uri"),
                "mime_type": inner.get("mimeType") or inner.get("mime_type"),
                "name": inner.get("displayName") or inner.get("display_name"),
            }
    kind = block.get("type")
    match kind:
        case "image_url" | "input_image" | "audio_url" | "video_url" | "document_url":
            url = block.get("image_url" if kind == "input_image" else kind)
            return {**block, "url": url.get("url") if isinstance(url, Mapping) else url, "name": block.get("document_name")}
        case "image_generation_call":
            made = block.get("output_format")
            return {"base64": block.get("result"), "mime_type": block.get("mime_type") or f"image/{made or 'png'}"}
        case "input_audio":
            sound = block.get("input_audio") or {}
            if not isinstance(sound, Mapping):
                return {**block, "base64": sound}
            name = str(sound.get("format") or "wav")
            return {"base64": sound.get("data"), "mime_type": _SOUNDS.get(name, f"audio/{name}")}
        case "resource" if isinstance(inner := block.get("resource"), Mapping):
            name = str(inner.get("uri") or "").rpartition("/")[2]
            return {"base64": inner.get("blob"), "text": inner.get("text"), "mime_type": inner.get("mimeType"), "name": name or None}
        case "file" | "input_file":
            return _flat_file(block)
    return block


def _flat_file(block: Block) -> Block:
    """Return a file part of chat completions or Responses in LangChain's form; other blocks unchanged."""
    nested = block.get("file")
    inner = nested if isinstance(nested, Mapping) else block
    if inner.get("file_data") or block.get("type") == "input_file":
        data, url = inner.get("file_data"), inner.get("file_url")
        if isinstance(data, str) and data.startswith(("data:", "http://", "https://")):
            data, url = None, data
        return {"base64": data, "url": url, "file_id": inner.get("file_id"), "name": inner.get("filename")}
    return {**inner, "name": inner.get("filename")} if inner is not block else block


def _base64(data: Any) -> Any:
    return base64.b64encode(data).decode() if isinstance(data, bytes | bytearray) else data


def _from_data_url(source: Source) -> Source:
    """Return the data of a `data:` URL, or of base64 data in the place of a URL, which langchain-ollama accepts."""
    url = source.url or ""
    bare = media_type(url)
    if bare:
        return replace(source, url=None, data=url, mime_type=bare)
    if not url.startswith("data:"):
        return source
    head, _, data = url.partition(",")
    is_base64 = head.endswith(";base64")
    mime_type = head.removeprefix("data:").removesuffix(";base64") or source.mime_type
    data = data if is_base64 else base64.b64encode(unquote_to_bytes(data)).decode()
    return replace(source, url=None, data=data, mime_type=mime_type)


def _typed(source: Source, block_type: Any) -> Source:
    """Return the source with its media type, where data or name say it, and with what it is."""
    own: Any = {**MEDIA_TYPES, "text-plain": "text"}.get(block_type) if isinstance(block_type, str) else None
    if source.essence in _VAGUE:
        found = media_type(source.data) if source.data else None
        if found is None and own is None:
            is_pdf = block_type in _DOCUMENTS or (source.data is not None and block_type in _FILE_PARTS)
            found = mimetypes.guess_type(source.name or "")[0] or (PDF if is_pdf else None)
        source = replace(source, mime_type=found)
    return replace(source, kind=_kind(source, own))


def _kind(source: Source, own: Kind | None) -> Kind:
    essence = source.essence
    top = essence.partition("/")[0]
    if source.text is not None:
        return "text"
    if top in ("image", "audio", "video"):
        return top  # type: ignore[return-value]
    if essence == PDF:
        return "pdf"
    if top == "text" or essence in _TEXT_TYPES or essence.endswith(("+json", "+xml")):
        return "text"
    return "file" if essence else own or "file"


def image_type(data: str) -> str | None:
    """Return the media type of an image from the first characters of its base64 data."""
    found = media_type(data)
    return found if found and found.startswith("image/") else None


# ---------------------------------------------------------------------------------------------- further values


def holders(block: Block) -> list[Mapping[str, Any]]:
    """Return the mappings in which a block may carry a value: the `metadata` of v0, the `extras` of v1, the block itself."""
    extras = block.get("extras")
    inner = extras.get("metadata") if isinstance(extras, Mapping) else None  # where core puts that of v0
    return [holder for holder in (block.get("metadata"), inner, extras, block) if isinstance(holder, Mapping)]


def extra(block: Block, *names: str) -> Any:
    """Return the first of the named values that the block carries anywhere."""
    values = (holder[name] for name in names for holder in reversed(holders(block)) if holder.get(name))
    return next(values, None)


# ---------------------------------------------------------------------------------------------- in words


def expanded(content: str | Sequence[str | Block], *, named: bool = True) -> Iterator[str | Block]:
    """Yield the blocks of a message for a wire whose documents hold no blocks and no context: those are texts and blocks of their own.

    Args:
        content: The content.
        named: Whether the wire's files have a name.
    """
    for block in [content] if isinstance(content, str) else content:
        if isinstance(block, str):
            yield block
            continue
        opened = unwrapped(block)
        if not is_media(opened) or opened.get("type") in MEDIA_TYPES:
            yield opened
            continue
        nested = opened.get("source")
        inner = nested.get("content") if isinstance(nested, Mapping) else None
        is_mixed = isinstance(inner, list) and any(not isinstance(one, Mapping) or block_text(one) is None for one in inner)
        if is_mixed or _is_data(opened, ("pdf", "file") if named else ("pdf",)):
            head = _heading(opened, named=named and not is_mixed)
            yield from [head] if head else []
        yield from inner if is_mixed and isinstance(inner, list) else [opened]


def _is_data(block: Block, kinds: Collection[str]) -> bool:
    """Whether a file is of one of these kinds."""
    try:
        return source_of(block).kind in kinds
    except ODD:
        return False


def _heading(block: Block, *, named: bool) -> str:
    """Return what a document says besides its data, of which a wire with names for files takes one."""
    title, context, name = extra(block, "title"), extra(block, "context"), source_of(block).name
    lines = [title, name] if not named else [title] if name and title else []
    return "\n".join(dict.fromkeys(str(line) for line in (*lines, context) if line))


def in_words(block: str | Block) -> str:
    """Return a line of text in place of a block that a wire cannot carry: what it is, and that the model cannot read it."""
    if isinstance(block, str):
        return block
    block = unwrapped(block)
    if not is_media(block):
        return json.dumps(_without_data(block), ensure_ascii=False, default=str)
    try:
        source = source_of(block)
    except ODD:
        source = Source()
    named = extra(block, "title") or source.name or source.url or source.file_id
    details = [
        *([] if named or not source.essence else [source.essence]),
        *([_size(size_of(source.data))] if source.data is not None else []),
    ]
    what = str(named or f"a {_NOUNS[source.kind]}") + (f" ({source.url})" if source.url and named != source.url else "")
    context = extra(block, "context")
    return ", ".join([what, *details]) + ": this model cannot read it" + (f"\n{context}" if context else "")


def _size(size: int) -> str:
    for unit, factor in (("MB", 1_000_000), ("kB", 1_000)):
        if size >= factor:
            return f"{size / factor:.0f} {unit}"
    return f"{size} bytes"


def _without_data(value: Any) -> Any:
    """Return a block without long data, for a text."""
    if isinstance(value, str | bytes):
        is_data = isinstance(value, bytes) or (len(value) > 256 and _BASE64.fullmatch(value) is not None)
        return f"({_size(len(value))})" if is_data else value
    if isinstance(value, Mapping):
        return {str(key): _without_data(item) for key, item in value.items()}
    return [_without_data(item) for item in value] if isinstance(value, list | tuple) else value
