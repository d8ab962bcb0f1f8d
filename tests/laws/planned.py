"""Conversations of the table of features and entrances: their tools, what features ask for together, and what came of it."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolArg, InjectedToolCallId, StructuredTool
from pydantic import BaseModel, Field

from langchain_autotools import ToolContext, ToolPolicy
from langchain_autotools.event_types import RunEvent
from langchain_autotools.messages.calls import awaited_calls
from langchain_autotools.messages.metadata import KEY, is_cut_reply
from langchain_autotools.messages.run_messages import open_run
from langchain_autotools.providers.openai.responses_items import awaited_entry
from langchain_autotools.testing import ScriptedChatModel
from tests.support.script import Call

LONG = "0123456789" * 100
"""What a tool returns that says too much."""
USER = "alice"
"""Who is named in the configuration of each run."""


class Shipment(BaseModel):
    """What is shipped."""

    config: dict[str, int]
    currency: str = Field("USD", alias="ccy")


class Work:
    """The tools of a conversation, and what ran of them.

    Attributes:
        ran: Each call that a tool was entered with, in order: the tool's name and its arguments.
        texts: What raw functions were given.
        stop: Ends the run from inside of a tool.
        release: Lets tools end that wait.
        said: Takes what the user says.
    """

    def __init__(self) -> None:
        self.ran: list[tuple[str, dict[str, Any]]] = []
        self.texts: list[str] = []
        self.stop: Any = None
        self.release = threading.Event()
        self.said: Any = None
        self.attempts = 0

    def functions(self, names: Collection[str]) -> list[Any]:
        """The tools as functions."""
        return [getattr(self, name) for name in names]

    def raw(self, names: Collection[str]) -> dict[str, Any]:
        """The tools as functions of the JSON text of their arguments."""
        return {name: partial(self._read, name) for name in names}

    def _read(self, name: str, text: str) -> Any:
        self.texts.append(text)
        return getattr(self, name)(**json.loads(text))

    def times(self, name: str, **args: Any) -> int:
        """How often a call has run."""
        return self.ran.count((name, args))

    def _note(self, name: str, **args: Any) -> None:
        self.ran.append((name, args))

    def look(self, city: str) -> str:
        """Look at a city."""
        self._note("look", city=city)
        return f"{city}: 21"

    def send(self, to: str, amount: float) -> str:
        """Send an amount."""
        self._note("send", to=to, amount=amount)
        return f"Sent {amount} to {to}."

    def book(self, day: str, seats: int) -> str:
        """Book seats."""
        self._note("book", day=day, seats=seats)
        return f"{seats} seats on {day}."

    def seat(self, row: int) -> str:
        """Reserve a seat."""
        self._note("seat", row=row)
        return f"Row {row}."

    def grant(self, to: str) -> str:
        """Grant something to somebody."""
        self._note("grant", to=to)
        return f"Granted to {to}."

    def tell(self, to: str) -> str:
        """Tell somebody."""
        self._note("tell", to=to)
        return f"Told {to}."

    def page(self, number: int) -> str:
        """Return a page."""
        self._note("page", number=number)
        return f"Page {number}: {LONG}"

    def hear(self, word: str) -> str:
        """Work while the user says a word."""
        self._note("hear", word=word)
        self.said(word)
        return "Heard."

    def pay(self, to: str) -> str:
        """Pay somebody."""
        self._note("pay", to=to)
        return f"Paid {to}."

    def fetch(self, city: str) -> str:
        """Fetch the report of a city."""
        self.attempts += 1
        if self.attempts == 1:
            raise ConnectionError("The station does not answer.")
        self._note("fetch", city=city)
        return LONG

    def rate(self, currency: str) -> str:
        """Say the rate of a currency."""
        self._note("rate", currency=currency)
        return f"{currency}: {len(self.ran)}"

    def count(self, number: int) -> str:
        """Count."""
        self._note("count", number=number)
        return str(number)

    def halt(self) -> str:
        """End the run."""
        self._note("halt")
        self.stop()
        return "Halted."

    def wait(self) -> str:
        """Wait until somebody lets it end."""
        self._note("wait")
        self.release.wait(30)
        return "Waited."

    def erase(self, path: str) -> str:
        """Erase a file."""
        self._note("erase", path=path)
        return "Erased."

    def write(self, text: str) -> str:
        """Write a text."""
        self._note("write", text=text)
        return "Written."

    def tidy(self, room: str) -> str:
        """Tidy a room."""
        self._note("tidy", room=room)
        return f"Tidied the {room}."

    @property
    def helper(self) -> ScriptedChatModel:
        """A model as a tool: it tidies the kitchen, for which it needs approval. The id of its call is that of the call around it."""

        def reply(messages: list[BaseMessage], **_: Any) -> Any:
            tidies = {"name": "tidy", "args": {"room": "kitchen"}, "id": "agents_0"}
            return f"Done: {messages[-1].text}" if messages[-1].type == "tool" else AIMessage("", tool_calls=[tidies])

        return ScriptedChatModel(name="helper", tools=[self.tidy], replies=reply, requires_approval=["tidy"])

    @property
    def auditor(self) -> ScriptedChatModel:
        """A model as a tool: it counts twice, and answers."""

        def reply(messages: list[BaseMessage], **_: Any) -> Any:
            counts: Any = [{"name": "count", "args": {"number": number}, "id": f"inside_{number}"} for number in (80, 81)]
            return "Counted." if messages[-1].type == "tool" else AIMessage("", tool_calls=counts)

        return ScriptedChatModel(name="auditor", tools=[self.count], replies=reply)

    def shell(self, arguments: dict[str, Any]) -> str:
        """Run the commands of the vendor's shell."""
        self._note("shell", **arguments["action"])
        return "notes.txt"

    @property
    def ship(self) -> StructuredTool:
        """A tool with an argument `config`, one with an alias, and a configuration that is the program's."""

        def ship(config: dict[str, int], currency: str, setting: RunnableConfig | None = None) -> str:
            who = ((setting or {}).get("configurable") or {}).get("user")
            self._note("ship", config=config, currency=currency, configured=who)
            return f"Shipped {config['replicas']} for {currency}."

        return StructuredTool(name="ship", description="Ship something.", args_schema=Shipment, func=ship)

    def note(
        self,
        text: str,
        call_id: Annotated[str, InjectedToolCallId],
        context: ToolContext,
        user: Annotated[str, InjectedToolArg] = "nobody",
    ) -> str:
        """Note a text."""
        who = (context.config.get("configurable") or {}).get("user")
        self._note("note", text=text, call_id=call_id, user=user, configured=who, question=context.messages[0].text)
        return "Noted."


@dataclass
class Plan:
    """What the features of a conversation ask for together.

    Attributes:
        work: The tools.
        turns: The calls that the model makes, turn by turn; then it answers.
        names: The names of the tools.
        fields: Settings of the run, by the names of the model's fields.
        forbidden: The names of tools that the run may not call.
        declared: Tools that are declared, and whose calls are the caller's.
        cancels: Whether the run is given something to be cancelled by.
        allowed: What may run, and how often.
        paired: Whether the conversation has several features.
        fails: Whether the model that the conversation begins with fails, and another one, which does not, has to take over.
        vendor: Whether the vendor does something by itself in each reply.
        told: The events, of an entrance that has them.
        sources: Sources of further tools.
        paid: Whether each reply says that it has used a million tokens.
        handled: The calls of the vendor's shell that the model makes in its first turn, beside those of tools.
        counts: Whether replies of a wire tell what their requests have used.
        says: What the user says while they decide; None for nothing.
        inbox: The queue of what the user says while a run goes on; None for none.
    """

    work: Work = field(default_factory=Work)
    turns: list[list[Call]] = field(default_factory=lambda: [[], []])
    names: list[str] = field(default_factory=lambda: ["look"])
    fields: dict[str, Any] = field(default_factory=dict)
    forbidden: set[str] = field(default_factory=set)
    declared: list[dict[str, Any]] = field(default_factory=list)
    cancels: bool = False
    allowed: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    paired: bool = False
    fails: bool = False
    vendor: bool = False
    told: list[RunEvent] = field(default_factory=list)
    sources: list[Any] = field(default_factory=list)
    paid: bool = False
    counts: bool = False
    handled: list[Call] = field(default_factory=list)
    says: str | None = None
    inbox: Any = None

    @property
    def offered(self) -> set[str]:
        """The names of all tools that a run can execute."""
        return {*self.names, *(tool.name for source in self.sources for tool in source.tools())}

    @property
    def kinds(self) -> list[str]:
        """The kinds of the vendor's tools that handlers answer."""
        return ["shell"] if self.handled else []

    @property
    def tools(self) -> list[Any]:
        """The tools."""
        return [*self.work.functions(self.names), *self.sources]

    def add(self, name: str, *calls: Call, turn: int = 0) -> None:
        """Add calls of a tool."""
        if name not in self.names:
            self.names.append(name)
        self.turns[turn] += calls

    def approve(self, name: str) -> None:
        """Have the calls of a tool wait."""
        self.fields.setdefault("requires_approval", []).append(name)

    def allow(self, name: str, **args: Any) -> None:
        """Note that a call may run, once more."""
        self.allowed.append((name, args))

    def govern(self, name: str, policy: ToolPolicy) -> None:
        """Give a tool a policy."""
        self.fields.setdefault("policies", {})[name] = policy

    def summary(self, messages: Sequence[BaseMessage]) -> str | None:
        """What the model says where it is asked for a summary; None where it is not."""
        asked = bool(messages) and any(words in messages[-1].text for words in ("asks for a summary", "</conversation>"))
        return f"{_turns(messages)} replies so far." if asked else None

    def calls(self, messages: Sequence[BaseMessage]) -> list[Call]:
        """The calls of tools that the model makes after these messages."""
        turn = _turns(messages)
        return self.turns[turn] if turn < len(self.turns) else []

    def beside(self, messages: Sequence[BaseMessage]) -> list[Call]:
        """The calls of the vendor's shell that it makes then."""
        return [] if _turns(messages) else self.handled

    def items(self, messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
        """The same as items, which they are in the vendor's API."""
        known = {"type": "shell_call", "status": "completed"}
        return [{"id": f"sh_{one.id}", "call_id": one.id, **known, **json.loads(one.raw)} for one in self.beside(messages)]


def _turns(messages: Sequence[BaseMessage]) -> int:
    """The number of replies. One that was cut off, and the one that goes on with it, are one; a summary says how many it stands for."""
    summed = [int(found[1]) for message in messages if (found := _SUMMED.match(message.text))]
    return sum(summed[-1:]) + sum(isinstance(message, AIMessage) and not is_cut_reply(message) for message in messages)


_SUMMED = re.compile(r"\[Summary of the conversation.*\n(\d+) replies so far\.", re.DOTALL)


def awaiting(items: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The metadata of a reply with items that wait for an answer, as the wire of these items writes it."""
    return {KEY: {"awaits": [awaited_entry(item) for item in items]}} if items else {}


def ids_of(message: AIMessage) -> list[str]:
    """The ids of a message's calls: of tools, then of the vendor's own."""
    calls: list[Any] = [*message.tool_calls, *message.invalid_tool_calls]
    return [*(str(call["id"]) for call in calls), *(call.id for call in awaited_calls(message))]


@dataclass
class Seen:
    """What a conversation came to, for a feature to look at.

    Attributes:
        plan: What was asked for.
        history: What the caller has stored.
        reason: Why the last run ended; None where the entrance has no run.
        error: What ended it.
        requests: How many requests were made; None where the entrance makes none.
        again: What became of the same decisions, a second time.
    """

    plan: Plan
    history: Sequence[BaseMessage]
    reason: str | None = None
    error: BaseException | None = None
    requests: int | None = None
    again: Any = None

    @property
    def work(self) -> Work:
        """The tools."""
        return self.plan.work

    def result(self, call_id: str) -> ToolMessage:
        """The result of a call; that a run waited inside it is none."""
        results = [one for one in self.history if isinstance(one, ToolMessage) and open_run(one) is None]
        (found,) = [one for one in results if one.tool_call_id == call_id]
        return found

    def ended(self, reason: str, requests: int) -> None:
        """Check how the run ended, and after how many requests, where there are such."""
        assert self.reason in (reason, None)
        assert self.requests in (requests, None)
