"""Random replies of Anthropic's Messages API."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

from tests.parsers.wires.writer import Writer
from tests.support.anthropic_wire import SIGNATURE
from tests.support.script import Events


class Anthropic(Writer):
    """Anthropic's Messages API."""

    kinds = ("search", "code", "mcp", "cited", "document")
    waiting = ("bash", "editor", "memory", "computer")

    def __init__(self, draw: random.Random, number: int) -> None:
        super().__init__(draw, number)
        self.head = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "any"}
        usage = {"input_tokens": 10, "output_tokens": 1}
        self.events.append({"type": "message_start", "message": {**self.head, "content": [], "usage": usage}})

    def _block(self, block: dict[str, Any], *deltas: dict[str, Any], **start: Any) -> None:
        index = len(self.content)
        self.events.append({"type": "content_block_start", "index": index, "content_block": {**block, **start}})
        self.events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        self.events.append({"type": "content_block_stop", "index": index})
        self.content.append(block)

    def _text(self, *citations: dict[str, Any]) -> None:
        words = self.words()
        self.shows.text += "".join(words)
        deltas = [{"type": "text_delta", "text": word} for word in words]
        cited = [{"type": "citations_delta", "citation": citation} for citation in citations]
        block = {"type": "text", "text": "".join(words), **({"citations": list(citations)} if citations else {})}
        self._block(block, *deltas, *cited, text="", **({"citations": []} if citations else {}))

    def text(self) -> None:
        """Some text."""
        self._text()

    def cited(self) -> None:
        """Text that cites a page."""
        self._text({"type": "web_search_result_location", **self.page(), "cited_text": self.word(), "encrypted_index": "aW5k"})

    def document(self) -> None:
        """Text that cites a document."""
        name = f"{self.word()}.pdf"
        self.shows.sources.append(name)
        place = {"document_index": 0, "document_title": name, "start_char_index": 0, "end_char_index": 1}
        self._text({"type": "char_location", **place, "cited_text": "x", "file_id": None})

    def thought(self) -> None:
        """Signed thinking."""
        words = self.words()
        self.shows.thought += "".join(words)
        deltas = [{"type": "thinking_delta", "thinking": word} for word in words]
        block = {"type": "thinking", "thinking": "".join(words), "signature": SIGNATURE}
        self._block(block, *deltas, {"type": "signature_delta", "signature": SIGNATURE}, thinking="", signature="")

    def _use(self, kind: str, name: str, args: Mapping[str, Any], **more: Any) -> str:
        written, call_id = json.dumps(args), self.next("srvtoolu" if kind == "server_tool_use" else "mcptoolu")
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in (written[:4], written[4:])]
        self._block({"type": kind, "id": call_id, "name": name, "input": dict(args), **more}, *deltas, input={})
        return call_id

    def function(self, name: str, args: Mapping[str, Any]) -> None:
        """A call of a tool."""
        self.shows.functions.append((name, dict(args)))
        written = json.dumps(args)
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in (written[:4], written[4:])]
        self._block({"type": "tool_use", "id": self.next("toolu"), "name": name, "input": dict(args)}, *deltas, input={})

    def search(self) -> None:
        """A search whose result only the vendor can read, or that failed."""
        page = {"type": "web_search_result", "url": "https://example.org/s", "title": self.word(), "page_age": None}
        wrong = {"type": "web_search_tool_result_error", "error_code": "unavailable"}
        args = {"query": self.word()}
        failed = self.called("web_search", args, *((wrong, True) if self.fails() else ([page], False)))
        call_id = self._use("server_tool_use", "web_search", args)
        content = wrong if failed else [{**page, "encrypted_content": "ZW5j"}]
        self._block({"type": "web_search_tool_result", "tool_use_id": call_id, "content": content})

    def code(self) -> None:
        """Code that makes a file."""
        args, file_id = {"code": self.word()}, self.next("file")
        ran = {"type": "code_execution_result", "stdout": "2", "stderr": "", "return_code": 0}
        ran = {**ran, "content": [{"type": "code_execution_output", "file_id": file_id}]}
        self.called("code_execution", args, ran)
        self.shows.kept.append(file_id)
        call_id = self._use("server_tool_use", "code_execution", args)
        self._block({"type": "code_execution_tool_result", "tool_use_id": call_id, "content": ran})

    def mcp(self) -> None:
        """A call of a remote MCP server."""
        content = [{"type": "text", "text": self.word()}]
        failed = self.called("mcp.roll", {"d": 6}, content, self.fails())
        call_id = self._use("mcp_tool_use", "roll", {"d": 6}, server_name="dice")
        self._block({"type": "mcp_tool_result", "tool_use_id": call_id, "is_error": failed, "content": content})

    def bash(self) -> None:
        """A command for the caller's machine."""
        self.function("bash", {"command": f"echo {self.word()}"})

    def editor(self) -> None:
        """A change of the caller's files."""
        self.function("str_replace_based_edit_tool", {"command": "create", "path": "a.txt", "file_text": self.word()})

    def memory(self) -> None:
        """A look into the memory."""
        self.function("memory", {"command": "view", "path": "/memories"})

    def computer(self) -> None:
        """A screenshot of the caller's screen, or a click on it."""
        self.function("computer", self.draw.choice([{"action": "screenshot"}, {"action": "left_click", "coordinate": [1, 2]}]))

    def opened(self) -> None:
        """A search that has no result."""
        self.called("web_search", {}, None, True)
        block = {"type": "server_tool_use", "id": self.next("srvtoolu"), "name": "web_search", "input": {}}
        self.events.append({"type": "content_block_start", "index": len(self.content), "content_block": block})

    def reply(self) -> Events:
        """The whole reply."""
        stop = {"stop_reason": "tool_use" if self.shows.functions else "end_turn"}
        usage = {"output_tokens": 5}
        whole = {**self.head, "content": self.content, **stop, "usage": {"input_tokens": 10, **usage}}
        return Events([*self.events, {"type": "message_delta", "delta": stop, "usage": usage}], whole)
