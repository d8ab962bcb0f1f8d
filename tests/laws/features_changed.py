"""The feature of the table whose calls middleware changes after a human has approved them."""

from __future__ import annotations

from typing import Any

from langchain_autotools import Decision, PendingCall
from tests.laws.feature import Feature
from tests.laws.planned import Plan, Seen
from tests.support.script import Call


class ChangedCalls(Feature):
    """Middleware changes an approved call, which waits again, with the changed arguments."""

    name = "changed calls"
    waits = True

    def add(self, plan: Plan) -> None:
        """A call that waits, and the middleware."""
        from tests.support.middleware import Around

        plan.fields.setdefault("middleware", []).append(Around(tool=self._call))
        plan.approve("tidy")
        plan.add("tidy", Call("tidy", {"room": "cellar"}, "changed_0"))
        plan.allow("tidy", room="the cellar")

    def _call(self, request: Any) -> Any:
        call = request.tool_call
        changed = {**call, "args": {"room": f"the {call['args'].get('room')}"}}
        return (yield request.override(tool_call=changed) if call["id"] == "changed_0" else request)

    def decide(self, call: PendingCall) -> Decision:
        """Yes, twice."""
        assert (call.name, call.kind, call.path) == ("tidy", "approval", ())
        assert call.args == {"room": "the cellar" if call.changed else "cellar"}
        return call.approve()

    def check(self, seen: Seen) -> None:
        """It ran once, as it was approved last, and the model is told so."""
        assert [args for name, args in seen.work.ran if name == "tidy" and "cellar" in args["room"]] == [{"room": "the cellar"}]
        text = seen.result("changed_0").text
        assert "It ran with" in text and "Tidied the the cellar." in text
