"""Random replies of chat completions and of Ollama's /api/chat."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.parsers.wires.writer import Writer
from tests.support.script import Events


class Chat(Writer):
    """Chat completions, as OpenAI, OpenRouter, Groq and Perplexity send them."""

    kinds = ("executed", "annotated", "drawn", "sound", "cited")

    def _delta(self, delta: dict[str, Any], finish: str | None = None, **beside: Any) -> None:
        head = {"id": f"chatcmpl-{self.number}", "object": "chat.completion.chunk", "model": "any", "created": 1}
        self.events.append({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **beside})

    def text(self) -> None:
        """Some text."""
        for word in self.words():
            self.shows.text += word
            self._delta({"content": word})

    def thought(self) -> None:
        """Some reasoning."""
        for word in self.words():
            self.shows.thought += word
            self._delta({"reasoning_content": word})

    def function(self, name: str, args: Mapping[str, Any]) -> None:
        """A call, its arguments in two pieces."""
        written, index = json.dumps(args), len(self.shows.functions)
        self.shows.functions.append((name, dict(args)))
        begun = {"index": index, "id": self.next("call"), "type": "function", "function": {"name": name, "arguments": written[:4]}}
        self._delta({"tool_calls": [begun]})
        self._delta({"tool_calls": [{"index": index, "function": {"arguments": written[4:]}}]})

    def executed(self) -> None:
        """A tool on the server."""
        tool = {"index": len(self.shows.calls), "type": "search", "arguments": '{"query":"oslo"}'}
        said = f"found {self.word()}"
        self.called("search", {"query": "oslo"}, said)
        self._delta({"executed_tools": [tool]})
        self._delta({"executed_tools": [{**tool, "output": said}]})

    def annotated(self) -> None:
        """Citations of the message."""
        self._delta({"annotations": [{"type": "url_citation", "url_citation": {**self.page(), "start_index": 0, "end_index": 1}}]})

    def drawn(self) -> None:
        """An image."""
        self._delta({"images": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{self.made()}"}}]})

    def sound(self) -> None:
        """The sound of the reply, in two pieces; there is one."""
        if any("audio" in event["choices"][0]["delta"] for event in self.events):
            return
        data = self.made("audio/wav")
        self._delta({"audio": {"id": self.next("audio"), "data": data[:8]}})
        self._delta({"audio": {"data": data[8:]}})

    def cited(self) -> None:
        """A page beside the choices, where each is once in a reply."""
        page, known = self.page(), [event["citations"] for event in self.events if "citations" in event]
        if [page["url"]] in known:
            self.shows.sources.pop()
        self._delta({"content": ""}, citations=[page["url"]], search_results=[page])

    def opened(self) -> None:
        """A tool on the server that has begun."""
        self.called("search", {"query": "oslo"}, None, True)
        tool = {"index": len(self.shows.calls), "type": "search", "arguments": '{"query":"oslo"}'}
        self._delta({"executed_tools": [tool]})

    def reply(self) -> Events:
        """The whole reply."""
        self._delta({}, "tool_calls" if self.shows.functions else "stop")
        return Events(self.events)


class Ollama(Writer):
    """Ollama's /api/chat."""

    kinds = ("drawn",)

    def _message(self, **message: Any) -> None:
        said = {"role": "assistant", "content": "", **message}
        self.events.append({"model": "any", "created_at": "2026-11-25T12:00:00Z", "message": said, "done": False})

    def text(self) -> None:
        """Some text."""
        for word in self.words():
            self.shows.text += word
            self._message(content=word)

    def thought(self) -> None:
        """Some thinking."""
        for word in self.words():
            self.shows.thought += word
            self._message(thinking=word)

    def function(self, name: str, args: Mapping[str, Any]) -> None:
        """A call of a function."""
        self.shows.functions.append((name, dict(args)))
        self._message(tool_calls=[{"function": {"name": name, "arguments": dict(args)}}])

    def drawn(self) -> None:
        """An image."""
        self._message(images=[self.made()])

    def reply(self) -> Events:
        """The whole reply."""
        self._message()
        self.events[-1] |= {"done": True, "done_reason": "stop"}
        return Events(self.events)
