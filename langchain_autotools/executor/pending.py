"""Pending calls as plain data, identified so that a decision reaches the right one.

A vendor's id of a call may occur twice in a message, and again in every later turn (`call_0`). A call that waits is known by the UUID
that is recorded of it, any other one by a digest over its message's id, its place, its id, its name and its arguments.
"""

import hashlib
import hmac
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final, Literal, Self, cast, get_args

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from ..errors import ConfigurationError, DecisionProblem, DecisionsError
from ..messages.calls import (
    CLIENT_TOOL,
    VENDOR_APPROVAL,
    ToolCallRecord,
    awaited_calls,
    calls_of,
    canonical_call,
    entries_of_awaited,
    open_end,
    records_of,
    with_definitions,
)
from ..messages.metadata import ASKED, own_metadata
from ..messages.run_messages import HoldsRun, shown_entries
from ..strict_json import equivalent, interchanged
from .names import find_name

RECORD = "approval"
"""The key of a call's record of why it waits."""

DEFINITIONS = "definitions"
"""The key, in a record, of the definitions of the tools that an approval of the call is bound to, by the tools' names."""

_RECORD_KINDS = ("approval", "caller", "client_tool", "queued", VENDOR_APPROVAL)
"""The reasons why a call may wait."""


@dataclass(frozen=True)
class CallIdentity:
    """The identity of one call.

    Attributes:
        call: The call, as its message has it.
        message_id: The id of its message; None where there is none.
        place: Its place among the calls of its message that have its id: 0, unless a vendor repeats ids.
        record: The call's record since it began to wait; None if there is none.
        result: Its result, where there is one.
    """

    call: ToolCallRecord
    message_id: str | None = None
    place: int = 0
    record: Mapping[str, Any] | None = None
    result: ToolMessage | None = None

    @property
    def uuid(self) -> str:
        """The recorded UUID, or the digest in its place."""
        if self.record is not None:
            return str(self.record["uuid"])
        call = self.call
        written = call.arguments if call.args is None else call.args
        return hashlib.sha256(plain_json(call, [self.message_id, self.place, call.id, call.spelling, written])).hexdigest()


def plain_json(call: ToolCallRecord, shown: Any) -> bytes:
    """Return a shown call in canonical form, independent of key order and of a browser's changes to numbers (`interchanged`).

    Raises:
        ConfigurationError: The arguments are not plain JSON.
    """
    try:
        return json.dumps(interchanged(shown), sort_keys=True).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"the arguments of call {call.id!r} are not plain JSON: {error}") from None


def _record_of(entry: Any) -> Mapping[str, Any] | None:
    """Return the record of a waiting call; None if it is invalid, because a history may come from a client."""
    record = entry.get(RECORD) if isinstance(entry, Mapping) else None
    if not isinstance(record, Mapping):
        return None
    texts = [record.get(name) for name in ("kind", "uuid", "digest")]
    valid = all(isinstance(text, str) for text in texts) and texts[0] in _RECORD_KINDS
    definitions = record.get(DEFINITIONS)
    known = definitions.values() if isinstance(definitions, Mapping) else () if definitions is None else (None,)
    valid = valid and all(isinstance(one, Mapping) and isinstance(one.get(_UNBOUND, {}), Mapping) for one in known)
    return record if valid else None


def identities(message: AIMessage | None, calls: Sequence[ToolCallRecord], results: Iterable[ToolMessage] = ()) -> list[CallIdentity]:
    """Return the identities of a message's calls, in call order. The first of several calls with one id has the record and first result.

    Args:
        message: The message; None where it is not known.
        calls: Its calls.
        results: The results behind it.
    """
    records = {} if message is None else {**records_of(message), **entries_of_awaited(message)}
    message_id = None if message is None else own_metadata(message).get(ASKED) or message.id
    answers = _results_by_position(calls, results)
    places: dict[str, int] = {}
    known: list[CallIdentity] = []
    for number, call in enumerate(calls):
        place = places[call.id] = places.get(call.id, -1) + 1
        record = None if place else _record_of(records.get(call.id))
        known.append(CallIdentity(call, message_id, place, record, answers.get(number)))
    return known


def _results_by_position(calls: Sequence[ToolCallRecord], results: Iterable[ToolMessage]) -> dict[int, ToolMessage]:
    """Return the results by the positions of their calls; of several calls with one id, the first with its name, else the first."""
    found: dict[int, ToolMessage] = {}
    waiting: dict[str, list[int]] = {}
    for number, call in enumerate(calls):
        waiting.setdefault(call.id, []).append(number)
    for result in results:
        numbers = waiting.get(result.tool_call_id)
        if numbers:
            number = next((number for number in numbers if calls[number].spelling == result.name), numbers[0])
            numbers.remove(number)
            found[number] = result
    return found


def identities_of_given(
    given: AIMessage | object,
    calls: Sequence[ToolCallRecord],
    messages: Sequence[BaseMessage],
    all_calls: Any,
    *,
    results_only: bool = False,
) -> list[CallIdentity]:
    """Return the identities of calls that are to be executed.

    Args:
        given: The caller's argument: the AI message, or a list of calls.
        calls: Its calls.
        messages: The conversation so far.
        all_calls: Reads the calls of a message.
        results_only: Whether nothing but the results that there are is needed.
    """
    if isinstance(given, AIMessage):
        return identities(given, calls, _results_behind(given, messages))
    if results_only and not (messages and isinstance(messages[-1], ToolMessage)):
        return [CallIdentity(call) for call in calls]
    message, results = open_end(messages)
    left: dict[str, list[CallIdentity]] = {}
    for one in [] if message is None else identities(message, all_calls(message), results):
        left.setdefault(one.call.id, []).append(one)
    return [_take_identity(left.get(call.id, []), call) or CallIdentity(call, place=place) for place, call in enumerate(calls)]


def _results_behind(reply: AIMessage, history: Sequence[BaseMessage]) -> list[ToolMessage]:
    """Return the results of a history's last AI message if that is `reply`; else an empty list."""
    results: list[ToolMessage] = []
    for message in reversed(history):
        if isinstance(message, ToolMessage):
            results.insert(0, message)
        elif isinstance(message, AIMessage):
            same = message.id == reply.id and message.tool_calls == reply.tool_calls if reply.id else message == reply
            return results if same or message is reply else []
    return []


def _take_identity(left: list[CallIdentity], call: ToolCallRecord) -> CallIdentity | None:
    """Remove and return a call's identity among those with its id, preferably of an equal call without a result."""
    if not left:
        return None
    equal = [number for number, one in enumerate(left) if one.call.args == call.args and one.call.spelling == call.spelling]
    return left.pop(min(equal or range(len(left)), key=lambda number: left[number].result is not None))


# ---------------------------------------------------------------------------------------------- definitions
# What an approval binds to of a tool that a source lists: the tool's definition, JSON data, but for what is under `unbound`.


_UNBOUND = "unbound"


def bound_as_recorded(call: ToolCallRecord, record: Mapping[str, Any]) -> ToolCallRecord:
    """Return the call, bound to the definitions in its record: to none where the record is of an earlier version."""
    return with_definitions(call, record.get(DEFINITIONS))


def definition_changes(before: Mapping[str, Any], now: Mapping[str, Any] | None) -> dict[str, list[Any]]:
    """Return what has changed in a tool's definition, each as before and as now; empty if an approval still holds.

    Args:
        before: The definition that was approved.
        now: The one that there is; None for a tool that no source lists.
    """
    one, other = _whole_definition(before), {} if now is None else _whole_definition(now)
    keys = dict.fromkeys([*one, *other]).keys() - (now or {}).get(_UNBOUND, {}).keys()
    pairs = {key: [one.get(key), other.get(key)] for key in sorted(keys)}
    return {key: pair for key, pair in pairs.items() if not equivalent(*pair)}


def told_of(name: str, definitions: Mapping[str, Mapping[str, Any]] | None) -> dict[str, Any]:
    """Return what the pending call of a tool shows of the tool's definition: its description and annotations."""
    told = _whole_definition((definitions or {}).get(name, {}))
    description, annotations = told.get("description"), told.get("annotations")
    return {
        "description": description if isinstance(description, str) else "",
        "annotations": plain_copy("a call", annotations) if isinstance(annotations, Mapping) else {},
    }


def _whole_definition(definition: Mapping[str, Any]) -> dict[str, Any]:
    unbound = definition.get(_UNBOUND, {})
    return {**{key: value for key, value in definition.items() if key != _UNBOUND}, **unbound}


# ---------------------------------------------------------------------------------------------- elicitation
# Answers to the questions that MCP servers ask during calls, checked against the JSON schemas of the questions.


ELICITATION: Final = "elicitation"
"""The kind of pending call that is a question, and the name of its tool."""


def check_answer(question: Mapping[str, Any], answer: Any, *, uuid: str = "", call_id: str = "") -> None:
    """Raise if an answer does not fit its question.

    Args:
        question: The question, as the `args` of its pending call have it.
        answer: The answer.
        uuid: The `uuid` of the pending call.
        call_id: Its id.

    Raises:
        DecisionsError: It does not fit.
    """
    wrong = misfit(answer, question.get("schema", {}))
    if wrong is not None:
        text = f"the answer to {question.get('message')!r} does not fit its schema: {wrong}"
        raise refusal(uuid, call_id, text, f"The answer does not fit: {wrong}.")


def misfit(answer: Any, schema: Mapping[str, Any]) -> str | None:
    """Return why an answer does not fit a schema; None if it does. Nothing that a schema refers to is fetched."""
    from jsonschema import Draft202012Validator, SchemaError, ValidationError
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    if not isinstance(answer, dict):
        return "it is no object"
    kind = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
        kind(schema, registry=Registry()).validate(answer)
    except (ValidationError, SchemaError, Unresolvable) as error:
        return error.message if isinstance(error, ValidationError) else f"that is no schema: {type(error).__name__}"
    return None


# ---------------------------------------------------------------------------------------------- pending
# Pending calls and decisions about them, as plain data.
#
# A call that needs approval has a record on its AI message: a UUID, and a digest over it, over the call's id, name and arguments, and over
# the definition of its tool where a source lists it. A decision repeats both, so it holds for the call that was shown and for no other.


PendingKind = Literal["approval", "caller", "client_tool", "elicitation", "queued", "vendor_approval"]
"""The reason why a call waits: it needs approval; its tool is only declared; it is a vendor's tool for the user's machine; its server asks
a question; an earlier call waits; the vendor runs it after approval."""

Act = Literal["approve", "reject", "edit", "respond", "cancel"]
"""The actions of a decision."""

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
_LEFT_OUT: Mapping[str, Any] = {"changed": False, "description": "", "annotations": {}, "changes": {}}
"""The fields of a pending call that its dict has only where they say something."""


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
        kind: Why it waits. `approval`: a rule says so. `caller`: its tool was declared with `bind_tools`. `client_tool`: it is a vendor's
            tool for the user's machine. `elicitation`: an MCP server asks a question during the call, and `args` has its `message` and the
            `schema` of the answer. `queued`: with `parallel=False` a call before it waits. `vendor_approval`: the vendor runs it itself,
            and asks first (a tool of a remote MCP server).
        uuid: The call's identity: made for it when its turn ended, else a digest over its message's id and its place there. Empty for
            the caller's own calls.
        digest: Over all of these, and for the caller's own calls over their identity. With `approval_key` only the process that has
            the key can make one.
        toolset: The vendor's toolset that the tool is of; None for a tool of no toolset.
        path: The names of the models and agents given as tools inside whose runs it waits, the outermost first; empty for a call of
            the run itself.
        changed: Whether it waits again: middleware has given it other arguments than the model wrote or a human approved, or its tool is
            not the one that was approved, see `changes`.
        description: The description of its tool, of a server (MCP) that lists the tool; else empty. A server's own words, which may say
            anything: show them as plain text, and believe them as far as the server is trusted.
        annotations: What such a server says of the tool besides, such as `readOnlyHint` and `destructiveHint`. Its own claims, likewise.
        changes: What such a server, or whoever has a tool of this name now, has changed in the tool's definition since the call was
            approved: by the keys of the definition (`description`, `inputSchema`, ...) the values before and now, None for nothing.
    """

    id: str
    name: str
    args: dict[str, Any]
    kind: PendingKind
    uuid: str = ""
    digest: str = ""
    toolset: str | None = None
    path: Sequence[str] = ()
    changed: bool = False
    description: str = ""
    annotations: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in get_args(PendingKind):
            raise ConfigurationError(f"the kind of a pending call is one of {', '.join(get_args(PendingKind))}, not {self.kind!r}")
        if not (isinstance(self.args, dict) and all(isinstance(text, str) for text in (self.id, self.name, self.uuid, self.digest))):
            raise ConfigurationError("the id, the name, the uuid and the digest of a pending call are texts, its args a dict")
        if not (isinstance(self.path, list | tuple) and all(isinstance(name, str) for name in self.path)):
            raise ConfigurationError("the path of a pending call is a list of names")
        if not isinstance(self.toolset, str | None):
            raise ConfigurationError("the toolset of a pending call is a text, or None")
        if not (isinstance(self.description, str) and isinstance(self.annotations, dict) and isinstance(self.changes, dict)):
            raise ConfigurationError("the description of a pending call is a text, its annotations and its changes are dicts")
        if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in self.changes.values()):
            raise ConfigurationError("the changes of a pending call are pairs: a value before and the one now")
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
        check_offered(self.uuid, self.id, self.kind, action)
        return Decision(self.id, action, plain_copy(action, value), self.uuid, self.digest)

    def to_dict(self) -> dict[str, Any]:
        """Return the call as a dict of JSON data; without `changed`, `description`, `annotations` and `changes` where they say nothing."""
        data = {**asdict(self), "path": list(self.path)}
        return {name: value for name, value in data.items() if value or name not in _LEFT_OUT}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the pending call from the dict of `to_dict`.

        Raises:
            ConfigurationError: The dict is no pending call.
        """
        return cls(**_fields(cls, {"path": (), **_LEFT_OUT, **data} if isinstance(data, Mapping) else data, "a pending call"))


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


def shown_to_caller(identity: CallIdentity, kind: PendingKind) -> PendingCall:
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
        return shown_to_caller(one, cast("PendingKind", call.waits or CLIENT_TOOL))
    if record is None:
        return shown_to_caller(one, "client_tool" if entry.get("client_tool") is True else "caller")
    tool = record.get("tool")
    name = tool if isinstance(tool, str) and find_name(call.name, {tool: None}) == tool else call.name
    known: dict[str, Any] = {"toolset": call.toolset, **told_of(name, record.get(DEFINITIONS))}
    return PendingCall(call.id, name, plain_copy("a call", call.args), record["kind"], record["uuid"], record["digest"], **known)


def digest_of(call: ToolCallRecord, kind: str, nonce: str = "", key: str | None = None, *, path: Sequence[str] = ()) -> str:
    """Return the digest of a call: of its id, the names of its tool and of its bundled tools, its arguments, the path to it, and the
    definitions of these tools that it is bound to.

    The order of keys does not count, nor what a trip through a browser does to numbers (`interchanged`).

    Raises:
        ConfigurationError: The arguments are not plain JSON.
    """
    definitions = (call.definitions or {}).items()
    bound = {name: {key: value for key, value in one.items() if key != _UNBOUND} for name, one in definitions}
    shown = [kind, nonce, call.id, call.name, [one.name for one in call.inner], call.args, *([[*path]] if path else ())]
    shown += [] if call.definitions is None else [bound]
    data = plain_json(call, shown)
    return hashlib.sha256(data).hexdigest() if key is None else hmac.new(key.encode(), data, hashlib.sha256).hexdigest()


# ---------------------------------------------------------------------------------------------- deciding


_UNREADABLE: Final = "This decision cannot be read: decide anew."
_NOT_AS_SHOWN: Final = "This is not the call that was shown: look at it again, and decide anew."
_DONE: Final[Mapping[Act, str]] = {
    "approve": "approved",
    "reject": "rejected",
    "edit": "changed",
    "respond": "answered",
    "cancel": "dismissed",
}


def refusal(uuid: str, call_id: str, text: str, words: str = _NOT_AS_SHOWN) -> DecisionsError:
    """Return the error for one decision.

    Args:
        uuid: The `uuid` of the pending call.
        call_id: Its id.
        text: What is wrong, for the program.
        words: The same for the person who decides. By default that the call is another one than was shown.
    """
    return DecisionsError(text, [DecisionProblem(uuid, call_id, words)])


class Refusals(list[DecisionsError]):
    """The errors of several decisions. As a context manager it raises them as one at the end of its body."""

    def add_unreadable(self, uuid: str, call_id: str, text: str) -> None:
        """Add the error of a decision that cannot be read; arguments as of `refusal`."""
        self.append(refusal(uuid, call_id, text, _UNREADABLE))

    def add_second(self, decision: Decision) -> None:
        """Add the error of a second decision about one call."""
        text = f"there are two decisions about call {decision.id!r}"
        self.append(refusal(decision.uuid, decision.id, text, "There are two decisions about this call."))

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Return a context manager that adds the error of a decision that ends its body."""
        try:
            yield
        except DecisionsError as error:
            self.append(error)

    def together(self) -> DecisionsError:
        """Return the errors as one."""
        texts = dict.fromkeys(map(str, self))
        return DecisionsError("; ".join(texts), [problem for one in self for problem in one.problems])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is None and self:
            raise self.together()


def check_offered(uuid: str, call_id: str, kind: str, action: Act) -> None:
    """Raise if an action is not possible for calls of this kind.

    Raises:
        DecisionsError: It cannot.
    """
    if action not in _OFFERED[kind]:
        text = f"call {call_id!r} takes no {action}(): {_INSTEAD[kind]}"
        raise refusal(uuid, call_id, text, f"This call cannot be {_DONE[action]}.")


def check_ids(decisions: Mapping[str, str], waiting: Sequence[str], results: Collection[str], refusals: Refusals) -> None:
    """Collect the errors of decisions about calls that do not wait; the texts name the calls that do.

    Args:
        decisions: The `uuid`s of the decisions by the ids of their calls.
        waiting: The ids of the calls that wait.
        results: The ids of calls that have results.
        refusals: Takes the errors.
    """
    done = [call_id for call_id in decisions if call_id in results]
    if done:
        text = f"there is a decision about {_listed_ids(done)}, but there is a result already"
        refusals.append(DecisionsError(text, [DecisionProblem(decisions[one], one, "This call has its result already.") for one in done]))
    unknown = [call_id for call_id in decisions if call_id not in waiting and call_id not in results]
    if unknown:
        text = f"there is a decision about {_listed_ids(unknown)}, but the calls that wait are {_listed_ids(waiting)}"
        refusals.append(DecisionsError(text, [DecisionProblem(decisions[one], one, "This call does not wait.") for one in unknown]))


def _listed_ids(ids: Sequence[object]) -> str:
    return ", ".join(repr(one) for one in ids[:20]) or "none"


def with_decision(call: ToolCallRecord, decision: Decision) -> ToolCallRecord:
    """Return the call with its decision applied: to run, or (with `args` None) to be answered."""
    if not call.runs_here:
        args, why = (call.args, None) if decision.action == "approve" else (None, decision.value)
        return replace(call, waits=None, decision=decision, args=args, why=why if decision.action == "reject" else None)
    made = canonical_call(replace(call, waits=None, decision=decision))
    if decision.action == "approve":
        return made
    if decision.action == "edit":
        return with_edited_arguments(made, decision.value)
    return replace(made, args=None, inner=(), why=_REFUSED if decision.action == "respond" else decision.value or _REFUSED)


def with_edited_arguments(call: ToolCallRecord, args: Mapping[str, Any]) -> ToolCallRecord:
    """Return the call with other arguments, its bundled calls to be resolved again."""
    named = call if call.handler is not None else replace(call, name=call.spelling, written_name=None, inner=())
    return canonical_call(replace(named, args=dict(args), why=None, edited=not equivalent(args, call.args)))


def read_decisions(decisions: Any) -> list[Decision]:
    """Return a list of decisions, also from their dicts.

    Raises:
        ConfigurationError: There is no list.
        DecisionsError: Something in it is no decision.
    """
    if isinstance(decisions, str | Mapping) or not isinstance(decisions, Sequence):
        raise ConfigurationError(f"decisions are a list of what PendingCall's methods return, not {type(decisions).__name__}")
    read: list[Decision] = []
    with Refusals() as refusals:
        for one in decisions:
            with refusals.collected():
                read.append(_read_decision(one))
    return read


def _read_decision(given: Any) -> Decision:
    try:
        return given if isinstance(given, Decision) else Decision.from_dict(given)
    except ConfigurationError as error:
        known = given if isinstance(given, Mapping) else {}
        uuid, call_id = (text if isinstance(text := known.get(name), str) else "" for name in ("uuid", "id"))
        raise refusal(uuid, call_id, str(error), _UNREADABLE) from None


def by_position(
    decisions: Sequence[Decision],
    known: Sequence[CallIdentity],
    digest: Callable[[int], str],
    results: Collection[str],
    refusals: Refusals,
) -> dict[int, Decision]:
    """Return the decisions by the positions of their calls, each used once.

    Args:
        decisions: The decisions.
        known: The calls of a message.
        digest: Gives the digest of the call at a position, as it is shown.
        results: The ids of calls that have results.
        refusals: Collects the errors of decisions about none of the calls that have no result, and of two about one call.
    """
    waiting = [number for number, one in enumerate(known) if one.result is None]
    ids = [known[number].call.id for number in waiting]
    check_ids({one.id: one.uuid for one in decisions}, ids, set(results) - set(ids), refusals)
    found: dict[int, Decision] = {}
    for decision in decisions:
        same = [number for number in waiting if known[number].call.id == decision.id]
        shown = [number for number in same if len(same) > 1 and digest(number) == decision.digest]
        number = next(iter(shown or same), None)
        if number in found:
            refusals.add_second(decision)
        elif number is not None:
            found[number] = decision
    return found
