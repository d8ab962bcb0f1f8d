"""Handlers: functions of the caller's that answer calls of the vendor's tools for the caller's machine.

A handler is prepared like a tool and kept beside the tools, under a name that no tool has: what the vendor's own call means never
depends on how a tool is named.
"""

import inspect
from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.messages.tool import ToolOutputMixin
from langchain_core.tools import BaseTool, StructuredTool

from ..errors import ConfigurationError
from ..messages.calls import ToolCallRecord, canonical_call
from ..messages.incremental import copy_containers
from .approvals import checked_rule_answer
from .context import ToolContext
from .names import find_name
from .plan import APPROVED, DENIED, content_for_vendor
from .policies import Policies, ToolPolicy
from .signatures import context_parameter

_HANDLER_KINDS: Mapping[str, bool] = {
    **dict.fromkeys(("shell", "apply_patch", "computer", "text_editor"), True),
    **dict.fromkeys(("memory", "mcp_approval", "tool_search"), False),
}
"""The kinds of handlers, and whether their calls need approval where the handler does not say."""

_ANYTHING = {"type": "object", "properties": {}, "additionalProperties": True}
_NO_VERDICT = "This call was denied: its handler said neither True, False nor why not."


@dataclass(frozen=True)
class Handler:
    """A function that answers calls of a vendor's tool for the caller's machine, and what holds for these calls.

    Attributes:
        function: Called with the arguments of a call, a dict as the vendor writes it; may be asynchronous, and may have a parameter of
            type `ToolContext` besides. It returns what answers the call. What it raises is told to the model.
        requires_approval: Whether its calls need approval, or a function that returns True or False for a `ToolCallRecord`. None: those of
            `shell`, `apply_patch`, `computer`, `text_editor` and of toolsets do; those of `memory`, `mcp_approval`, `tool_search` do not.
        policy: Timeout, retries, output limit and the rest of what a tool may have; what it leaves open, `default_policy` says.

    Raises:
        ConfigurationError: One of them cannot work.
    """

    function: Callable[..., Any]
    requires_approval: bool | Callable[[ToolCallRecord], bool] | None = None
    policy: ToolPolicy | None = None

    def __post_init__(self) -> None:
        rule = self.requires_approval
        if not callable(self.function):
            raise ConfigurationError(f"a handler is a function of a call's arguments, not {type(self.function).__name__}")
        if not (rule is None or isinstance(rule, bool) or callable(rule)) or inspect.iscoroutinefunction(rule):
            raise ConfigurationError("requires_approval of a handler must be True, False, or a synchronous function of the call")
        if not isinstance(self.policy, ToolPolicy | None):
            raise ConfigurationError(f"policy of a handler must be a ToolPolicy, not {self.policy!r}")
        if self.policy is not None and self.policy.progress:
            raise ConfigurationError("a handler yields nothing: it reports progress by a ToolContext")


class Handlers:
    """The handlers of an executor.

    Args:
        given: By key: the kind, or `toolset/name`.
        client_tools: The kinds of the vendor's tools that the model calls like functions, by name.

    Attributes:
        tools: The handlers as tools, by the name that a call gets which they answer.
    """

    def __init__(self, given: Mapping[str, Handler], client_tools: Mapping[str, str]) -> None:
        self._given = given
        self._client_tools = client_tools
        self.tools: dict[str, BaseTool] = {_name(key): _tool_of(key, handler) for key, handler in given.items()}

    def __reduce__(self) -> Any:
        return Handlers, (self._given, self._client_tools)

    @classmethod
    def read(cls, handlers: Any, client_tools: Mapping[str, str]) -> "Handlers":
        """Return the handlers as a caller gives them.

        Raises:
            ConfigurationError: Something is no handler, or there is no such kind.
        """
        if isinstance(handlers, Handlers):
            return handlers
        if not isinstance(handlers, Mapping):
            raise ConfigurationError(f"handlers must be a mapping of kinds to functions, not {type(handlers).__name__}")
        return cls({_handler_key(key): one if isinstance(one, Handler) else Handler(one) for key, one in handlers.items()}, client_tools)

    def over(self, other: "Handlers") -> "Handlers":
        """Return these handlers together with those of the other ones that these lack."""
        return Handlers({**other._given, **self._given}, {**other._client_tools, **self._client_tools})

    def beside(self, tools: Mapping[str, BaseTool]) -> Mapping[str, BaseTool]:
        """Return tools together with the handlers, by name. The tools may change."""
        return ChainMap({}, tools, self.tools)  # type: ignore[arg-type]  # written to is the first alone

    def has(self, kind: str) -> bool:
        """Whether there is a handler of a kind."""
        return kind in self._given

    def taken(self, call: ToolCallRecord, tools: Mapping[str, Any]) -> ToolCallRecord:
        """Return a call under the name of the handler that answers it; unchanged if there is none.

        Args:
            call: The call.
            tools: The tools by name. A function's call that means one of them is no handler's.
        """
        key = call.kind if call.answer is not None else self._key_of(call, tools)
        if key is None or key not in self._given or call.handler is not None:
            return call
        taken = replace(call, name=_name(key), written_name=call.spelling, handler=key, waits=None)
        return taken if taken.arguments else canonical_call(taken)

    def _key_of(self, call: ToolCallRecord, tools: Mapping[str, Any]) -> str | None:
        if call.toolset is not None:
            return f"{call.toolset}/{call.name}"
        name = find_name(call.name, {**self._client_tools, **tools}) if self._client_tools else None
        return None if name is None or name in tools else self._client_tools[name]

    def need_approval(self, call: ToolCallRecord) -> bool:
        """Whether a call that a handler answers needs approval.

        Raises:
            ConfigurationError: Its rule says neither True nor False.
        """
        key = str(call.handler)
        rule = self._given[key].requires_approval
        return checked_rule_answer(rule(call)) if callable(rule) else _HANDLER_KINDS.get(key, True) if rule is None else rule

    def policies(self, of_tools: Policies) -> Policies:
        """Return policies together with those of the handlers."""
        own = {_name(key): handler.policy for key, handler in self._given.items() if handler.policy is not None}
        return Policies({**of_tools.named, **own}, of_tools.default)


def _handler_key(key: Any) -> str:
    if isinstance(key, tuple) and len(key) == 2 and all(isinstance(part, str) and part for part in key):
        return "/".join(key)
    if not isinstance(key, str) or key not in _HANDLER_KINDS:
        raise ConfigurationError(f"there is no kind of handlers {key!r}: they are {', '.join(_HANDLER_KINDS)}, and (toolset, name)")
    return key


def _name(key: str) -> str:
    return f"{key} handler"


def _tool_of(key: str, handler: Handler) -> StructuredTool:
    """Return a handler as a tool."""
    function = handler.function
    context = context_parameter(function)
    result = partial(_result, key)

    def given(known: ToolContext) -> Any:
        """Call the handler: with the arguments of the call itself, of which none has a meaning for LangChain."""
        return function(copy_containers(known.call.args or {}), **({} if context is None else {context: known}))

    def run(context_of_call: ToolContext, /, **_: Any) -> Any:
        return result(context_of_call.call, given(context_of_call))

    async def arun(context_of_call: ToolContext, /, **_: Any) -> Any:
        return result(context_of_call.call, await given(context_of_call))

    asynchronous = any(map(inspect.iscoroutinefunction, (function, type(function).__call__)))
    way: Any = {"coroutine": arun} if asynchronous else {"func": run}
    return StructuredTool(name=_name(key), description="", args_schema=_ANYTHING, **way)


# ---------------------------------------------------------------------------------------------- results


def _result(key: str, call: ToolCallRecord, value: Any) -> Any:
    """Return what a handler has returned as the result of its call."""
    shape = _SHAPES.get(key)
    made = value if shape is None else shape(value)
    if call.answer is None or isinstance(made, ToolOutputMixin):
        return made
    return ToolMessage(content=content_for_vendor(made), tool_call_id=call.id)


def _verdict(value: Any) -> Any:
    """Return an approval as a result: True, or else the reason why not."""
    if value is True:
        return APPROVED
    return _refused(DENIED if value is False else value if isinstance(value, str) and value else _NO_VERDICT)


def _patched(value: Any) -> Any:
    """Return the output of a patch; one that has failed is an error of the call."""
    if not isinstance(value, Mapping) or "status" not in value:
        return value
    output = str(value.get("output") or value["status"])
    return output if value["status"] == "completed" else _refused(output)


def _refused(why: str) -> ToolMessage:
    return ToolMessage(content=why, tool_call_id="", status="error")


_SHAPES: Mapping[str, Callable[[Any], Any]] = {
    "mcp_approval": _verdict,
    "apply_patch": _patched,
    "computer": lambda value: [value] if isinstance(value, Mapping) else value,  # one picture
}
