"""What a run costs, in US dollars: exact sums of the parts that have a price, and the names of those that have none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from ..messages.carrier import new_messages
from ..messages.endings import HoldsRun, held_message
from ..messages.inner_usage import paid_replies
from ..messages.metadata import own_metadata
from .billed import BilledUsage, billed_usage
from .price_lists import own_prices, prices_of


@dataclass(frozen=True)
class TurnCost:
    """The cost of one turn of a run.

    Attributes:
        provider: The provider that made the reply.
        model: The model, as the reply names it.
        parts: The cost in US dollars of each kind of usage that has a price.
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

    Args:
        run: What a model or an agent returned: a run message, the sum of a stream's chunks, or an `AgentResult`.
        prices: Own prices by the name of the model, in place of those of the price data: US dollars for a million tokens (`..._mtok`) or
            a thousand calls (`..._kcount`), as in `{"my-model": {"input_mtok": "0.20", "output_mtok": "0.80"}}`. Prices of a service
            tier stand under its name: `{"my-model": {..., "flex": {"input_mtok": "0.10", ...}}}`.
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
    return RunCost([cost_of(billed_usage(one), own, at) for one in paid_replies(messages)])


def cost_of(usage: BilledUsage, own: Mapping[str, Mapping[str, Any]], at: datetime | None = None) -> TurnCost:
    """Return the cost of what a reply is billed for.

    Args:
        usage: What it is billed for.
        own: The prices that the caller gives, as `own_prices` returns them.
        at: The time of the request; None for now.
    """
    prices = prices_of(usage.provider, usage.model, usage.conditions, own, at)
    if prices is None:
        named = f"the model {usage.model!r}" if usage.model else "a model without a name"
        return TurnCost(usage.provider, usage.model, {}, [named, *usage.unknown], usage.conditions)
    counts = {**usage.counts, "requests": 1} if "requests_kcount" in prices.by_key else usage.counts
    costs = {kind: prices.price_of(kind, count, usage.input_tokens) for kind, count in counts.items()}
    unpriced = [*prices.unpriced, *(kind for kind, cost in costs.items() if cost is None), *usage.unknown]
    parts = {kind: cost for kind, cost in costs.items() if cost is not None}
    return TurnCost(usage.provider, usage.model, parts, unpriced, usage.conditions)
