"""Server-sent events, read as the HTML standard has it (9.2.5 "Parsing an event stream", 9.2.6 "Interpreting an event stream")."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from langchain_autotools.strict_json import read_json


@dataclass(frozen=True)
class Frame:
    """What one dispatched event says.

    Attributes:
        event: Its name, `message` where the stream gives none.
        data: Its data.
        id: The last event id at its dispatch.
    """

    event: str
    data: str
    id: str

    @property
    def json(self) -> Any:
        """The data, which must be strict JSON, and equal to what Python's own reader makes of it."""
        value = read_json(self.data)
        assert json.loads(self.data) == value
        return value


class EventStreamParser:
    """Reads an event stream that comes in pieces.

    Attributes:
        comments: The comments so far.
        unknown: The names of fields that the standard does not have.
    """

    def __init__(self) -> None:
        self.comments: list[str] = []
        self.unknown: list[str] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")()  # strict, where the standard would replace
        self._text, self._begun = "", False
        self._name, self._data, self._id = "", "", ""

    def feed(self, piece: bytes) -> Iterator[Frame]:
        """The events that are complete with this piece."""
        self._text += self._decoder.decode(piece)
        if not self._begun and self._text:
            self._begun, self._text = True, self._text.removeprefix("\ufeff")
        while match := re.search(r"\r\n|\n|\r(?!\Z)", self._text):
            line, self._text = self._text[: match.start()], self._text[match.end() :]
            yield from self._line(line)

    def _line(self, line: str) -> Iterator[Frame]:
        if not line:
            yield from self._dispatch()
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not name:
            self.comments.append(value)
        elif name == "event":
            self._name = value
        elif name == "data":
            self._data += value + "\n"
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name != "retry" or not re.fullmatch(r"[0-9]+", value):
            self.unknown.append(name)

    def _dispatch(self) -> Iterator[Frame]:
        name, data = self._name, self._data
        self._name = self._data = ""
        if data:
            yield Frame(name or "message", data.removesuffix("\n"), self._id)

    @property
    def rest(self) -> str:
        """What has come and is no complete event: the standard throws it away."""
        return self._name + self._data + self._text


def frames_of(pieces: Iterable[bytes]) -> list[Frame]:
    """The events of a whole stream, in which nothing is unknown and nothing is left over."""
    parser = EventStreamParser()
    frames = [frame for piece in pieces for frame in parser.feed(piece)]
    assert (parser.unknown, parser.rest) == ([], "")
    return frames
