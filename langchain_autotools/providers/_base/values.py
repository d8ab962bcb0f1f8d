"""Checks of parameter values that no vendor accepts, in the constructor and at a call.

What a vendor alone can judge (a temperature of 3, a limit above the model's) goes to the vendor.
"""

from collections.abc import Collection, Mapping
from typing import Any

from pydantic import BaseModel

from ...errors import ConfigurationError
from .checks import Check, check_count

NUMBERS: Mapping[str, Check] = dict.fromkeys(
    ("temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "max_output_tokens", "max_tokens_to_sample", "top_logprobs"),
    check_count,
)
"""Parameters that must not be negative."""

DICTS: Mapping[str, str] = dict.fromkeys(("extra_headers", "extra_query", "extra_body"), "")
"""Parameters that are dicts, each with the likely intended name for an error message."""

_NESTED = ("options", "generation_config", "generationConfig", "model_kwargs")


def _are_texts(value: Any) -> bool:
    texts = value if isinstance(value, Collection) and not isinstance(value, Mapping) else [value]
    return value is None or all(isinstance(text, str) for text in texts)


def check_values(values: Mapping[str, Any], numbers: Mapping[str, Check], dicts: Mapping[str, str]) -> None:
    """Raise if a value cannot work.

    Args:
        values: Parameters by name.
        numbers: The check of each numeric parameter.
        dicts: The parameters that must be dicts.

    Raises:
        ConfigurationError: One cannot.
    """
    for name, value in values.items():
        if name in numbers and isinstance(value, int | float):
            numbers[name](name, value)
        if name == "stop" and not _are_texts(value):
            raise ConfigurationError(f"stop must be a text or a list of texts, not {value!r}")
        if name in dicts and not (value is None or isinstance(value, Mapping | BaseModel)):
            hint = f"; {dicts[name]}" if dicts[name] else ""
            raise ConfigurationError(f"{name} must be a dict, not {value!r}{hint}")
        if name in _NESTED and isinstance(value, Mapping):
            check_values(value, numbers, {})
