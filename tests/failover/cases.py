"""One conversation whose first vendor breaks off at a byte of one of its replies, and what must be true of it.

A case follows from a number: the two vendors, the turn and the byte of the cut, whether the first one thinks, the way to run, whether calls
wait for approval. It also says whether it is a durable run, and whether the worker of that dies in the middle.
"""

from __future__ import annotations

import itertools
import json
import random
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_autotools import ChatAnthropic, ChatGoogleGenerativeAI, ChatOpenAI, ToolsAndMessagesMixin, pending_calls, stop_reason
from langchain_autotools.history import validate
from langchain_autotools.messages.metadata import is_cut_reply
from tests.failover.worker import worker
from tests.laws.ways import Ran, run
from tests.support.anthropic_server import AnthropicServer
from tests.support.google_server import GoogleServer
from tests.support.http_server import Exchange
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Cut, Turn

VENDORS: Mapping[str, tuple[Any, Any]] = {
    "openai": (OpenAIServer, ChatOpenAI),
    "anthropic": (AnthropicServer, ChatAnthropic),
    "google": (GoogleServer, ChatGoogleGenerativeAI),
}
PAIRS = [(one, other) for one in VENDORS for other in VENDORS if one != other]
WAYS = ("stream", "astream", "invoke", "ainvoke")
TEXTS = ("Let me look at the first of both places now.", "And now at the other one of the two.", "It is 21 degrees in both of them.")
HAS_DURABLE = find_spec("dbos") is not None
LONGEST = 2600
"""Bytes behind which no reply of these is cut any more."""


@dataclass(frozen=True)
class Case:
    """One conversation.

    Attributes:
        first: The vendor that breaks off.
        second: The one that takes over.
        turn: Which reply breaks off.
        byte: Behind how many bytes of its body.
        drop: Whether the connection is torn down; else the body just ends there.
        thinks: Whether both vendors reason.
        way: How it is run.
        approvals: Whether the calls wait for approval.
        durable: Whether it is a durable run ("run"), whose worker may die at the second call ("crash"); empty: it is none.
    """

    first: str
    second: str
    turn: int
    byte: int
    drop: bool
    thinks: bool
    way: str
    approvals: bool
    durable: str = ""

    @classmethod
    def of(cls, seed: int) -> Case:
        """The case of a number."""
        chance = random.Random(seed)
        first, second = chance.choice(PAIRS)
        way = chance.choice((*WAYS[:2], *WAYS))  # text leaves in streams
        rest = (chance.random() < 0.5, chance.random() < 0.5, way, chance.random() < 0.25)
        place = chance.randrange(3), chance.randrange(LONGEST)
        return cls(first, second, *place, *rest, chance.choice(("", "", "", "run", "crash") if HAS_DURABLE else ("",)))


class Broken:
    """One case with its servers.

    Args:
        case: The case.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.ran: list[str] = []
        self.approved: list[str] = []
        self._dies = case.durable == "crash"
        self._replies = 0
        self._lock = threading.Lock()

    def look(self, city: str) -> str:
        """Look at a city."""
        if self._dies and city == "city 1":
            self._dies = False
            worker().crash()
        with self._lock:
            assert not self.case.approvals or city in self.approved, f"{city} was not approved"
            self.ran.append(city)
        return "21"

    def play(self) -> None:
        """Run the conversation and check it.

        Raises:
            AssertionError: Something is not as it must be.
        """
        with ExitStack() as stack:
            servers = [stack.enter_context(VENDORS[name][0](script)) for name, script in self._scripts()]
            names = (self.case.first, self.case.second)
            first, second = (self._fields(name, server) for name, server in zip(names, servers, strict=True))
            other = VENDORS[self.case.second][1](**second)
            model = VENDORS[self.case.first][1](
                **first, tools=[self.look], fallbacks=[other], requires_approval=self.case.approvals or None
            )
            ran, history = self._run(model)
            self._check(servers, ran, history)

    def _scripts(self) -> list[tuple[str, Any]]:
        return [(self.case.first, self._breaking), (self.case.second, self._whole)]

    def _fields(self, name: str, server: Any) -> dict[str, Any]:
        thinking: dict[str, Any] = {}
        if self.case.thinks and name == "anthropic":
            thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2048}
        caching = {"prompt_caching": False} if name == "anthropic" else {}
        return {"model": f"model-{name}", "api_key": "key", "base_url": server.url, **caching, **thinking}

    def _run(self, model: ToolsAndMessagesMixin) -> tuple[Ran, list[BaseMessage]]:
        history: list[BaseMessage] = [HumanMessage("How warm is it?")]
        go_on = worker().runs(model) if self.case.durable else partial(run, model=model)
        ran = go_on(self.case.way, messages=history)
        while ran.error is None:
            history += ran.new
            waiting = pending_calls(history)
            if not waiting:
                break
            assert self.case.approvals
            self.approved += [str((call.args or {})["city"]) for call in waiting]
            ran = go_on(self.case.way, messages=history, resume=[call.approve() for call in waiting])
        return ran, history

    def _breaking(self, exchange: Exchange) -> Any:
        with self._lock:
            number, self._replies = self._replies, self._replies + 1
        reply = self._whole(exchange)
        return Cut(reply, self.case.byte, self.case.drop) if number == self.case.turn else reply

    def _whole(self, exchange: Exchange) -> Turn:
        """The reply to a request, by how many results it has."""
        number = exchange.body.count(b'"21"') + exchange.body.count(b'"result":21') + exchange.body.count(b'{"type":"text","text":"21"}')
        reasoning = "I think about it for a while." if self.case.thinks else ""
        calls = [Call("look", {"city": f"city {number}"})] if number < 2 else []
        return Turn(TEXTS[min(number, 2)], calls, reasoning=reasoning)

    # ------------------------------------------------------------------------------------------ what must be true

    def _check(self, servers: Sequence[Any], ran: Ran, history: list[BaseMessage]) -> None:
        assert ran.error is None, ran.error
        assert [one.message for server in servers for one in server.rejections] == []
        assert self.ran == ["city 0", "city 1"]
        assert validate(history) == []
        assert ran.message is not None and stop_reason(ran.message) == "complete"
        results = [one for one in history if isinstance(one, ToolMessage)]
        assert [one.status for one in results] == ["success", "success"]
        for server in servers:
            check_prefixes([_messages(one) for one in server.requests])
        self._check_text([one for one in history if isinstance(one, AIMessage)])

    def _check_text(self, replies: Sequence[AIMessage]) -> None:
        """Of the reply that broke off each character that came is there once; all others are whole."""
        cut = [one for one in replies if is_cut_reply(one)]
        assert len(cut) <= 1
        whole = [one.text for one in replies if not is_cut_reply(one)]
        assert whole == list(TEXTS), whole
        for one in cut:
            assert (
                (self.case.way in ("stream", "astream") or self.case.durable)
                and one.text.strip()
                and TEXTS[self.case.turn].startswith(one.text)
            )
            assert not one.tool_calls


def _messages(request: Mapping[str, Any]) -> list[str]:
    return [json.dumps(one, sort_keys=True) for one in request.get("messages") or request["contents"]]


def check_prefixes(requests: Sequence[Sequence[str]]) -> None:
    """The messages of each request begin with those of the one before it."""
    for before, after in itertools.pairwise(requests):
        assert list(after[: len(before)]) == list(before)
