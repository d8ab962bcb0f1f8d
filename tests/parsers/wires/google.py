"""Random replies of Google's generateContent."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from tests.parsers.wires.writer import Writer
from tests.support.script import Events


class Google(Writer):
    """Google's generateContent."""

    kinds = ("code", "drawn", "sound", "linked", "grounded", "read_pages")

    def __init__(self, draw: random.Random, number: int) -> None:
        super().__init__(draw, number)
        self.late: dict[str, Any] = {}

    def _part(self, part: dict[str, Any]) -> None:
        self._event(content={"role": "model", "parts": [part]})
        self.content.append(part)

    def _event(self, **candidate: Any) -> None:
        head = {"responseId": f"reply_{self.number}", "modelVersion": "any"}
        self.events.append({**head, "candidates": [{"index": 0, **candidate}]})

    def text(self) -> None:
        """Some text."""
        for word in self.words():
            self.shows.text += word
            self._part({"text": word})

    def thought(self) -> None:
        """A thought."""
        word = self.word()
        self.shows.thought += word
        self._part({"text": word, "thought": True})

    def function(self, name: str, args: Mapping[str, Any]) -> None:
        """A call of a function."""
        self.shows.functions.append((name, dict(args)))
        self._part({"functionCall": {"name": name, "args": dict(args)}})

    def code(self) -> None:
        """Code and its result."""
        args, said = {"language": "PYTHON", "code": self.word()}, self.word()
        failed = self.called("code_execution", args, said, self.fails())
        self._part({"executableCode": args})
        self._part({"codeExecutionResult": {"outcome": "OUTCOME_FAILED" if failed else "OUTCOME_OK", "output": said}})

    def drawn(self) -> None:
        """An image."""
        self._part({"inlineData": {"mimeType": "image/png", "data": self.made()}})

    def sound(self) -> None:
        """Sound."""
        self._part({"inlineData": {"mimeType": "audio/wav", "data": self.made("audio/wav")}})

    def linked(self) -> None:
        """A file by its address."""
        address = f"https://example.org/{self.next('file')}.mp4"
        self.shows.files.append(address)
        self._part({"fileData": {"mimeType": "video/mp4", "fileUri": address}})

    def grounded(self) -> None:
        """What the answer is grounded in, which is known at its end."""
        if "groundingMetadata" not in self.late:
            page, query = self.page(), self.word()
            self.called("google_search", {"queries": [query]})
            web = {"uri": page["url"], "title": page["title"]}
            self.late["groundingMetadata"] = {"webSearchQueries": [query], "groundingChunks": [{"web": web}]}

    def read_pages(self) -> None:
        """The pages that were read, which are known at its end."""
        if "urlContextMetadata" not in self.late:
            pages = [{"retrievedUrl": "https://example.org/r", "urlRetrievalStatus": "URL_RETRIEVAL_STATUS_SUCCESS"}]
            self.called("url_context", {"urls": ["https://example.org/r"]}, pages)
            self.late["urlContextMetadata"] = {"urlMetadata": pages}

    def opened(self) -> None:
        """Code without a result."""
        args = {"language": "PYTHON", "code": self.word()}
        self.called("code_execution", args, None, True)
        self._part({"executableCode": args})

    def reply(self) -> Events:
        """The whole reply."""
        self._event(finishReason="STOP", **self.late)
        return Events(self.events)
