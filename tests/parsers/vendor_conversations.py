"""Random conversations over every wire's bytes in which vendors do things by themselves, and models wait for those who read a page.

    with Vendors() as vendors:
        talk = Talk(seed, vendors)
        while talk.goes_on:
            events = talk.run()        # one run: a question, or what was decided about the calls that wait
            talk.decisions()           # what somebody decides about them
        talk.shows                     # what the servers have written, reply by reply

A conversation has a wire, handlers or none, approvals, calls of tools, of which one asks another model, and a first reply that breaks off.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Any, Self

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.tools import tool

from langchain_autotools import (
    Agent,
    ChatAnthropic,
    ChatGoogleGenerativeAI,
    ChatOllama,
    ChatOpenAI,
    Decision,
    Handler,
    PendingCall,
    ToolPolicy,
    aevents,
    events,
    pending_calls,
)
from langchain_autotools.durable.journal import append_joined, event_of, row_of
from langchain_autotools.event_types import MessageDone, RunEvent
from langchain_autotools.run import failover
from tests.parsers.wires import RESULTS, SCREEN, WRITERS, Shows
from tests.support.anthropic_server import AnthropicServer
from tests.support.google_server import GoogleServer
from tests.support.ollama_server import OllamaServer
from tests.support.openai_server import OpenAIServer
from tests.support.random_replies import WORDS
from tests.support.responses_server import ResponsesServer
from tests.support.script import Events

KEY = "the server's own"
QUESTION = HumanMessage("What is new?")
ASK = {"type": "function", "function": {"name": "ask", "description": "Theirs.", "parameters": {"type": "object", "properties": {}}}}
_LOOSE = {"strict": False}
_SERVERS: Mapping[str, tuple[Any, dict[str, Any], Any, dict[str, Any]]] = {
    "Responses": (ResponsesServer, {"rules": None}, ChatOpenAI, {"use_responses_api": True}),
    "chat completions": (OpenAIServer, {"rules": None}, ChatOpenAI, {"use_responses_api": False}),
    "Anthropic": (AnthropicServer, _LOOSE, ChatAnthropic, {"prompt_caching": False}),
    "Google": (GoogleServer, _LOOSE, ChatGoogleGenerativeAI, {}),
    "Ollama": (OllamaServer, _LOOSE, ChatOllama, {}),
}
_ROLES = ("outer", "inner", "broken")
_DECLARED: Mapping[str, tuple[list[dict[str, Any]], dict[str, str]]] = {
    "Responses": (
        [
            {"type": "shell"},
            {"type": "apply_patch"},
            {"type": "mcp", "server_label": "docs", "server_url": "https://example.org/mcp"},
            {"type": "computer"},
        ],
        {"shell": "shell_call", "apply_patch": "apply_patch_call", "mcp_approval": "mcp_approval_request", "computer": "computer_call"},
    ),
    "Anthropic": (
        [
            {"type": "bash_20250124", "name": "bash"},
            {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
            {"type": "memory_20250818", "name": "memory"},
            {"type": "computer_20250124", "name": "computer", "display_width_px": 800, "display_height_px": 600},
        ],
        {"shell": "bash", "text_editor": "str_replace_based_edit_tool", "memory": "memory", "computer": "computer"},
    ),
}
"""The vendors' tools for the caller's machine: how they are declared, and by the kind of its handler what a page calls each."""


@tool
def look(at: str) -> str:
    """Look."""
    return f"seen: {at}"


@tool
def fails(at: str) -> str:
    """Fail."""
    raise ValueError(f"no {at}")


@tool
def mail(to: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


class Vendors:
    """A server of every wire for each role: the model that is asked, one inside a tool, one that breaks off."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._servers: dict[tuple[str, str], Any] = {}
        self.talk: Talk | None = None

    def __enter__(self) -> Self:
        for wire, (server, keywords, _, _) in _SERVERS.items():
            for role in _ROLES:
                made = server(partial(self._reply, wire, role), **keywords)
                self._servers[wire, role] = self._stack.enter_context(made)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._stack.close()

    def _reply(self, wire: str, role: str, exchange: Any) -> Events:
        assert self.talk is not None
        return self.talk.reply(wire, role)

    def model(self, wire: str, role: str, **keywords: Any) -> Any:
        """A model that asks the server of this role."""
        _, _, kind, known = _SERVERS[wire]
        key = {} if kind is ChatOllama else {"api_key": "key"}
        retries = {} if kind is ChatOllama else {"max_retries": 0}
        return kind(model="any", base_url=self._servers[wire, role].url, **key, **retries, **known, **keywords)


class Talk:
    """One conversation.

    Args:
        seed: What all that is said follows from.
        vendors: The servers.

    Attributes:
        history: Its messages.
        shows: What the servers have written, with the role of who was asked.
        pending: The calls that wait.
        is_kept: Whether pages are given the events as a worker of durable runs keeps them, with large files by reference.
    """

    def __init__(self, seed: int, vendors: Vendors) -> None:
        draw = self._draw = random.Random(seed)
        self.wire, self._seed, self._vendors = draw.choice(list(WRITERS)), seed, vendors
        vendors.talk = self
        self._turns = [draw.random() < 0.8 for _ in range(draw.choice([0, 1, 1, 2]))]  # which replies before the last one call something
        self.breaks = draw.random() < 0.2
        self._has_items = not self.breaks and self.wire in _DECLARED
        self.is_kept = not self.breaks and seed % 4 in (1, 2)  # what is kept of a reply that breaks off is tested by itself
        self.history: list[BaseMessage] = [QUESTION]
        self.shows: list[tuple[str, Shows]] = []
        self.pending: list[PendingCall] = []
        self._decided: list[Decision] | None = None
        failover._cooling.clear()
        self._model = self._made()

    def _made(self) -> Any:
        inner = self._vendors.model(self._draw.choice(list(WRITERS)), "inner", tools=[look])
        tools: list[Any] = [look, fails, mail, Agent(inner).as_tool("helper", "Help.")]
        keywords: dict[str, Any] = {"requires_approval": ["mail"], "approval_key": KEY, "no_progress": None}
        wire, role = self.wire, "outer"
        if self._has_items:
            declared, kinds = _DECLARED[wire]
            tools += declared
            keywords["handlers"] = {kind: self._handler(name) for kind, name in kinds.items() if self._draw.random() < 0.7} or None
        if self.breaks:
            keywords["fallbacks"] = [self._vendors.model(wire, "outer")]
            wire, role = self._draw.choice(list(WRITERS)), "broken"
        model = self._vendors.model(wire, role, tools=tools, default_policy=ToolPolicy(), **keywords)
        return model.bind_tools([ASK])

    def _handler(self, name: str) -> Handler:
        return Handler(lambda _: RESULTS.get(name, True), requires_approval=self._draw.choice([None, True, False]))

    # ------------------------------------------------------------------------------------------ what servers say

    def reply(self, wire: str, role: str) -> Events:
        """The next reply of a server."""
        if role == "broken" and any(one == "broken" for one, _ in self.shows):  # asked again, once it has cooled down
            role = "outer"
        writer = WRITERS[wire](self._draw, self._seed * 100 + len(self.shows))
        if role == "broken":  # blanks alone are held back until there is text, and with them all that follows
            writer.vocabulary = [word for word in WORDS if word.strip()]
        items = [self._draw.choice(["text", "thought", *writer.kinds]) for _ in range(self._draw.randint(1, 5))]
        for name in items:
            if role != "broken" or name not in ("grounded", "read_pages", "sound"):  # of a reply without an end nothing tells these
                getattr(writer, name)()
        self.shows.append((role, writer.shows))
        if role == "broken":
            if self._draw.random() < 0.5:
                writer.opened()
            return writer.cut()
        if role == "outer" and self._turns and self._turns.pop(0):
            for _ in range(self._draw.randint(1, 3)):
                self._call(writer)
        elif not writer.shows.text:
            writer.text()
        return writer.reply()

    def _call(self, writer: Any) -> None:
        helps = any(name == "helper" for name, _ in writer.shows.functions)  # one at a time: its model's replies are drawn in order
        names = ["look", "fails", "mail", "ask", *([] if helps else ["helper"]), *(writer.waiting if self._has_items else ())]
        name = self._draw.choice(names)
        if name in writer.waiting:
            getattr(writer, name)()
        else:
            argument = {"mail": "to", "helper": "question"}.get(name, "at")
            writer.function(name, {} if name == "ask" else {argument: f"{writer.word()} {writer.count}"})

    # ------------------------------------------------------------------------------------------ runs

    def run(self) -> list[RunEvent]:
        """The events of the next run."""
        keywords: dict[str, Any] = {} if self._decided is None else {"resume": self._decided}
        made = list(events(self._model.stream(self.history, **keywords))) if self._seed % 2 else asyncio.run(self._arun(keywords))
        own = made[0].run_id
        self.history += [event.message for event in made if isinstance(event, MessageDone) and event.run_id == own]
        self.pending = pending_calls(self.history)
        return kept(made) if self.is_kept else made

    async def _arun(self, keywords: dict[str, Any]) -> list[RunEvent]:
        return [event async for event in aevents(self._model.astream(self.history, **keywords))]

    def decisions(self) -> list[Decision]:
        """What somebody decides about the calls that wait: yes, no, other arguments, or what came of them."""
        return [self._decide(call) for call in self.pending if call.kind != "queued"]

    def _decide(self, call: PendingCall) -> Decision:
        if call.kind in ("caller", "client_tool"):
            known = RESULTS.get(call.name, "theirs")
            return call.respond([known] if known is SCREEN else known)
        if call.name == "mail" and self._draw.random() < 0.4:
            return call.edit({"to": "Zoë 😀"})
        return call.approve() if self._draw.random() < 0.7 else call.reject("no")

    def go_on(self, decisions: Sequence[Decision]) -> None:
        """The next run goes on with these."""
        self._decided = list(decisions)


def kept(events: Sequence[RunEvent]) -> list[RunEvent]:
    """The events as another process reads them from the rows of a durable run."""
    rows: list[RunEvent] = []
    for event in events:
        append_joined(rows, event)
    made = [event_of(json.loads(json.dumps(row_of(one)))) for one in rows]
    assert all(isinstance(one, RunEvent) for one in made)
    return [one for one in made if isinstance(one, RunEvent)]
