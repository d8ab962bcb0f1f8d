"""What becomes of every content block with media, over every wire: `python -m tests.contract.media --write` makes the table and its page.

The table is `tests/contract/media.csv`, the page `docs/media.md`. A row is a block in a place, a column a wire, a cell what is sent. That
is the part of the request that holds the block's data. "words" is a line that says what the model cannot read. "refused" is for an error
before anything is sent, which only what a user gives may be.
"""

from __future__ import annotations

import argparse
import base64
import csv
import functools
import io
import json
import logging
import wave
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_autotools import UnsupportedFeatureError
from tests.contract.wires import WIRES, Wire
from tests.support.script import Call, Turn

ROOT = Path(__file__).resolve().parent.parent.parent
TABLE, PAGE = Path(__file__).with_suffix(".csv"), ROOT / "docs" / "media.md"
OWN = ("openai-chat", "openai-responses", "anthropic", "google", "ollama")
ROWS = {wire.name: wire for wire in WIRES if wire.name in OWN}
PLACES = {
    "user": "What a user gives",
    "result": "What a tool returns",
    "failed": "What a tool returns that fails",
    "own": "What a model of this wire has made",
    "foreign": "What a model of another wire has made",
}
WORDS, REFUSED = "words", "refused"
SAYS = "this model cannot read it"
_HEADS = {
    "image/png": base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="),
    "audio/wav": b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00",
    "audio/mpeg": b"ID3\x04\x00\x00\x00\x00\x00\x00",
    "video/mp4": b"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00",
    "application/pdf": b"%PDF-1.7\n",
    "audio/L16;codec=pcm;rate=24000": b"\x00\x01",
}
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


@dataclass(frozen=True)
class Media:
    """A block, and what of it is looked for.

    Attributes:
        block: The block.
        found: Any of these in the request shows that it was carried: its data, its address, its id, its text.
        name: Its file's name, which must be in the request too.
    """

    block: Any
    found: tuple[str, ...]
    name: str = ""

    @property
    def is_data(self) -> bool:
        """Whether what is looked for is base64."""
        return len(self.found[0]) > 40 and " " not in self.found[0] and ":" not in self.found[0]


def _data(mime_type: str, name: str) -> bytes:
    """The data of a file, other than that of all others."""
    if mime_type == XLSX:
        with io.BytesIO() as file:
            with zipfile.ZipFile(file, "w") as archive:
                archive.writestr("a.xml", f"{name:-<60}")
            return file.getvalue()
    if mime_type.startswith("text/"):
        return f"name,{name},Müller".encode("windows-1252" if "1252" in mime_type else "utf-8")
    return _HEADS[mime_type] + f"{name:-<60}".encode()


def _base64(mime_type: str, name: str) -> str:
    return base64.b64encode(_data(mime_type, name)).decode()


_PNG, _WAV, _MP3, _MP4, _PDF, _CSV, _PCM = (*[*_HEADS][:5], "text/csv", "audio/L16;codec=pcm;rate=24000")
_OLD_CSV = "text/csv; charset=windows-1252"


def _of_data(name: str, mime_type: str, block: Mapping[str, Any], file: str = "") -> Media:
    """A block whose `DATA` is base64 of this media type, `BYTES` its bytes, `URL` a data URL."""
    data = _base64(mime_type, name)
    swapped = _swapped(
        dict(block), {"DATA": data, "BYTES": _data(mime_type, name), "URL": f"data:{mime_type};base64,{data}", "TYPE": mime_type}
    )
    found = (f"name,{name},Müller",) if mime_type.startswith("text/") else (data, _as_wav(name)) if mime_type == _PCM else (data,)
    return Media(swapped, found, file)


def _as_wav(name: str) -> str:
    with io.BytesIO() as file:
        with wave.open(file, "wb") as sound:
            sound.setparams((1, 2, 24_000, 0, "NONE", ""))
            sound.writeframes(_data(_PCM, name))
        return base64.b64encode(file.getvalue()).decode()


def _swapped(value: Any, names: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: _swapped(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_swapped(item, names) for item in value]
    return names.get(value, value) if isinstance(value, str) else value


@functools.cache
def blocks() -> dict[str, Media]:
    """Every block, by what it is."""
    made: dict[str, Media] = {}
    for name, mime_type, block, *file in _DATA_BLOCKS:
        made[name] = _of_data(name, mime_type, block, *file)
    for number, (name, block, *file) in enumerate(_OTHERS):
        key = f"place-{number:02}"
        made[name] = Media(
            _swapped(
                block,
                {
                    "ID": f"file-{key}",
                    "CLAUDE": f"file_{key}",
                    "GEMINI": f"files/{key}",
                    "HTTP": f"https://example.com/{key}",
                    "WORDS": f"The words of {key}.",
                },
            ),
            (key,),
            *file,
        )
    return made


_DATA_BLOCKS: list[tuple[Any, ...]] = [
    ("v1 image", _PNG, {"type": "image", "base64": "DATA", "mime_type": "TYPE"}),
    ("v1 image, no media type", _PNG, {"type": "image", "base64": "DATA"}),
    ("v1 image, bytes", _PNG, {"type": "image", "base64": "BYTES", "mime_type": "TYPE"}),
    ("v1 image, data URL", _PNG, {"type": "image", "url": "URL"}),
    ("v1 audio, WAV", _WAV, {"type": "audio", "base64": "DATA", "mime_type": "TYPE"}),
    ("v1 audio, no media type", _WAV, {"type": "audio", "base64": "DATA"}),
    ("v1 audio, MP3", _MP3, {"type": "audio", "base64": "DATA", "mime_type": "TYPE"}),
    ("v1 audio, samples", _PCM, {"type": "audio", "base64": "DATA", "mime_type": "TYPE"}),
    ("v1 video", _MP4, {"type": "video", "base64": "DATA", "mime_type": "TYPE"}),
    ("v1 file, PDF", _PDF, {"type": "file", "base64": "DATA", "mime_type": "TYPE", "extras": {"filename": "one.pdf"}}, "one.pdf"),
    ("v1 file, text", _CSV, {"type": "file", "base64": "DATA", "mime_type": "TYPE", "extras": {"filename": "two.csv"}}, "two.csv"),
    ("v1 file, text of another charset", _OLD_CSV, {"type": "file", "base64": "DATA", "mime_type": "TYPE"}),
    ("v1 file, spreadsheet", XLSX, {"type": "file", "base64": "DATA", "mime_type": "TYPE", "extras": {"filename": "three.xlsx"}},
     "three.xlsx"),
    ("v1 file, image", _PNG, {"type": "file", "base64": "DATA", "mime_type": "TYPE"}),
    ("v1 plain text, data", _CSV, {"type": "text-plain", "base64": "DATA", "mime_type": "TYPE", "title": "four.csv"}, "four.csv"),
    ("v0 image", _PNG, {"type": "image", "source_type": "base64", "data": "DATA", "mime_type": "TYPE"}),
    ("v0 audio", _MP3, {"type": "audio", "source_type": "base64", "data": "DATA", "mime_type": "TYPE"}),
    ("v0 file, PDF", _PDF, {"type": "file", "source_type": "base64", "data": "DATA", "mime_type": "TYPE", "metadata": {
        "filename": "five.pdf"}}, "five.pdf"),
    ("OpenAI's image_url, data", _PNG, {"type": "image_url", "image_url": {"url": "URL"}}),
    ("OpenAI's input_image, data", _PNG, {"type": "input_image", "image_url": "URL", "cache_control": {"type": "ephemeral"}}),
    ("OpenAI's input_audio", _WAV, {"type": "input_audio", "input_audio": {"data": "DATA", "format": "wav"}}),
    ("OpenAI's file, PDF", _PDF, {"type": "file", "file": {"file_data": "URL", "filename": "six.pdf"}}, "six.pdf"),
    ("OpenAI's file, bare data", _PDF, {"type": "file", "file": {"file_data": "DATA", "filename": "seven.pdf"}}, "seven.pdf"),
    ("OpenAI's file, text", _CSV, {"type": "file", "file": {"file_data": "URL", "filename": "eight.csv"}}, "eight.csv"),
    ("OpenAI's input_file, PDF", _PDF, {"type": "input_file", "file_data": "URL", "filename": "nine.pdf"}, "nine.pdf"),
    ("OpenAI's input_file, text", _CSV, {"type": "input_file", "file_data": "URL", "filename": "ten.csv"}, "ten.csv"),
    ("OpenAI's image_generation_call", _PNG, {"type": "image_generation_call", "id": "ig", "result": "DATA", "output_format": "png"}),
    ("Anthropic's image", _PNG, {"type": "image", "source": {"type": "base64", "media_type": "TYPE", "data": "DATA"}}),
    ("Anthropic's document, PDF", _PDF, {"type": "document", "title": "eleven.pdf", "source": {
        "type": "base64", "media_type": "TYPE", "data": "DATA"}}, "eleven.pdf"),
    ("Anthropic's document, image inside", _PNG, {"type": "document", "title": "twelve", "source": {
        "type": "content", "content": [
        {"type": "text", "text": "Words."}, {"type": "image", "source": {
            "type": "base64", "media_type": "TYPE", "data": "DATA"}}]}}, "twelve"),
    ("Google's media, image", _PNG, {"type": "media", "mime_type": "TYPE", "data": "DATA"}),
    ("Google's media, video", _MP4, {"type": "media", "mime_type": "TYPE", "data": "DATA"}),
    ("Google's inlineData", _PNG, {"inlineData": {"mimeType": "TYPE", "data": "DATA"}}),
    ("Google's inline_data", _PNG, {"type": "media", "inline_data": {"mime_type": "TYPE", "data": "DATA"}}),
    ("MCP's image", _PNG, {"type": "image", "data": "DATA", "mimeType": "TYPE"}),
    ("MCP's audio", _WAV, {"type": "audio", "data": "DATA", "mimeType": "TYPE"}),
    ("MCP's resource, PDF", _PDF, {"type": "resource", "resource": {
        "uri": "file:///a/thirteen.pdf", "mimeType": "TYPE", "blob": "DATA"}}, "thirteen.pdf"),
]  # fmt: skip
_OTHERS: list[tuple[Any, ...]] = [
    ("v1 image, URL", {"type": "image", "url": "HTTP"}),
    ("v1 image, id of OpenAI's", {"type": "image", "file_id": "ID"}),
    ("v1 file, id of Anthropic's", {"type": "file", "file_id": "CLAUDE"}),
    ("v1 file, id of Google's", {"type": "file", "file_id": "GEMINI"}),
    ("v1 audio, URL", {"type": "audio", "url": "HTTP"}),
    ("v1 video, URL", {"type": "video", "url": "HTTP"}),
    ("v1 file, URL of a PDF", {"type": "file", "url": "HTTP", "mime_type": "application/pdf"}),
    ("v1 file, id of OpenAI's", {"type": "file", "file_id": "ID"}),
    ("v1 plain text", {"type": "text-plain", "text": "WORDS", "mime_type": "text/plain", "title": "fourteen.txt"}, "fourteen.txt"),
    ("v0 image, URL", {"type": "image", "source_type": "url", "url": "HTTP"}),
    ("v0 file, text", {"type": "file", "source_type": "text", "url": "WORDS", "mime_type": "text/plain"}),
    ("OpenAI's image_url, URL", {"type": "image_url", "image_url": {"url": "HTTP"}}),
    ("OpenAI's input_image, URL", {"type": "input_image", "image_url": "HTTP"}),
    ("OpenAI's file, id", {"type": "file", "file": {"file_id": "ID"}}),
    ("OpenAI's input_file, URL", {"type": "input_file", "file_url": "HTTP"}),
    ("Anthropic's image, URL", {"type": "image", "source": {"type": "url", "url": "HTTP"}}),
    ("Anthropic's document, text", {"type": "document", "title": "fifteen.txt", "context": "Its context.", "source": {
        "type": "text", "media_type": "text/plain", "data": "WORDS"}}, "fifteen.txt"),
    ("Anthropic's document, blocks", {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "WORDS"}]}}),
    ("Anthropic's document, URL", {"type": "document", "source": {"type": "url", "url": "HTTP"}}),
    ("Anthropic's search result", {"type": "search_result", "title": "Sixteen", "source": "https://example.com/s", "content": [
        {"type": "text", "text": "WORDS"}]}, "Sixteen"),
    ("Google's media, URI", {"type": "media", "mime_type": "image/png", "file_uri": "HTTP"}),
    ("Google's fileData", {"fileData": {"mimeType": "image/png", "fileUri": "HTTP"}}),
    ("MCP's resource, text", {"type": "resource", "resource": {
        "uri": "file:///a/seventeen.txt", "mimeType": "text/plain", "text": "WORDS"}}, "seventeen.txt"),
    ("MCP's resource link", {"type": "resource_link", "uri": "HTTP", "name": "eighteen.txt"}, "eighteen.txt"),
]  # fmt: skip


# ---------------------------------------------------------------------------------------------- where a block went


def places_of(value: Any, found: tuple[str, ...], role: str = "", kind: str = "") -> Iterator[str]:
    """Yield the places of a request whose text holds one of these: whose message it is, and the kind of the part."""
    if isinstance(value, str):
        if any(one in value for one in found):
            yield f"{role} {kind}".strip()
    elif isinstance(value, list):
        for item in value:
            yield from places_of(item, found, role, kind)
    elif isinstance(value, Mapping):
        role, kind = _place(value, role, kind)
        for key, item in value.items():
            own = key if key in ("inlineData", "fileData", "text", "images", "response", "content", "output") else kind
            yield from places_of(item, found, role, own if not value.get("type") or key == "images" else kind)


_TEXTS = dict.fromkeys(("content", "output", "response", "input_text", "output_text"), "text")
_ROLES = {"tool": "result", "tool_result": "result", "function_call_output": "result", "model": "assistant"}


def _place(value: Mapping[str, Any], role: str, kind: str) -> tuple[str, str]:
    said, own = str(value.get("role") or ""), str(value.get("type") or "")
    if "functionResponse" in value or own in _ROLES:
        return "result", "text"
    role = _ROLES.get(said, said) or role
    if value.keys() == {"type", "file_id"}:  # the source of a part
        return role, kind
    return role, own if own not in ("", "base64", "url", "content", "message") and own != "function" else kind


def part_of(body: Any, media: Media) -> str:
    """Return where in a request a block's data is; "" where it is nowhere."""
    places = [*dict.fromkeys(places_of(body, media.found))]
    parts = [" ".join([*place.split()[:1], *(_TEXTS.get(kind, kind) for kind in place.split()[1:])]) for place in places]
    assert len(parts) <= 1, parts
    assert not parts or not media.is_data or not parts[0].endswith(" text"), f"base64 as text: {media.block!r:.100}"
    return parts[0] if parts else ""


def request_of(wire: Wire, place: str, all_of_them: Mapping[str, Media]) -> Any:
    """Return the request that a model makes of blocks in a place, of a server that refuses what the vendor refuses."""
    given = [media.block for media in all_of_them.values()]

    def look(number: int) -> Any:
        """Look."""
        return (
            ToolMessage([{"type": "text", "text": "Broken."}, given[number]], tool_call_id="", status="error")
            if place == "failed"
            else given[number]
        )

    tools = [look] if place in ("result", "failed") else []
    calls = [Call("look", {"number": number}) for number in range(len(given))] if tools else []
    script = [Turn("So.", calls), *([Turn("Fine.")] if place != "user" else [])]
    with wire.serve(script) as server:
        model = wire.model(server, tools=tools)
        if place == "user":
            model.invoke([HumanMessage([{"type": "text", "text": "Look."}, *given])])
        else:
            reply = model.invoke("Go.")
            if not tools:
                reply = reply if place == "own" else AIMessage("", response_metadata={"model_provider": "somebody"})
                turns = [
                    [HumanMessage("Go."), reply.model_copy(update={"content": [{"type": "text", "text": "So."}, block]})] for block in given
                ]
                model.invoke([*(message for turn in turns for message in turn), HumanMessage("And?")])
        assert [rejection.message for rejection in server.rejections] == []
        return server.exchanges[-1].json


def cells(wire: Wire, place: str) -> dict[str, str]:
    """Return what a wire makes of every block in a place."""
    every = blocks()
    if place == "user":
        return {name: _cell_of_user(wire, name, media) for name, media in every.items()}
    body = request_of(wire, place, every)
    text = json.dumps(body, ensure_ascii=False)
    made = {name: part_of(body, media) for name, media in every.items()}
    made = {name: WORDS if SAYS in part or not part else part for name, part in made.items()}
    said = text.count(SAYS)
    words = [name for name, part in made.items() if part == WORDS or _is_said(every[name], text)]
    assert said == len(words), (said, len(words), words)
    lost = [media.name for media in every.values() if media.name not in text]
    assert not lost, lost
    return {name: WORDS if _is_said(every[name], text) else part for name, part in made.items()}


def _is_said(media: Media, text: str) -> bool:
    """Whether a line of words names the address or the id of a block."""
    key = media.found[0]
    return any(SAYS in line and key in line for line in text.replace("\\n", '"').split('"')) and not media.is_data


def _cell_of_user(wire: Wire, name: str, media: Media) -> str:
    try:
        body = request_of(wire, "user", {name: media})
    except UnsupportedFeatureError:
        return REFUSED
    assert media.name in json.dumps(body, ensure_ascii=False), media.name
    return part_of(body, media)


# ---------------------------------------------------------------------------------------------- the table


def stored() -> dict[tuple[str, str], dict[str, str]]:
    """Return the stored cells of each block in each place, by wire."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {(line["place"], line["block"]): {name: line[name] for name in OWN} for line in csv.DictReader(file)}


def page(table: Mapping[tuple[str, str], Mapping[str, str]]) -> str:
    """Return the page of a table."""
    lines = [_HEAD]
    for place, title in PLACES.items():
        lines += [f"\n## {title}\n", "| | " + " | ".join(OWN) + " |", "|---|" + "---|" * len(OWN)]
        lines += [
            f"| {block} | " + " | ".join(cell[name] for name in OWN) + " |" for (where, block), cell in table.items() if where == place
        ]
    return "\n".join(lines) + "\n"


_HEAD = """# Pictures, files and sound

These tables show how every content block with media is sent, in every place, to every vendor's API. Each cell names the part of the
request that has its data, or one of these:

- **words**: a line of text that says what the model cannot read (`report.xlsx, 12 kB: this model cannot read it`). It is logged as a
  warning once.
- **refused**: an `UnsupportedFeatureError` before anything is sent. Only what a user gives is refused.

Nothing is dropped, and no base64 is sent as text. Files on the web are not fetched. What a result or an assistant's message cannot hold
follows in a user message.
Made by `python -m tests.contract.media --write` from requests to servers that refuse what the vendors refuse."""


def write() -> None:
    """Find out every cell; write the table and its page."""
    logging.disable(logging.WARNING)
    found = {(wire, place): cells(ROWS[wire], place) for wire in OWN for place in PLACES}
    table = {(place, name): {wire: found[wire, place][name] for wire in OWN} for place in PLACES for name in blocks()}
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["place", "block", *OWN])
        rows.writerows([place, name, *cell.values()] for (place, name), cell in table.items())
    PAGE.write_text(page(table), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.contract.media", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", required=True, help="write the table and its page")
    parser.parse_args()
    write()
