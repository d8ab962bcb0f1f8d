"""The check of a run's budget in money: what its replies have cost, and what the next request will cost at least."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage

from ..errors import ConfigurationError
from ..messages.failover import is_cut, marks_of_run
from ..messages.inner_usage import replies_inside
from ..messages.rejected import rejected_replies
from .billed import BilledUsage, billed_usage
from .costs import RunCost, cost_of

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

    Raises:
        ConfigurationError: The model, or one of its fallbacks, has no price.
    """

    def __init__(self, limit: Any, prices: Mapping[str, Mapping[str, Any]], request: Any, history: Sequence[BaseMessage]) -> None:
        self._limit = Decimal(str(limit))
        self._prices = prices
        self._request = request
        self._counted = len(history)
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
                known = all(self._pay(billed_usage(one)) for one in replies_inside(message))
            if not known:
                return True
        self._counted = len(messages)
        tools = () if self._known else self._request.form.tools  # what is known of the last request includes them
        tokens = self._known + self._request.model._estimated_tokens(messages[self._known_to :], tools)
        model = self._asked_next(messages)
        cost = self._estimated(model, tokens, model.reply_tokens)
        return cost is None or self._spent + cost > self._limit

    def _asked_next(self, messages: Sequence[BaseMessage]) -> _Model:
        """Return the model that is asked next: the run's own, or the fallback that has taken over."""
        marks = marks_of_run(messages) if self._fallbacks else ()
        name = str(marks[-1].get("to")).partition("#")[0] if marks else ""
        return next((one for one in self._fallbacks if f"{one.provider}/{one.name}" == name), self._own)

    def _add(self, message: AIMessage, number: int) -> bool:
        """Add the cost of a reply; False if it is not known."""
        usage = billed_usage(message)
        if not self._pay(usage):
            return False
        self._conditions = {} if is_cut(message) else usage.conditions  # with a cut reply another model goes on
        if message.usage_metadata is not None:
            self._known = message.usage_metadata["input_tokens"] + message.usage_metadata["output_tokens"]
            self._known_to = number + 1
        return True

    def _pay(self, usage: BilledUsage) -> bool:
        """Add the cost of what was used; False if it is not known."""
        cost = cost_of(usage, self._prices)
        if cost.total is None:
            _logger.warning("max_cost ends a run, because a part of what it has used has no price: %s", ", ".join(cost.unpriced))
            return False
        self._spent += cost.total
        return True

    def _estimated(self, model: _Model, given: int, written: int) -> Decimal | None:
        counts = {"input_tokens": given, "output_tokens": written}
        return cost_of(BilledUsage(model.provider, model.name, counts, given, self._conditions), self._prices).total


def cost_of_replies(replies: Iterable[AIMessage], prices: Mapping[str, Mapping[str, Any]]) -> Decimal | None:
    """Return the cost of replies; None if a part of it has no price."""
    return RunCost([cost_of(billed_usage(one), prices) for one in replies]).total
