"""Which value of a setting holds where a call, an executor and a model's fields give different ones: one rule for all of them."""

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import Field

from langchain_autotools import ConfigurationError, ToolContext, ToolExecutor, ToolPolicy, new_messages, pending_calls
from langchain_autotools.executor.executor import EXECUTION
from langchain_autotools.run.settings import RUN_KEYWORDS
from langchain_autotools.run.settings import SETTINGS as DECLARED
from langchain_autotools.testing import ScriptedChatModel

TABLE = Path(__file__).parents[3] / "docs" / "tools.md"
PLACES = ("call", "executor", "field")  # the nearest first
QUESTION = HumanMessage("Look.")


class Model(ScriptedChatModel):
    """A model with a field for further keywords of each request, as the classes of vendors have it."""

    model_kwargs: dict[str, Any] = Field(default_factory=dict)
    model: str = "m"


class Tools:
    """Tools of one run, how many calls ran at the same time, and what listeners and stores heard."""

    def __init__(self) -> None:
        self.running = self.most = 0
        self.heard: list[Any] = []

    async def look(self, context: ToolContext) -> str:
        """Look."""
        context.report("looking")
        self.running += 1
        self.most = max(self.most, self.running)
        for _ in range(10):
            await asyncio.sleep(0)
        self.running -= 1
        return "x" * 1000

    async def wait(self) -> str:
        """Wait for ever."""
        await asyncio.Event().wait()
        return ""

    async def rest(self) -> str:
        """Rest."""
        return ""

    def all(self) -> dict[str, Callable[..., Any]]:
        """The tools by name."""
        return {"look": self.look, "wait": self.wait, "rest": self.rest}


def turn(*names: str, offset: int = 0) -> AIMessage:
    """A turn that calls tools."""
    calls = [{"name": name, "args": {}, "id": f"{name} {offset + number}"} for number, name in enumerate(names)]
    usage = {"input_tokens": 50, "output_tokens": 50, "total_tokens": 100}
    return AIMessage("Look.", tool_calls=calls, usage_metadata=usage, response_metadata={"model_name": "m"})


def endless(messages: Sequence[BaseMessage], **keywords: Any) -> AIMessage:
    """The same call in each turn, as long as calls are allowed."""
    return AIMessage("Done.") if keywords.get("tool_choice") == "none" else turn("look", offset=len(messages))


@dataclass
class Trial:
    """One call of a model, with what the three places say of a setting."""

    said: Mapping[str, Mapping[str, Any]]
    tools: Tools = field(default_factory=Tools)

    def run(self, *replies: Any) -> AIMessage:
        """Make the call; returns the run message."""
        executor = ToolExecutor(self.tools.all(), **self.said["executor"])
        model = Model(replies=list(replies) or endless, tools=executor, **self.said["field"])
        return asyncio.run(model.ainvoke([QUESTION], **self.said["call"]))

    def results(self, *names: str) -> list[str]:
        """The results of one turn that calls these tools."""
        return [message.text for message in new_messages(self.run(turn(*names), "Done.")) if message.type == "tool"]


def most(trial: Trial) -> Any:
    """How many of four calls ran at the same time."""
    trial.results(*["look"] * 4)
    return trial.tools.most


def heard(trial: Trial) -> Any:
    """Who heard of a call."""
    trial.results("look")
    return trial.tools.heard


def first_result(trial: Trial) -> Any:
    """The result of a call."""
    return trial.results("look")[0]


def end(trial: Trial) -> Any:
    """Why a run that would go on for ever has ended, after how many turns, and with which text."""
    run = trial.run()
    known = run.response_metadata["autotools"]
    return known["stop_reason"], known["turns"], run.text


def pending(trial: Trial) -> Any:
    """Which tools' calls wait for approval."""
    return {call.name for call in pending_calls(trial.run(turn("look", "rest"), "Done."))}


def forbidden(trial: Trial) -> Any:
    """Which tools' calls are answered as not allowed."""
    names = ("look", "rest", "wait")
    return {name for name, result in zip(names, trial.results(*names), strict=True) if "not allowed" in result}


def key_in_use(trial: Trial) -> Any:
    """The key that the digest of a call that waits was made with: only that one takes its decision."""
    run = trial.run(turn("look"))
    found = []
    for key in ("one", "other"):
        other = Model(replies=["Done."], tools=Tools().all(), requires_approval=True, approval_key=key)
        try:
            asyncio.run(other.aresume([QUESTION, *new_messages(run)], [call.approve() for call in pending_calls(run)]))
            found.append(key)
        except ConfigurationError:
            pass
    return found


@dataclass(frozen=True)
class Setting:
    """A setting: two values of it, or how they are made for a trial, and what shows which one holds."""

    rule: str
    values: tuple[Any, Any]
    shows: Callable[[Trial], Any]
    made: Callable[[Tools, Any], Any] = lambda tools, value: value
    besides: Mapping[str, Any] = field(default_factory=dict)

    def outcome(self, name: str, said: Mapping[str, Any]) -> Any:
        """What happens where these places say these values."""
        tools = Tools()
        everywhere: dict[str, dict[str, Any]] = {"call": {}, "executor": {}, "field": {**self.besides}}
        for place, value in said.items():
            inside = name == "tool_choice" and place == "field"  # no field of its own
            given = {name: self.made(tools, value)}
            everywhere[place] |= {"model_kwargs": given} if inside else given
        return self.shows(Trial(everywhere, tools))


def listener(tools: Tools, value: Any) -> Any:
    """A function that notes that it was called."""
    return lambda *_: tools.heard.append(value)


def store(tools: Tools, value: Any) -> Any:
    """A claim that notes that it was called."""
    return lambda key: tools.heard.append(value) or True


def only(*names: str) -> dict[str, Any]:
    """A tool choice that allows these tools."""
    return {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": name} for name in names]}


PRICES = {"m": {"input_mtok": 10, "output_mtok": 10}}
APPROVED = {"requires_approval": True, "approve": lambda call: call.approve()}
SETTINGS: dict[str, Setting] = {
    "parallel": Setting("nearest", (True, False), most),
    "max_concurrency": Setting("smallest", (2, 3), most),
    "on_executing": Setting("nearest", ("one", "other"), heard, listener),
    "on_executed": Setting("nearest", ("one", "other"), heard, listener),
    "on_progress": Setting("nearest", ("one", "other"), heard, listener),
    "policies": Setting("nearest", (300, 400), first_result, lambda _, size: {"look": ToolPolicy(max_output=size)}),
    "default_policy": Setting("nearest", (0.01, 0.02), lambda trial: trial.results("wait"), lambda _, time: ToolPolicy(timeout=time)),
    "requires_approval": Setting("all", (["look"], ["rest"]), pending),
    "approve": Setting(
        "nearest", ("one", "other"), first_result, lambda _, text: lambda call: call.reject(text), {"requires_approval": True}
    ),
    "approval_key": Setting("nearest", ("one", "other"), key_in_use, besides={"requires_approval": True}),
    "claim": Setting("nearest", ("one", "other"), heard, store, APPROVED),
    "tool_choice": Setting(
        "all", (only("look", "wait"), only("look", "rest")), forbidden, besides={"default_policy": ToolPolicy(timeout=0.01)}
    ),
    "max_turns": Setting("nearest", (1, 2), end),
    "max_tool_calls": Setting("nearest", (0, 1), end),
    "token_budget": Setting("nearest", (90, 190), end),
    "max_cost": Setting("nearest", (0.003, 0.006), end, besides={"prices": PRICES}),
    "prices": Setting("nearest", ({"m": {**PRICES["m"], "output_mtok": 20}}, PRICES), end, besides={"max_cost": 0.006}),
    "context_window": Setting("nearest", (90, 190), end),
    "compact": Setting("nearest", (True, False), lambda trial: trial.results("read_result")[0]),
    "deadline": Setting("nearest", (1e-9, 100), end),
    "no_progress": Setting("nearest", (2, 3), end),
    "polling_tools": Setting("nearest", (["look"], ["wait"]), end, besides={"max_turns": 5}),
    "on_limit": Setting("nearest", ("answer", "return"), end, besides={"max_turns": 1}),
    "stop_when": Setting("nearest", (1, 2), end, lambda _, turns: lambda run: run.turns == turns),
    "before_turn": Setting("nearest", ("one", "other"), heard, lambda tools, value: lambda turn: tools.heard.append(value)),
    "message_separator": Setting("nearest", ("|", "/"), end),
    "carry_messages": Setting("nearest", (True, False), lambda trial: "messages" in trial.run().response_metadata["autotools"]),
}
OF_THE_CALL = {"resume", "message", "cancel", "inbox"}
"""Settings that no other place has."""
OF_ITEMS = {"handlers": "nearest"}
"""The rules of settings for calls that a scripted model does not make: their own tests say which place decides."""


def places_of(name: str) -> list[str]:
    """Which places have a setting, as the code says; a tool choice of the fields is in `model_kwargs`."""
    has = {
        "call": name in RUN_KEYWORDS or name == "tool_choice",
        "executor": name in inspect.signature(ToolExecutor).parameters,
        "field": name in ScriptedChatModel.model_fields or name == "tool_choice",
    }
    return [place for place in PLACES if has[place]]


@pytest.mark.parametrize("name", SETTINGS)
def test_which_place_decides(name: str) -> None:
    """For each two places, and each order of two values: what holds is what the rule says, and it makes a difference."""
    setting = SETTINGS[name]
    alone = {place: [setting.outcome(name, {place: value}) for value in setting.values] for place in places_of(name)}
    assert len(alone) >= 2
    for near, far in combinations(alone, 2):
        for one, other in ((0, 1), (1, 0)):
            found = setting.outcome(name, {near: setting.values[one], far: setting.values[other]})
            assert alone[near][one] != alone[far][other], (near, far)
            wanted = {
                "nearest": lambda near=near, one=one: alone[near][one],
                "smallest": lambda near=near, far=far, one=one, other=other: min(alone[near][one], alone[far][other]),
                "all": lambda near=near, far=far, one=one, other=other: alone[near][one] | alone[far][other],
            }[setting.rule]()
            assert found == wanted, (near, far)


RULES = {"nearest": "the nearest", "smallest": "the smallest", "all": "all together", "call": "the call alone"}


def test_the_page_names_every_setting_its_places_and_its_rule() -> None:
    """One row each; nothing is left out of the page or of the table of this test."""
    written = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in TABLE.read_text(encoding="utf-8").partition("## Which setting holds")[2].partition("\n## ")[0].splitlines()
        if line.startswith("| `")
    ]
    rules = {name: setting.rule for name, setting in SETTINGS.items()} | dict.fromkeys(OF_THE_CALL, "call") | OF_ITEMS
    expected = {name: ["yes" if place in places_of(name) else "" for place in reversed(PLACES)] for name in rules}
    assert {row[0].strip("`"): row[1:4] for row in written} == expected
    assert {row[0].strip("`"): row[4].partition(":")[0] for row in written} == {name: RULES[rule] for name, rule in rules.items()}
    of_calls = RUN_KEYWORDS - {"journal", "output_check"}  # these two are the package's own
    assert rules.keys() == of_calls | {"approval_key", "tool_choice", *OF_ITEMS}


def test_the_declared_fields_say_the_same() -> None:
    """Where a setting may be given and what holds follows from its field; the executor's arguments are those whose fields say so."""
    assert DECLARED.keys() | {"tool_choice"} == SETTINGS.keys()
    assert {name: {"field", *one.at} for name, one in DECLARED.items()} == {name: {*places_of(name)} for name in DECLARED}
    assert {name for name, one in DECLARED.items() if one.join is min} == {name for name, one in SETTINGS.items() if one.rule == "smallest"}
    arguments = inspect.signature(ToolExecutor).parameters.keys() - {"tools", *OF_ITEMS}
    assert arguments == EXECUTION.keys() == {name for name, one in DECLARED.items() if "executor" in one.at}
    assert all(DECLARED[name] == one for name, one in EXECUTION.items())


@pytest.mark.parametrize(("of_the_call", "configured", "expected"), [(None, 3, 2), (4, 1, 1), (4, None, 2), (1, 3, 1)])
def test_the_configuration_bounds_too(of_the_call: int | None, configured: int | None, expected: int) -> None:
    """LangChain's `max_concurrency` is one more bound; that of a call, None included, lifts no other."""
    tools = Tools()
    model = Model(replies=[turn(*["look"] * 4), "Done."], tools=tools.all(), max_concurrency=2)
    asyncio.run(model.ainvoke("Look.", {"max_concurrency": configured}, max_concurrency=of_the_call))
    assert tools.most == expected


def test_a_copy_lifts_what_no_call_lifts() -> None:
    """A rule of approvals and a bound hold in every call of a model, and not in a copy made without them."""
    model = Model(replies=endless, tools=Tools().all(), requires_approval=["look"], max_turns=1)
    for nothing in (None, False, ()):
        assert pending_calls(model.invoke("Look.", requires_approval=nothing))
    assert model.model_copy(update={"requires_approval": None}).invoke("Look.").text == "Look.\nDone."
