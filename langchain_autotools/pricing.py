"""What runs cost: the parts that vendors bill, their prices, their sums."""

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from re import compile as pattern
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage

from .errors import ConfigurationError
from .messages.metadata import is_cut_reply, last_failover_mark, own_metadata, paid_replies, rejected_replies, replies_inside, without_cost
from .messages.run_messages import HoldsRun, held_message, new_messages

# ---------------------------------------------------------------------------------------------- billed usage
#
# Kinds of usage are named as the price data of the extra `cost` names them. Counts do not overlap: what a detail counts is taken out of
# the total that includes it.

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
        stated: The cost in US dollars that the reply itself states.
    """

    provider: str
    model: str
    counts: Mapping[str, int]
    input_tokens: int = 0
    conditions: Mapping[str, str] = field(default_factory=dict)
    unknown: Sequence[str] = ()
    stated: Decimal | None = None


def _billed_usage(message: AIMessage) -> BilledUsage:
    """Return what the reply that became this message is billed for."""
    metadata = message.response_metadata
    usage, raw = message.usage_metadata, _mapping(metadata.get("usage") or metadata.get("token_usage"))
    conditions = dict(_conditions(metadata, raw))
    tools, unknown = _server_tools(message, metadata, raw)
    counts: dict[str, int] = {}
    if usage is None or min(usage["input_tokens"], usage["output_tokens"]) < 0:
        unknown.append("a reply without usage")
    else:
        tier = conditions.get("service_tier", "")
        read, written = (_details(usage.get(name), tier) for name in ("input_token_details", "output_token_details"))
        rest = usage["total_tokens"] - usage["input_tokens"] - usage["output_tokens"]
        beside = rest if 0 < rest == written.get(_REASONING) else 0  # reasoning that the sum of the output does not count
        _add_parts(counts, unknown, "input", usage["input_tokens"], read)
        _add_parts(counts, unknown, "output", usage["output_tokens"] + beside, written)
    known = {name: str(metadata.get(key) or "") for name, key in (("provider", "model_provider"), ("model", "model_name"))}
    size = 0 if usage is None else usage["input_tokens"]
    billed = {**counts, **tools}
    stated = _stated(raw) if without_cost(usage) is usage else Decimal(0)
    return BilledUsage(**known, counts=billed, input_tokens=size, conditions=conditions, unknown=unknown, stated=stated)


def _stated(raw: Mapping[str, Any]) -> Decimal | None:
    """Return the cost in US dollars that the usage of a reply states, with what it says that the caller's own key was charged elsewhere."""
    elsewhere = _mapping(raw.get("cost_details")).get("upstream_inference_cost") if raw.get("is_byok") else 0
    costs = [raw.get("cost"), elsewhere or 0]
    if not all(isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < math.inf for cost in costs):
        return None
    return sum((Decimal(str(cost)) for cost in costs), Decimal(0))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _details(details: Any, tier: str) -> dict[str, int]:
    """Return the non-zero details of a sum. A tier's own names for them count as the plain ones."""
    prefix, found = f"{tier}_", {}
    for key, count in _mapping(details).items():
        if key != tier and isinstance(count, int) and count:
            found[key.removeprefix(prefix) if tier else key] = count
    return found


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
    drawn = message.additional_kwargs.get("images") or any(block.get("type") in _IMAGES for block in _blocks(message))
    unknown += ["generated images"] if drawn and not details.get("image") else []
    others = {"num_sources_used": raw.get("num_sources_used"), **_mapping(raw.get("server_side_tool_usage"))}
    unknown.extend(name for name, amount in others.items() if amount)
    return counts, list(dict.fromkeys(unknown))


def _counts_searches(reported: Mapping[str, Any]) -> bool:
    """Whether a report says how often the server has searched."""
    return any(name in _SEARCHES or _SEARCHES.keys() & _mapping(amount).keys() for name, amount in reported.items())


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


# ---------------------------------------------------------------------------------------------- costs
# What a run costs, in US dollars: exact sums of the parts that have a price, and the names of those that have none.


@dataclass(frozen=True)
class TurnCost:
    """The cost of one turn of a run.

    Attributes:
        provider: The provider that made the reply.
        model: The model, as the reply names it.
        parts: The cost in US dollars of each kind of usage that has a price; only `stated` where the reply itself states its cost.
        unpriced: Names of what has no price of its own; empty if everything has one.
        conditions: The conditions that are priced by themselves, such as `{"service_tier": "flex"}`.
    """

    provider: str
    model: str
    parts: Mapping[str, Decimal]
    unpriced: Sequence[str] = ()
    conditions: Mapping[str, str] | None = None

    @property
    def total(self) -> Decimal | None:
        """The cost of the turn; None if something has no price."""
        return None if self.unpriced else sum(self.parts.values(), Decimal(0))


@dataclass(frozen=True)
class RunCost:
    """The cost of a run.

    Attributes:
        turns: The cost of each reply, in order: rejected ones, and those of models and agents as tools, included.
    """

    turns: Sequence[TurnCost]

    @property
    def parts(self) -> dict[str, Decimal]:
        """The cost in US dollars of each kind of usage in all turns together."""
        sums: dict[str, Decimal] = {}
        for turn in self.turns:
            for kind, cost in turn.parts.items():
                sums[kind] = sums.get(kind, Decimal(0)) + cost
        return sums

    @property
    def unpriced(self) -> list[str]:
        """Names of what has no price in any turn, each once; empty if everything has one."""
        return list(dict.fromkeys(name for turn in self.turns for name in turn.unpriced))

    @property
    def total(self) -> Decimal | None:
        """The cost of the run; None if something has no price."""
        return None if self.unpriced else sum(self.parts.values(), Decimal(0))


def run_cost(run: BaseMessage | HoldsRun, *, prices: Mapping[str, Mapping[str, Any]] | None = None, at: datetime | None = None) -> RunCost:
    """Return the cost of a run in US dollars, with that of the models and agents that it was given as tools.

    Models that functions of the caller's call are not in it: their runs have costs of their own.

    What a reply itself states (`cost` in the usage of OpenRouter's) is its cost, whatever the prices are.

    Args:
        run: What a model or an agent returned: a run message, the sum of a stream's chunks, or an `AgentResult`.
        prices: Own prices by the name of the model, in place of those of the price data: US dollars for a million tokens (`..._mtok`) or
            a thousand calls (`..._kcount`), as in `{"my-model": {"input_mtok": "0.20", "output_mtok": "0.80"}}`. Prices of a service
            tier are under its name: `{"my-model": {..., "flex": {"input_mtok": "0.10", ...}}}`.
        at: The time of the requests, with a time zone, for prices that have changed since. None for now.

    Raises:
        ConfigurationError: `prices` has another form, or prices of a model are missing and the extra `cost` is not installed.
        ValueError: `run` is no message, or does not carry the messages of its turns.
    """
    own, whole = {} if prices is None else own_prices(prices), held_message(run)
    if not isinstance(whole, BaseMessage):
        raise ValueError(f"run_cost takes what a chat model returned, not a {type(run).__name__}")
    messages = new_messages(run)
    replies = sum(isinstance(message, AIMessage) for message in messages)
    turns = own_metadata(whole).get("turns")
    if isinstance(turns, int) and replies < turns:
        raise ValueError(f"the run message carries {replies} of the replies of its {turns} turns: its cost is not known")
    return RunCost([_cost_of(_billed_usage(one), own, at) for one in paid_replies(messages)])


def _cost_of(usage: BilledUsage, own: Mapping[str, Mapping[str, Any]], at: datetime | None = None) -> TurnCost:
    """Return the cost of what a reply is billed for.

    Args:
        usage: What it is billed for.
        own: The prices that the caller gives, as `own_prices` returns them.
        at: The time of the request; None for now.
    """
    if usage.stated is not None:  # whatever it was used for
        return TurnCost(usage.provider, usage.model, {"stated": usage.stated}, (), usage.conditions)
    entry = own.get(usage.model) or own.get(_DATED.sub("", usage.model))  # of a dated model the prices may be given by its plain name
    prices = _known_prices(usage.provider, usage.model, usage.conditions, at) if entry is None else _given_prices(entry, usage.conditions)
    if prices is None:
        named = f"the model {usage.model!r}" if usage.model else "a model without a name"
        return TurnCost(usage.provider, usage.model, {}, [named, *usage.unknown], usage.conditions)
    counts = {**usage.counts, "requests": 1} if "requests_kcount" in prices.by_key else usage.counts
    costs = {kind: prices.price_of(kind, count, usage.input_tokens) for kind, count in counts.items()}
    unpriced = [*prices.unpriced, *(kind for kind, cost in costs.items() if cost is None), *usage.unknown]
    parts = {kind: cost for kind, cost in costs.items() if cost is not None}
    return TurnCost(usage.provider, usage.model, parts, unpriced, usage.conditions)


# ---------------------------------------------------------------------------------------------- meter
# The check of a run's budget in money: what its replies have cost, and what the next request will cost at least.


_logger = logging.getLogger("langchain_autotools")


class _Model(NamedTuple):
    """What the price of a request depends on besides its length: the model, and how long a reply it asks for at most (0: not said)."""

    provider: str
    name: str
    reply_tokens: int

    @classmethod
    def of(cls, model: Any, keywords: Mapping[str, Any]) -> "_Model":
        traced = model._get_ls_params(**keywords)
        return cls(str(traced.get("ls_provider") or ""), str(traced.get("ls_model_name") or ""), int(traced.get("ls_max_tokens") or 0))


class CostMeter:
    """The cost of one run so far.

    Args:
        limit: The maximum cost in US dollars.
        prices: The prices that the caller gives.
        request: The run's requests, but for their messages.
        history: The messages that the run begins with, which cost it nothing.
        sent: Returns the tokens of the next request, where it is not the whole conversation that is sent; None where it is.

    Raises:
        ConfigurationError: The model, or one of its fallbacks, has no price.
    """

    def __init__(
        self,
        limit: Any,
        prices: Mapping[str, Mapping[str, Any]],
        request: Any,
        history: Sequence[BaseMessage],
        sent: Callable[[Sequence[BaseMessage]], int] | None = None,
    ) -> None:
        self._limit = Decimal(str(limit))
        self._prices = prices
        self._request = request
        self._counted = len(history)
        self._sent = sent
        self._spent = Decimal(0)
        self._conditions: Mapping[str, str] = {}
        portable = {name: value for name, value in request.keywords.items() if name == "max_tokens"}
        self._own = _Model.of(request.model, request.keywords)
        self._fallbacks = [_Model.of(one, portable) for one in request.model.fallbacks]
        self._known = self._known_to = 0  # tokens of the conversation, and up to which message: what the last reply says
        for model in (self._own, *self._fallbacks):
            if self._estimated(model, 1, 1) is None:
                raise ConfigurationError(f"max_cost needs prices, and there are none of the model {model.name!r}: give prices=")

    def exceeded(self, messages: Sequence[BaseMessage]) -> bool:
        """Whether the run may not make another request, because the request would exceed the limit or what was spent is not known.

        Args:
            messages: The conversation so far.
        """
        for number in range(self._counted, len(messages)):
            message = messages[number]
            if isinstance(message, AIMessage):
                known = all(self._add(one, number) for one in (*rejected_replies(message), message))
            else:
                known = all(self._pay(_billed_usage(one)) for one in replies_inside(message))
            if not known:
                return True
        self._counted = len(messages)
        if self._sent is not None:
            tokens = self._sent(messages)
        else:
            tools = () if self._known else self._request.form.tools  # what is known of the last request includes them
            tokens = self._known + self._request.model._estimated_tokens(messages[self._known_to :], tools)
        model = self._asked_next(messages)
        cost = self._estimated(model, tokens, model.reply_tokens)
        return cost is None or self._spent + cost > self._limit

    def _asked_next(self, messages: Sequence[BaseMessage]) -> _Model:
        """Return the model that is asked next: the run's own, or the fallback that has taken over."""
        mark = last_failover_mark(messages) if self._fallbacks else {}
        name = str(mark.get("to")).partition("#")[0]
        return next((one for one in self._fallbacks if f"{one.provider}/{one.name}" == name), self._own)

    def _add(self, message: AIMessage, number: int) -> bool:
        """Add the cost of a reply; False if it is not known."""
        usage = _billed_usage(message)
        if not self._pay(usage):
            return False
        self._conditions = {} if is_cut_reply(message) else usage.conditions  # with a cut reply another model goes on
        if message.usage_metadata is not None:
            self._known = message.usage_metadata["input_tokens"] + message.usage_metadata["output_tokens"]
            self._known_to = number + 1
        return True

    def _pay(self, usage: BilledUsage) -> bool:
        """Add the cost of what was used; False if it is not known."""
        cost = _cost_of(usage, self._prices)
        if cost.total is None:
            _logger.warning("max_cost ends a run, because a part of what it has used has no price: %s", ", ".join(cost.unpriced))
            return False
        self._spent += cost.total
        return True

    def _estimated(self, model: _Model, given: int, written: int) -> Decimal | None:
        counts = {"input_tokens": given, "output_tokens": written}
        return _cost_of(BilledUsage(model.provider, model.name, counts, given, self._conditions), self._prices).total


def cost_of_replies(replies: Iterable[AIMessage], prices: Mapping[str, Mapping[str, Any]]) -> Decimal | None:
    """Return the cost of replies; None if a part of it has no price."""
    return RunCost([_cost_of(_billed_usage(one), prices) for one in replies]).total


# ---------------------------------------------------------------------------------------------- price lists
#
# The prices of a model: the caller's own, else those of the price data of the extra `cost`.
#
# A price is in US dollars: of a million tokens (`..._mtok`), or of a thousand calls (`..._kcount`).

_EXTRA = "install 'langchain-autotools-chat[cost]'"
_TOKENS, _CALLS = ("_tokens", "_mtok", 1_000_000), ("", "_kcount", 1_000)
_INCLUDED_IN = {"cache_write_5m_tokens": "cache_write_tokens", "output_reasoning_tokens": "output_tokens"}
_DATED = pattern(r"[-@](?:20\d\d-?\d\d-?\d\d)$")
_FORM = 'prices must be like {"my-model": {"input_mtok": "0.20", "output_mtok": "0.80"}}'


@dataclass(frozen=True)
class Prices:
    """The prices of one model under the conditions of one reply.

    Attributes:
        by_key: The prices by their names: numbers, or prices that grow with the size of the request (`base` and `tiers`).
        special: The names of those that belong to the conditions themselves; None where there are no conditions, and all count.
        unpriced: Names of the conditions that have no prices.
    """

    by_key: Mapping[str, Any]
    special: frozenset[str] | None = None
    unpriced: Sequence[str] = ()

    def price_of(self, kind: str, count: int, input_tokens: int) -> Decimal | None:
        """Return the price of so much of a kind of usage; None if it has none of its own.

        Args:
            kind: The kind.
            count: How much of it.
            input_tokens: The size of the request.
        """
        suffix, key_suffix, per = _TOKENS if kind.endswith("_tokens") else _CALLS
        key = f"{kind.removesuffix(suffix)}{key_suffix}"
        price = self.by_key.get(key)
        if price is None and kind in _INCLUDED_IN:
            return self.price_of(_INCLUDED_IN[kind], count, input_tokens)
        if price is None or (self.special is not None and per == _TOKENS[2] and key not in self.special):
            return None
        for tier in getattr(price, "tiers", ()):
            if input_tokens > tier.start:
                price = tier.price
        return Decimal(getattr(price, "base", price)) * count / per


def own_prices(prices: Any) -> dict[str, dict[str, Any]]:
    """Return the prices that a caller gives, as Decimals.

    Raises:
        ConfigurationError: They have another form, or one of them is no price.
    """
    if not isinstance(prices, Mapping):
        raise ConfigurationError(f"{_FORM}, not {type(prices).__name__}")
    return {str(model): _own_entry(str(model), entry) for model, entry in prices.items()}


def _own_entry(model: str, entry: Any, *, nested: bool = False) -> dict[str, Any]:
    if not isinstance(entry, Mapping) or not entry:
        raise ConfigurationError(f"{_FORM}: the entry of {model!r} is {entry!r}")
    tiers = {} if nested else {key: value for key, value in entry.items() if isinstance(value, Mapping)}
    standard = {key: _own_price(model, key, value) for key, value in entry.items() if key not in tiers}
    return {**standard, **{key: _own_entry(f"{model} ({key})", value, nested=True) for key, value in tiers.items()}}


def _own_price(model: str, key: Any, value: Any) -> Decimal:
    if not isinstance(key, str) or not key.endswith((_TOKENS[1], _CALLS[1])):
        raise ConfigurationError(f"the prices of {model!r} are named like input_mtok, output_mtok or web_searches_kcount, not {key!r}")
    try:
        price = Decimal(str(value))
    except InvalidOperation:
        price = Decimal(-1)
    if isinstance(value, bool) or not price.is_finite() or price < 0:
        raise ConfigurationError(f"the price {key} of {model!r} must be a number of US dollars, 0 or more, not {value!r}")
    return price


def _given_prices(entry: Mapping[str, Any], conditions: Mapping[str, str]) -> Prices:
    standard = {key: value for key, value in entry.items() if not isinstance(value, Mapping)}
    if not conditions:
        return Prices(standard)
    found = {name: entry[value] for name, value in conditions.items() if isinstance(entry.get(value), Mapping)}
    special = {key: price for prices in found.values() for key, price in prices.items()}
    return Prices({**standard, **special}, frozenset(special), [_condition(*one) for one in conditions.items() if one[0] not in found])


def _known_prices(provider: str, model: str, conditions: Mapping[str, str], at: datetime | None) -> Prices | None:
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        raise ConfigurationError(f"prices of {model!r} are not given: {_EXTRA}, or give prices=") from None
    if not provider or not model:
        return None
    at = at or datetime.now(UTC)
    try:
        known = calc_price(Usage(), model, provider_id=provider, genai_request_timestamp=at, price_context=conditions or None)
    except LookupError:
        return None
    prices = {key: value for key, value in vars(known.model_price).items() if value is not None}
    if not conditions:
        return Prices(prices)
    special: set[str] = set()
    unpriced = []
    offered = [*(known.model.price_variants or ())] if any(one is known.model for one in known.provider.models) else []
    for name, value in conditions.items():
        variants = [one for one in offered if one.when == {name: value} and (one.constraint is None or one.constraint.active(at))]
        special.update(key for one in variants for key, price in vars(one.prices).items() if price is not None)
        if not variants:
            unpriced.append(_condition(name, value))
    return Prices(prices, frozenset(special), unpriced)


def _condition(name: str, value: str) -> str:
    return f"{name} {value!r}"
