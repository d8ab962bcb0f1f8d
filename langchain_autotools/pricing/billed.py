"""What a reply is billed for, in a form that no vendor has, read from a stored message by the shape of its data.

Kinds of usage are named as the price data of the extra `cost` names them. Counts do not overlap: what a detail counts is taken out of
the total that includes it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage

_CACHE = {
    "cache_read": "cache_read_tokens",
    "cache_creation": "cache_write_tokens",
    "ephemeral_5m_input_tokens": "cache_write_5m_tokens",
    "ephemeral_1h_input_tokens": "cache_write_1h_tokens",
}
_MODALITIES = {"audio": "audio", "image": "image", "video": "video", "document": "image"}  # a page of a document is read as an image
_PLAIN = {"text"}  # of a sum that is billed by what is left of it
_REASONING = "reasoning"
_STANDARD = {"", "standard", "default", "auto", "on_demand", "global", "not_available", "unspecified"}
_SEARCHES = {"web_search_requests": "web_searches", "num_requests": "web_searches"}
_FREE = {"web_fetch_requests"}  # billed by the tokens that they bring
_BY_TYPE = {
    "web_search_call": "web_search",
    "file_search_call": "file_search",
    "code_interpreter_call": "code_interpreter",
    "shell_call": "shell",
}
_ALIASES = {"code_execution": "code_interpreter"}  # LangChain's name for it in its own blocks
_COUNTED = {"web_search": "web_searches", "file_search": "storage_searches"}
_IMAGES = {"image", "image_url", "image_generation_call"}
_BY_TIME = {"code_interpreter", "bash_code_execution", "text_editor_code_execution", "shell"}


@dataclass(frozen=True)
class BilledUsage:
    """What one reply is billed for.

    Attributes:
        provider: The provider, as the reply names it.
        model: The model, likewise.
        counts: How much of each kind. No kind includes another.
        input_tokens: The size of the request, on which prices may depend.
        conditions: The conditions that are priced by themselves, such as `{"service_tier": "flex"}`; none for a standard request.
        unknown: Names of what was used and no kind counts.
    """

    provider: str
    model: str
    counts: Mapping[str, int]
    input_tokens: int = 0
    conditions: Mapping[str, str] = field(default_factory=dict)
    unknown: Sequence[str] = ()


def billed_usage(message: AIMessage) -> BilledUsage:
    """Return what the reply that became this message is billed for."""
    metadata = message.response_metadata
    usage, raw = message.usage_metadata, _mapping(metadata.get("usage") or metadata.get("token_usage"))
    conditions = dict(_conditions(metadata, raw))
    tools, unknown = _server_tools(message, metadata, raw)
    counts: dict[str, int] = {}
    if usage is None:
        unknown.append("a reply without usage")
    else:
        tier = conditions.get("service_tier", "")
        read, written = (_details(usage.get(name), tier) for name in ("input_token_details", "output_token_details"))
        total = usage["output_tokens"] + _reasoning_beside(usage, written)
        _add_parts(counts, unknown, "input", usage["input_tokens"], read)
        _add_parts(counts, unknown, "output", total, written)
    known = {name: str(metadata.get(key) or "") for name, key in (("provider", "model_provider"), ("model", "model_name"))}
    size = 0 if usage is None else usage["input_tokens"]
    return BilledUsage(**known, counts={**counts, **tools}, input_tokens=size, conditions=conditions, unknown=unknown)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _details(details: Any, tier: str) -> dict[str, int]:
    """Return the non-zero details of a sum. A tier's own names for them count as the plain ones."""
    prefix, found = f"{tier}_", {}
    for key, count in _mapping(details).items():
        if key != tier and isinstance(count, int) and count:
            found[key.removeprefix(prefix) if tier else key] = count
    return found


def _reasoning_beside(usage: Any, written: Mapping[str, int]) -> int:
    """Return the reasoning tokens that `output_tokens` does not include: the total then counts them beside it."""
    rest = usage["total_tokens"] - usage["input_tokens"] - usage["output_tokens"]
    return rest if 0 < rest == written.get(_REASONING) else 0


def _add_parts(counts: dict[str, int], unknown: list[str], direction: str, total: int, details: Mapping[str, int]) -> None:
    """Add the parts of a sum of tokens, what no detail counts among them."""
    parts: dict[str, int] = {}
    for key, count in details.items():
        part = key if key == _REASONING else _MODALITIES.get(key)
        kind = _CACHE.get(key) or (part and f"{direction}_{part}_tokens")
        if kind:
            parts[kind] = parts.get(kind, 0) + count
        elif key not in _PLAIN:
            unknown.append(f"{key} ({direction} tokens)")
    cached, seen = ({kind for kind in parts if (kind in _CACHE.values()) is cache} for cache in (True, False))
    rest = total - sum(parts.values())
    if (direction == "input" and cached and seen) or rest < 0:
        unknown.append(f"{direction} tokens that several of {', '.join(sorted(parts))} count")
        return
    counts.update({kind: count for kind, count in {f"{direction}_tokens": rest, **parts}.items() if count})


def _conditions(metadata: Mapping[str, Any], raw: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the conditions under which the reply was made that are not the standard ones."""
    tier = _word(metadata.get("service_tier") or raw.get("service_tier"), "service_tier_")
    traffic = _word(metadata.get("traffic_type"), "traffic_type_")
    tier = traffic.removeprefix("on_demand_") if tier in _STANDARD else tier
    if tier not in _STANDARD:
        yield ("processing" if tier == "batch" else "service_tier"), tier
    for name in ("speed", "inference_geo"):
        if (value := _word(raw.get(name))) not in _STANDARD:
            yield name, value


def _word(value: Any, prefix: str = "") -> str:
    return str(value or "").lower().removeprefix(prefix)


def _server_tools(message: AIMessage, metadata: Mapping[str, Any], raw: Mapping[str, Any]) -> tuple[dict[str, int], list[str]]:
    """Return how often each priced tool of the server's was used, and the names of the others that were."""
    counts: dict[str, int] = {}
    unknown: list[str] = []
    reported = _mapping(metadata.get("tool_usage") or raw.get("server_tool_use"))
    for name, amount in _amounts(reported):
        if name in _SEARCHES:
            counts[_SEARCHES[name]] = counts.get(_SEARCHES[name], 0) + amount
        elif name not in _FREE:
            unknown.append(name)
    queries = _mapping(metadata.get("grounding_metadata")).get("web_search_queries")
    if isinstance(queries, Sequence) and queries:
        counts["web_searches"] = 1
        if len(queries) > 1:  # some models are billed for each, others once
            unknown.append(f"web_searches of {len(queries)} queries")
    for name in _items(message, metadata):
        if name in _COUNTED and not (name == "web_search" and _counts_searches(reported)):
            counts[_COUNTED[name]] = counts.get(_COUNTED[name], 0) + 1
        elif name in _BY_TIME:
            unknown.append(f"the time of {name}")
    details = _mapping(_mapping(message.usage_metadata).get("output_token_details"))
    if not details.get("image") and _has_images(message):
        unknown.append("generated images")
    others = {"num_sources_used": raw.get("num_sources_used"), **_mapping(raw.get("server_side_tool_usage"))}
    unknown.extend(name for name, amount in others.items() if amount)
    return counts, list(dict.fromkeys(unknown))


def _counts_searches(reported: Mapping[str, Any]) -> bool:
    """Whether a report says how often the server has searched."""
    return any(name in _SEARCHES or _SEARCHES.keys() & _mapping(amount).keys() for name, amount in reported.items())


def _has_images(message: AIMessage) -> bool:
    return bool(message.additional_kwargs.get("images")) or any(block.get("type") in _IMAGES for block in _blocks(message))


def _amounts(reported: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the non-zero numbers of a report, those of a group of them under the group's name unless they have a known one."""
    for name, amount in reported.items():
        if isinstance(amount, int) and amount:
            yield name, amount
        elif isinstance(amount, Mapping):
            yield from ((key if key in _SEARCHES else name, one) for key, one in amount.items() if isinstance(one, int) and one)


def _blocks(message: AIMessage) -> list[Mapping[str, Any]]:
    """Return the blocks of a reply, and the output that LangChain keeps beside them."""
    content = message.content if isinstance(message.content, list) else []
    blocks = [block for block in (*content, *message.additional_kwargs.get("tool_outputs", ())) if isinstance(block, Mapping)]
    return [_mapping(block.get("value")) if block.get("type") == "non_standard" else block for block in blocks]


def _items(message: AIMessage, metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the tools that the server has called for a fee, once for each call."""
    for block in _blocks(message):
        kind = str(block.get("type", ""))
        name = str(block.get("name", "")) if kind in ("server_tool_call", "server_tool_use") else _BY_TYPE.get(kind, "")
        name, action = _ALIASES.get(name, name), _mapping(block.get("action") or block.get("args")).get("type", "search")
        # Opening a page that was found is free, and so is the time of code that runs in no container of the vendor's.
        if name and action == "search" and (name not in _BY_TIME or _is_in_container(kind, block, metadata)):
            yield name


def _is_in_container(kind: str, block: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    """Whether a call that runs code did so in a container of the vendor's."""
    if kind == "server_tool_call":
        return "container_id" in _mapping(block.get("extras")) or bool(metadata.get("container"))
    return kind != "shell_call" or _mapping(block.get("environment")).get("type") == "container_reference"
