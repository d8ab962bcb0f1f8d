"""The feature of the table whose calls are those of a vendor's own tool for the caller's machine."""

from __future__ import annotations

from langchain_autotools import Decision, PendingCall
from tests.laws.feature import Feature
from tests.laws.planned import Plan, Seen
from tests.support.script import Call


class Handlers(Feature):
    """The vendor's shell is called twice, once with a command that somebody approves, and a handler answers.

    The calls are items of the vendor's own; where no reply can hold such an item, calls of a toolset.
    """

    name = "handlers"
    waits = True

    def add(self, plan: Plan) -> None:
        """The handler, of items and of a toolset, and the calls."""
        plan.fields["handlers"] = {"shell": plan.work.shell, ("shell", "run"): plan.work.shell}
        plan.handled += [Call("run", {"action": {"commands": [name]}}, f"handlers_{name}") for name in ("ls", "rm")]
        plan.allow("shell", commands=["ls"])

    def decide(self, call: PendingCall) -> Decision:
        """One command, but not the other; both are shown."""
        assert (call.name, call.toolset) in (("shell_call", None), ("run", "shell"))
        assert (call.kind, call.path, call.args) == ("approval", (), {"action": {"commands": [call.id.removeprefix("handlers_")]}})
        return call.approve() if call.id == "handlers_ls" else call.reject("Not that one.")

    def check(self, seen: Seen) -> None:
        """The approved command ran, once, and its output answers its call; the model is told why the other one did not."""
        assert [args for name, args in seen.work.ran if name == "shell"] == [{"commands": ["ls"]}]
        results = [seen.result(f"handlers_{name}") for name in ("ls", "rm")]
        assert all((one.name, one.additional_kwargs.get("type")) in (("shell_call", "shell_call_output"), ("run", None)) for one in results)
        assert [one.status for one in results] == ["success", "error"]
        assert results[0].text == "notes.txt" and "Not that one." in results[1].text
