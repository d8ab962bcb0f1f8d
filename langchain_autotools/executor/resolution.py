"""Resolution of calls: the tool by its name, the bundled calls, and permission to run.

Everything that looks at a tool's name (a restriction, a limit, a gate, a list of names) looks at what stands here, so that no
spelling and no bundle passes it.
"""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import ConfigurationError
from ..messages.calls import CLIENT_TOOL, ToolCallRecord, unambiguous
from .arguments import ArgumentsOf
from .names import find_name

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
            checked = self._checked(unambiguous(call))
            return checked if checked.args is None else replace(checked, waits=CLIENT_TOOL)
        if call.answer is not None:
            return call
        call = unambiguous(call)
        named = call if call.written_name is not None else self._named(call)
        if named.inner:
            return replace(named, inner=[self._checked(one) for one in named.inner])
        return self._checked(named)

    def _named(self, call: ToolCallRecord) -> ToolCallRecord:
        known = {**self.tools, **dict.fromkeys(self.caller_tools)}
        key = find_name(call.name, known)
        if key is not None:
            return replace(call, name=key, written_name=call.name)
        inner = [self._inside(one, known) for one in bundled_calls(call, known) or ()]
        return replace(call, written_name=call.name, inner=inner)

    def _inside(self, call: ToolCallRecord, known: Mapping[str, Any]) -> ToolCallRecord:
        """Return a bundled call. One for the caller cannot be left open, because the bundle has one answer."""
        key = find_name(call.name, known) or call.name
        named = replace(call, name=key, written_name=call.name)
        return replace(named, args=None, why=_LEFT_TO_THE_CALLER.format(name=key)) if key in self.caller_tools else named

    def _checked(self, call: ToolCallRecord) -> ToolCallRecord:
        if call.args is None or self.only is None:
            return call
        valid = self._validated(call) if callable(self.only) else call
        if valid.args is None:
            return valid
        if self._allows(valid, self.only):
            return call
        return replace(call, args=None, why=forbidden(call.shown_name, self.only))

    def _validated(self, call: ToolCallRecord) -> ToolCallRecord:
        if self.arguments is None or call.toolset is not None or call.name in self.caller_tools:
            return call
        arguments = self.arguments(call.name)
        return call if arguments is None else arguments.validated(call)

    def _allows(self, call: ToolCallRecord, only: Only) -> bool:
        if not callable(only):
            return (call.toolset or call.name) in only if call.handler is None else self._allows_handler(call, only)
        allowed = only(call)
        if not isinstance(allowed, bool):
            raise ConfigurationError(f"only must say True or False of a call, not {allowed!r}")
        return allowed

    def _allows_handler(self, call: ToolCallRecord, only: Collection[str]) -> bool:
        """Whether names include the vendor's tool whose call a handler answers. A name of one of the tools here means that tool."""
        names = (call.toolset or call.handler, call.spelling, call.spelling.removesuffix("_call"))
        return any(name in only and name not in self.tools for name in names)


def forbidden(name: str, only: Only) -> str:
    """Return the text for the model about a call that is not allowed."""
    return _FORBIDDEN.format(name=name[:100], offer=_offer(only))


def _offer(only: Only) -> str:
    """Return the text for the model about the calls that are allowed."""
    if callable(only):
        return "Go on without it."
    return f"The tools that may be called are: {', '.join(sorted(only))}." if only else "No tool may be called: answer with what is known."


def checked_only(only: Any) -> Only | None:
    """Return the rule for calls that may be executed, or None; raise if it is invalid.

    Raises:
        ConfigurationError: It is neither a list of names nor a function.
    """
    if only is not None and not callable(only) and (isinstance(only, str) or not isinstance(only, Collection)):
        raise ConfigurationError(f"only must be a list of tools' names, a function of the call, or None for all, not {only!r}")
    checked: Only | None = only
    return checked


def bundled_calls(call: ToolCallRecord, known: Mapping[str, Any]) -> list[ToolCallRecord] | None:
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
