"""What vendors do by themselves in a reply of chat completions, for listeners: citations, files, tools on the server.

Wire facts: OpenAI's and OpenRouter's citations are `annotations` of the message; Perplexity's and xAI's stand beside the choices, in every
event (`citations`, `search_results`); images are parts with an `image_url`; sound comes in pieces of base64 that are joined (`audio`);
Mistral's sources stand in a thinking part (`tool_reference`); Groq's tools on the server are `executed_tools`, first without their output,
then with it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...event_types import RunEvent
from .._base.vendor_events import VendorEvents, done, file_made, source, started
from .._encode.json_text import read_object

_MARKS = re.compile(rb'"(?:annotations|audio|citations|executed_tools|image_url|search_results|tool_reference)"')
_SOUNDS = {"mp3": "audio/mpeg", "pcm16": "audio/L16"}


class ChatCompletionsEvents(VendorEvents):
    """Reads the events of one reply, or a whole body.

    Args:
        sound: The format of sound that was asked for.
        choices: The number of alternatives that were asked for; of several the first is read.
    """

    marks = _MARKS

    def __init__(self, *, sound: Any = None, choices: int = 1) -> None:
        self._sound = str(sound.get("format") or "wav") if isinstance(sound, Mapping) else "wav"
        self._first_only = choices > 1
        self._id = ""
        self._cited: set[str] = set()
        self._ended: set[str] = set()
        self._audio: list[str] = []
        self._audio_id: str | None = None

    def read(self, event: Mapping[str, Any]) -> Iterator[RunEvent]:
        """Yield what listeners are told of an event, or of a whole body."""
        self._id = self._id or str(event.get("id") or "")
        choices = event.get("choices") or ()
        for choice in [choices] if isinstance(choices, Mapping) else choices:
            if not (self._first_only and choice.get("index")):
                yield from self._message(choice.get("delta") or choice.get("message") or {})
        for page in event.get("search_results") or ():
            yield from self._page(page.get("url"), page.get("title"))
        for address in event.get("citations") or ():
            yield from self._page(address if isinstance(address, str) else address.get("url"))

    def _message(self, message: Mapping[str, Any]) -> Iterator[RunEvent]:
        for place, tool in enumerate(message.get("executed_tools") or ()):
            yield from self._executed(tool, f"{self._id}:{tool.get('index', place)}")
        for entry in message.get("annotations") or ():
            cited = entry.get("url_citation") or entry
            places = {"start": cited.get("start_index"), "end": cited.get("end_index")}
            yield source(url=cited.get("url"), title=cited.get("title"), quote=cited.get("content"), **places)
        content = message.get("content")
        for part in (*(message.get("images") or ()), *(content if isinstance(content, list) else ())):
            image = part.get("image_url") if isinstance(part, Mapping) else None
            if address := image.get("url") if isinstance(image, Mapping) else image:
                yield file_made("image/png", url=address)
            thoughts = part.get("thinking") if isinstance(part, Mapping) else None
            for entry in thoughts if isinstance(thoughts, list) else ():
                yield from self._page(entry.get("url"), entry.get("title"))
        audio = message.get("audio")
        if isinstance(audio, Mapping):
            self._audio.append(audio.get("data") or "")
            self._audio_id = audio.get("id") or self._audio_id

    def _page(self, url: Any, title: Any = None) -> Iterator[RunEvent]:
        """Yield a page once, however often it is named."""
        if isinstance(url, str) and url not in self._cited:
            self._cited.add(url)
            yield source(url=url, title=title)

    def _executed(self, tool: Mapping[str, Any], call_id: str) -> Iterator[RunEvent]:
        name, args = str(tool.get("type") or "tool"), read_object(str(tool.get("arguments") or ""))
        output = tool.get("output") or tool.get("search_results") or tool.get("code_results")
        if output is None:
            yield started(call_id, name, args)
        elif call_id not in self._ended:
            self._ended.add(call_id)
            yield done(call_id, name, args, output)

    def rest(self) -> Iterator[RunEvent]:
        """Yield the sound of the reply."""
        if data := "".join(self._audio):
            yield file_made(_SOUNDS.get(self._sound, f"audio/{self._sound}"), data, file_id=self._audio_id)
