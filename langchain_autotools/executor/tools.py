"""How tools are made of whatever a program gives as tools."""

import functools
import inspect
import logging
import pkgutil
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from inspect import getdoc, iscoroutinefunction
from typing import Any, TypeVar, cast

from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, StructuredTool, convert_runnable_to_tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from ..compat import described_parameters, writes_functions
from ..errors import ConfigurationError
from ..pickling import refuse, unportable
from .context import ToolContext
from .names import OtherwiseNamed, own_name
from .signatures import Signature, schema_of
from .tool import WrappedTool, as_wrapped_tool, declared, tool_inside


class ToolSource(ABC):
    """A source of tools. A model reads it anew between runs when it has changed, and an executor when it is made."""

    @abstractmethod
    def tools(self) -> Sequence[BaseTool]:
        """Return the tools, as they are now."""

    @abstractmethod
    def is_changed(self) -> bool:
        """Whether `tools` would return others than at its last call."""


class GivenAsTool:
    """A model or an agent, which can be given as a tool: its method `as_tool` takes a name and a description."""


class SourceTool(StructuredTool, OtherwiseNamed):
    """A tool of a source: an asynchronous one that works on any event loop."""

    other_names: tuple[str, ...] = ()
    """Further names under which rules and models may mean it: those that its owner gave it."""
    check_continued: Any = Field(default=None, exclude=True, repr=False)
    """Raises if a call that waits cannot go on with what was decided, a `ContinuedRun`; None where no call of the tool waits."""

    definition: Any = Field(default=None, exclude=True, repr=False)
    """What its source lists of it, a mapping of JSON data to which an approval of a call is bound, but for what is in the mapping
    under `unbound`. `description` and `annotations` are shown. None: an approval is bound to nothing of it but the name."""

    listed: Any = Field(default=None, exclude=True, repr=False)
    """An asynchronous function that asks the source for its list and returns the definition as it is there now, or None where it is not. It
    is called directly before an approved call runs, with the definition, and with the call's `timeout`. None: the definition never
    changes."""

    repeatable: bool = Field(default=False, exclude=True, repr=False)
    """Whether a call may be repeated where it is not known what it did."""


def source_tool(tool: BaseTool) -> SourceTool | None:
    """Return a tool as one of a source, also inside a wrapper; None for any other tool."""
    inside = getattr(tool, "inside", tool)
    return inside if isinstance(inside, SourceTool) else None


# ---------------------------------------------------------------------------------------------- tools
# Conversion of lists and mappings of tools and functions to `{name: BaseTool}`.


_logger = logging.getLogger("langchain_autotools")

_tell_once = functools.lru_cache(1_000)(_logger.warning)
_T = TypeVar("_T")
_DECLARATION = "is a declaration: it says what a tool takes, not what it does. Pass a function or a BaseTool, or declare it with bind_tools"


def collected(tools: Any) -> Mapping[str, Any] | list[Any]:
    """Return a user's tools, read once: a mapping unchanged, anything else as a list.

    Raises:
        ConfigurationError: it is neither.
    """
    if isinstance(tools, Mapping):
        return tools
    if isinstance(tools, str | Runnable) or callable(tools) or not isinstance(tools, Iterable):
        raise ConfigurationError(f"tools must be a list of tools or a mapping of name to tool, not {_described_value(tools)}")
    return list(tools)


def tools_by_name(tools: Mapping[str, Any] | list[Any]) -> dict[str, BaseTool]:
    """Return the tools by the names under which a model calls them.

    Of a source, those that cannot be called, or that have the name of another tool, are left out, with a WARNING.

    Args:
        tools: A list of tools, or a mapping of name to tool. A tool is a `BaseTool`, a function or another callable
            (synchronous or asynchronous), or a `Runnable` that LangChain can convert.

    Raises:
        ConfigurationError: something is not a tool, or two that are of no source have one name.
    """
    if isinstance(tools, Mapping):
        return {key: as_tool(value, _valid_name(key)) for key, value in tools.items()}
    made: list[BaseTool] = []
    offered: list[BaseTool] = []
    for number, one in enumerate(tools):
        if not isinstance(one, ToolSource):
            made.append(as_tool(one))
        elif not any(one is other for other in tools[:number]):
            of_source = callable_tools(one.tools())
            made += of_source
            offered += of_source
    found: dict[str, BaseTool] = {}
    for tool in without_equal_names(made, offered, lambda tool: tool.name) if offered else made:
        if tool.name in found:
            raise ConfigurationError(f"two tools are named {tool.name!r}; give them names of their own with a mapping: {{name: tool}}")
        found[tool.name] = tool
    return found


def without_equal_names(tools: Sequence[_T], offered: Sequence[_T], name_of: Callable[[_T], str]) -> list[_T]:
    """Return the tools without those of sources whose name another tool has, too: a WARNING names these.

    Args:
        tools: All tools, in order.
        offered: Those of them that are of sources.
        name_of: Returns the name of a tool.
    """
    of_sources = {id(tool) for tool in offered}
    counted = Counter(map(name_of, offered))
    own = {name_of(tool) for tool in tools if id(tool) not in of_sources}
    equal = {name for name, number in counted.items() if number > 1 or name in own}
    if equal:
        names = ", ".join(map(repr, sorted(equal)))
        _logger.warning("tools of servers are left out, because other tools have their names (mcp_server(prefix=...) helps): %s", names)
    return [tool for tool in tools if id(tool) not in of_sources or name_of(tool) not in equal]


def callable_tools(tools: Mapping[str, Any] | Iterable[Any]) -> Any:
    """Return those of the tools that a model can call, as a mapping or as a list; the others are left out, with a WARNING."""
    named = isinstance(tools, Mapping)
    found: list[tuple[Any, Any]] = []
    for key, value in tools.items() if isinstance(tools, Mapping) else enumerate(tools):
        try:
            found.append((key, value if isinstance(value, ToolSource) else as_tool(value, _valid_name(key) if named else None)))
        except ConfigurationError as error:
            _logger.warning("a tool is left out: %s", error)
    return dict(found) if named else [value for _, value in found]


def _valid_name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"the keys of a tools mapping are the tools' names, not {name!r}")
    return name


def as_tool(value: Any, name: str | None = None) -> BaseTool:
    """Return one tool as a `BaseTool`, named `name` if given.

    A function's docstring becomes the description, its Google-style `Args:` the descriptions of the arguments. Arguments that
    `functools.partial` has bound by keyword are not shown to the model.

    Raises:
        ConfigurationError: `value` has no implementation, no name, or arguments that cannot be described or given by name.
    """
    if isinstance(value, GivenAsTool):
        return cast("Any", value).as_tool(name=name)  # type: ignore[no-any-return]
    inside = tool_inside(value)
    if inside is not None and inside is not value:
        value = as_wrapped_tool(value, declared(inside))
    if isinstance(value, BaseTool):
        named = value if name in (None, value.name) else value.model_copy(update={"name": name})
        return named if isinstance(named, WrappedTool) else declared(named)
    if isinstance(value, Mapping | type):
        raise ConfigurationError(f"{_described_value(value)} {_DECLARATION}")
    if not isinstance(value, Runnable) and not callable(value):
        raise ConfigurationError(f"{_described_value(value)} is not a tool: pass a function or a BaseTool")
    name = name or _callable_name(value)
    try:
        return declared(convert_runnable_to_tool(value, name=name) if isinstance(value, Runnable) else _from_callable(value, name))
    except ConfigurationError:
        raise
    except Exception as error:  # langchain and pydantic raise whatever they meet in a signature
        raise ConfigurationError(f"{_described_value(value)} cannot be made a tool: {error}") from error


def declarable(value: Any) -> Any:
    """Return what declares a tool that a caller may execute: the tool itself, where LangChain's core declares just what can be bound.

    Raises:
        ConfigurationError: A model could not call it.
    """
    inside = tool_inside(value)
    if isinstance(value, GivenAsTool) or isinstance(inside, WrappedTool):
        return as_tool(value)
    if inside is not None:
        return declared(inside, executed=False)
    if isinstance(value, Mapping | type | Runnable) or not callable(value):
        return value
    source = _innermost(value)
    signature = Signature.of(value if isinstance(value, functools.partial) or inspect.isroutine(source) else source.__call__)
    is_plain = signature.is_plain and signature.obstacle is None and not any(one.source for one in signature.parameters)
    return value if is_plain else as_tool(value)


def _callable_name(value: Any) -> str:
    source = _innermost(value)
    name = value.get_name() if isinstance(value, Runnable) else getattr(source, "__name__", type(source).__name__)
    if name == "<lambda>":
        raise ConfigurationError('a lambda has no name a model could call; name it with a mapping: {"add": lambda a, b: a + b}')
    return str(name)


def _described_value(value: object) -> str:
    if isinstance(value, Mapping):
        name = own_name(value) or value.get("title")
        return f"the dict {name!r}" if name else "a dict"
    name = getattr(value, "__name__", None)
    kind = "the class" if isinstance(value, type) else type(value).__name__
    return f"{kind} {name!r}" if name else f"an object of type {kind}"


def _innermost(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _from_callable(value: Any, name: str) -> BaseTool:
    source = _innermost(value)
    if not inspect.isroutine(source):
        source = source.__call__  # an object: its method has the signature and the docstring
    called = value if isinstance(value, functools.partial) else source
    signature = Signature.of(called)
    if signature.obstacle is not None:
        shown = getattr(source, "__qualname__", None) or name
        raise ConfigurationError(f"{shown!r} cannot be called as a tool: {signature.obstacle}")
    documented = bool(inspect.getdoc(source))
    way: dict[str, Any] = {"coroutine": called} if inspect.iscoroutinefunction(source) else {"func": called}
    untyped = [one.name for one in signature.of_models() if one.annotation is inspect.Parameter.empty]
    missing = [*([] if documented else ["no docstring"]), *([f"no type hints of {', '.join(untyped)}"] if untyped else [])]
    if missing:
        _tell_once(f"the tool {name!r} has {' and '.join(missing)}: the model has only names to go by")
    if called is source and signature.is_plain:
        for parse_docstring in [documented, False]:
            # it fails where the docstring describes other arguments, and where core cannot read the signature
            with suppress(Exception):
                description = None if documented else ""
                return StructuredTool.from_function(name=name, description=description, parse_docstring=parse_docstring, **way)
    names = [one.name for one in signature.of_models()]
    description, arguments = described_parameters(source, names)
    if not arguments.keys() <= set(names):
        description, arguments = inspect.getdoc(source) or "", {}
    return StructuredTool(name=name, description=description, args_schema=schema_of(signature, name, arguments), **way)


# ---------------------------------------------------------------------------------------------- pickling


@dataclass(frozen=True)
class _Reference:
    """A reference to a tool by the module and name under which it is defined, as pickle does for functions."""

    module: str
    name: str


def dump_tools(owner: str, tools: Any) -> Any:
    """Return the tools for a pickle: a decorated function (whose schema class is created on the spot) by reference.

    Args:
        owner: The owner of the tools.
        tools: A mapping or a list of tools. Anything else, such as an executor, pickles itself and is returned.

    Raises:
        PicklingError: One of them cannot be pickled.
    """
    dumped = _change_each(_reference, tools)
    problem = unportable(owner, _labelled(dumped))
    if problem is not None:
        tools = dumped = None  # a declaration may hold secrets: a traceback that shows local variables shows none
        refuse(problem)
    return dumped


def _labelled(tools: Any) -> dict[str, Any]:
    if isinstance(tools, Mapping):
        return {f"tools[{key!r}]": value for key, value in tools.items()}
    return {f"tools[{number}] ({_label(value)})": value for number, value in enumerate(tools)} if isinstance(tools, list) else {}


def restore_tools(tools: Any) -> Any:
    """Restore tools from `dump_tools`."""
    return _change_each(lambda one: pkgutil.resolve_name(f"{one.module}:{one.name}") if isinstance(one, _Reference) else one, tools)


def _change_each(change: Callable[[Any], Any], tools: Any) -> Any:
    if isinstance(tools, Mapping):
        return {key: change(value) for key, value in tools.items()}
    return [change(value) for value in tools] if isinstance(tools, Sequence) else tools


def _reference(value: Any) -> Any:
    if not isinstance(value, StructuredTool):
        return value
    function: Any = value.func or value.coroutine
    if not inspect.isfunction(function) or (function.__module__ == "__main__" and writes_functions()):
        return value  # the other process has another program: its pickler writes the tool itself
    module = sys.modules.get(function.__module__)
    place: Any = module
    for part in function.__qualname__.split("."):
        place = getattr(place, part, None)
    names = (name for name, held in vars(module).items() if held is value) if module else ()
    name = function.__qualname__ if place is value else next(iter(names), None)
    return value if name is None else _Reference(function.__module__, name)


def _label(value: Any) -> str:
    name = own_name(value) if isinstance(value, Mapping) else getattr(value, "name", None) or getattr(value, "__name__", None)
    return name or type(value).__name__


# ---------------------------------------------------------------------------------------------- raw functions
# Tools made of functions that take the raw JSON text of a call's arguments, as in hand-written loops.


_ANYTHING: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": True}


class _RawFunction(BaseTool):
    """A function that takes the text of the arguments."""

    function: Any

    def _run(self, context: ToolContext, /, **arguments: Any) -> Any:
        return self.function(context.call.arguments)


class _AsyncRawFunction(_RawFunction):
    """An asynchronous function that takes the text of the arguments."""

    def _run(self, context: ToolContext, /, **arguments: Any) -> Any:
        raise NotImplementedError

    async def _arun(self, context: ToolContext, /, **arguments: Any) -> Any:
        return await self.function(context.call.arguments)


def raw_functions(functions: Mapping[str, Callable[[str], Any]], declarations: Iterable[Any] = ()) -> list[BaseTool]:
    """Return tools made of functions that take the JSON text of their arguments and parse it themselves.

    The text is one complete JSON object: what is not is answered with an error, and the function is not called. It is the text that the
    model wrote, unless a key occurs twice in one of its objects, or the call was decided about (approved, edited, resumed). The function
    then gets the arguments as they were shown and judged, in canonical JSON. Nothing else of it is checked.

    Args:
        functions: The functions by the tools' names; they may be asynchronous.
        declarations: Their declarations: dicts in a vendor's form, or anything else that `bind_tools` accepts. Without
            one a model is told the function's name and its docstring, and nothing of its arguments.

    Raises:
        ConfigurationError: Something is not a function, or a declaration is of none of them.
    """
    if not isinstance(functions, Mapping) or not all(map(callable, functions.values())):
        raise ConfigurationError("raw_functions takes a mapping of tool names to functions of the arguments' JSON text")
    declared = {one["name"]: one for one in (convert_to_openai_tool(declaration)["function"] for declaration in declarations)}
    unknown = declared.keys() - functions.keys()
    if unknown:
        raise ConfigurationError(f"raw_functions declares tools that have no function: {', '.join(sorted(map(repr, unknown)))}")
    return [_tool(name, function, declared.get(name, {})) for name, function in functions.items()]


def _tool(name: str, function: Callable[[str], Any], declared: Mapping[str, Any]) -> BaseTool:
    kind = _AsyncRawFunction if iscoroutinefunction(function) else _RawFunction
    description = declared.get("description") or getdoc(function) or ""
    return kind(name=name, description=description, args_schema=dict(declared.get("parameters") or _ANYTHING), function=function)
