"""Conversion of lists and mappings of tools and functions to `{name: BaseTool}`."""

import functools
import inspect
import logging
import pkgutil
import sys
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, cast

from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, StructuredTool, convert_runnable_to_tool

from ..compat import writes_functions
from ..errors import ConfigurationError
from ..pickling import refuse, unportable
from .names import own_name
from .signatures import check_signature
from .sources import GivenAsTool, ToolSource
from .wrapped import tool_inside, wrapped

_logger = logging.getLogger("langchain_autotools")

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

    Args:
        tools: A list of tools, or a mapping of name to tool. A tool is a `BaseTool`, a function or another callable
            (synchronous or asynchronous), or a `Runnable` that LangChain can convert.

    Raises:
        ConfigurationError: something is not a tool, or two have one name.
    """
    if isinstance(tools, Mapping):
        return {key: as_tool(value, _valid_name(key)) for key, value in tools.items()}
    found: dict[str, BaseTool] = {}
    for value in chain.from_iterable(one.tools() if isinstance(one, ToolSource) else (one,) for one in tools):
        tool = as_tool(value)
        if tool.name in found:
            raise ConfigurationError(f"two tools are named {tool.name!r}; give them names of their own with a mapping: {{name: tool}}")
        found[tool.name] = tool
    return found


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
    check_signature(value)
    inside = tool_inside(value)
    if inside is not None and inside is not value:
        check_signature(inside)
        value = wrapped(value, inside)
    if isinstance(value, BaseTool):
        return value if name in (None, value.name) else value.model_copy(update={"name": name})
    if isinstance(value, Mapping | type):
        raise ConfigurationError(f"{_described_value(value)} {_DECLARATION}")
    if not isinstance(value, Runnable) and not callable(value):
        raise ConfigurationError(f"{_described_value(value)} is not a tool: pass a function or a BaseTool")
    name = name or _callable_name(value)
    try:
        if isinstance(value, Runnable):
            return convert_runnable_to_tool(value, name=name)
        return _from_callable(value, name)
    except Exception as error:  # langchain and pydantic raise whatever they meet in a signature
        raise ConfigurationError(f"{_described_value(value)} cannot be made a tool: {error}") from error


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
    function = _given_by_name(called, source) if called is not source or _takes_any_name(source) else source
    documented = bool(inspect.getdoc(source))
    asynchronous = inspect.iscoroutinefunction(source)

    def make(parse_docstring: bool) -> BaseTool:
        return StructuredTool.from_function(
            func=None if asynchronous else function,
            coroutine=function if asynchronous else None,
            name=name,
            description=None if documented else "",
            parse_docstring=parse_docstring,
        )

    untyped = [name for name, parameter in inspect.signature(function).parameters.items() if parameter.annotation is parameter.empty]
    missing = [*([] if documented else ["no docstring"]), *([f"no type hints of {', '.join(untyped)}"] if untyped else [])]
    if missing:
        _tell_once(f"the tool {name!r} has {' and '.join(missing)}: the model has only names to go by")
    try:
        return make(documented)
    except ValueError:  # the docstring describes arguments that the signature does not have
        return make(False)


@functools.lru_cache(1_000)
def _tell_once(text: str) -> None:
    _logger.warning(text)


def _takes_any_name(function: Callable[..., Any]) -> bool:
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in inspect.signature(function).parameters.values())


def _given_by_name(called: Callable[..., Any], source: Callable[..., Any]) -> Callable[..., Any]:
    """Return a plain function (the only kind that LangChain inspects) with only the parameters that a model can set.

    Args:
        called: The function, or a partial of it.
        source: The function, which has the annotations.
    """
    bound = called.keywords if isinstance(called, functools.partial) else {}
    signature = inspect.signature(called)
    left = [parameter for parameter in signature.parameters.values() if parameter.name not in bound]
    parameters = [parameter for parameter in left if parameter.kind is not parameter.VAR_KEYWORD]
    hints = typing.get_type_hints(source, include_extras=True)

    async def acall(*args: Any, **kwargs: Any) -> Any:
        return await called(*args, **kwargs)

    def plain(*args: Any, **kwargs: Any) -> Any:
        return called(*args, **kwargs)

    call: Any = acall if inspect.iscoroutinefunction(source) else plain
    call.__name__ = call.__qualname__ = str(getattr(source, "__name__", "tool"))
    call.__doc__ = inspect.getdoc(source)
    call.__annotations__ = {parameter.name: hints[parameter.name] for parameter in parameters if parameter.name in hints}
    call.__signature__ = signature.replace(parameters=parameters)
    return call  # type: ignore[no-any-return]


# ---------------------------------------------------------------------------------------------- pickling


@dataclass(frozen=True)
class _Reference:
    """A reference to a tool by the module and name under which it is defined, as pickle does for functions."""

    module: str
    name: str

    def tool(self) -> Any:
        return pkgutil.resolve_name(f"{self.module}:{self.name}")


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
    return _change_each(lambda value: value.tool() if isinstance(value, _Reference) else value, tools)


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
