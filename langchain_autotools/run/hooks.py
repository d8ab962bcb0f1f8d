"""The wrappers that the settings of a model and a call bring. A call that has none imports none of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..executor.steps import CallWrapper
from .keywords import CallSettings
from .turn_wrappers import TurnWrapper


def needs_run(model: Any, keywords: Mapping[str, Any]) -> bool:
    """Whether a call of a model without tools is a run, too: something stands around its turns, or is checked before its request."""
    own = bool(model.fallbacks) or bool(model.middleware) or model.before_turn is not None or model.max_cost is not None
    given = keywords.get("before_turn"), keywords.get("output_check"), keywords.get("max_cost")
    return own or given != (None, None, None)


def with_middleware(tools: Any, middleware: Any) -> dict[str, Any]:
    """Return a model's fields for middleware, which is checked, and for tools, with those that middleware brings.

    Raises:
        ConfigurationError: Something is no middleware, or needs what a run does not have.
    """
    from .middleware import checked_middleware, with_brought_tools  # here, because it costs every other program its import

    checked = checked_middleware(middleware)
    return {"middleware": checked, "tools": with_brought_tools(tools, checked)}


def turn_hooks(call: CallSettings) -> Sequence[TurnWrapper]:
    """Return the wrappers of turns that the settings of a call bring."""
    hooks: list[TurnWrapper] = []
    if call.before_turn is not None:
        from .before_turn import BeforeTurn

        hooks.append(BeforeTurn(call.before_turn))
    if call.output_check is not None:
        hooks.append(call.output_check)
    if call.middleware:
        from .middleware import MODEL_HOOKS, with_hook
        from .model_middleware import ModelMiddleware

        around = with_hook(call.middleware, MODEL_HOOKS)
        hooks += [ModelMiddleware(around)] if around else []
    return hooks


def call_hooks(call: CallSettings, inner: CallWrapper | None = None) -> Sequence[CallWrapper]:
    """Return the wrappers of calls that the settings of a call bring, the outermost first: `inner`, for models and agents as tools."""
    own = () if inner is None else (inner,)
    if not call.middleware:
        return own
    from .middleware import TOOL_HOOKS, with_hook
    from .tool_middleware import call_wrapper

    return [*own, *(call_wrapper(one) for one in with_hook(call.middleware, TOOL_HOOKS))]
