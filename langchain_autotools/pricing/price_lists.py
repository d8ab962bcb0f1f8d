"""The prices of a model: the caller's own, else those of the price data of the extra `cost`.

A price is in US dollars: of a million tokens (`..._mtok`), or of a thousand calls (`..._kcount`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from re import compile as pattern
from typing import Any

from ..errors import ConfigurationError

EXTRA = "install 'langchain-autotools-chat[cost]'"
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


def prices_of(
    provider: str, model: str, conditions: Mapping[str, str], own: Mapping[str, Mapping[str, Any]], at: datetime | None
) -> Prices | None:
    """Return the prices of a model; None if nobody knows any.

    Args:
        provider: The model's provider.
        model: Its name. Prices that a caller gives for a name hold for its dated versions too.
        conditions: The conditions that are priced by themselves.
        own: The prices that the caller gives. Those of a model replace all others of it.
        at: The time of the request; None for now.

    Raises:
        ConfigurationError: The caller gives no prices of this model, and the extra `cost` is not installed.
    """
    entry = own.get(model) or own.get(_DATED.sub("", model))
    return _known_prices(provider, model, conditions, at) if entry is None else _given_prices(entry, conditions)


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
        raise ConfigurationError(f"prices of {model!r} are not given: {EXTRA}, or give prices=") from None
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
