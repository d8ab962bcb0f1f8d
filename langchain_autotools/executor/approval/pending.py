"""Pending calls and decisions about them, as plain data.

A call that needs approval has a record on its AI message: a UUID, and a digest over it and over the call's id, name and arguments. A
decision repeats both, so it holds for the call that was shown and for no other.
"""

import hashlib
import hmac
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, Self, cast, get_args

from langchain_core.messages import BaseMessage

from ...errors import ConfigurationError
from ...messages.calls import CLIENT_TOOL, ToolCallRecord, awaited_calls, calls_of, canonical_call, open_end, records_of
from ...messages.endings import HoldsRun
from ...messages.open_runs import shown_entries
from ...strict_json import equivalent
from ..names import find_name
from .identity import CallIdentity, identities, plain_json

Kind = Literal["approval", "caller", "client_tool", "elicitation", "queued", "vendor_approval"]
"""The reason why a call waits: it needs approval; its tool is only declared; it is a vendor's tool for the user's machine; its server asks
a question; an earlier call waits; the vendor runs it after approval."""

Act = Literal["approve", "reject", "edit", "respond", "cancel"]
"""The actions of a decision."""

ON_CLIENT: Mapping[str, bool] = {"client_tool": True}
"""The record of a call of a vendor's tool for the user's machine."""

_OFFERED: Mapping[str, Collection[str]] = {
    "approval": ("approve", "reject", "edit", "respond"),
    "caller": ("reject", "respond"),
    "client_tool": ("reject", "respond"),
    "elicitation": ("cancel", "reject", "respond"),
    "queued": ("reject",),
    "vendor_approval": ("approve", "reject"),
}
APPROVABLE = frozenset(kind for kind, offered in _OFFERED.items() if "approve" in offered)
"""The kinds of calls that can be approved."""
_INSTEAD = {
    "approval": "it needs approval: give it by approve() or edit(), or answer by reject() or respond()",
    "caller": "its tool was only declared: run it yourself, and give what came of it to respond()",
    "client_tool": "it is for a tool of the vendor's on the user's machine: run it yourself, and give what came of it to respond()",
    "elicitation": "it has begun, and its server asks a question: answer by respond(), decline by reject(), or dismiss it by cancel()",
    "queued": "it waits behind other calls, and runs without a decision of its own once those are decided",
    "vendor_approval": "its vendor runs it, as it is, once it is approved",
}
_REFUSED = "This call was denied and did not run."


@dataclass(frozen=True)
class Decision:
    """A decision about a pending call, created by the methods of `PendingCall`.

    Plain data: it can be kept as JSON for days (`to_dict`, `from_dict`), and be used in another process.

    Attributes:
        id: The call's id.
        action: `approve`, `reject`, `edit`, `respond` or `cancel`.
        value: Why the call is rejected, the arguments that it runs with instead, or the content of its result.
        uuid: The `uuid` of the pending call.
        digest: The `digest` of the pending call.

    Raises:
        ConfigurationError: The action is none of these, or the value does not go with it or is not plain JSON.
    """

    id: str
    action: Act
    value: Any = None
    uuid: str = ""
    digest: str = ""

    def __post_init__(self) -> None:
        if self.action not in get_args(Act):
            raise ConfigurationError(f"a decision's action is one of {', '.join(get_args(Act))}, not {self.action!r}")
        if not all(isinstance(text, str) for text in (self.id, self.uuid, self.digest)):
            raise ConfigurationError("the id, the uuid and the digest of a decision are texts")
        if self.action == "approve" and self.value is not None:
            raise ConfigurationError("approve takes no value: edit takes the arguments to run with")
        if self.action == "cancel" and self.value is not None:
            raise ConfigurationError("cancel takes no value")
        if self.action == "reject" and not isinstance(self.value, str | None):
            raise ConfigurationError(f"reject takes the reason as a text, not {type(self.value).__name__}")
        if self.action == "edit" and not (isinstance(self.value, dict) and all(isinstance(name, str) for name in self.value)):
            raise ConfigurationError(f"edit takes the arguments by name, not {type(self.value).__name__}")
        if self.action == "respond" and self.value is None:
            raise ConfigurationError("respond takes the content of the result, not None")
        plain_copy(self.action, self.value)

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as a dict of JSON data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the decision from the dict of `to_dict`.

        Raises:
            ConfigurationError: The dict is no decision.
        """
        return cls(**_fields(cls, data, "a decision"))


@dataclass(frozen=True)
class PendingCall:
    """A call that waits for a decision, as shown to a human. Plain data, like a `Decision`.

    Attributes:
        id: The call's id.
        name: The name of its tool.
        args: Its arguments.
        kind: Why it waits: `approval` (a rule says so), `caller` (its tool was declared with `bind_tools`), `client_tool` (a vendor's
            tool for the user's machine), `elicitation` (an MCP server asks a question during the call: `args` has its `message` and the
            `schema` of the answer), `queued` (with `parallel=False`: a call before it waits), or `vendor_approval` (the vendor runs it
            itself, and asks first: a tool of a remote MCP server).
        uuid: The call's identity: made for it when its turn ended, else a digest over its message's id and its place there. Empty for
            the caller's own calls.
        digest: Over all of these, and for the caller's own calls over their identity. With `approval_key` only the process that has
            the key can make one.
        toolset: The vendor's toolset that the tool is of; None for a tool that stands by itself.
        path: The names of the models and agents given as tools inside whose runs it waits, the outermost first; empty for a call of
            the run itself.
        changed: Whether middleware has given it other arguments than the model wrote or a human approved.
    """

    id: str
    name: str
    args: dict[str, Any]
    kind: Kind
    uuid: str = ""
    digest: str = ""
    toolset: str | None = None
    path: Sequence[str] = ()
    changed: bool = False

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ConfigurationError(f"the kind of a pending call is one of {', '.join(get_args(Kind))}, not {self.kind!r}")
        if not (isinstance(self.args, dict) and all(isinstance(text, str) for text in (self.id, self.name, self.uuid, self.digest))):
            raise ConfigurationError("the id, the name, the uuid and the digest of a pending call are texts, its args a dict")
        if not (isinstance(self.path, list | tuple) and all(isinstance(name, str) for name in self.path)):
            raise ConfigurationError("the path of a pending call is a list of names")
        if not isinstance(self.toolset, str | None):
            raise ConfigurationError("the toolset of a pending call is a text, or None")
        object.__setattr__(self, "path", tuple(self.path))

    def approve(self) -> Decision:
        """Approve the call as it is shown.

        Raises:
            ConfigurationError: Calls of this kind cannot be approved.
        """
        return self._decision("approve")

    def reject(self, why: str | None = None) -> Decision:
        """Reject the call.

        Args:
            why: The reason for the model; None for a general statement.
        """
        return self._decision("reject", why)

    def edit(self, args: Mapping[str, Any]) -> Decision:
        """Approve the call with other arguments. Its result tells the model about them.

        Raises:
            ConfigurationError: Calls of this kind cannot be edited, or the arguments are not plain JSON.
        """
        return self._decision("edit", dict(args) if isinstance(args, Mapping) else args)

    def respond(self, content: Any) -> Decision:
        """Answer the call with this result, without running it.

        Args:
            content: A text, content blocks, or other plain data, as a tool may return it.

        Raises:
            ConfigurationError: Calls of this kind cannot be answered, or the content is not plain JSON.
        """
        return self._decision("respond", content)

    def cancel(self) -> Decision:
        """Leave the question of an MCP server without an answer: it was dismissed, neither answered nor declined.

        Raises:
            ConfigurationError: The call is no such question.
        """
        return self._decision("cancel")

    def _decision(self, action: Act, value: Any = None) -> Decision:
        check_offered(self.id, self.kind, action)
        return Decision(self.id, action, plain_copy(action, value), self.uuid, self.digest)

    def to_dict(self) -> dict[str, Any]:
        """Return the call as a dict of JSON data. `changed` is in it where it is True."""
        data = {**asdict(self), "path": list(self.path)}
        return data if data.pop("changed") is False else {**data, "changed": True}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the pending call from the dict of `to_dict`.

        Raises:
            ConfigurationError: The dict is no pending call.
        """
        return cls(**_fields(cls, {"path": (), "changed": False, **data} if isinstance(data, Mapping) else data, "a pending call"))


def is_apart(call: PendingCall) -> bool:
    """Whether a pending call is another one than the call with its id in the run: a call of a run inside a tool, or a changed one."""
    return bool(call.path) or call.changed


def page_id(call: PendingCall) -> str:
    """Return the id of a pending call for pages, where another call may be shown under its own id."""
    return call.uuid if is_apart(call) else call.id


def full_name(call: PendingCall) -> str:
    """Return the name of a pending call's tool, behind the path to it."""
    return " > ".join([*call.path, call.name])


def plain_copy(action: str, value: Any) -> Any:
    """Return a copy of plain data; raise for other data."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"{action} takes plain data, which JSON can hold: {error}") from None


def _fields(cls: Any, data: Any, what: str) -> Mapping[str, Any]:
    names = [field.name for field in fields(cls)]
    if not isinstance(data, Mapping) or set(data) != set(names):
        raise ConfigurationError(f"{what} is a dict with {', '.join(names)}, as to_dict() gives it")
    return data


def pending_calls(source: BaseMessage | HoldsRun | Sequence[BaseMessage]) -> list[PendingCall]:
    """Return the pending calls, in call order.

    Args:
        source: The result of a run of a model or an agent, the sum of its chunks, or a history: its last AI message then, and
            which of its calls have results.

    Returns:
        One `PendingCall` for each, those of runs inside tools last; empty where none waits. A decision made of one is for `model.resume`.
    """
    source = source.message if isinstance(source, HoldsRun) else source
    if not isinstance(source, BaseMessage) and (isinstance(source, str) or not isinstance(source, Sequence)):
        raise ValueError(f"pending_calls takes a run message or a history, not a {type(source).__name__}")
    message, results = open_end([source] if isinstance(source, BaseMessage) else source)
    inside = [PendingCall.from_dict(entry) for entry in shown_entries(message, results)]
    if message is None:
        return inside
    records, calls = records_of(message), [*calls_of(message), *awaited_calls(message)]
    waiting = [one for one in identities(message, calls, results) if one.call.args is not None and one.result is None]
    return [*(_shown(one, records.get(one.call.id, {})) for one in waiting), *inside]


def shown_to_caller(identity: CallIdentity, kind: Kind) -> PendingCall:
    """Return a call that the caller answers, as it is shown."""
    call, record = identity.call, identity.record
    nonce, digest = ("", caller_digest(identity)) if record is None else (record["uuid"], record["digest"])
    return PendingCall(call.id, call.spelling, plain_copy("a call", call.args), kind, nonce, digest, call.toolset)


def caller_digest(identity: CallIdentity) -> str:
    """Return the digest of a call that the caller answers and that has no record."""
    return digest_of(identity.call, "caller", identity.uuid)


def _shown(one: CallIdentity, entry: Mapping[str, Any]) -> PendingCall:
    call, record = one.call, one.record
    for_caller = record is None or record["kind"] not in ("approval", "queued")
    if for_caller and (call.answer is not None or call.toolset is not None):
        return shown_to_caller(one, cast("Kind", call.waits or CLIENT_TOOL))
    if record is None:
        return shown_to_caller(one, "client_tool" if entry.get("client_tool") is True else "caller")
    tool = record.get("tool")
    name = tool if isinstance(tool, str) and find_name(call.name, {tool: None}) == tool else call.name
    return PendingCall(call.id, name, plain_copy("a call", call.args), record["kind"], record["uuid"], record["digest"], call.toolset)


def digest_of(call: ToolCallRecord, kind: str, nonce: str = "", key: str | None = None, *, path: Sequence[str] = ()) -> str:
    """Return the digest of a call: of its id, the names of its tool and of its bundled tools, its arguments, and the path to it.

    The order of keys does not count, nor what a trip through a browser does to numbers (`interchanged`).

    Raises:
        ConfigurationError: The arguments are not plain JSON.
    """
    shown = [kind, nonce, call.id, call.name, [one.name for one in call.inner], call.args, *([[*path]] if path else ())]
    data = plain_json(call, shown)
    return hashlib.sha256(data).hexdigest() if key is None else hmac.new(key.encode(), data, hashlib.sha256).hexdigest()


# ---------------------------------------------------------------------------------------------- deciding


def check_offered(call_id: str, kind: str, action: Act) -> None:
    """Raise if an action is not possible for calls of this kind.

    Raises:
        ConfigurationError: It cannot.
    """
    if action not in _OFFERED[kind]:
        raise ConfigurationError(f"call {call_id!r} takes no {action}(): {_INSTEAD[kind]}")


def check_ids(decisions: Collection[str], waiting: Sequence[str], results: Collection[str]) -> None:
    """Raise if decisions are about calls that do not wait.

    Raises:
        ConfigurationError: There is one; the text names the calls that wait.
    """
    done = [call_id for call_id in decisions if call_id in results]
    if done:
        raise ConfigurationError(f"there is a decision about {_listed(done)}, but there is a result already")
    unknown = [call_id for call_id in decisions if call_id not in waiting]
    if unknown:
        raise ConfigurationError(f"there is a decision about {_listed(unknown)}, but the calls that wait are {_listed(waiting)}")


def _listed(ids: Sequence[object]) -> str:
    return ", ".join(repr(one) for one in ids[:20]) or "none"


def decided(call: ToolCallRecord, decision: Decision) -> ToolCallRecord:
    """Return the call with its decision applied: to run, or (with `args` None) to be answered."""
    if not call.runs_here:
        args, why = (call.args, None) if decision.action == "approve" else (None, decision.value)
        return replace(call, waits=None, decision=decision, args=args, why=why if decision.action == "reject" else None)
    made = canonical_call(replace(call, waits=None, decision=decision))
    if decision.action == "approve":
        return made
    if decision.action == "edit":
        return edited(made, decision.value)
    return replace(made, args=None, inner=(), why=_REFUSED if decision.action == "respond" else decision.value or _REFUSED)


def edited(call: ToolCallRecord, args: Mapping[str, Any]) -> ToolCallRecord:
    """Return the call with other arguments, its bundled calls to be resolved again."""
    named = call if call.handler is not None else replace(call, name=call.spelling, written_name=None, inner=())
    return canonical_call(replace(named, args=dict(args), why=None, edited=not equivalent(args, call.args)))


def read_decisions(decisions: Any) -> list[Decision]:
    """Return a list of decisions, also from their dicts.

    Raises:
        ConfigurationError: Something is no decision.
    """
    if isinstance(decisions, str | Mapping) or not isinstance(decisions, Sequence):
        raise ConfigurationError(f"decisions are a list of what PendingCall's methods return, not {type(decisions).__name__}")
    return [one if isinstance(one, Decision) else Decision.from_dict(one) for one in decisions]


def by_position(
    decisions: Sequence[Decision], known: Sequence[CallIdentity], digest: Callable[[int], str], results: Collection[str]
) -> dict[int, Decision]:
    """Return the decisions by the positions of their calls, each used once.

    Args:
        decisions: The decisions.
        known: The calls of a message.
        digest: Gives the digest of the call at a position, as it is shown.
        results: The ids of calls that have results.

    Raises:
        ConfigurationError: A decision is about none of the calls that have no result, or two are about one call.
    """
    waiting = [number for number, one in enumerate(known) if one.result is None]
    ids = [known[number].call.id for number in waiting]
    check_ids([one.id for one in decisions], ids, set(results) - set(ids))
    found: dict[int, Decision] = {}
    for decision in decisions:
        same = [number for number in waiting if known[number].call.id == decision.id]
        shown = [number for number in same if len(same) > 1 and digest(number) == decision.digest]
        number = (shown or same)[0]
        if number in found:
            raise ConfigurationError(f"there are two decisions about call {decision.id!r}")
        found[number] = decision
    return found
