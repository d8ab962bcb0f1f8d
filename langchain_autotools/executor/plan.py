"""What each of a model's calls means before any of them runs: its tool, what will answer it."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, repeat
from typing import Any

from langchain_core.messages import AIMessage, ToolCall, ToolMessage

from ..errors import ConfigurationError
from ..messages.calls import CLIENT_TOOL, NOT_ONE_OBJECT, GivenCall, ToolCallRecord, canonical_call, compact, with_definitions
from ..messages.metadata import inner_usage, own_metadata, with_own_metadata
from ..messages.run_messages import open_run, position_metadata
from ..strict_json import says_only
from .call import ToolRun
from .names import find_name, other_names
from .results import ToolCallResult, cancelled_result, failed, is_changed, output_content, tool_message_of, with_note
from .tool import ArgumentsOf

Call = GivenCall | ToolCall
"""A call: a record, an entry of an AI message's `tool_calls`, or a vendor's dict."""

Calls = AIMessage | Iterable[Call]
"""The calls to execute: an AI message, or an iterable of calls."""

PositionSetter = Callable[[ToolCallResult], ToolCallResult]
"""A function that adds a call's position to its result."""

_RAN_WITH = "The arguments of this call were changed before it ran. It ran with: {arguments}"
_CHANGED_TO = "The arguments of this call were changed, and it did not run. They were changed to: {arguments}"
_CANNOT_WAIT = "{name!r} cannot wait for a decision inside another call. Call it by itself if its result is needed."
APPROVED = "Approved."
DENIED = "This call was denied and did not run."
_INTERRUPTED = "interrupted: the run ended before this call gave a result"


# ---------------------------------------------------------------------------------------------- resolution
# Resolution of calls: the tool by its name, the bundled calls, and permission to run.
#
# Everything that looks at a tool's name (a restriction, a limit, a gate, a list of names) looks at what is kept here, so that no spelling
# and no bundle passes it.


Only = Collection[str] | Callable[[ToolCallRecord], bool]
"""The calls that may be executed: a collection of tool names, or a predicate."""

# A model's way to make several calls in one (wire quirk N-05).
_BUNDLES = frozenset({"multi_tool_use.parallel", "multi_tool_use_parallel", "parallel"})
_LEFT_TO_THE_CALLER = "Not run: a call of {name!r} is answered by the user. Call it by itself, not inside another call."
_FORBIDDEN = "{name!r} is not allowed here, and was not run. {offer}"


@dataclass(frozen=True)
class Meaning:
    """The rules for reading the calls of one run.

    Attributes:
        tools: The tools that run, by name.
        caller_tools: Names of tools whose calls are left to the caller. They go before `tools`.
        only: The rule for calls that may be executed; None for all.
        arguments: The validation of a tool's arguments for the rule's functions; None: these get the arguments as written.
    """

    tools: Mapping[str, Any]
    caller_tools: Collection[str] = ()
    only: Only | None = None
    arguments: ArgumentsOf | None = None

    def of(self, call: ToolCallRecord) -> ToolCallRecord:
        """Return the call under its tool's own name, with unambiguous text and its bundled calls; with a reason if it must not run.

        A call of a vendor's toolset is known by the toolset and its name: it is the caller's, whatever tool here bears the name. So is
        a call that is an item of the vendor's own. A call that a handler answers has its name already.
        """
        if call.handler is not None:
            return self._checked(call)
        if call.toolset is not None:
            checked = self._checked(_unambiguous(call))
            return checked if checked.args is None else replace(checked, waits=CLIENT_TOOL)
        if call.answer is not None:
            return call
        call = _unambiguous(call)
        named = call if call.written_name is not None else self._named(call)
        if named.inner:
            return replace(named, inner=[self._checked(one) for one in named.inner])
        return self._checked(named)

    def _named(self, call: ToolCallRecord) -> ToolCallRecord:
        known = {**dict.fromkeys(self.caller_tools), **self.tools}
        key = find_name(call.name, known)
        if key is not None:
            return replace(call, name=key, written_name=call.name)
        inner = [self._inside(one, known) for one in _bundled_calls(call, known) or ()]
        bundle = replace(call, written_name=call.name, inner=inner)
        return bundle if call.definitions is None else with_definitions(bundle, call.definitions)  # an edited one

    def _inside(self, call: ToolCallRecord, known: Mapping[str, Any]) -> ToolCallRecord:
        """Return a bundled call. One for the caller cannot be left open, because the bundle has one answer."""
        key = find_name(call.name, known) or call.name
        named = replace(call, name=key, written_name=call.name)
        return replace(named, args=None, why=_LEFT_TO_THE_CALLER.format(name=key)) if key in self.caller_tools else named

    def _checked(self, call: ToolCallRecord) -> ToolCallRecord:
        if call.args is None or self.only is None:
            return call
        valid = call
        if callable(self.only) and self.arguments is not None and call.toolset is None and call.name not in self.caller_tools:
            arguments = self.arguments(call.name)
            valid = call if arguments is None else arguments.validated(call)
        if valid.args is None:
            return valid
        if self._allows(valid, self.only):
            return call
        return replace(call, args=None, why=forbidden(call.shown_name, self.only))

    def _allows(self, call: ToolCallRecord, only: Only) -> bool:
        """Whether a call may be executed. A name of one of the tools here means that tool, and no other by one of its other names."""
        if callable(only):
            allowed = only(call)
            if not isinstance(allowed, bool):
                raise ConfigurationError(f"only must say True or False of a call, not {allowed!r}")
            return allowed
        if call.handler is not None:  # of the vendor's tool
            others: Collection[str] = (call.toolset or call.handler, call.spelling, call.spelling.removesuffix("_call"))
        elif (call.toolset or call.name) in only:
            return True
        else:
            others = () if call.toolset is not None else other_names(self.tools.get(call.name))
        return any(name in only and name not in self.tools for name in others)


def _unambiguous(call: ToolCallRecord) -> ToolCallRecord:
    """Return the call with an argument text that can only be read as `args`."""
    if call.args is None or call.arguments == compact(call.args) or says_only(call.arguments, call.args):
        return call
    return canonical_call(call)


def forbidden(name: str, only: Only) -> str:
    """Return the text for the model about a call that is not allowed, with those that are."""
    offer = "Go on without it."
    if not callable(only):
        listed = f"The tools that may be called are: {', '.join(sorted(only))}."
        offer = listed if only else "No tool may be called: answer with what is known."
    return _FORBIDDEN.format(name=name[:100], offer=offer)


def _bundled_calls(call: ToolCallRecord, known: Mapping[str, Any]) -> list[ToolCallRecord] | None:
    """Return the calls inside a bundling call; None if it is none, or if it names an unknown tool."""
    uses = (call.args or {}).get("tool_uses")
    if call.name.strip() not in _BUNDLES or not isinstance(uses, list) or not uses:
        return None
    calls: list[ToolCallRecord] = []
    for position, use in enumerate(uses):
        name, args = (use.get("recipient_name"), use.get("parameters", {})) if isinstance(use, dict) else (None, None)
        if not isinstance(name, str) or not isinstance(args, dict) or find_name(name, known) is None:
            return None
        calls.append(ToolCallRecord(f"{call.id}_{position}", name, json.dumps(args, ensure_ascii=False), args))
    return calls


# ---------------------------------------------------------------------------------------------- planning
# What will answer each call: runs of its tool, or a result that is there already.


@dataclass(frozen=True)
class PlannedCall:
    """A tool to run, or the reason why none runs.

    Attributes:
        call: The call.
        rejected: Its answer, where nothing is to run.
        run: The tool to run.
        entry: The wrapper that records its outcome; None where nothing is recorded.
    """

    call: ToolCallRecord
    rejected: ToolCallResult | None = None
    run: ToolRun | None = None
    entry: Any = None

    def unfinished(self, error: BaseException | None) -> ToolCallResult:
        """Return the result of a call that began and did not end, with the exception if it ended the run."""
        attempts, duration = 0, 0.0
        if self.run is not None:
            self.run.stop_for_good()
            attempts, duration = self.run.tried + int(self.run.executed), self.run.duration()
        if error is None:
            result = cancelled_result(self.call, executed=attempts > 0, duration=duration)
        else:
            result = failed(self.call, _INTERRUPTED, error, executed=attempts > 0, duration=duration)
        result = replace(result, attempts=attempts)
        budget = None if self.run is None else self.run.budget
        return result if budget is None else replace(result, message=budget.used.on(result.message))


@dataclass(frozen=True)
class Answer:
    """The answer to one call of the model: one planned call, or one for each bundled call, run one after another.

    Attributes:
        call: The call.
        planned: What answers it.
        place: Marks its result with where it is; None where that is not known.
        claim_key: The key under which the call is taken before it runs; None where it needs not be.
    """

    call: ToolCallRecord
    planned: Sequence[PlannedCall]
    place: PositionSetter | None = None
    claim_key: str | None = None

    def result(self, results: Sequence[ToolCallResult], *, ended: bool = True) -> ToolCallResult:
        """Return the call's result from those of its planned calls; `ended`: whether one of them ended by itself."""
        if self.planned[0].call is self.call:
            result = results[0]
        else:
            result = _combined(self.call, results) if ended else _stopped(self.call, results)
        ran = self.call.approved or self.call
        if ran.edited and self.call.args is not None and not is_changed(result):
            is_from_it = result.executed or result.message.status == "success"  # a result from a cache is that of an earlier call
            message = with_note(result.message, (_RAN_WITH if is_from_it else _CHANGED_TO).format(arguments=ran.arguments))
            # with the arguments in a note and as data: the history contains the model's own
            metadata = with_own_metadata(message.response_metadata, {**own_metadata(message), "edited_arguments": ran.args})
            result = replace(result, message=message.model_copy(update={"response_metadata": metadata}))
        return self.placed(result)

    def placed(self, result: ToolCallResult) -> ToolCallResult:
        """Return a result of the call with its position."""
        if self.call.answer is not None:  # the type of the vendor's item that is sent for it
            kept = {**result.message.additional_kwargs, "type": self.call.answer}
            result = replace(result, message=result.message.model_copy(update={"additional_kwargs": kept}))
        return result if self.place is None else self.place(result)


def position_setters(calls: Calls) -> Iterable[PositionSetter | None]:
    """Return what marks the results of calls, in call order: with their places in the turn, where an AI message is given."""
    if not isinstance(calls, AIMessage):
        return repeat(None)
    generation = calls.response_metadata.get("generation_id")
    return (partial(_with_position, position_metadata(generation, number)) for number in count(1))


def _with_position(place: Mapping[str, Any], result: ToolCallResult) -> ToolCallResult:
    """Return a result marked with its place in the turn."""
    metadata = {**result.message.response_metadata, **place}
    return replace(result, message=result.message.model_copy(update={"response_metadata": metadata}))


def _not_run(call: ToolCallRecord) -> ToolCallResult:
    """Return the result of a call without arguments to run with: its result was decided, or it cannot run."""
    decision = call.decision
    if decision is not None and call.answer is not None and (call.handler is None or decision.action in ("reject", "respond")):
        why = (decision.value or DENIED) if decision.action == "reject" else None
        content = why or (APPROVED if decision.action == "approve" else content_for_vendor(decision.value))
        message = ToolMessage(content=content, tool_call_id=call.id, name=call.spelling, status="error" if why else "success")
        return ToolCallResult(call, message, PermissionError(why) if why else None, executed=False, attempts=0)
    if decision is not None and decision.action == "respond":
        return ToolCallResult(call, tool_message_of(call, decision.value)[0], executed=False, attempts=0)
    return failed(call, call.why or NOT_ONE_OBJECT, ValueError)


def content_for_vendor(value: Any) -> Any:
    """Return the content of a result for a vendor's item: text and lists of objects unchanged, since the vendor's wire converts them."""
    values = [value] if isinstance(value, Mapping) else value
    if isinstance(values, list) and values and all(isinstance(one, Mapping) for one in values):
        return values
    return value if isinstance(value, str) else output_content(value)


def answer_of(
    call: ToolCallRecord, place: PositionSetter | None, tools: Collection[str], run: Callable[[ToolCallRecord], ToolRun]
) -> Answer:
    """Return the answer to a call of the model; `run` prepares the tool of a call."""
    inner = () if call.args is None else call.inner
    return Answer(call, [_planned(one, tools, run) for one in inner or (call,)], place)


def _planned(call: ToolCallRecord, tools: Collection[str], run: Callable[[ToolCallRecord], ToolRun]) -> PlannedCall:
    if call.args is None or (call.decision is not None and not call.runs_here):
        return PlannedCall(call, _not_run(call))
    if call.waits:
        return PlannedCall(call, not_approved(call))
    if call.name not in tools and call.handler is None:
        return PlannedCall(call, unknown_tool(call, tools))
    return PlannedCall(call, run=run(call))


def not_approved(call: ToolCallRecord) -> ToolCallResult:
    """Return the result of a pending call that must not run."""
    return failed(call, "Not run: this call waits for approval.", PermissionError)


def unknown_tool(call: ToolCallRecord, names: Iterable[str]) -> ToolCallResult:
    """Return the result of a call with an unknown name."""
    valid = ", ".join(names)
    offer = f"The valid tools are: {valid}." if valid else "There are no tools."
    return failed(call, f"{call.name[:100]!r} is not a valid tool. {offer}", LookupError)


# ---------------------------------------------------------------------------------------------- bundles of calls


def _combined(call: ToolCallRecord, results: Sequence[ToolCallResult]) -> ToolCallResult:
    """Return one result for the bundling call, with the results of all calls inside."""
    parts = [{"tool": result.call.spelling, "status": result.message.status, "result": _part(result)} for result in results]
    failures = [result.error for result in results if result.message.status == "error"]
    message = ToolMessage(
        content=json.dumps(parts, ensure_ascii=False),
        tool_call_id=call.id,
        name=call.spelling,
        artifact=[result.message.artifact for result in results],
        status="error" if len(failures) == len(results) else "success",
    )
    message = inner_usage(result.message for result in results).on(message)
    duration = sum(result.duration for result in results)
    executed = any(result.executed for result in results)
    commands = tuple(command for result in results for command in result.commands)
    error = next(iter(failures), None)
    result = ToolCallResult(call, message, error, duration, executed=executed, commands=commands, inner=tuple(results))
    return replace(result, attempts=max(one.attempts for one in results))


def _part(result: ToolCallResult) -> Any:
    """Return the content of a result in a bundle; where a run inside would wait, with a note that it cannot do so there."""
    waits = open_run(result.message) is not None
    return with_note(result.message, _CANNOT_WAIT.format(name=result.call.name)).content if waits else result.message.content


def _stopped(call: ToolCallRecord, results: Sequence[ToolCallResult]) -> ToolCallResult:
    """Return one result for a bundling call of which nothing has ended: the outcome of the first call inside."""
    first = results[0]
    message = inner_usage(result.message for result in results).on(first.message)
    message = message.model_copy(update={"tool_call_id": call.id, "name": call.spelling})
    return replace(first, call=call, message=message, return_direct=False, commands=(), inner=tuple(results))
