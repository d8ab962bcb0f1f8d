"""Metadata of a turn for callback handlers: `generation_info` and `llm_output`.

All of it stands in the message's `response_metadata` too: LangChain's core puts both back there, which must change nothing.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ..messages.metadata import KEY

_OF_END = ("finish_reason", "logprobs")
_OF_STREAM = (*_OF_END, "model_name", "system_fingerprint", "service_tier")
_OF_MESSAGE = frozenset({*_OF_END, KEY, "headers", "output_version"})


def generation_info(metadata: Mapping[str, Any], *, streamed: bool = False) -> dict[str, Any] | None:
    """Return the finish reason of a turn; for a streamed one, which has no `llm_output`, also the model."""
    return {name: metadata[name] for name in (_OF_STREAM if streamed else _OF_END) if name in metadata} or None


def llm_output(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata of the reply: the model's name, token counts in the vendor's form, ids."""
    return {name: value for name, value in metadata.items() if name not in _OF_MESSAGE}


def combined_outputs(outputs: Iterable[Mapping[str, Any] | None]) -> dict[str, Any]:
    """Return the `llm_output` of several prompts: the sum of their tokens, and the first one's model."""
    known = [output for output in outputs if output]  # of streams there is none
    usages = [output["token_usage"] for output in known if isinstance(output.get("token_usage"), Mapping)]
    combined: dict[str, Any] = {"token_usage": _sum(usages)} if usages else {}
    for name in ("model_name", "system_fingerprint"):
        combined |= next(({name: output[name]} for output in known if output.get(name)), {})
    return combined


def _sum(usages: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sum of nested counts; for other values the first."""
    total: dict[str, Any] = {}
    for usage in usages:
        for name, value in usage.items():
            if isinstance(value, Mapping):
                total[name] = _sum([total.get(name) or {}, value])
            elif isinstance(value, int | float) and not isinstance(value, bool):
                total[name] = (total.get(name) or 0) + value
            else:
                total.setdefault(name, value)
    return total
