"""What users give to a model, and traces tell of it, where that is the same for all vendors."""

import logging
import os
from collections.abc import Collection, Mapping
from typing import Any

from langchain_core.language_models.base import LangSmithParams

from ...errors import ConfigurationError

__all__ = ["OWN_CLIENTS", "check_output_version", "check_structured", "first_of", "langsmith_params", "log_parallel"]

_logger = logging.getLogger("langchain_autotools")

OWN_CLIENTS = "clients are made from the other settings when they are needed; http_client and http_async_client take your own HTTP clients"
"""Why a constructor refuses a vendor SDK's client."""


def first_of(*names: str) -> str | None:
    """The value of the first environment variable that is set; an empty one is not."""
    return next((value for name in names if (value := os.environ.get(name))), None)


def check_output_version(version: str | None, plain: str) -> None:
    """Refuse an `output_version` that there is not.

    Args:
        version: What the user asks for.
        plain: What content is under "v0".

    Raises:
        ValueError: It is neither None nor "v0" nor "v1".
    """
    if version not in (None, "v0", "v1"):
        raise ValueError(f"output_version={version!r}: there are 'v0' ({plain}) and 'v1' (standard blocks)")


def check_structured(schema: Any, method: str, tools: Any, *, schemaless: Collection[str], beside_tools: Collection[str]) -> None:
    """Refuse arguments of `with_structured_output` that cannot work together.

    Args:
        schema: The schema, or None.
        method: How it is asked for.
        tools: Tools to declare along with it.
        schemaless: The methods that need no schema.
        beside_tools: The methods that leave room for tools.

    Raises:
        ConfigurationError: They cannot.
    """
    if method not in ("json_schema", "function_calling", "json_mode"):
        raise ConfigurationError(f"method={method!r} is none of 'json_schema', 'function_calling' and 'json_mode'")
    if schema is None and method not in schemaless:
        raise ConfigurationError(f"method={method!r} needs a schema")
    if tools and method not in beside_tools:
        raise ConfigurationError("tools go with method='json_schema' only; otherwise declare them with the model's tools=[...]")


def log_parallel(keywords: Mapping[str, Any], wire: str) -> None:
    """Say of a request that several calls in one turn cannot be ruled out, where that was asked for and the wire has no word for it."""
    if keywords.get("parallel_tool_calls") is False and keywords.get("tools"):
        _logger.warning("%s has no parallel_tool_calls: a turn may hold several calls although that is ruled out", wire)


def langsmith_params(provider: str, model: str, temperature: Any, max_tokens: Any, stop: Any) -> LangSmithParams:
    """What traces tell of a request, of the parameters that it is sent with."""
    said = LangSmithParams(ls_provider=provider, ls_model_name=model, ls_model_type="chat")
    if isinstance(temperature, int | float):
        said["ls_temperature"] = temperature
    if isinstance(max_tokens, int):
        said["ls_max_tokens"] = max_tokens
    if stop:
        said["ls_stop"] = [stop] if isinstance(stop, str) else list(stop)
    return said
