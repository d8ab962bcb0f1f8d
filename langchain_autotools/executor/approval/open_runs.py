"""Runs that wait inside a call: how their pending calls are shown outside, and how they go on with what was decided.

The calls of such a run are shown at the outermost run, with the path to them. A digest binds each to the call around its run, and another
one the whole record, so that with a key nobody else can make or change one.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import BaseMessage, messages_from_dict

from ...errors import ConfigurationError
from ...messages.calls import ToolCallRecord
from ...messages.carrier import serialize_messages
from ..resolution import Meaning
from .approvals import Approvals, same_digest
from .identity import plain_json
from .pending import Decision, PendingCall, check_offered, digest_of, plain_copy

_CHANGED = "the record of the run inside call {id!r} is not the one that was made: it, its call or approval_key has changed since"


@dataclass(frozen=True)
class ContinuedRun:
    """The run inside a call, with decisions about its pending calls.

    Attributes:
        messages: Its messages so far.
        decisions: The decisions, as its own pending calls would have made them.
    """

    messages: Sequence[BaseMessage]
    decisions: Sequence[Decision]


@dataclass(frozen=True)
class OuterCall:
    """The call around a run.

    Attributes:
        call: The call.
        message_id: The id of its message; None where that is not known.
        approvals: The approvals of the run that made it.
    """

    call: ToolCallRecord
    message_id: str | None
    approvals: Approvals

    @property
    def _key(self) -> str | None:
        self.approvals.check_key()
        return None if self.approvals.key is None else self.approvals.key.get_secret_value()

    def shown(self, pending: PendingCall) -> PendingCall:
        """Return a pending call of the run inside, as it is shown outside."""
        path = (self.call.name, *pending.path)
        place = [self.message_id, self.call.id, path, pending.uuid, pending.digest]
        outside = replace(pending, path=path, uuid=hashlib.sha256(plain_json(self.call, place)).hexdigest())
        return replace(outside, digest=shown_digest(outside, self._key))

    def record(self, messages: Sequence[BaseMessage], pending: Sequence[PendingCall]) -> dict[str, Any]:
        """Return the record of the run inside, which waits.

        Args:
            messages: The messages of that run so far.
            pending: Its pending calls.
        """
        shown = [self.shown(one) for one in pending]
        return self._record(shown, [[one.uuid, one.digest] for one in pending], serialize_messages(messages))

    def changed(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return the record of this call with other arguments, with which it waits for approval.

        Raises:
            ConfigurationError: The arguments are not plain JSON.
        """
        call, plain = self.call, plain_copy("a call", args)
        before = None if call.decision is None else call.decision.uuid
        identity = hashlib.sha256(plain_json(call, ["changed", self.message_id, call.id, call.spelling, before, plain])).hexdigest()
        shown = PendingCall(call.id, call.shown_name, plain, "approval", identity, toolset=call.toolset, changed=True)
        return self._record([replace(shown, digest=shown_digest(shown, self._key))], [], [])

    def _record(self, shown: Sequence[PendingCall], inside: Sequence[Sequence[str]], messages: Sequence[Any]) -> dict[str, Any]:
        record = {
            "message": self.message_id,
            "args": self.call.args if self.call.edited else None,
            "calls": [one.to_dict() for one in shown],
            "inside": inside,
            "messages": messages,
        }
        return {**record, "digest": self._digest(record)}

    def _digest(self, record: Mapping[str, Any]) -> str:
        kept = [record[name] for name in ("message", "args", "calls", "inside", "messages")]
        return digest_of(replace(self.call, args={"record": kept}, inner=()), "open_run", "", self._key)

    def check(self, record: Mapping[str, Any]) -> None:
        """Raise if a record is not the one that was made of a run inside this call.

        Raises:
            ConfigurationError: It is not.
        """
        try:
            known = record["message"] in (None, self.message_id) and same_digest(str(record["digest"]), self._digest(record))
        except KeyError:
            known = False
        if not known:
            raise ConfigurationError(_CHANGED.format(id=self.call.id))


def shown_digest(call: PendingCall, key: str | None) -> str:
    """Return the digest of a call that is shown with this identity."""
    uses = call.args.get("tool_uses")
    names = [use.get("recipient_name") for use in uses if isinstance(use, dict)] if isinstance(uses, list) else []
    inside = {name.rpartition(".")[2]: None for name in names if isinstance(name, str)}
    record = ToolCallRecord(call.id, call.name, "", call.args)
    return digest_of(Meaning(inside).of(record), call.kind, call.uuid, key, path=call.path)


def shown_index(record: Mapping[str, Any], decision: Decision) -> int | None:
    """Return the number of the shown call that a decision is about; None if it is about none."""
    entries = [entry if isinstance(entry, Mapping) else {} for entry in record["calls"]]
    shown = ([entry.get(name) for name in ("id", "uuid", "digest")] for entry in entries)
    return next((number for number, one in enumerate(shown) if one == [decision.id, decision.uuid, decision.digest]), None)


def continued_call(call: ToolCallRecord, record: Mapping[str, Any], decisions: Sequence[Decision]) -> ToolCallRecord:
    """Return the call, whose run inside goes on with these decisions."""
    inside: dict[int, Decision] = {}
    for decision in decisions:
        number = shown_index(record, decision) or 0
        check_offered(decision.id, record["calls"][number]["kind"], decision.action)
        if number in inside:
            raise ConfigurationError(f"there are two decisions about call {decision.id!r}")
        uuid, digest = record["inside"][number]
        inside[number] = replace(decision, uuid=uuid, digest=digest)
    run = ContinuedRun(messages_from_dict(record["messages"]), list(inside.values()))
    changed: dict[str, Any] = {} if record["args"] is None else {"args": dict(record["args"]), "edited": True}
    return replace(call, run=run, waits=None, decision=None, **changed)
