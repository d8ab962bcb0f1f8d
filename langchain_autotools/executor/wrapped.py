"""Tools inside other runnables: `tool.with_retry()`, `tool.with_config(...)`, `tool.with_fallbacks([...])`."""

from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool

_INNER = ("bound", "runnable")


def tool_inside(value: Any) -> BaseTool | None:
    """Return the tool that a runnable wraps; a tool itself for a tool; None for other values."""
    while isinstance(value, Runnable) and not isinstance(value, BaseTool):
        value = next((inner for name in _INNER if isinstance(inner := value.__dict__.get(name), Runnable)), None)
    return value if isinstance(value, BaseTool) else None


class WrappedTool(BaseTool):
    """A tool that is declared like the one inside and invoked through its wrapper."""

    around: Any
    inside: Any

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Invoke the tool through its wrapper."""
        return self.around.invoke(input, config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Like `invoke`, asynchronously."""
        return await self.around.ainvoke(input, config, **kwargs)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        return self.inside._run(*args, **kwargs)


def wrapped(value: Any, inside: BaseTool) -> WrappedTool:
    """Return a runnable around a tool as a tool."""
    same_fields = {name: getattr(inside, name) for name in ("return_direct", "metadata", "tags", "response_format", "extras")}
    schema: Any = inside.args_schema if inside.args_schema is not None else inside.get_input_schema()
    return WrappedTool(name=inside.name, description=inside.description, args_schema=schema, around=value, inside=inside, **same_fields)
