"""One conversation through a proxy that spoils some of its replies, and what must be true of it whatever comes.

A case follows from a number, or from its parts.
"""

from __future__ import annotations

import gc
import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.exceptions import LangChainException
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_autotools import ChatAnthropic, ChatGoogleGenerativeAI, ChatOllama, ChatOpenAI, stop_reason
from langchain_autotools.errors import AutoToolsError
from langchain_autotools.history import validate
from tests.faults.kinds import FAULTS
from tests.faults.proxy import FaultProxy, Spoil
from tests.laws.ways import WAYS, Ran, run
from tests.support.anthropic_server import AnthropicServer
from tests.support.google_server import GoogleServer
from tests.support.http_server import Exchange
from tests.support.ollama_server import OllamaServer
from tests.support.openai_server import OpenAIServer
from tests.support.responses_server import ResponsesServer
from tests.support.script import Call, Turn

WIRES: Mapping[str, tuple[Any, Any, Mapping[str, Any]]] = {
    "openai": (OpenAIServer, ChatOpenAI, {"api_key": "key"}),
    "responses": (ResponsesServer, ChatOpenAI, {"api_key": "key", "use_responses_api": True}),
    "anthropic": (AnthropicServer, ChatAnthropic, {"api_key": "key", "prompt_caching": False}),
    "google": (GoogleServer, ChatGoogleGenerativeAI, {"api_key": "key"}),
    "ollama": (OllamaServer, ChatOllama, {}),
}
FIRST, LAST = "Let me look at Zürich now.", "It is 21 °C in Zürich."
ENDS = frozenset({"complete", "incomplete", "deadline", "length", "refused", "calls_pending", "no_progress"})
PATIENCE = 0.4
"""Seconds after which a run through a fault that never ends must end."""
LONGEST = 60.0
"""Seconds that no run may take."""


@dataclass(frozen=True)
class Case:
    """One conversation.

    Attributes:
        wire: The wire.
        fault: The fault.
        request: Which request it spoils.
        lasts: Whether it spoils all from there on.
        way: How the run is made.
        fallback: Whether there is a model without faults beside it.
    """

    wire: str
    fault: str
    request: int
    lasts: bool
    way: str
    fallback: bool

    @classmethod
    def of(cls, seed: int, faults: list[str]) -> Case:
        """The case of a number."""
        chance = random.Random(seed)
        fault = faults[seed % len(faults)]
        choice = chance.choice(list(WIRES)), fault, chance.randrange(2), chance.random() < 0.5
        return cls(*choice, chance.choice(WAYS), chance.random() < 0.5)


class Spoilt:
    """One case with its servers.

    Args:
        case: The case.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.looked: list[str] = []

    def look(self, city: str) -> str:
        """Look at a city."""
        self.looked.append(city)
        return "21"

    def play(self) -> Ran:
        """Run the conversation, check it, and return what came of it.

        Raises:
            AssertionError: Something is not as it must be.
        """
        serve, kind, fields = WIRES[self.case.wire]
        threads = {thread for thread in threading.enumerate()}
        refused = self.case.request if FAULTS[self.case.fault].refuses else None
        with serve(self._reply) as server, serve(self._reply) as other, FaultProxy(server, self._plan, refused) as proxy:
            options = {"retry": {"wait_scale": 0}, "max_retries": 1, **fields}
            second = [kind(model="two", base_url=other.url, **options)] if self.case.fallback else []
            if FAULTS[self.case.fault].hangs:
                options["deadline"] = PATIENCE
            model = kind(model="one", base_url=proxy.url, tools=[self.look], fallbacks=second, **options)
            began = time.monotonic()
            ran = run(self.case.way, model, [HumanMessage("How warm is it?")])
            took = time.monotonic() - began
            assert took < LONGEST, f"it took {took:.1f} s"
            self._check(ran)
            assert [one.message for one in (*server.rejections, *other.rejections)] == []
            assert proxy.open_connections <= 1, f"{proxy.open_connections} connections are open"
            del model, second
        if ran.error is not None:
            ran.error = ran.error.with_traceback(None)
        self._check_threads(threads)
        return ran

    def _plan(self, number: int) -> Spoil | None:
        spoils = number >= self.case.request if self.case.lasts else number == self.case.request
        return FAULTS[self.case.fault].of(self.case.wire) if spoils else None

    def _reply(self, exchange: Exchange) -> Turn:
        return Turn(LAST) if self.looked else Turn(FIRST, [Call("look", {"city": "Zürich"})])

    # ------------------------------------------------------------------------------------------ what must be true

    def _check(self, ran: Ran) -> None:
        fault = FAULTS[self.case.fault]
        typed = self.case.fault.startswith("another type")
        assert len(self.looked) <= 1 or typed, f"the tool ran {len(self.looked)} times"
        if ran.error is not None:
            assert isinstance(ran.error, AutoToolsError | LangChainException), repr(ran.error)
            assert str(ran.error) and not fault.harmless, repr(ran.error)
            return
        assert ran.message is not None
        reason = stop_reason(ran.message)
        assert reason in ENDS, reason
        assert validate([HumanMessage("How warm is it?"), *ran.new]) == []
        if fault.harmless or (reason == "complete" and not typed):
            self._check_answer(ran.new)

    def _check_answer(self, messages: list[BaseMessage]) -> None:
        text = "".join(one.text for one in messages if isinstance(one, AIMessage))
        assert text.endswith(LAST), text
        assert self.looked == ["Zürich"]
        assert [one.text for one in messages if isinstance(one, ToolMessage)] == ["21"]

    def _check_threads(self, before: set[threading.Thread]) -> None:
        """No thread is left but those that the process keeps: of event loops and their executors."""
        end = time.monotonic() + 5
        while left := [one for one in threading.enumerate() if one not in before and not _is_kept(one)]:
            assert time.monotonic() < end, f"threads are left: {left}"
            gc.collect()
            time.sleep(0.01)


def _is_kept(thread: threading.Thread) -> bool:
    return thread.name.startswith(("asyncio_", "ThreadPoolExecutor", "langchain_autotools", "autotools")) or "run_forever" in thread.name
