"""Tools made of functions that take the raw JSON text of a call's arguments, as in hand-written loops."""

from collections.abc import Callable, Iterable, Mapping
from inspect import getdoc, iscoroutinefunction
from typing import Any

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from ..errors import ConfigurationError
from .context import ToolContext

_ANYTHING: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": True}


class _RawFunction(BaseTool):
    """A function that takes the text of the arguments."""

    function: Any

    def _run(self, /, autotools_context: ToolContext, **arguments: Any) -> Any:
        return self.function(autotools_context.call.arguments)


class _AsyncRawFunction(_RawFunction):
    """An asynchronous function that takes the text of the arguments."""

    def _run(self, /, autotools_context: ToolContext, **arguments: Any) -> Any:
        raise NotImplementedError

    async def _arun(self, /, autotools_context: ToolContext, **arguments: Any) -> Any:
        return await self.function(autotools_context.call.arguments)


def raw_functions(functions: Mapping[str, Callable[[str], Any]], declarations: Iterable[Any] = ()) -> list[BaseTool]:
    """Return tools made of functions that take the JSON text of their arguments and parse it themselves.

    The text is one complete JSON object: what is not is answered with an error, and the function is not called. It is the text that the
    model wrote, unless a key stands twice in one of its objects, or the call was decided about (approved, edited, resumed). The function
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
