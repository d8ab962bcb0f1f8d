"""Injected arguments: values that the program supplies to a tool, never the model.

A tool marks them with `InjectedToolArg` (or a subclass: `InjectedToolCallId`, LangGraph's `InjectedState` and
`InjectedStore`), by the types `ToolContext` and `ToolRuntime`, or by an untyped parameter named `runtime` as LangGraph's own
executor reads it.
Whatever a model writes for one of these is dropped, in nested models too; what is known is filled in.

LangGraph is never imported. A tool that uses its types has imported it.
"""

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId
from pydantic import AliasChoices, AliasPath, BaseModel
from pydantic.fields import FieldInfo
from typing_extensions import TypeAliasType, is_typeddict

from ..compat import graph_class, graph_runtime, injected_names
from ..errors import ConfigurationError
from ..messages.calls import ToolCallRecord
from ..messages.memo import copy_containers
from .context import ToolContext
from .results import Place

_NOT_FOR_MODELS = ("run_manager", "callbacks")  # LangChain's own parameters, hidden from every schema it generates
_UNTYPED = (Any, object, None)


@dataclass(frozen=True)
class InjectionContext:
    """The values that can be injected into a call.

    Attributes:
        call: The call.
        config: The configuration that the tool is invoked with.
        messages: The conversation so far, with the AI message that made the call.
        tools: All tools of the executor.
    """

    call: ToolCallRecord
    config: RunnableConfig
    messages: Sequence[BaseMessage]
    tools: Sequence[BaseTool]


class InjectedArguments:
    """The injected arguments of one tool. Created once per tool.

    Attributes:
        hidden: The names, and aliases, under which a model could try to set one.
        contexts: The names of those that are a `ToolContext`, which the caller of `apply` supplies.
        need_context: Whether the tool is given more than its own arguments: an injected one, or the configuration.
    """

    def __init__(self, tool: BaseTool) -> None:
        schema = tool.args_schema
        self._schema = schema if isinstance(schema, type) else None
        fields = _fields(self._schema) if self._schema else {}
        known = {**_parameters(tool), **fields}
        self._types = {name: field.type for name, field in known.items()}
        self._optional = {name for name, field in known.items() if not field.required}
        injected = {name for name, annotation in self._types.items() if _is_injected(annotation)}
        injected |= injected_names(tool)
        shown = set(fields) | set(schema.get("properties", ()) if isinstance(schema, dict) else ())
        aliases = {alias for name in injected & fields.keys() for alias in fields[name].aliases}
        self.hidden = frozenset(injected | aliases | set(_NOT_FOR_MODELS) - shown)
        self.contexts = frozenset(name for name in injected if _first_of(list(_marks(self._types.get(name))), ToolContext))
        self._injected = injected - self.contexts
        visited: set[Any] = set()
        self._inner = frozenset(
            inner for name, field in fields.items() if name not in injected for inner in _hidden_in(field.type, visited)
        )
        self._untyped_runtime = "runtime" not in injected and self._types.get("runtime", str) in _UNTYPED
        configured = any(RunnableConfig in _marks(annotation) for annotation in self._types.values())
        self.need_context = bool(injected or self._inner or self._untyped_runtime or configured)

    def apply(self, args: Mapping[str, Any], context: InjectionContext) -> dict[str, Any]:
        """Return the tool's arguments: a copy of the model's own, with the injected ones.

        Raises:
            ConfigurationError: a required injected argument is not known here.
        """
        kept = self.left_out(args)
        for name in self._injected:
            value = self._injected_value(name, context)
            if value is not _UNKNOWN:
                kept[name] = value
        if self._untyped_runtime and graph_class("ToolRuntime") is not None:
            kept["runtime"] = tool_runtime(context)
        return kept

    def left_out(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of the model's own arguments without those that are injected."""
        # copies: a tool that changes its arguments must not change the history
        kept = {name: copy_containers(value) for name, value in args.items() if name not in self.hidden}
        return _without_injected(kept, self._schema) if self._inner else kept

    def conceals(self, place: Place) -> bool:
        """Whether a place in the arguments is hidden from the model."""
        return bool(place) and (place[0] in self.hidden or not self._inner.isdisjoint(place[1:]))

    def _injected_value(self, name: str, context: InjectionContext) -> Any:
        marks = list(_marks(self._types.get(name)))
        if _first_of(marks, InjectedToolCallId):
            return context.call.id
        if _first_of(marks, graph_class("ToolRuntime")):
            return tool_runtime(context)
        if _first_of(marks, graph_class("InjectedStore")):
            return self._needed(name, getattr(graph_runtime(), "store", None), "a store, which only a graph compiled with one has")
        if mark := _first_of(marks, graph_class("InjectedState")):
            state = {"messages": list(context.messages)}
            field = getattr(mark, "field", None)
            needs = f"the graph state {field!r}; outside a graph's own tool node the state is the messages"
            return state if field is None else self._needed(name, state.get(field), needs)
        return _UNKNOWN

    def _needed(self, name: str, value: Any, needs: str) -> Any:
        if value is not None:
            return value
        if name in self._optional:
            return _UNKNOWN
        raise ConfigurationError(f"the tool cannot run here: its argument {name!r} needs {needs}")


_UNKNOWN = object()


# ---------------------------------------------------------------------------------------------- reading annotations


@dataclass(frozen=True)
class _Field:
    type: Any
    required: bool
    aliases: frozenset[str]


def _fields(schema: Any) -> dict[str, _Field]:
    """Return the fields of a pydantic model, dataclass or TypedDict, with full annotations."""
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        fields = schema.model_fields.items()
        return {name: _Field(info.rebuild_annotation(), info.is_required(), frozenset(aliases_of(info))) for name, info in fields}
    older = getattr(schema, "__fields__", None)  # pydantic's version 1
    hints = type_hints(schema)
    if older:
        return {name: _Field(hints.get(name, Any), bool(field.required), frozenset({field.alias})) for name, field in older.items()}
    if dataclasses.is_dataclass(schema) or is_typeddict(schema):
        return {name: _Field(annotation, True, frozenset()) for name, annotation in hints.items()}
    return {}


def aliases_of(info: FieldInfo) -> Iterator[str]:
    """Yield the aliases under which a pydantic model accepts a field."""
    choices = info.validation_alias.choices if isinstance(info.validation_alias, AliasChoices) else [info.validation_alias]
    for alias in (info.alias, *choices):
        first = alias.path[0] if isinstance(alias, AliasPath) else alias
        if isinstance(first, str):
            yield first


def _parameters(tool: BaseTool) -> dict[str, _Field]:
    """Return the named parameters of the tool's own functions."""
    found: dict[str, _Field] = {}
    for function in _functions(tool):
        hints = type_hints(function)
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                required = parameter.default is parameter.empty
                found[parameter.name] = _Field(hints.get(parameter.name, Any), required, frozenset())
    return found


def context_parameter(function: Callable[..., Any]) -> str | None:
    """Return the name of a function's parameter of type `ToolContext`; None if it has none."""
    called = function if inspect.isroutine(function) else type(function).__call__
    hints = type_hints(called)
    return next((name for name, hint in hints.items() if name != "return" and _first_of(list(_marks(hint)), ToolContext)), None)


def _functions(tool: BaseTool) -> list[Callable[..., Any]]:
    own = [getattr(tool, name, None) for name in ("func", "coroutine")]
    return [function for function in own if function is not None] or [tool._run, tool._arun]


def type_hints(holder: Any) -> dict[str, Any]:
    """Return the annotations of a function or class; empty if one of them cannot be resolved."""
    try:
        return typing.get_type_hints(holder, include_extras=True)
    except Exception:  # a name that exists only for type checkers: LangChain finds what can be found (`injected_names`)
        return {}


def _unaliased(annotation: Any) -> Any:
    """Return the type behind a `type X = ...` statement."""
    return getattr(annotation, "__value__", annotation) if isinstance(annotation, TypeAliasType) else annotation


def _marks(annotation: Any) -> Iterator[Any]:
    """Yield an annotation, its alternatives, and their metadata."""
    annotation = _unaliased(annotation)
    yield annotation
    origin = get_origin(annotation)
    yield origin
    yield from getattr(annotation, "__metadata__", ())
    if origin is Annotated:
        yield from _marks(annotation.__origin__)
    elif origin is typing.Union or origin is types.UnionType:
        for alternative in get_args(annotation):
            yield from _marks(alternative)


def _first_of(marks: Sequence[Any], kind: Any) -> Any:
    """Return the first of `marks` that is an instance or subclass of `kind`; None if there is none."""
    if kind is None:
        return None
    return next((mark for mark in marks if isinstance(mark, kind) or (isinstance(mark, type) and issubclass(mark, kind))), None)


def _is_injected(annotation: Any) -> bool:
    marks = list(_marks(annotation))
    return bool(_first_of(marks, InjectedToolArg) or _first_of(marks, graph_class("ToolRuntime")))


# ---------------------------------------------------------------------------------------------- nested models


def _hidden_in(annotation: Any, visited: set[Any]) -> Iterator[str]:
    """Yield the names of the injected fields of models nested inside this annotation."""
    annotation = _unaliased(annotation)
    if not isinstance(annotation, type):
        for part in get_args(annotation):
            yield from _hidden_in(part, visited)
    elif annotation not in visited:
        visited.add(annotation)
        for name, field in _fields(annotation).items():
            yield from (name, *field.aliases) if _is_injected(field.type) else _hidden_in(field.type, visited)


def _without_injected(value: Any, annotation: Any) -> Any:
    """Return plain data for `annotation` without values for its nested injected fields."""
    annotation = _unaliased(annotation)
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _without_injected(value, parts[0])
    if origin is typing.Union or origin is types.UnionType:
        for part in parts:
            value = _without_injected(value, part)
        return value
    if isinstance(value, list) and parts:
        return [_without_injected(item, part) for item, part in zip(value, _item_types(parts, len(value)), strict=False)]
    if not isinstance(value, dict):
        return value
    if parts:  # a mapping of keys to values
        return {key: _without_injected(item, parts[-1]) for key, item in value.items()}
    fields = _fields(annotation) if isinstance(annotation, type) else {}
    known = {key: field.type for name, field in fields.items() for key in (name, *field.aliases)}
    return {key: _without_injected(item, known.get(key)) for key, item in value.items() if key not in known or not _is_injected(known[key])}


def _item_types(parts: tuple[Any, ...], size: int) -> Sequence[Any]:
    """Return the type of each item of a list or tuple."""
    return parts if len(parts) == size and parts[-1] is not ... else [parts[0]] * size


# ---------------------------------------------------------------------------------------------- inside a graph


def _write_nothing(_: Any) -> None:
    """A stream writer outside a graph, which does nothing."""


def tool_runtime(context: InjectionContext) -> Any:
    """Return the `ToolRuntime` of a call."""
    kind = graph_class("ToolRuntime")
    graph = graph_runtime()
    values = {
        **{name: getattr(graph, name, None) for name in ("context", "store", "execution_info", "server_info")},
        "state": {"messages": list(context.messages)},
        "config": context.config,
        "stream_writer": getattr(graph, "stream_writer", _write_nothing),
        "tool_call_id": context.call.id,
        "tools": list(context.tools),
    }
    return kind(**{field.name: values[field.name] for field in dataclasses.fields(kind) if field.name in values})
