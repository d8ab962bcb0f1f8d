"""A service whose calls wait for a human: what it is set up to allow, who consented to what, and an oracle that knows both."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, messages_from_dict, messages_to_dict
from langchain_core.tools import StructuredTool
from pydantic import SecretStr

from langchain_autotools import (
    AlreadyResumedError,
    ConfigurationError,
    Decision,
    DecisionsError,
    PendingCall,
    ToolCallRecord,
    ToolExecutor,
    pending_calls,
)
from langchain_autotools.testing import ScriptedChatModel
from tests.laws.guarded import NAMES, SPELLINGS, Guarded, Wanted, allowing
from tests.laws.ways import Ran, run
from tests.support.claims import MemoryClaims

Part = tuple[str, int]
"""A call of a tool: its name and its argument."""

_ARGUMENTS = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
KEY_OF_THE_SERVER = "a key of the server's"
MEANT = {spell(name): name for name in NAMES for spell in SPELLINGS.values()}


def parts_of(name: str, args: Any) -> list[Part]:
    """What a call means, read without the package; nothing where it means nothing."""
    uses = args.get("tool_uses") if isinstance(args, dict) else None
    pairs = [(use["recipient_name"], use["parameters"]) for use in uses] if uses else [(name, args)]
    return [(MEANT[one], inner["number"]) for one, inner in pairs if one in MEANT]


def through_json(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The messages as another process reads them."""
    return messages_from_dict(json.loads(json.dumps(messages_to_dict(messages))))


@dataclass(frozen=True)
class Setup:
    """What is the same in every process of a service.

    Attributes:
        rule: Which calls need approval, as the model says it: names, True, "odd" for those with an odd argument, or None.
        own_rule: The same, as the executor says it.
        key: Whether digests are made with a key.
        claim: How calls are claimed: "no", "at once" or "later" by a function, or "owners" by a store that tells who owns what.
        parallel: Whether calls run side by side.
        bound: The names of the tools whose calls are the caller's.
        approve: What a human who decides at once decides by; None: there is none.
    """

    rule: Any = None
    own_rule: Any = None
    key: bool = False
    claim: str = "no"
    parallel: bool = True
    bound: Sequence[str] = ()
    approve: int | None = None

    def needs(self, part: Part) -> bool:
        """Whether somebody has to consent to a call."""
        name, number = part
        rules = [rule for rule in (self.rule, self.own_rule) if rule]
        if not rules:
            return self.approve is not None
        return any(rule is True or (number % 2 == 1 if rule == "odd" else name in rule) for rule in rules)


@dataclass(frozen=True)
class Restriction:
    """What one run may do.

    Attributes:
        allowed: The names of the tools that may be called; None for all.
        limit: How many calls may run; None for any number.
    """

    allowed: Collection[str] | None = None
    limit: int | None = None

    def allows(self, part: Part) -> bool:
        """Whether a call may run."""
        return self.allowed is None or part[0] in self.allowed

    def keywords(self) -> dict[str, Any]:
        """As keywords of a run."""
        choice = {} if self.allowed is None else {"tool_choice": allowing(self.allowed, "auto") if self.allowed else "none"}
        return {"max_tool_calls": self.limit, **choice}


class Human:
    """Decides about calls that he is shown, and remembers what he agreed to."""

    def __init__(self) -> None:
        self.agreed: Counter[Part] = Counter()
        self._numbers = itertools.count(10_000)

    def decide(self, call: PendingCall, action: str, chance: random.Random) -> Decision | None:
        """The decision; None for none, also where calls of this kind cannot have it."""
        offered = {"approval": ("approve", "edit", "reject", "respond"), "queued": ("reject",)}.get(call.kind, ("reject", "respond"))
        if action not in offered:
            return None
        args = self._changed(call.args, chance) if action == "edit" else call.args
        if action in ("approve", "edit"):
            self.agreed.update(parts_of(call.name, args))
        made: dict[str, Callable[[], Decision]] = {
            "approve": call.approve,
            "edit": lambda: call.edit(args),
            "reject": lambda: call.reject("No."),
            "respond": lambda: call.respond("Here."),
        }
        return made[action]()

    def _changed(self, args: dict[str, Any], chance: random.Random) -> dict[str, Any]:
        """Other arguments: of a bundle also more calls, or fewer."""
        uses = args.get("tool_uses")
        if uses is None:
            return {"number": next(self._numbers)}
        names = [use["recipient_name"] for use in uses]
        names = chance.choice([names, names[:1], [*names, chance.choice(NAMES)]])
        return {"tool_uses": [{"recipient_name": name, "parameters": {"number": next(self._numbers)}} for name in names]}


def _odd(call: ToolCallRecord) -> bool:
    assert call.args is not None
    return bool(call.args["number"] % 2)


@dataclass
class Service:
    """Many processes that share a store of claims, and the tools that all of them call.

    Attributes:
        setup: What they have in common.
        story: What the model calls, turn by turn.
        human: Who decides.
        guarded: The tools.
        claims: The keys of the calls that were taken.
        store: The same, in a store that tells who owns what.
        said: What was decided at once, in the run that is going on.
        attacked: Whether a forged history was accepted.
    """

    setup: Setup
    story: Sequence[Sequence[Wanted]]
    human: Human = field(default_factory=Human)
    guarded: Guarded = field(default_factory=Guarded)
    claims: set[str] = field(default_factory=set)
    store: MemoryClaims = field(default_factory=MemoryClaims)
    said: dict[str, Decision] = field(default_factory=dict)
    attacked: bool = False

    def process(self, *, writes: bool = True) -> Any:
        """A model as a new process makes it; unless it `writes` calls, it only answers."""
        setup = self.setup
        tools = [
            StructuredTool(name=name, description="", func=tool, args_schema=_ARGUMENTS) for name, tool in self.guarded.tools().items()
        ]
        executor = ToolExecutor(tools, requires_approval=_rule(setup.own_rule))

        def reply(messages: Sequence[BaseMessage], **_: Any) -> Any:
            turn = sum(isinstance(message, AIMessage) for message in messages)
            if not writes or turn >= len(self.story):
                return "Done."
            made = [one.call(f"call_{turn}_{number}") for number, one in enumerate(self.story[turn])]
            return AIMessage("", tool_calls=[{"name": call.name, "args": call.args, "id": call.id} for call in made])

        model = ScriptedChatModel(
            tools=executor,
            replies=reply,
            requires_approval=_rule(setup.rule),
            approve=None if setup.approve is None else self._approve,
            approval_key=SecretStr(KEY_OF_THE_SERVER) if setup.key else None,
            claim={"no": None, "at once": self._claim, "later": self._aclaim, "owners": self.store}[setup.claim],
            parallel=setup.parallel,
            no_progress=None,
        )
        declared = [{"title": name, "type": "object", "properties": {}} for name in setup.bound]
        return model.bind_tools(declared) if declared else model

    def _approve(self, call: PendingCall) -> Decision | None:
        chance = random.Random(f"{self.setup.approve} {call.id} {len(self.guarded.ran)}")
        decision = self.human.decide(call, chance.choice(["approve", "edit", "reject", "respond", "none"]), chance)
        if decision is not None:
            self.said[call.id] = decision
        return decision

    def _claim(self, key: str) -> bool:
        new = key not in self.claims
        self.claims.add(key)
        return new

    async def _aclaim(self, key: str) -> bool:
        await asyncio.sleep(0)
        return self._claim(key)

    # ------------------------------------------------------------------------------------------ runs

    def runs(self, way: str, history: Sequence[BaseMessage], restriction: Restriction, decisions: Any, *, forged: bool = False) -> Ran:
        """One run in a new process, after which everything that ran was allowed and agreed to."""
        before = len(self.guarded.ran)
        self.said.clear()
        resumed = {} if decisions is None else {"resume": json.loads(json.dumps(decisions))}
        keywords = {**restriction.keywords(), **resumed, **self.guarded.listeners()}
        model = self.process(writes=not forged)
        problems = [] if decisions is None else model.check(through_json(history), resumed["resume"], **restriction.keywords())
        ran = run(way, model, through_json(history), **keywords)
        assert problems == (ran.error.problems if isinstance(ran.error, DecisionsError) else [])
        new = self.guarded.ran[before:]
        plain = decisions is True or isinstance(decisions, Mapping)
        self._check_sound(new, restriction, plain=plain)
        if not forged:
            self._check_whole(ran, history, new, restriction, {one["id"]: Decision.from_dict(one) for one in decisions or ()})
        else:
            assert ran.error is None or isinstance(ran.error, ConfigurationError | AlreadyResumedError), ran.error
            assert ran.error is None or not new
            self.attacked = self.attacked or ran.error is None
        return ran

    def _check_sound(self, new: Sequence[Part], restriction: Restriction, *, plain: bool) -> None:
        """Nothing ran that was not allowed, or not agreed to, and nothing twice that somebody agreed to once."""
        self.guarded.check()
        assert restriction.limit is None or len(new) <= restriction.limit
        for part in new:
            assert part[0] not in self.setup.bound or self.human.agreed[part] or plain
            assert restriction.allows(part)
            assert not self.setup.needs(part) or self.human.agreed[part]
        if self.setup.claim != "no":
            assert all(count <= self._times(part) for part, count in Counter(self.guarded.ran).items() if self.setup.needs(part))

    def _times(self, part: Part) -> int:
        """How often a call may run that is claimed: who decides at once may be asked again."""
        return 1 if self.setup.approve is None else self.human.agreed[part]

    def _check_whole(
        self, ran: Ran, history: Sequence[BaseMessage], new: Sequence[Part], restriction: Restriction, decisions: Mapping[str, Decision]
    ) -> None:
        """Every call has one result or waits; what has a result ran if it was to, with the arguments that it was to have."""
        if isinstance(ran.error, AlreadyResumedError):
            assert self.attacked and self.setup.claim != "no" and not new
            return
        assert ran.error is None, ran.error
        assert ran.message is not None
        after = [*history, *ran.new]
        results = Counter(message.tool_call_id for message in after if isinstance(message, ToolMessage))
        waiting = {call.id for call in pending_calls(after)}
        assert waiting == {call.id for call in pending_calls(ran.message)}
        undecided = {call.id for call in pending_calls(history) if call.kind != "queued"} - decisions.keys()
        assert self.setup.approve is not None or undecided <= waiting
        calls = {str(call["id"]): call for message in after if isinstance(message, AIMessage) for call in message.tool_calls}
        assert all(results[call_id] + (call_id in waiting) == 1 for call_id in calls)
        answered = {message.tool_call_id for message in ran.new if isinstance(message, ToolMessage)}
        expected: list[Part] = []
        for call_id in answered:
            decision = self.said.get(call_id) or decisions.get(call_id)
            meant = parts_of(calls[call_id]["name"], calls[call_id]["args"])
            meant = [part for part in meant if restriction.allows(part) and part[0] not in self.setup.bound]
            if decision is not None and decision.action == "edit":
                edited = [part for part in parts_of(calls[call_id]["name"], decision.value) if restriction.allows(part)]
                meant = edited[: len(meant)] if call_id in self.said else edited  # limits have counted what is asked about in the run
            if decision is None or decision.action in ("approve", "edit"):
                expected += meant
        full = len(new) == restriction.limit or (restriction.limit is not None and self.setup.approve is not None)
        cut = full or (self.attacked and self.setup.claim != "no")
        assert set(new) <= set(expected) if cut else sorted(new) == sorted(expected)


def _rule(rule: Any) -> Any:
    return _odd if rule == "odd" else rule


def shown_as_written(calls: Sequence[PendingCall], story: Sequence[Sequence[Wanted]]) -> None:
    """What a human is shown is what the model wrote, under the tool's own name."""
    written = {f"call_{turn}_{number}": one for turn, ones in enumerate(story) for number, one in enumerate(ones)}
    for call in calls:
        assert parts_of(call.name, call.args) == written[call.id].meant()
        assert call.kind == "caller" or written[call.id].bundled or call.name in NAMES


def numbered(story: Sequence[Sequence[Wanted]]) -> list[list[Wanted]]:
    """The story with an argument of its own for each call."""
    numbers = itertools.count(1)
    return [[replace(one, numbers=tuple(next(numbers) for _ in one.names)) for one in calls] for calls in story]


# ---------------------------------------------------------------------------------------------- another process


def resumed_elsewhere(setup: Setup, history: Sequence[BaseMessage], decisions: Any, claims: Collection[str]) -> dict[str, Any]:
    """What another Python process says of a run that it resumed: what ran, which claims there are now, and what it raised."""
    asked = [asdict(setup), messages_to_dict(history), decisions, list(claims)]
    program = "from tests.laws.service import resume_for_another; resume_for_another()"
    command = [sys.executable, "-c", program]
    said: dict[str, Any] = json.loads(
        subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, timeout=300, check=True).stdout
    )
    return said


def resume_for_another() -> None:
    """Resume what is on the input of this process."""
    setup, history, decisions, claims = json.load(sys.stdin)
    service = Service(Setup(**setup), [], claims=set(claims))
    ran = run("invoke", service.process(), messages_from_dict(history), resume=decisions)
    error = None if ran.error is None else type(ran.error).__name__
    print(json.dumps({"ran": sorted(service.guarded.ran), "claims": sorted(service.claims), "error": error}))
