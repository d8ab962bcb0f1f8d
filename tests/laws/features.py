"""The features of the table: what each adds to a conversation, and what must then be true, wherever it is entered."""

from __future__ import annotations

import queue
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage

from langchain_autotools import AlreadyResumedError, Compaction, Decision, LimitReachedError, NextTurn, PendingCall, RetryPolicy, ToolPolicy
from langchain_autotools.history.cuts import handle_of
from langchain_autotools.messages.metadata import KEY, failover_mark_of
from tests.laws.feature import Feature
from tests.laws.features_changed import ChangedCalls, ChangedTools
from tests.laws.features_handled import Handlers
from tests.laws.features_inside import AgentsAsTools, InnerBudgets
from tests.laws.features_served import McpServers, Questions
from tests.laws.features_stopping import MaximumCost, StopCondition
from tests.laws.features_told import VendorEvents
from tests.laws.planned import LONG, USER, Plan, Seen
from tests.support.claims import MemoryClaims
from tests.support.script import Call

ENDS = ("limits", "failure", "cancel", "deadline", "inner budgets", "stop condition", "maximum cost")
"""The features that end a run before its answer, at least where other calls use up what they allow."""


class Approvals(Feature):
    """One call is approved, one rejected. The first has an argument twice: what is shown is what runs."""

    name = "approvals"
    waits = True

    def add(self, plan: Plan) -> None:
        """Two calls that wait."""
        plan.approve("send")
        anna = Call("send", '{"to": "Anna", "amount": 5000, "amount": 1.5}', "approvals_anna")
        plan.add("send", anna, Call("send", {"to": "Ben", "amount": 2}, "approvals_ben"))
        plan.allow("send", to="Anna", amount=1.5)

    def decide(self, call: PendingCall) -> Decision:
        """Yes and no."""
        assert (call.name, call.kind) == ("send", "approval")
        if call.id == "approvals_ben":
            return call.reject("Not Ben.")
        assert call.args == {"to": "Anna", "amount": 1.5}
        return call.approve()

    def check(self, seen: Seen) -> None:
        """The one ran, once; the model is told why the other did not."""
        assert [args for name, args in seen.work.ran if name == "send"] == [{"to": "Anna", "amount": 1.5}]
        assert seen.result("approvals_anna").text == "Sent 1.5 to Anna."
        assert seen.result("approvals_ben").status == "error" and "Not Ben." in seen.result("approvals_ben").text


class Edits(Feature):
    """A call runs with other arguments than the model wrote."""

    name = "edits"
    waits = True

    def add(self, plan: Plan) -> None:
        """A call that waits."""
        plan.approve("book")
        plan.add("book", Call("book", {"day": "Monday", "seats": 2}, "edits_0"))
        plan.allow("book", day="Tuesday", seats=1)

    def decide(self, call: PendingCall) -> Decision:
        """Change it."""
        assert call.args == {"day": "Monday", "seats": 2}
        return call.edit({"day": "Tuesday", "seats": 1})

    def check(self, seen: Seen) -> None:
        """It ran as edited, the model is told so, and the history has what the model wrote."""
        assert [args for name, args in seen.work.ran if name == "book"] == [{"day": "Tuesday", "seats": 1}]
        text = seen.result("edits_0").text
        assert "1 seats on Tuesday." in text and '"day": "Tuesday"' in text.replace('\\"', '"')
        assert seen.result("edits_0").response_metadata[KEY]["edited_arguments"] == {"day": "Tuesday", "seats": 1}
        written = [call for one in seen.history if isinstance(one, AIMessage) for call in one.tool_calls if call["id"] == "edits_0"]
        assert [call["args"] for call in written] == [{"day": "Monday", "seats": 2}]


class Check(Feature):
    """What is decided is checked before: what the tool does not take is named, what it takes passes, and nothing has run of either."""

    name = "check"
    waits = True

    def add(self, plan: Plan) -> None:
        """A call that waits."""
        plan.approve("seat")
        plan.add("seat", Call("seat", {"row": 1}, "check_0"))
        plan.allow("seat", row=2)

    def misdecide(self, call: PendingCall) -> Decision:
        """With an argument of another type."""
        return call.edit({"row": "the last one"})

    def decide(self, call: PendingCall) -> Decision:
        """As it can be carried out."""
        return call.edit({"row": 2})

    def check(self, seen: Seen) -> None:
        """The call ran as it was decided at last."""
        assert [args for name, args in seen.work.ran if name == "seat"] == [{"row": 2}]
        assert "Row 2." in seen.result("check_0").text


class MessageWithDecisions(Feature):
    """The user decides about a call, and says something as well."""

    name = "message with decisions"
    waits = True

    def add(self, plan: Plan) -> None:
        """A call that waits."""
        plan.approve("tell")
        plan.says = "And be quick."
        plan.add("tell", Call("tell", {"to": "Fay"}, "message_0"))
        plan.allow("tell", to="Fay")

    def decide(self, call: PendingCall) -> Decision:
        """Yes."""
        assert (call.name, call.args) == ("tell", {"to": "Fay"})
        return call.approve()

    def check(self, seen: Seen) -> None:
        """The message occurs once in the history, behind the results of all calls, and a reply follows."""
        kinds = [one.type for one in seen.history]
        (place,) = [number for number, one in enumerate(seen.history) if one.type == "human" and one.text == "And be quick."]
        assert seen.work.times("tell", to="Fay") == 1 and seen.history[place].id
        assert (kinds[place - 1], next(kind for kind in kinds[place:] if kind != "human")) == ("tool", "ai")
        assert seen.result("message_0") in seen.history[:place]


class Inbox(Feature):
    """The user says something while tools run, in two turns."""

    name = "inbox"
    _words = ("Only in Celsius.", "And in short.")

    def add(self, plan: Plan) -> None:
        """Calls during which it is said, and where it goes."""
        plan.inbox = queue.Queue()
        plan.work.said = plan.inbox.put
        for turn, word in enumerate(self._words):
            plan.add("hear", Call("hear", {"word": word}, f"inbox_{turn}"), turn=turn)
            plan.allow("hear", word=word)

    def check(self, seen: Seen) -> None:
        """Each word occurs once in the history, behind the results of all calls of its turn, and a reply follows."""
        places = {word: [number for number, one in enumerate(seen.history) if one.text == word] for word in self._words}
        for turn, word in enumerate(self._words):
            (place,) = places[word]
            assert seen.history[place].type == "human" and seen.history[place].id
            assert seen.work.times("hear", word=word) == 1 and seen.result(f"inbox_{turn}") in seen.history[:place]
            assert next(one.type for one in reversed(seen.history[:place]) if one.type != "human") == "tool"
            assert next(one.type for one in seen.history[place:] if one.type != "human") == "ai"
        assert seen.plan.inbox.empty()


class Compacted(Feature):
    """A long result is left out of later requests, and the model reads it again."""

    name = "compaction"

    def add(self, plan: Plan) -> None:
        """A limit that each request passes, a long result, and a call by which it is read again."""
        plan.fields |= {"compact": Compaction(at=1e-8, keep=0), "context_window": 10**9}
        plan.add("page", Call("page", {"number": 1}, "compaction_page"))
        plan.allow("page", number=1)
        plan.turns[1].append(Call("read_result", {"handle": _PAGE}, "compaction_read"))

    def check(self, seen: Seen) -> None:
        """The history has it whole; what was read is the same, unless a tool choice forbids it; the reply tells what was cut."""
        page, read = seen.result("compaction_page"), seen.result("compaction_read")
        assert page.text == f"Page 1: {LONG}" and seen.work.times("page", number=1) == 1
        assert "not allowed" in read.text if seen.plan.forbidden else read.text == page.text
        replies = [one for one in seen.history if isinstance(one, AIMessage)]
        assert any("compacted" in one.response_metadata.get(KEY, {}) for one in replies)


_PAGE = "r999-" + handle_of(ToolMessage(f"Page 1: {LONG}", tool_call_id="1"), 0).partition("-")[2]
"""The handle of the page, which is known by its content wherever it is."""


class Summaries(Feature):
    """The model wrote a text for which no cut result makes room: once it has seen its result, a summary stands for the turn."""

    name = "summaries"

    def add(self, plan: Plan) -> None:
        """A limit that the text alone passes, and replies that tell what they have used."""
        plan.fields |= {"compact": Compaction(at=0.3), "context_window": 10_000}
        plan.counts = True
        plan.add("write", Call("write", {"text": LONG * 16}, "summaries_0"))
        plan.allow("write", text=LONG * 16)
        plan.add("count", Call("count", {"number": 60}, "summaries_1"), turn=1)
        plan.allow("count", number=60)

    def check(self, seen: Seen) -> None:
        """The history has the text and the call whole; the summary is on the reply to the request that had it, and nowhere else."""
        written = [call for one in seen.history if isinstance(one, AIMessage) for call in one.tool_calls if call["id"] == "summaries_0"]
        assert [call["args"] for call in written] == [{"text": LONG * 16}] and seen.result("summaries_0").text == "Written."
        assert not any("replies so far" in one.text for one in seen.history)
        records = [one.response_metadata.get(KEY, {}).get("compacted", {}) for one in seen.history if isinstance(one, AIMessage)]
        made = [record["summary"]["text"] for record in records if "summary" in record]
        assert made == [f"{number} replies so far." for number in range(1, len(made) + 1)] and (made or seen.plan.fails)


class AtOnce(Feature):
    """A function decides about each call at once."""

    name = "decided at once"

    def add(self, plan: Plan) -> None:
        """Two calls that wait, and who decides about them."""
        plan.approve("grant")
        plan.fields["approve"] = self._decide
        plan.add("grant", *(Call("grant", {"to": to}, f"decided_{to.lower()}") for to in ("Dora", "Eve")))
        plan.allow("grant", to="Dora")

    def _decide(self, call: PendingCall) -> Decision | None:
        """Others decide about what is not the feature's own."""
        if call.name != "grant":
            return None
        return call.approve() if call.args == {"to": "Dora"} else call.reject("Not Eve.")

    def check(self, seen: Seen) -> None:
        """The one ran, once; the model is told why the other did not."""
        assert seen.work.times("grant", to="Dora") == 1
        assert seen.result("decided_dora").text == "Granted to Dora."
        assert seen.result("decided_eve").status == "error" and "Not Eve." in seen.result("decided_eve").text


class Claim(Feature):
    """The same decisions come twice; the call runs once. In a pair the claim is a store of results, so the second run has them too."""

    name = "claim"
    waits = True

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.results: dict[str, Any] = {}

    def add(self, plan: Plan) -> None:
        """A call that waits, and something that remembers what was taken."""
        plan.approve("pay")
        plan.add("pay", Call("pay", {"to": "Cem"}, "claim_0"))
        plan.allow("pay", to="Cem")
        plan.fields["claim"] = self if plan.paired else self.take

    def take(self, key: str) -> Any:
        """Take a call, once."""
        self.taken.append(key)
        return self.taken.count(key) == 1 or self.results.get(key, False)

    def done(self, key: str, message: Any) -> None:
        """Keep what came of a call."""
        assert key in self.taken and key not in self.results
        self.results[key] = message

    def decide(self, call: PendingCall) -> Decision:
        """Yes."""
        return call.approve()

    def check(self, seen: Seen) -> None:
        """The call ran once, and the second run was refused, had its result, or was the first."""
        assert seen.work.times("pay", to="Cem") == 1
        assert seen.result("claim_0").text == "Paid Cem."
        if seen.again == "the same run":
            return
        assert len(self.taken) >= 2
        assert (seen.again is None) if self.results else isinstance(seen.again, AlreadyResumedError)


class DoubleClicks(Feature):
    """The same decisions come twice, to a store that tells who owns what: the second run brings what the first one brought."""

    name = "double click"
    waits = True

    def __init__(self) -> None:
        self.store = MemoryClaims()

    def add(self, plan: Plan) -> None:
        """A call that waits, and the store."""
        plan.approve("pay")
        plan.add("pay", Call("pay", {"to": "Dan"}, "double_0"))
        plan.allow("pay", to="Dan")
        plan.fields["claim"] = self.store

    def decide(self, call: PendingCall) -> Decision:
        """Yes."""
        return call.approve()

    def check(self, seen: Seen) -> None:
        """The call ran once, and nobody was refused; the turn and the call are done, and nobody else's."""
        assert seen.work.times("pay", to="Dan") == 1
        assert seen.result("double_0").text == "Paid Dan."
        assert seen.again is None or seen.again == "the same run"
        assert all(row.state == "done" for row in self.store.rows.values())


class Policies(Feature):
    """A tool that fails is tried again, and of its long result the model reads a part."""

    name = "policies"

    def add(self, plan: Plan) -> None:
        """A call of a tool that fails once."""
        retry = RetryPolicy(attempts=2, wait_initial=0.001)
        plan.govern("fetch", ToolPolicy(retry=retry, retry_on=(ConnectionError,), max_output=200))
        plan.add("fetch", Call("fetch", {"city": "Oslo"}, "policies_0"))
        plan.allow("fetch", city="Oslo")

    def check(self, seen: Seen) -> None:
        """There were two attempts, and the text is cut."""
        assert seen.work.attempts == 2 and seen.work.times("fetch", city="Oslo") == 1
        text = seen.result("policies_0").text
        assert len(text) == 200 and text.startswith(LONG[:50])


class Cache(Feature):
    """Equal calls of one run, in one turn and in the next, run once."""

    name = "cache"

    def add(self, plan: Plan) -> None:
        """Three equal calls."""
        kept: Any = {} if plan.paired else True  # calls that wait end the run that True is for
        plan.govern("rate", ToolPolicy(cache=kept))
        for number, turn in enumerate([0, 0, 1]):
            plan.add("rate", Call("rate", {"currency": "EUR"}, f"cache_{number}"), turn=turn)
        plan.allow("rate", currency="EUR")

    def check(self, seen: Seen) -> None:
        """One ran, each has the result."""
        assert seen.work.times("rate", currency="EUR") == 1
        texts = {seen.result(f"cache_{number}").text for number in range(3)}
        assert len(texts) == 1 and texts.pop().startswith("EUR")


class Limits(Feature):
    """Of four calls three may run."""

    name = "limits"
    on_limit = "return"

    def add(self, plan: Plan) -> None:
        """More calls than may run."""
        plan.fields |= {"max_tool_calls": 3, "on_limit": self.on_limit}  # with the call that every conversation begins with
        for number in range(3):
            plan.add("count", Call("count", {"number": number}, f"{self.prefix}_{number}"))
        plan.allow("count", number=0)
        plan.allow("count", number=1)

    def check(self, seen: Seen) -> None:
        """Two ran, the third is answered, and no request follows."""
        assert sorted(args["number"] for name, args in seen.work.ran if name == "count") == [0, 1]
        assert [seen.result(f"{self.prefix}_{number}").status for number in range(3)] == ["success", "success", "error"]
        seen.ended("max_tool_calls", 1)


class Failure(Limits):
    """A run that fails at a limit: what had completed is in the error."""

    name = "failure"
    on_limit = "raise"

    def check(self, seen: Seen) -> None:
        """The same, and the error says which limit."""
        assert isinstance(seen.error, Exception) and "max_tool_calls" in str(seen.error)
        assert isinstance(seen.error, LimitReachedError) or type(seen.error).__name__ == "RunFailedError"
        super().check(seen)


class Cancel(Feature):
    """A tool ends the run from inside; the call behind it does not run, and no request follows."""

    name = "cancel"

    def add(self, plan: Plan) -> None:
        """Two calls, one after another."""
        plan.fields["parallel"] = False
        plan.cancels = True
        plan.add("halt", Call("halt", {}, "cancel_0"))
        plan.add("count", Call("count", {"number": 9}, "cancel_1"))
        plan.allow("halt")

    def check(self, seen: Seen) -> None:
        """The first ran."""
        assert [name for name, _ in seen.work.ran if name != "look"] == ["halt"]
        seen.ended("cancelled", 1)


class Deadline(Feature):
    """A tool takes longer than the run may."""

    name = "deadline"

    def add(self, plan: Plan) -> None:
        """A call that waits until the end."""
        plan.fields["deadline"] = 0.1
        plan.add("wait", Call("wait", {}, "deadline_0"))
        plan.allow("wait")

    def check(self, seen: Seen) -> None:
        """The run ended by the clock. On a slow machine it may have ended before its first request."""
        assert seen.reason in ("deadline", None)
        assert seen.requests in (0, 1, None)
        answers = [one for one in seen.history if isinstance(one, ToolMessage) and one.tool_call_id == "deadline_0"]
        assert all(one.status == "error" for one in answers)


class ToolChoice(Feature):
    """A tool that the run may not call is called, under a name that means it, in two turns."""

    name = "tool choice"

    def add(self, plan: Plan) -> None:
        """Calls of it."""
        plan.forbidden.add("erase")
        plan.add("erase", Call("functions.erase", {"path": "/"}, "tool_0"))
        plan.add("erase", Call("erase", {"path": "/home"}, "tool_1"), turn=1)

    def check(self, seen: Seen) -> None:
        """Nothing of it ran, and the model is told."""
        assert not [name for name, _ in seen.work.ran if name == "erase"]
        assert all(seen.result(call_id).status == "error" for call_id in ("tool_0", "tool_1"))


class Injected(Feature):
    """Arguments that come from the program, whatever the model writes for them."""

    name = "injected arguments"

    def add(self, plan: Plan) -> None:
        """Calls that try to set them."""
        for turn in (0, 1):
            plan.add("note", Call("note", {"text": "x", "user": "mallory", "call_id": "forged"}, f"injected_{turn}"), turn=turn)
            plan.allow("note", **self._given(turn))

    def _given(self, turn: int) -> dict[str, Any]:
        return {"text": "x", "call_id": f"injected_{turn}", "user": "nobody", "configured": USER, "question": "Go."}

    def check(self, seen: Seen) -> None:
        """The tool was given the program's."""
        assert all(seen.work.times("note", **self._given(turn)) == 1 for turn in (0, 1))


class NamesOfArguments(Feature):
    """A tool has an argument `config`, one with an alias, and a configuration of the program's, which the model tries to set.

    One call is approved, one edited, and one names the alias in place of what is declared.
    """

    name = "names of arguments"
    waits = True
    _given = (3, "EUR"), (5, "CHF"), (4, "GBP")

    def add(self, plan: Plan) -> None:
        """Calls that wait."""
        forged = {"configurable": {"user": "mallory"}}
        names = ("currency", "currency", "ccy")
        plan.approve("ship")
        for number, name in enumerate(names):
            written = {"config": {"replicas": number + 2}, name: "USD"}
            if number != 1:
                written = {"config": {"replicas": self._given[number][0]}, name: self._given[number][1]}
            plan.add("ship", Call("ship", {**written, "setting": forged}, f"names_{number}"))
        for replicas, currency in self._given:
            plan.allow("ship", config={"replicas": replicas}, currency=currency, configured=USER)

    def decide(self, call: PendingCall) -> Decision:
        """Yes; one is changed, under the names that are declared."""
        number = int(call.id.removeprefix("names_"))
        replicas, currency = (3, "USD") if number == 1 else self._given[number]
        assert (call.name, call.path, call.args["config"]) == ("ship", (), {"replicas": replicas})
        assert currency in (call.args.get("currency"), call.args.get("ccy"))
        return call.edit({"config": {"replicas": 5}, "currency": "CHF"}) if number == 1 else call.approve()

    def check(self, seen: Seen) -> None:
        """Each ran once, with what was approved, under the program's configuration, and the model reads what it ran with."""
        for number, (replicas, currency) in enumerate(self._given):
            assert seen.work.times("ship", config={"replicas": replicas}, currency=currency, configured=USER) == 1
            assert f"Shipped {replicas} for {currency}." in seen.result(f"names_{number}").text
        assert '"currency": "CHF"' in seen.result("names_1").text.replace('\\"', '"')


class ClientTools(Feature):
    """A call that is left to the caller, who answers it."""

    name = "client tools"
    waits = True

    def add(self, plan: Plan) -> None:
        """A tool that is only declared, and a call of it."""
        asks = {"type": "object", "properties": {"question": {"type": "string"}}}
        plan.declared.append({"type": "function", "function": {"name": "ask_user", "description": "Ask.", "parameters": asks}})
        plan.turns[0].append(Call("ask_user", {"question": "Which?"}, "client_0"))

    def decide(self, call: PendingCall) -> Decision:
        """Answer it."""
        assert (call.kind, call.args) == ("caller", {"question": "Which?"})
        return call.respond("Blue.")

    def check(self, seen: Seen) -> None:
        """The model reads the answer."""
        assert seen.result("client_0").text == "Blue."


class TurnHooks(Feature):
    """A function leaves out a tool from each request; a call of it comes all the same."""

    name = "turn hooks"

    def __init__(self) -> None:
        self.turns: list[int] = []

    def add(self, plan: Plan) -> None:
        """The function, and a call."""
        plan.fields["before_turn"] = self._change
        plan.add("erase", Call("functions.erase", {"path": "/tmp"}, "turn_0"))

    def _change(self, turn: NextTurn) -> NextTurn:
        self.turns.append(turn.number)
        return replace(turn, tools=[name for name in turn.tools if name != "erase"])

    def check(self, seen: Seen) -> None:
        """It did not run, and the model is told."""
        assert self.turns and not [name for name, _ in seen.work.ran if name == "erase"]
        assert seen.result("turn_0").status == "error"


class Middleware(Feature):
    """LangChain's middleware wraps each turn and each call, and changes one call's arguments."""

    name = "middleware"

    def __init__(self) -> None:
        self.turns: list[int] = []

    def add(self, plan: Plan) -> None:
        """The middleware, and a call."""
        from tests.support.middleware import Around

        plan.fields.setdefault("middleware", []).append(Around(self._turn, self._call))
        plan.add("count", Call("count", {"number": 70}, "middleware_0"))
        plan.allow("count", number=71)

    def _turn(self, request: Any) -> Any:
        self.turns.append(len(request.messages))
        return (yield request)

    def _call(self, request: Any) -> Any:
        call = request.tool_call
        return (yield request.override(tool_call={**call, "args": {"number": 71}}) if call["id"] == "middleware_0" else request)

    def check(self, seen: Seen) -> None:
        """The call ran with the changed arguments, once, and the history has what the model wrote."""
        assert seen.work.times("count", number=71) == 1 and seen.work.times("count", number=70) == 0
        assert self.turns and seen.result("middleware_0").text == "71"
        written = [call for one in seen.history if isinstance(one, AIMessage) for call in one.tool_calls if call["id"] == "middleware_0"]
        assert [call["args"] for call in written] == [{"number": 70}]


class Failover(Feature):
    """The model that the conversation begins with fails at each request; another one takes over, and stays."""

    name = "failover"

    def add(self, plan: Plan) -> None:
        """A model that fails, and one that does not."""
        plan.fails = True

    def check(self, seen: Seen) -> None:
        """One message says that the other model has taken over; the calls that broke off did not run, those of the next reply did.

        Once the user says something more, the first model is asked again."""
        marks = [mark for one in seen.history if isinstance(one, AIMessage) and (mark := failover_mark_of(one))]
        assert 1 <= len(marks) <= sum(one.type == "human" for one in seen.history) and marks[0]["from"] != marks[0]["to"]
        assert seen.work.times("look", city="Paris") == 1


_OF_CALLS = (
    Approvals,
    Edits,
    Check,
    AtOnce,
    Claim,
    DoubleClicks,
    Policies,
    Cache,
    Injected,
    NamesOfArguments,
    ClientTools,
    AgentsAsTools,
    McpServers,
    Questions,
    Handlers,
)
_ENDING = (Limits, Failure, Cancel, Deadline, InnerBudgets, StopCondition, MaximumCost)
_OF_RUNS = (
    ToolChoice,
    TurnHooks,
    Middleware,
    ChangedCalls,
    Failover,
    VendorEvents,
    MessageWithDecisions,
    ChangedTools,
    Inbox,
    Compacted,
    Summaries,
)
FEATURES: Mapping[str, type[Feature]] = {kind.name: kind for kind in (*_OF_CALLS, *_ENDING, *_OF_RUNS, Compacted, Summaries)}
