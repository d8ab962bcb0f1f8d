"""Conversion of content blocks of any vendor to content parts of chat completions.

Understood are LangChain's v1 and v0 blocks and the blocks of chat completions itself, of Responses, of Anthropic and of
Google. A block that chat completions cannot carry raises `UnsupportedFeatureError` with its type; nothing is dropped here.

Wire facts: a part is one of text, image_url, input_audio and file; files go as data or as the id of an upload, not as a URL
(platform.openai.com/docs/api-reference/chat/create). video_url, audio_url and document_url are parts of compatible servers.
"""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, cast

from .._encode.sources import (
    Block,
    Source,
    convert_block,
    decoded_text,
    extra,
    holders,
    image_type,
    search_result_text,
    source_of,
    unsupported,
    unwrapped,
)
from .dialect import NO_PARTS, OwnParts
from .wire import Part

if TYPE_CHECKING:
    from openai.types.chat.chat_completion_content_part_image_param import ImageURL
    from openai.types.chat.chat_completion_content_part_param import FileFile

_NO_SUCH = "chat completions has no such content"
_PROMPT_CACHE = "prompt_cache_breakpoint"  # a key that the vendor takes on any part

_AUDIO_FORMATS = {"mpeg": "mp3", "x-mp3": "mp3", "x-mpeg": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav"}
_EXTENSIONS = {"text/plain": "txt", "text/markdown": "md", "text/csv": "csv", "text/html": "html", "application/json": "json"}


def text_part(text: str) -> Part:
    """Return a text part."""
    return {"type": "text", "text": text}


def part_of(block: str | Block, keys: Collection[str] = (), own: OwnParts = NO_PARTS, why: str = _NO_SUCH) -> Part:
    """Convert one content block to a content part.

    Args:
        block: The block, of any vendor.
        keys: Keys of a block, besides those of chat completions, that the server takes on a part (`cache_control`, say).
        own: The parts that the server takes besides those of chat completions.
        why: The error's text for a block of a kind that is not known.

    Raises:
        UnsupportedFeatureError: Chat completions cannot carry the block.
    """
    if isinstance(block, str):
        return text_part(block)
    block = unwrapped(block)
    known = own.get(str(block.get("type")))
    if known and known[0] in block:
        return cast("Part", {key: block[key] for key in ("type", *known) if key in block})
    kept: Any = {key: holder[key] for holder in holders(block) for key in (_PROMPT_CACHE, *keys) if key in holder}
    return {**convert_block(block, text_part, _CONVERTERS, why), **kept}


# ---------------------------------------------------------------------------------------------- text


def _search_result(block: Block) -> Part:
    return text_part(search_result_text(block))


def _titled(block: Block, text: str) -> Part:
    head = [str(block[key]) for key in ("title", "context") if block.get(key)]
    return text_part("\n".join([*head, text]))


# ---------------------------------------------------------------------------------------------- media


def _image_from_source(block: Block) -> Part:
    source = source_of(block)
    if source.url:
        return _image_part(source.url, block)
    if source.data is None:
        raise unsupported(block.get("type"), "an image needs a URL or base64 data")
    mime_type = source.mime_type or image_type(source.data)
    if mime_type is None:
        raise unsupported(block.get("type"), "its mime_type is missing")
    return _image_part(f"data:{mime_type};base64,{source.data}", block)


def _image_part(url: str, block: Block) -> Part:
    image: ImageURL = {"url": url}
    if detail := extra(block, "detail"):
        image["detail"] = detail
    return {"type": "image_url", "image_url": image}


def _openai_image(block: Block) -> Part:
    """Convert an image part of chat completions, or the flat form of Responses."""
    image: ImageURL | str | None = block.get("image_url")
    if isinstance(image, str):
        return _image_part(image, block)
    if not isinstance(image, Mapping) or not image.get("url"):
        raise unsupported(block.get("type"), "an image needs a URL or base64 data")
    return {"type": "image_url", "image_url": {**image}}


def _generated_image(block: Block) -> Part:
    if not block.get("result"):
        raise unsupported(block.get("type"), "it has no result")
    return _image_from_source({"type": "image", "base64": block["result"], "mime_type": block.get("mime_type") or "image/png"})


def _audio_part(block: Block) -> Part:
    source = source_of(block)
    if source.data is None or not source.mime_type:
        raise unsupported(block.get("type"), "audio needs base64 data and a mime_type")
    name = source.mime_type.partition(";")[0].rpartition("/")[2].lower()
    return {"type": "input_audio", "input_audio": {"data": source.data, "format": _AUDIO_FORMATS.get(name, name)}}


def _unchanged(key: str) -> Callable[[Block], Part]:
    """Return a converter of the wire's own parts, which removes LangChain's additions."""

    def part(block: Block) -> Any:
        if not block.get(key):
            raise unsupported(block.get("type"), f"{key!r} is missing")
        return {"type": block["type"], key: block[key]}

    return part


def _openai_file(block: Block) -> Part:
    file: FileFile | None = block.get("file")
    return {"type": "file", "file": {**file}} if isinstance(file, Mapping) else _document_part(block)


def _document_part(block: Block) -> Part:
    source = source_of(block)
    if source.file_id:
        name = extra(block, "filename", "file_filename")
        return {"type": "file", "file": {"file_id": source.file_id, **({"filename": name} if name else {})}}
    if source.text is not None:
        return _titled(block, source.text)
    if source.data is not None:
        return _file_data(block, source)
    raise unsupported(block.get("type"), "a file needs base64 data or the id of an uploaded file; chat completions takes no file URL")


def _file_data(block: Block, source: Source) -> Part:
    """Return a file part with data. The vendor requires a name; a missing one is derived from the media type."""
    mime_type = source.mime_type or "application/pdf"
    extension = _EXTENSIONS.get(mime_type, mime_type.rpartition("/")[2])
    name = extra(block, "filename", "name", "title") or f"file.{extension}"
    return {"type": "file", "file": {"filename": name, "file_data": f"data:{mime_type};base64,{source.data}"}}


def _input_file(block: Block) -> Part:
    """Convert a file part of Responses."""
    file: Any = {key: block[key] for key in ("file_id", "file_data", "filename") if block.get(key)}
    if "file_id" not in file and "file_data" not in file:
        raise unsupported("input_file", "chat completions takes no file URL")
    return {"type": "file", "file": file}


def _plain_text(block: Block) -> Part:
    source = source_of(block)
    if source.data is not None:
        return _titled(block, decoded_text(source.data))
    return _document_part(block)


def _media(block: Block) -> Part:
    """Convert Google's media block by its media type."""
    kind = str(block.get("mime_type") or "").partition("/")[0]
    return {"image": _image_from_source, "audio": _audio_part}.get(kind, _document_part)({**block, "type": "media"})


def _of_responses_alone(block: Block) -> Part:
    raise unsupported(block["type"], "only the Responses API has it (use_responses_api=True)")


_CONVERTERS: dict[str, Callable[[Block], Part]] = {
    **dict.fromkeys(("additional_tools", "configuration_update"), _of_responses_alone),
    "text-plain": _plain_text,
    "search_result": _search_result,
    "image": _image_from_source,
    "image_url": _openai_image,
    "input_image": _openai_image,
    "image_generation_call": _generated_image,
    "audio": _audio_part,
    "input_audio": _unchanged("input_audio"),
    "file": _openai_file,
    "input_file": _input_file,
    "document": _document_part,
    "media": _media,
    "audio_url": _unchanged("audio_url"),
    "video_url": _unchanged("video_url"),
    "document_url": _unchanged("document_url"),
}
