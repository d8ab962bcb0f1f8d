"""The format of a structured output for a model and each of its fallbacks, every one in the parameters of its own vendor."""

from collections.abc import Mapping
from typing import Any

from ...errors import ConfigurationError
from ...run.failover_models import FALLBACK_FORMATS


def fallback_formats(model: Any, schema: Any, method: str, strict: bool | None) -> Mapping[str, Any]:
    """Return the keyword of a call by which a run's failover writes the format for whichever model makes a turn.

    Args:
        model: The model that begins the run.
        schema: The schema of the output.
        method: `json_schema` or `json_mode`, as the model has it.
        strict: Whether the server must enforce the schema; None: as the schema says.

    Raises:
        ConfigurationError: A fallback has no such output.
    """
    own = model._format_params(schema, method, strict)
    return {FALLBACK_FORMATS: [own, *(_format_of(fallback, model.tools, schema, method, strict) for fallback in model.fallbacks)]}


def _format_of(fallback: Any, tools: Any, schema: Any, method: str, strict: bool | None) -> dict[str, Any]:
    kind = type(fallback).__name__
    if not hasattr(fallback, "_format_params"):
        raise ConfigurationError(f"the fallback {kind} has no method {method!r} of structured output")
    beside = fallback.model_copy(update={"tools": tools})
    try:
        beside._check_structured(schema, method, None)
        supported = beside._supported_method(method, schema, strict, {})
    except ConfigurationError as error:
        raise ConfigurationError(f"the fallback {kind} cannot take this structured output: {error}") from error
    if supported == "function_calling":
        raise ConfigurationError(f"the fallback {kind} has no method {method!r} of structured output: use method='function_calling'")
    params: dict[str, Any] = beside._format_params(schema, supported, strict)
    return params
