"""Objects of LangChain's middleware: which of their hooks a run has, and what else they bring."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ..compat import middleware_types
from ..errors import ConfigurationError
from ..executor import ToolExecutor

MODEL_HOOKS = ("wrap_model_call", "awrap_model_call")
TOOL_HOOKS = ("wrap_tool_call", "awrap_tool_call")
_OTHER_HOOKS = tuple(f"{prefix}{hook}" for hook in ("before_agent", "before_model", "after_model", "after_agent") for prefix in ("", "a"))

_HIDES_CALLS = "InternalCallTransformer"
"""LangChain's transformer of an agent's stream that hides a middleware's own calls of models; no stream of a run has them."""


def checked_middleware(given: Any) -> Sequence[Any]:
    """Return the middleware of a model; raise if one needs what only LangChain's agents have.

    Raises:
        ConfigurationError: One is no middleware, or has other hooks than those around calls, a state or transformers of its own.
    """
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise ConfigurationError(f"middleware must be a list of LangChain's middleware, not {type(given).__name__}")
    objects = list(given)
    for middleware in objects:
        needs = _needs(middleware)
        if needs:
            text = f"{name_of(middleware)} needs {', '.join(needs)}, which only LangChain's agents have: use create_agent"
            raise ConfigurationError(f"{text}, or middleware that has wrap_model_call and wrap_tool_call alone")
        if not has_hook(middleware, MODEL_HOOKS) and not has_hook(middleware, TOOL_HOOKS) and not tools_of(middleware):
            raise ConfigurationError(f"{name_of(middleware)} has neither wrap_model_call nor wrap_tool_call, nor tools: it has no effect")
    return objects


def name_of(middleware: Any) -> str:
    """Return the name of a middleware for error texts."""
    if isinstance(middleware, type):
        return f"the class {middleware.__name__}"
    return str(getattr(middleware, "name", None) or type(middleware).__name__)


def has_hook(middleware: Any, names: Collection[str]) -> bool:
    """Whether a middleware implements one of these methods."""
    base = middleware_types().AgentMiddleware
    own = None if isinstance(middleware, type) else type(middleware)
    return any(getattr(own, name, None) not in (None, getattr(base, name, None)) for name in names)


def with_hook(middleware: Iterable[Any], names: Collection[str]) -> list[Any]:
    """Return the middleware that implements one of these methods."""
    return [one for one in middleware if has_hook(one, names)]


def tools_of(middleware: Any) -> Sequence[Any]:
    """Return the tools that a middleware brings."""
    return tuple(getattr(middleware, "tools", None) or ())


def hook_of(middleware: Any, name: str, *, twin: str) -> Any:
    """Return a method of a middleware.

    Raises:
        ConfigurationError: It implements only the twin for the other kind of run.
    """
    if not has_hook(middleware, [name]):
        kind = "asynchronous" if name.startswith("a") else "synchronous"
        raise ConfigurationError(f"{name_of(middleware)} has {twin} and no {name}: {kind} runs need it")
    return getattr(middleware, name)


def with_brought_tools(tools: Any, middleware: Sequence[Any]) -> Any:
    """Return a model's tools with those that its middleware brings; the same value if they are there."""
    own = tools.tools.values() if isinstance(tools, ToolExecutor) else tools.values() if isinstance(tools, Mapping) else tools or ()
    brought = [tool for one in middleware for tool in tools_of(one) if not any(tool is known for known in own)]
    if not brought:
        return tools
    if isinstance(tools, ToolExecutor):
        made = ToolExecutor([*own, *brought]).with_settings(tools.settings)
        return made if tools.handlers is None else made.with_handlers(tools.handlers, {})
    if isinstance(tools, Mapping):
        return {**tools, **{tool.name: tool for tool in brought}}
    return [*own, *brought]


def _needs(middleware: Any) -> list[str]:
    """Return what a middleware needs that a run does not have."""
    types = middleware_types()
    schema = getattr(middleware, "state_schema", None)
    state = set(_keys(schema)) - set(_keys(types.AgentState))
    needs = [name for name in _OTHER_HOOKS if has_hook(middleware, [name])]
    needs += [f"the state {', '.join(sorted(state))}"] if state else []
    own = [one for one in getattr(middleware, "transformers", None) or () if getattr(one, "__name__", "") != _HIDES_CALLS]
    return needs + (["transformers"] if own else [])


def _keys(schema: Any) -> Iterable[str]:
    return [key for kind in getattr(schema, "__mro__", ()) for key in getattr(kind, "__annotations__", ())]
