"""From what a recorded request says to LangChain's messages, and to tools that return what the recorded tools returned."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException

from langchain_autotools.messages.calls import calls_of
from tests.loops.meaning import FAILURE, WRAPPERS, Atom, Call, Kind, Media, Result, plain
from tests.loops.rows import Declared


def messages_of(atoms: Sequence[Atom], written: Callable[[list[Atom]], AIMessage | None]) -> list[BaseMessage]:
    """The messages that say the same. An assistant's message that `written` knows is taken from it; others lose their signatures."""
    found: list[BaseMessage] = []
    ids: dict[int, str] = {}
    for assistant, group in groupby(atoms, key=lambda atom: atom.role == "assistant"):
        if assistant:
            members = list(group)
            message = written(members) or _assistant(members)
            numbers = [atom.value.number for atom in members if atom.kind == "call"]
            ids.update(zip(numbers, [call.id for call in calls_of(message)], strict=True))
            found.append(message)
        else:
            for _, same in groupby(group, key=lambda atom: (atom.message, atom.role)):
                found += _others(list(same), ids)
    return found


def _assistant(atoms: Iterable[Atom]) -> AIMessage:
    said = list(atoms)
    calls = [atom.value for atom in said if atom.kind == "call"]
    return AIMessage(
        content="".join(atom.value for atom in said if atom.kind == "text"),
        tool_calls=[{"name": call.name, "args": _arguments(call), "id": _id_of(call), "type": "tool_call"} for call in calls],
    )


def _arguments(call: Call) -> dict[str, Any]:
    return call.arguments if isinstance(call.arguments, dict) else {"__arg1": call.arguments}


def _id_of(answered: Call | Result) -> str:
    return answered.id or f"call_{answered.number}"


def _others(atoms: list[Atom], ids: Mapping[int, str]) -> list[BaseMessage]:
    if atoms[0].role == "tool":
        return [_tool_message(atom.value, ids) for atom in atoms]
    content = content_of([(atom.kind, atom.value) for atom in atoms])
    return [SystemMessage(content) if atoms[0].role == "system" else HumanMessage(content)]


def _tool_message(result: Result, ids: Mapping[int, str]) -> ToolMessage:
    value = value_of(result)
    content = json.dumps(value, ensure_ascii=False) if _holds_data(result) and not isinstance(value, str) else value
    status = "error" if is_error(result) else "success"
    return ToolMessage(content, tool_call_id=ids.get(result.number) or _id_of(result), name=result.name, status=status)


def is_error(result: Result) -> bool:
    """Whether a result says that its call failed: by a flag, or, where the wire has no flag, by its only key."""
    (kind, value), *_ = result.parts or (("text", ""),)
    return result.error or (kind == "data" and set(json.loads(value)) == {FAILURE})


def _holds_data(result: Result) -> bool:
    return len(result.parts) == 1 and result.parts[0][0] == "data"


def value_of(result: Result) -> Any:
    """What the recorded tool returned."""
    if _holds_data(result):
        said = json.loads(result.parts[0][1])
        return next(iter(said.values())) if len(said) == 1 and said.keys() <= {*WRAPPERS, FAILURE} else said
    return content_of(result.parts)


def content_of(parts: Sequence[tuple[Kind, Any]]) -> Any:
    """The content of a message: a text, or LangChain's standard blocks."""
    if all(kind == "text" for kind, _ in parts) and len(parts) < 2:
        return "".join(value for _, value in parts)
    return [_block(kind, value) for kind, value in parts]


def _block(kind: Kind, value: Any) -> dict[str, Any]:
    if kind == "media":
        return _media(value)
    if kind == "item":
        return dict(json.loads(value))
    return {"type": "text", "text": value}


def _media(media: Media) -> dict[str, Any]:
    key = {"base64": "base64", "url": "url", "id": "file_id"}[media.source]
    mime = media.mime or {"image": "image/png", "file": "application/pdf"}.get(media.kind, "")
    return {"type": media.kind, key: media.value, **({"mime_type": mime} if media.source == "base64" or media.mime else {})}


class Desk:
    """Hands out recorded results to the calls that they answered: by name and arguments, in the order in which they were recorded.

    Attributes:
        repeats: Whether two calls are the same; then they must run one after another.
    """

    def __init__(self, atoms: Iterable[Atom]) -> None:
        said = list(atoms)
        results = {atom.value.number: atom.value for atom in said if atom.kind == "result"}
        self._results: dict[tuple[str, str], deque[Result]] = defaultdict(deque)
        for atom in said:
            if atom.kind == "call" and atom.value.number in results:
                self._results[_key(atom.value.name, atom.value.arguments)].append(results[atom.value.number])
        self.repeats = any(len(same) > 1 for same in self._results.values())

    def tool(self, tool: Declared) -> BaseTool:
        """A tool that returns, or raises, what was recorded."""

        def answer(**arguments: Any) -> Any:
            result = self._results[_key(tool.name, arguments)].popleft()
            if is_error(result):
                raise ToolException(str(value_of(result)))
            return value_of(result)

        schema = {"type": "object", "properties": {}, **(tool.schema or {})}
        made = StructuredTool.from_function(answer, name=tool.name, description=tool.description or tool.name, args_schema=schema)
        made.handle_tool_error = True
        return made


def _key(name: str, arguments: Any) -> tuple[str, str]:
    return name, plain(arguments)
