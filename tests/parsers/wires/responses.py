"""Random replies of OpenAI's Responses API."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

from tests.parsers.wires.writer import Writer
from tests.support.script import Events


class Responses(Writer):
    """OpenAI's Responses API."""

    kinds = ("search", "files", "code", "image", "mcp", "listed", "cited", "document", "made_file")
    waiting = ("shell", "apply_patch", "mcp_approval", "computer")

    def __init__(self, draw: random.Random, number: int) -> None:
        super().__init__(draw, number)
        self.head = {"id": f"resp_{number}", "object": "response", "model": "any", "output": []}
        self.events.append({"type": "response.created", "response": {**self.head, "status": "in_progress"}})

    def _item(self, item: dict[str, Any], *between: dict[str, Any], **empty: Any) -> None:
        at = {"output_index": len(self.content)}
        self.events.append({"type": "response.output_item.added", **at, "item": {**item, "status": "in_progress", **empty}})
        self.events += [{**one, **at, "item_id": item["id"]} for one in between]
        self.events.append({"type": "response.output_item.done", **at, "item": item})
        self.content.append(item)

    def _message(self, *annotations: dict[str, Any]) -> None:
        words = self.words()
        self.shows.text += "".join(words)
        part = {"type": "output_text", "text": "".join(words), "annotations": list(annotations)}
        item = {"id": self.next("msg"), "type": "message", "role": "assistant", "status": "completed", "content": [part]}
        self._item(item, *({"type": "response.output_text.delta", "content_index": 0, "delta": word} for word in words), content=[])

    def text(self) -> None:
        """A message."""
        self._message()

    def cited(self) -> None:
        """A message that cites pages."""
        self._message(*({"type": "url_citation", **self.page(), "start_index": 0, "end_index": 1} for _ in range(self.draw.randint(1, 2))))

    def document(self) -> None:
        """A message that cites a document."""
        name = f"{self.word()}.pdf"
        self.shows.sources.append(name)
        self._message({"type": "file_citation", "filename": name, "file_id": "file_1", "index": 0})

    def made_file(self) -> None:
        """A message that refers to a file in a container."""
        file_id = self.next("cfile")
        self.shows.kept.append(file_id)
        self._message({"type": "container_file_citation", "container_id": "cn", "file_id": file_id, "filename": "plot.csv"})

    def thought(self) -> None:
        """A summary of reasoning."""
        words = self.words()
        self.shows.thought += "".join(words)
        item = {"id": self.next("rs"), "type": "reasoning", "summary": [{"type": "summary_text", "text": "".join(words)}]}
        name, at = "response.reasoning_summary", {"summary_index": 0}
        deltas = [{"type": f"{name}_text.delta", **at, "delta": word} for word in words]
        self._item(item, {"type": f"{name}_part.added", **at, "part": {"type": "summary_text", "text": ""}}, *deltas, summary=[])

    def function(self, name: str, args: Mapping[str, Any]) -> None:
        """A function call."""
        self.shows.functions.append((name, dict(args)))
        call_id, written = self.next("call"), json.dumps(args)
        item = {"id": f"fc_{call_id}", "type": "function_call", "call_id": call_id, "name": name, "arguments": written}
        pieces = (written[:5], written[5:])
        self._item(item, *({"type": "response.function_call_arguments.delta", "delta": piece} for piece in pieces), arguments="")

    def _called(self, kind: str, shown: str, args: Any, told: Any, *between: dict[str, Any], **fields: Any) -> None:
        failed = self.called(shown, args, told, fields.get("status") == "failed")
        item = {"id": self.next(kind), "type": kind, "status": "failed" if failed else "completed", **fields}
        self._item(item, *between, result=None)

    def search(self) -> None:
        """A search, with its sources or without."""
        action: dict[str, Any] = {"type": "search", "query": self.word()}
        sources = [{"type": "url", "url": "https://example.org/s"}] if self.fails() else []
        status = {"status": "failed"} if self.fails() else {}
        going = {"type": "response.web_search_call.searching"}
        output = {"sources": sources} if sources else None
        with_sources = {**action, "sources": sources} if sources else action
        self._called("web_search_call", "web_search", action, output, going, action=with_sources, **status)

    def files(self) -> None:
        """A search in files."""
        found = [{"file_id": "file_1", "filename": "a.pdf", "score": 0.5, "text": self.word()}]
        self._called("file_search_call", "file_search", {"queries": ["x"]}, {"results": found}, queries=["x"], results=found)

    def code(self) -> None:
        """Code, with an image."""
        written = self.word() * 2
        outputs = [{"type": "image", "url": f"https://example.org/{self.number}.png"}]
        self.shows.files.append(outputs[0]["url"])
        going = {"type": "response.code_interpreter_call_code.delta", "delta": written}
        fields = {"code": written, "container_id": "cn"}
        self._called("code_interpreter_call", "code_interpreter", fields, {"outputs": outputs}, going, outputs=outputs, **fields)

    def image(self) -> None:
        """An image after a partial one."""
        going = {"type": "response.image_generation_call.partial_image", "partial_image_b64": "b25l", "partial_image_index": 0}
        result, output = self.made(), {"output_format": "png"}
        self._called("image_generation_call", "image_generation", {}, output, going, result=result, **output)

    def mcp(self) -> None:
        """A call of a remote MCP server."""
        failed, said = self.fails(), self.word()
        fields = {"status": "failed", "error": "no"} if failed else {"output": said}
        args, output = {"server_label": "dice", "d": 6}, {"error": "no"} if failed else said
        self._called("mcp_call", "mcp.roll", args, output, name="roll", server_label="dice", arguments='{"d":6}', **fields)

    def listed(self) -> None:
        """The tools of a remote MCP server."""
        tools = [{"name": "roll", "input_schema": {"type": "object"}}]
        self.called("mcp_list_tools", {"server_label": "dice"}, {"tools": tools})
        self._item({"id": self.next("mcpl"), "type": "mcp_list_tools", "server_label": "dice", "tools": tools}, tools=[])

    def _waits(self, kind: str, **fields: Any) -> None:
        self.shows.functions.append((kind, fields))
        known: dict[str, Any] = {} if kind == "mcp_approval_request" else {"call_id": self.next("call"), "status": "completed"}
        self._item({"id": self.next("it"), "type": kind, **known, **fields})

    def shell(self) -> None:
        """Commands for the caller's machine."""
        self._waits("shell_call", action={"commands": [f"echo {self.word()}"], "timeout_ms": None, "max_output_length": 100})

    def apply_patch(self) -> None:
        """A patch for the caller's files."""
        self._waits("apply_patch_call", operation={"type": "update_file", "path": "a.txt", "diff": f"@@\n-a\n+{self.word()}"})

    def computer(self) -> None:
        """A screenshot of the caller's screen, or a click on it."""
        acts = [{"type": "screenshot"}, {"type": "click", "button": "left", "x": 1, "y": 2}]
        self._waits("computer_call", action=self.draw.choice(acts), pending_safety_checks=[])

    def mcp_approval(self) -> None:
        """A call of a remote MCP server that asks first."""
        self._waits("mcp_approval_request", server_label="docs", name="read", arguments="{}")

    def opened(self) -> None:
        """A search that has begun."""
        self.called("web_search", {}, None, True)
        item = {"id": self.next("ws"), "type": "web_search_call", "status": "in_progress"}
        self.events.append({"type": "response.output_item.added", "output_index": len(self.content), "item": item})

    def reply(self) -> Events:
        """The whole reply."""
        whole = {**self.head, "status": "completed", "output": self.content}
        return Events([*self.events, {"type": "response.completed", "response": whole}], whole)
