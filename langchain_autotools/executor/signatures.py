"""Which parameters of a tool's function the model supplies, under which keys its schema reads them."""

import dataclasses
import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from json import dumps
from typing import Annotated, Any, Final, Literal, get_args, get_origin

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.callbacks.manager import BaseRunManager
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic.v1 import BaseModel as BaseModelV1
from pydantic.v1 import create_model as create_model_v1
from typing_extensions import TypeAliasType, Unpack, is_typeddict

from ..compat import graph_class, graph_runtime
from ..errors import ConfigurationError
from ..messages.calls import ToolCallRecord
from ..strict_json import is_finite
from .context import ToolContext

NOWHERE: Final = object()
"""The value that is not given."""

_NO_ANNOTATION = (inspect.Parameter.empty, Any, object, None)  # LangGraph fills a `runtime` of any type
_TAKEN = frozenset({"args", "kwargs", "callbacks", "run_manager"})
_INSTEAD = "wrap it in a function whose parameters have names"
_BY_NAME = ("callbacks", "run_manager", "runtime")


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function, or a field of a schema.

    Attributes:
        name: Its name.
        annotation: Its type; `inspect.Parameter.empty` where it has none, a string where it cannot be resolved.
        default: Its default, or what makes it a field; `inspect.Parameter.empty` where it is required.
        by_position: Whether it can be given by position only.
        source: What of the program it receives; None for an argument of the model's.
        mark: What says so in the annotation.
    """

    name: str
    annotation: Any
    default: Any = inspect.Parameter.empty
    by_position: bool = False
    source: str | None = None
    mark: Any = None

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is inspect.Parameter.empty


@dataclass(frozen=True)
class Signature:
    """The parameters of a tool's function.

    Attributes:
        function: The function.
        parameters: Those that have a name; the keys of an unpacked TypedDict among them.
        variadic: The names of `*args` and `**kwargs`.
        takes_more: Whether it takes keywords of any other name.
        obstacle: Why a model could not call it with arguments by name; None if it could.
        is_resolved: Whether all its annotations are known where it is, that of what it returns too.
        dispatches: Whether it chooses an implementation by the type of its first argument, which then goes by position.
    """

    function: Callable[..., Any]
    parameters: Sequence[Parameter]
    variadic: Sequence[str]
    takes_more: bool
    obstacle: str | None
    is_resolved: bool
    dispatches: bool

    @classmethod
    def of(cls, function: Callable[..., Any], *, is_method: bool = False) -> "Signature":
        """Read a function.

        Args:
            function: The function.
            is_method: Whether it is a tool's own `_run` or `_arun`, to which core gives the run manager by name.
        """
        found: list[Parameter] = []
        more, obstacle = False, None
        hints = _annotations_of(function)
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):  # of a builtin one: it takes what it takes
            return cls(function, [], [], True, None, True, False)
        for one in parameters:
            annotation = hints.get(one.name, one.annotation)
            typed = _unpacked(annotation) if one.kind is one.VAR_KEYWORD else None
            if one.kind is one.VAR_POSITIONAL:
                obstacle = f"a model gives arguments by name, and *{one.name} takes none: {_INSTEAD}"
            elif one.kind is one.VAR_KEYWORD:
                found += typed or ()
                more = typed is None
            else:
                source, mark = source_of(annotation, one.name, is_method=is_method)
                found.append(Parameter(one.name, annotation, one.default, one.kind is one.POSITIONAL_ONLY, source, mark))
        first = parameters[0].name if parameters else ""
        by_position = next((one.name for one in found if one.by_position and one.source is None), None)
        in_class = inspect.isfunction(function) and "." in function.__qualname__.rpartition("<locals>.")[2]
        if in_class and first in ("self", "cls"):
            obstacle = "it is a method without its object: give that of an object, as in [thing.method]"
        elif by_position is not None:
            obstacle = f"its parameter {by_position!r} cannot be given by name: {_INSTEAD}"
        variadic = [one.name for one in parameters if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
        is_resolved = not any(isinstance(hint, str) for hint in hints.values())
        return cls(function, found, variadic, more, obstacle, is_resolved, hasattr(function, "dispatch") and hasattr(function, "registry"))

    @property
    def is_plain(self) -> bool:
        """Whether LangChain's core reads all of it: no name is one of pydantic's or its own, no keyword is free, each type is known."""
        names = [one.name for one in self.parameters]
        return (
            self.is_resolved
            and not self.variadic
            and not any(name.startswith("_") or name in _TAKEN or hasattr(BaseModel, name) for name in names)
        )

    def of_models(self) -> list[Parameter]:
        """Return the parameters whose arguments a model writes, without those that `functools.partial` has bound."""
        bound = self.function.keywords if isinstance(self.function, functools.partial) else {}
        return [one for one in self.parameters if one.source is None and one.name not in bound]

    def bind(self, values: Mapping[str, Any], supply: Callable[[Parameter], Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments by position and by keyword.

        Args:
            values: The validated values by name. One that has no parameter goes into the keywords.
            supply: Returns the program's value of a parameter, or `NOWHERE`.
        """
        rest, args = dict(values), list[Any]()
        for one in self.parameters:
            value = NOWHERE if one.source is None else supply(one)
            if value is NOWHERE and not one.by_position:
                continue  # an argument of the model's, where it is in `rest`, or the default
            if value is NOWHERE:
                value = rest.pop(one.name, one.default)
            if one.by_position:
                args.append(value)
            else:
                rest[one.name] = value
        if self.dispatches and self.parameters and not args and self.parameters[0].name in rest:
            args.append(rest.pop(self.parameters[0].name))
        return args, rest


def _annotations_of(function: Any) -> dict[str, Any]:
    """Return the annotations of a function's parameters or of a class, each resolved by itself where they cannot be resolved together."""
    while isinstance(function, functools.partial):
        function = function.func
    holder = function if inspect.isroutine(function) or isinstance(function, type) else type(function).__call__
    try:
        return typing.get_type_hints(holder, include_extras=True)
    except Exception:  # one of them is a name that exists only for type checkers
        names = {**getattr(inspect.unwrap(holder), "__globals__", {})}
        written = getattr(holder, "__annotations__", {})
        return {name: _resolved(annotation, names) for name, annotation in written.items()}


def _resolved(annotation: Any, names: dict[str, Any]) -> Any:
    alone = types.SimpleNamespace(__annotations__={"it": annotation})
    try:
        return typing.get_type_hints(alone, globalns=names, include_extras=True)["it"]
    except Exception:
        return annotation


def _unpacked(annotation: Any) -> list[Parameter] | None:
    """Return the keys of `**kwargs: Unpack[...]` as parameters; None for other keywords."""
    typed = next(iter(get_args(annotation)), None) if get_origin(annotation) in (Unpack, typing.Unpack) else None
    if typed is None or not is_typeddict(typed):
        return None
    found = []
    for name, hint in _annotations_of(typed).items():
        said = get_origin(hint)  # a class whose annotations are texts does not know it itself
        inner = get_args(hint)[0] if said in (typing.Required, typing.NotRequired) else hint
        required = said is typing.Required or (said is not typing.NotRequired and name in typed.__required_keys__)
        source, mark = source_of(inner)
        found.append(Parameter(name, inner, inspect.Parameter.empty if required else NOWHERE, False, source, mark))
    return found


def _marks(annotation: Any) -> Iterator[Any]:
    """Yield an annotation, its alternatives, and their metadata."""
    if isinstance(annotation, TypeAliasType):
        annotation = annotation.__value__
    yield annotation
    origin = get_origin(annotation)
    yield origin
    yield from getattr(annotation, "__metadata__", ())
    if origin is Annotated:
        yield from _marks(annotation.__origin__)
    elif origin is typing.Union or origin is types.UnionType:
        for alternative in get_args(annotation):
            yield from _marks(alternative)
    elif origin is list and get_args(annotation)[0] is BaseCallbackHandler:
        yield BaseCallbackHandler


def source_of(annotation: Any, name: str = "", *, is_method: bool = False) -> tuple[str | None, Any]:
    """Return what of the program a parameter receives, with the mark that says so; None for an argument of the model's."""
    marks = list(_marks(annotation))
    kinds = {
        "context": ToolContext,
        "runtime": graph_class("ToolRuntime"),
        "call_id": InjectedToolCallId,
        "store": graph_class("InjectedStore"),
        "state": graph_class("InjectedState"),
        "injected": InjectedToolArg,
        "config": RunnableConfig,  # a TypedDict: no class for `isinstance`
        "run_manager": BaseRunManager,
        "callbacks": (BaseCallbackManager, BaseCallbackHandler),
    }
    for source, kind in kinds.items():
        for mark in marks if kind is not None else ():
            is_of = kind is not RunnableConfig and (isinstance(mark, kind) or (isinstance(mark, type) and issubclass(mark, kind)))
            if mark is kind or is_of:
                return source, mark
    untyped = _NO_ANNOTATION if name == "runtime" or (is_method and name == "run_manager") else _NO_ANNOTATION[:1]
    return (name if name in _BY_NAME and any(annotation is one for one in untyped) else None), None


def context_parameter(function: Callable[..., Any]) -> str | None:
    """Return the name of a function's parameter of type `ToolContext`; None if it has none."""
    hints = _annotations_of(function)
    return next((name for name, hint in hints.items() if name != "return" and source_of(hint)[0] == "context"), None)


# ---------------------------------------------------------------------------------------------- injection
# What the program supplies to a call: the values of the parameters that are not the model's.


@dataclass(frozen=True)
class InjectionContext:
    """The values that can be injected into a call.

    Attributes:
        call: The call.
        config: The configuration that the tool is invoked with.
        messages: The conversation so far, with the AI message that made the call.
        tools: All tools of the executor.
        progress: The `ToolContext` of the call; None where it has none.
    """

    call: ToolCallRecord
    config: RunnableConfig
    messages: Sequence[BaseMessage]
    tools: Sequence[BaseTool]
    progress: ToolContext | None = None


def supply(parameter: Parameter, context: InjectionContext) -> Any:
    """Return the program's value of a parameter; `NOWHERE` where only core's run of the tool knows one, or nobody does.

    Raises:
        ConfigurationError: A required one is not known here.
    """
    if parameter.source == "context":
        return NOWHERE if context.progress is None else context.progress
    if parameter.source == "config":
        return context.config
    if parameter.source == "call_id":
        return context.call.id
    if parameter.source == "runtime":
        return tool_runtime(context) if graph_class("ToolRuntime") is not None else NOWHERE
    if parameter.source == "store":
        store = getattr(graph_runtime(), "store", None)
        return _needed(parameter, store, "a store, which only a graph compiled with one has")
    if parameter.source == "state":
        state = {"messages": list(context.messages)}
        field = getattr(parameter.mark, "field", None)
        needs = f"the graph state {field!r}; outside a graph's own tool node the state is the messages"
        return state if field is None else _needed(parameter, state.get(field), needs)
    return NOWHERE


def _needed(parameter: Parameter, value: Any, needs: str) -> Any:
    if value is not None:
        return value
    if not parameter.required:
        return NOWHERE
    raise ConfigurationError(f"the tool cannot run here: its argument {parameter.name!r} needs {needs}")


def tool_runtime(context: InjectionContext) -> Any:
    """Return the `ToolRuntime` of a call."""
    kind = graph_class("ToolRuntime")
    graph = graph_runtime()
    values = {
        **{name: getattr(graph, name, None) for name in ("context", "store", "execution_info", "server_info")},
        "state": {"messages": list(context.messages)},
        "config": context.config,
        "stream_writer": getattr(graph, "stream_writer", lambda _: None),
        "tool_call_id": context.call.id,
        "tools": list(context.tools),
    }
    return kind(**{field.name: values[field.name] for field in dataclasses.fields(kind) if field.name in values})


# ---------------------------------------------------------------------------------------------- schemas
#
# How a schema reads arguments: the keys under which each field is read.

Path = tuple[int | str, ...]
"""Keys, from the outside in."""


@dataclass(frozen=True)
class ReadAs:
    """How a schema reads an argument.

    Attributes:
        field: The field's name.
        annotation: Its type.
        required: Whether it must be given.
        paths: The keys under which it is read, the preferred one first.
    """

    field: str
    annotation: Any
    required: bool
    paths: Sequence[Path]


def is_v1(model: Any) -> bool:
    """Whether a class is a model of pydantic's version 1."""
    return isinstance(model, type) and issubclass(model, BaseModelV1)


def fields_of(schema: Any) -> Mapping[str, ReadAs]:
    """Return the fields of a pydantic model of either version, dataclass or TypedDict, by name."""
    if is_v1(schema):
        hints, by_name = _annotations_of(schema), schema.__config__.allow_population_by_field_name
        return {
            name: ReadAs(name, hints.get(name, Any), bool(field.required), [(name,), (field.alias,)] if by_name else [(field.alias,)])
            for name, field in schema.__fields__.items()
        }
    fields: Mapping[str, FieldInfo] = getattr(schema, "__pydantic_fields__", {})
    config = getattr(schema, "model_config", None) or getattr(schema, "__pydantic_config__", {})
    newer = config if "validate_by_alias" in ConfigDict.__annotations__ else {}  # before 2.11 pydantic passes over what it does not know
    by_name = bool(config.get("populate_by_name") or newer.get("validate_by_name"))
    by_alias = newer.get("validate_by_alias") is not False
    if fields:
        return {
            name: ReadAs(
                name,
                info.rebuild_annotation(),
                info.is_required(),
                [(name,)] if info.validation_alias is None else _paths(name, info.validation_alias, by_name, by_alias),
            )
            for name, info in fields.items()
        }
    if dataclasses.is_dataclass(schema) or is_typeddict(schema):
        return {name: ReadAs(name, annotation, True, [(name,)]) for name, annotation in _annotations_of(schema).items()}
    return {}


def _paths(name: str, alias: Any, by_name: bool, by_alias: bool) -> list[Path]:
    choices = [] if not by_alias else alias.choices if isinstance(alias, AliasChoices) else [alias]
    paths: list[Path] = [tuple(one.path) if isinstance(one, AliasPath) else (one,) for one in choices]
    return [(name,), *paths] if by_name or not paths else sorted(paths, key=len)


def put(data: Any, path: Path, value: Any) -> None:
    """Set a value inside nested objects and lists, which are made where they are missing."""
    for key, following in pairwise(path):
        empty: Any = [] if isinstance(following, int) else {}
        if isinstance(data, list):
            data.extend([None] * (int(key) + 1 - len(data)))
            data[int(key)] = data[int(key)] or empty
        else:
            data.setdefault(key, empty)
        data = data[key]
    if isinstance(data, list):
        data.extend([None] * (int(path[-1]) + 1 - len(data)))
    data[path[-1]] = value


def found_at(data: Any, path: Path) -> Any:
    """Return the value inside nested objects and lists, or `NOWHERE`."""
    for key in path:
        try:
            data = data[key]
        except (KeyError, IndexError, TypeError):
            return NOWHERE
    return data


def _absent() -> Any:
    """Return what stands for an argument that is passed only where it is given."""
    return NOWHERE


def schema_of(signature: Signature, name: str, descriptions: Mapping[str, str]) -> type[BaseModel]:
    """Return a class that validates a function's arguments. Its fields have names of their own: a parameter may have any name."""
    fields: dict[str, Any] = {}
    for number, one in enumerate(signature.of_models()):
        annotation = Any if one.annotation is inspect.Parameter.empty else one.annotation
        if isinstance(annotation, str):
            raise NameError(f"the type {annotation!r} of its parameter {one.name!r} is not to be found")
        keys: dict[str, Any] = dict.fromkeys(("alias", "validation_alias", "serialization_alias"), one.name)
        told = next((one for one in getattr(annotation, "__metadata__", ()) if isinstance(one, str)), None)
        if description := descriptions.get(one.name) or told:
            keys["description"] = description
        if isinstance(one.default, FieldInfo):
            field = FieldInfo.merge_field_infos(one.default, **keys)
        elif one.default is NOWHERE:
            field = Field(default_factory=_absent, **keys)
        else:
            field = Field(... if one.required else one.default, **keys)
        fields[f"argument_{number}"] = (annotation, field)
    return create_model(name, __config__=ConfigDict(arbitrary_types_allowed=True), **fields)


class CheckedSchema(dict[str, Any]):
    """The JSON schema that declares a tool whose arguments are checked by other means.

    Attributes:
        problem: Returns what is wrong with arguments; None if nothing is.
    """

    def __init__(self, declared: Mapping[str, Any], problem: Callable[[Mapping[str, Any]], str | None]) -> None:
        super().__init__(declared)
        self.problem = problem


def is_own(schema: Any) -> bool:
    """Whether a class is one of `schema_of`."""
    return getattr(schema, "__module__", None) == __name__


def subset(name: str, schema: Any, fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the JSON schema of some fields of a class, by the names under which they are declared."""
    if is_v1(schema):
        older: dict[str, Any] = {}
        for number, (shown, field) in enumerate(fields.items()):
            known = schema.__fields__[field]
            info = copy(known.field_info)
            info.alias = shown
            older[f"argument_{number}"] = (known.outer_type_ if known.required and not known.allow_none else known.outer_type_ | None, info)
        return dict(create_model_v1(name, **older).schema())
    newer: dict[str, Any] = {}
    for number, (shown, field) in enumerate(fields.items()):
        known = schema.__pydantic_fields__[field]
        factory = known.default_factory or (None if is_finite(known.default) else _absent)  # pydantic would write null into a list
        given: dict[str, Any] = {"default": known.default} if factory is None else {"default_factory": factory}
        info = Field(**given, alias=shown, description=known.description)
        info.metadata = known.metadata
        newer[f"argument_{number}"] = (known.annotation, info)
    config = ConfigDict(arbitrary_types_allowed=True, alias_generator=schema.model_config.get("alias_generator"))
    return dict(create_model(name, __config__=config, **newer).model_json_schema())


def takes_anything(model: Any) -> bool:
    """Whether a model keeps values of names that it does not know."""
    extra = model.__config__.extra.value if is_v1(model) else model.model_config.get("extra")
    return bool(extra == "allow")


def misnamed(value: Any, made: Any) -> Iterator[str]:
    """Yield the errors for names in nested models that these would drop: field names accepted only by an alias."""
    if isinstance(value, Mapping) and (reads := fields_of(type(made))):
        for name, read in reads.items():
            keys = {str(path[0]) for path in read.paths}
            if name in value and name not in keys:
                yield f"{name!r} is taken under the name {' or '.join(map(repr, sorted(keys)))} only"
            for key in keys & value.keys():
                yield from misnamed(value[key], getattr(made, name, None))
    elif isinstance(value, Mapping) and isinstance(made, Mapping):
        for key in value.keys() & made.keys():
            yield from misnamed(value[key], made[key])
    elif isinstance(value, list) and isinstance(made, list | tuple):
        for one, other in zip(value, made, strict=False):
            yield from misnamed(one, other)


# ---------------------------------------------------------------------------------------------- nested models


def special_inside(annotation: Any, visited: set[Any]) -> Iterator[str]:
    """Yield the names of injected fields nested inside an annotation, and "" for literal members of enumerations."""
    if isinstance(annotation, TypeAliasType):
        annotation = annotation.__value__
    if get_origin(annotation) is Literal:
        yield from ("" for value in get_args(annotation) if isinstance(value, Enum))
    elif not isinstance(annotation, type) or get_args(annotation):
        for part in get_args(annotation):
            yield from special_inside(part, visited)
    elif annotation not in visited:
        visited.add(annotation)
        for name, read in fields_of(annotation).items():
            keys = (name, *(str(path[0]) for path in read.paths))
            yield from keys if source_of(read.annotation)[0] else special_inside(read.annotation, visited)


Leaf = Callable[[Any, Any], Any]
"""A function that returns the value of a type that holds no others, from its value in JSON and the type."""


def as_member(value: Any, annotation: Any) -> Any:
    """Return the member of an enumeration that a literal asks for, where JSON has its value; other values unchanged."""
    choices = get_args(annotation) if get_origin(annotation) is Literal else ()
    if any(type(one) is type(value) and one == value for one in choices):
        return value
    return next((one for one in choices if isinstance(one, Enum) and type(one.value) is type(value) and one.value == value), value)


def as_strict(value: Any, annotation: Any) -> Any:
    """Return what a strict schema takes, where JSON has a text or a number: a date, a member of an enumeration."""
    member = as_member(value, annotation)
    if member is not value:
        return member
    try:
        return TypeAdapter(annotation, config=ConfigDict(arbitrary_types_allowed=True)).validate_json(dumps(value), strict=True)
    except Exception:  # it is not valid, which the schema itself says better
        return value


def as_annotated(value: Any, annotation: Any, leaf: Leaf | None = None) -> Any:
    """Return plain data for an annotation: without values for nested injected fields, and each value in it changed by `leaf`, if given."""
    if isinstance(annotation, TypeAliasType):
        annotation = annotation.__value__
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return as_annotated(value, parts[0], leaf)
    if origin is typing.Union or origin is types.UnionType:
        if not isinstance(value, dict | list) and any(type(value) is part for part in parts):
            return value
        for part in parts:
            value = as_annotated(value, part, leaf)
        return value
    if isinstance(value, list) and parts and origin is not Literal:
        kinds = parts if len(parts) == len(value) and parts[-1] is not ... else [parts[0]] * len(value)
        items = [as_annotated(item, kind, leaf) for item, kind in zip(value, kinds, strict=False)]
        return origin(items) if leaf is as_strict and origin in (tuple, set, frozenset) else items
    if not isinstance(value, dict):
        return value if leaf is None else leaf(value, annotation)
    if parts:  # a mapping of keys to values
        return {key: as_annotated(item, parts[-1], leaf) for key, item in value.items()}
    fields = fields_of(annotation) if isinstance(annotation, type) else {}
    known = {key: read.annotation for name, read in fields.items() for key in (name, *(path[0] for path in read.paths))}
    left = {key: item for key, item in value.items() if key not in known or not source_of(known[key])[0]}
    made = {key: as_annotated(item, known[key], leaf) if key in known else item for key, item in left.items()}
    return _instance(made, annotation) if leaf is as_strict and dataclasses.is_dataclass(annotation) else made


def _instance(value: dict[str, Any], kind: Any) -> Any:
    """Return an instance of a dataclass, which a strict schema asks for; the value itself where it is not valid."""
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError:
        return value
