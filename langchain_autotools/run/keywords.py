"""Keywords of a call that configure its run: their names, their validation, and hints for misspelt ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache, partial
from inspect import signature
from typing import Any, ClassVar, Protocol

from ..cancelling import checked_cancel
from ..errors import ConfigurationError
from ..executor import ToolExecutor
from ..executor.checks import checked_listener
from ..executor.settings import ExecutionSettings
from ..turn.constructor import MISTAKEN
from .limits import Limits
from .recording import RunJournal

_OF_ANOTHER = frozenset({"model", "model_name"})
_LIMITS = frozenset(one.name for one in fields(Limits))
_OF_EXECUTION = frozenset(signature(ExecutionSettings.read).parameters)
_OTHERS = frozenset({"message_separator", "carry_messages", "resume", "cancel", "journal", "before_turn", "prices", "output_check"})
RUN_KEYWORDS = _LIMITS | _OTHERS | _OF_EXECUTION - {"approval_key"}
"""Keywords of a call that configure a run and never reach the vendor."""

_LIFTED_BY_NONE = _LIMITS - {"on_limit", "polling_tools"}
_NEAR = 2


def _checked(kind: type, words: str, name: str, value: Any) -> Any:
    if not isinstance(value, kind):
        raise ConfigurationError(f"{name} must be {words}, not {value!r}")
    return value


_boolean, _text = partial(_checked, bool, "True or False"), partial(_checked, str, "a text")


class Settable(Protocol):
    """The interface of a model whose fields configure its runs.

    It also has one field for each name in `RUN_KEYWORDS` except `resume`, `cancel`, `journal` and `output_check`."""

    context_window: int | None
    profile: Any
    middleware: Any
    _not_per_call: ClassVar[frozenset[str]]
    _first_request_only: ClassVar[frozenset[str]]


@dataclass(frozen=True)
class CallSettings:
    """The settings of one call, from the model's fields and the call's keywords.

    Attributes:
        limits: The limits of the run.
        usage_limits: The names of those among them that somebody has set and that need to know the usage of tokens.
        separator: The separator between the texts of two turns.
        carry_messages: Whether chunks carry the new messages as data.
        decisions: The decisions about calls at the end of the input.
        cancel: The caller's cancellation flag; None if there is none.
        output_check: Checks the output of each reply, and makes the turn again; None where nothing does.
        before_turn: Changes each request; None where nothing does.
        middleware: Stands around the turns and calls.
        journal: Remembers what the run does, so that a later process goes on with it; None where nothing does.
        call: How this call wants the tools' calls executed.
        fields: How the model's fields do.
        prices: Prices of models, for `max_cost`.
    """

    limits: Limits
    usage_limits: Sequence[str]
    separator: str
    carry_messages: bool
    decisions: Any
    cancel: Any
    output_check: Any
    before_turn: Any
    middleware: Sequence[Any]
    journal: RunJournal | None
    call: ExecutionSettings
    fields: ExecutionSettings
    prices: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def executor(self, own: ToolExecutor) -> ToolExecutor:
        """Return the executor as this run wants it.

        Raises:
            ConfigurationError: A setting names a tool that the executor does not have.
        """
        settings = self.call.over(own.settings).over(self.fields)
        return own.with_settings(settings if own.tools or own.handlers else replace(settings, policies=own.policies))


def call_settings(model: Settable, keywords: dict[str, Any]) -> CallSettings:
    """Return the settings of one call and remove them from `keywords`.

    Raises:
        ConfigurationError: A setting cannot work, a keyword has no effect at a call, or is very nearly the name of one that has.
    """
    _check_names(model, keywords)
    limits = {name: _setting(model, name, keywords) for name in sorted(_LIMITS - {"context_window"})}
    counting = {"token_budget": limits["token_budget"], "context_window": keywords.get("context_window", model.context_window)}
    call = {name: keywords.pop(name) for name in sorted(_OF_EXECUTION & RUN_KEYWORDS) if _is_given(name, keywords)}
    return CallSettings(
        limits=Limits(**limits, context_window=_context_window(model, keywords)),
        usage_limits=[name for name, value in counting.items() if value is not None],
        separator=_text("message_separator", _setting(model, "message_separator", keywords)),
        carry_messages=_boolean("carry_messages", _setting(model, "carry_messages", keywords)),
        decisions=keywords.pop("resume", None),
        cancel=checked_cancel(keywords.pop("cancel")) if _is_given("cancel", keywords) else None,
        output_check=keywords.pop("output_check", None),
        before_turn=checked_listener("before_turn", _setting(model, "before_turn", keywords)),
        middleware=model.middleware,
        journal=keywords.pop("journal", None),
        call=ExecutionSettings.read(**call),
        fields=ExecutionSettings.read(**{name: getattr(model, name) for name in sorted(_OF_EXECUTION)}),
        prices=_prices(_setting(model, "prices", keywords)),
    )


def drop_settings(model: Settable, keywords: dict[str, Any]) -> Limits | None:
    """Remove the settings of a run from the keywords of a single request; return the limits, or None if no keyword is set.

    Raises:
        ConfigurationError: As of `call_settings`.
    """
    if RUN_KEYWORDS.isdisjoint(keywords):
        _check_names(model, keywords)
        return None
    return call_settings(model, keywords).limits


def _is_given(name: str, keywords: dict[str, Any]) -> bool:
    """Whether the call sets this keyword: None lifts a limit, and is no value for other keywords."""
    if name in keywords and keywords[name] is None and name not in _LIFTED_BY_NONE:
        del keywords[name]
    return name in keywords


def _setting(model: Any, name: str, keywords: dict[str, Any]) -> Any:
    return keywords.pop(name) if _is_given(name, keywords) else getattr(model, name)


def _prices(prices: Any) -> Mapping[str, Mapping[str, Any]]:
    if prices is None:
        return {}
    from ..pricing.price_lists import own_prices  # here, because it costs every other program its import

    return own_prices(prices)


def _context_window(model: Settable, keywords: dict[str, Any]) -> int | None:
    """Return the context window of the call, the model or its profile, which only applies to the model's own name."""
    if "context_window" in keywords:
        asked: int | None = keywords.pop("context_window")
        return asked
    profile = {} if _OF_ANOTHER & keywords.keys() else model.profile or {}
    known = profile.get("max_input_tokens") if isinstance(profile, Mapping) else None
    of_profile = known if isinstance(known, int) and known > 0 else None  # a class of somebody else's may have anything there
    return of_profile if model.context_window is None else model.context_window


# ---------------------------------------------------------------------------------------------- names


def _check_names(model: Settable, keywords: Mapping[str, Any]) -> None:
    if "show_progress" in keywords:
        raise ConfigurationError("show_progress is for batch, abatch and their kin: here it has no effect")
    for name in keywords.keys() - RUN_KEYWORDS:
        if name in model._not_per_call:
            raise ConfigurationError(
                f"{name} is set where the model is made, not at a call; a vendor's own parameter of that name goes in extra_body"
            )
        if name in MISTAKEN and not _is_known(model, name):
            raise ConfigurationError(f"there is no keyword {name!r}: {MISTAKEN[name]}")
        near = _nearest(name)
        if near is not None and not _is_known(model, name):
            raise ConfigurationError(f"there is no keyword {name!r}: did you mean {near!r}?")


def _is_known(model: Any, name: str) -> bool:
    """Whether the model itself accepts a keyword of this name, as a constructor argument or in its request methods."""
    own = type(model)
    return name in own._argument_names() or any(name in signature(method).parameters for method in (own.raw_stream, own._stream))


@lru_cache(maxsize=512)
def _nearest(name: str) -> str | None:
    """Return the run keyword within two letters of `name`."""
    near = [(_distance(name, keyword), keyword) for keyword in sorted(RUN_KEYWORDS) if abs(len(name) - len(keyword)) <= _NEAR]
    distance, keyword = min(near, default=(_NEAR + 1, ""))
    return keyword if distance <= _NEAR else None


def _distance(one: str, other: str) -> int:
    """Return the edit distance of two words."""
    row: Sequence[int] = range(len(other) + 1)
    for number, letter in enumerate(one, 1):
        last, above = number, number - 1
        made = [last]
        for column, against in enumerate(other, 1):
            last = min(last + 1, row[column] + 1, above + (letter != against))
            above = row[column]
            made.append(last)
        row = made
    return row[-1]
