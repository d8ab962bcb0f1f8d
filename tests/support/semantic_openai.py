"""A fake model behind OpenAI's format that decides what to say from tools, tool choice, schemas and messages alone.

- A forced choice is obeyed. Otherwise it calls each tool that the user's text mentions (by name, or by a word of the name) and that it has
  not called since. A tool whose description asks to be called first comes before any other. One that is to be called only when asked for by
  name is not taken to satisfy `required` while there is another.
- A response format is answered with JSON that fits it, without tools.
- Arguments fit the tool's schema and take numbers, quoted texts and places from the user's text.
- Token counts follow the request's and the reply's length; what an earlier request began with counts as cached.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.http_server import Exchange
from tests.support.schema_values import Hints, value_for
from tests.support.script import Call, Turn

FIRST = re.compile(r"\b(?:call|use) this (?:tool )?(?:first|before)\b", re.IGNORECASE)
BY_NAME = re.compile(r"\bonly when (?:it is )?asked for by name\b", re.IGNORECASE)
_COMMON_WORDS = {"get", "set", "my", "the", "tool", "function", "args", "no", "a", "of"}
_REMEMBERED = 64

Messages = Sequence[Mapping[str, Any]]


class SemanticOpenAI:
    """Answers requests as a model would. Its only memory is the text of the last requests, as a prompt cache's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: list[str] = []

    def __call__(self, exchange: Exchange) -> Turn:
        """The reply to a request."""
        request = self.read(exchange)
        turn = _shortened(_decide(request), request)
        prompt = json.dumps([request.get("tools"), request["messages"]], ensure_ascii=False)
        spoken = turn.text or "".join(call.name + call.raw for call in turn.calls)
        reasoning = 8 if request.get("reasoning_effort") not in {None, "none"} else 0
        details = {"cached": self._cached(prompt) // 4, "reasoning": reasoning, "audio_input": prompt.count('"input_audio"')}
        usage = (len(prompt) // 4 + 1, len(spoken.split()) + 1 + reasoning)
        return Turn(turn.text, turn.calls, turn.finish, usage, details)

    def read(self, exchange: Exchange) -> dict[str, Any]:
        """The request in the words of chat completions."""
        return exchange.json

    def _cached(self, prompt: str) -> int:
        with self._lock:
            longest = max((_shared(earlier, prompt) for earlier in self._seen), default=0)
            self._seen = [*self._seen[-_REMEMBERED:], prompt]
        return longest


def _shared(one: str, other: str) -> int:
    """How many characters two texts begin with in common."""
    return next((position for position, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _decide(request: Mapping[str, Any]) -> Turn:
    messages = request["messages"]
    last_user = max((position for position, message in enumerate(messages) if message["role"] == "user"), default=-1)
    prompt = _text(messages[last_user]) if last_user >= 0 else ""
    form = (request.get("response_format") or {}).get("type", "text")
    tools = [tool["function"] for tool in request.get("tools", []) if tool["type"] == "function"]
    calls = _calls(tools, request.get("tool_choice", "auto"), messages, last_user, prompt, form)
    if not request.get("parallel_tool_calls", True):
        calls = calls[:1]
    if calls:
        return Turn(calls=[_call(tool, prompt) for tool in calls])
    if form == "json_schema":
        return Turn(_json(value_for(request["response_format"]["json_schema"].get("schema", {}), Hints(prompt))))
    if form == "json_object":
        return Turn(_json({key: f"some {key}" for key in Hints(prompt).quoted}))
    results = [_text(message) for message in messages[last_user + 1 :] if message["role"] == "tool"]
    return Turn("You said: " + prompt if not results else "The tools said: " + "; ".join(results))


def _calls(tools: list[dict[str, Any]], choice: Any, messages: Messages, last_user: int, prompt: str, form: str) -> list[dict[str, Any]]:
    """The tools to call now."""
    if choice == "none" or not tools:
        return []
    if isinstance(choice, dict) and choice["type"] == "function":
        return [tool for tool in tools if tool["name"] == choice["function"]["name"]]
    first = [tool for tool in tools if FIRST.search(tool.get("description", "")) and tool["name"] not in _called(messages)]
    others = [tool for tool in tools if not FIRST.search(tool.get("description", ""))]
    if choice == "required":
        ranked = sorted(others, key=lambda tool: (-_mentions(tool, prompt), bool(BY_NAME.search(tool.get("description", "")))))
        return [*first, *ranked[:1]] or tools[:1]
    if form != "text":
        return []
    done = _called(messages[last_user + 1 :])
    return first or [tool for tool in others if tool["name"] not in done and _mentions(tool, prompt)]


def _called(messages: Messages) -> set[str]:
    """The names of the tools that were called and answered."""
    answered = {message["tool_call_id"] for message in messages if message["role"] == "tool"}
    calls = [call for message in messages for call in message.get("tool_calls") or [] if call["id"] in answered]
    return {call["function"]["name"] for call in calls}


def _mentions(tool: Mapping[str, Any], prompt: str) -> int:
    """How clearly a prompt asks for a tool: 2 by its name, 1 by a word of its name, 0 not at all."""
    if re.search(rf"\b{re.escape(tool['name'])}\b", prompt):
        return 2
    by_name = BY_NAME.search(tool.get("description", ""))
    words = set() if by_name else {word for word in tool["name"].lower().split("_") if word not in _COMMON_WORDS}
    return int(bool(words & set(re.findall(r"\w+", prompt.lower()))))


def _call(tool: Mapping[str, Any], prompt: str) -> Call:
    return Call(tool["name"], _json(value_for(tool.get("parameters") or {"type": "object"}, Hints(prompt))))


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(part["text"] for part in content if part["type"] == "text")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _shortened(turn: Turn, request: Mapping[str, Any]) -> Turn:
    """The turn within the request's stop sequences and token limit (a token is a word here)."""
    text = turn.text
    stops = request.get("stop") or []
    for stop in [stops] if isinstance(stops, str) else stops:
        text = text.split(stop)[0]
    limit = request.get("max_completion_tokens") or request.get("max_tokens")
    words = re.findall(r"\S+\s*", text)
    if limit is not None and len(words) > limit:
        return Turn("".join(words[:limit]).rstrip(), turn.calls, "length")
    return Turn(text, turn.calls, turn.finish)
