"""The fields of a chat model by which others take its place when it fails."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from pydantic import Field

from .binding import BindableChatModel
from .failover_rules import AfterText
from .turn_wrappers import TurnWrapper


class FallbackChatModel(BindableChatModel, defer_build=True):
    """A chat model with fallbacks."""

    fallbacks: Sequence[Any] = Field(default=(), exclude=True)
    """Models, in order, that make a turn whose model fails: of this package, or what `with_tools(model, [])` returns. The run goes on with
    the one that took over, under its tools, restrictions and limits; each model has its own parameters and retries."""
    fallback_on: Any = Field(default=None, exclude=True, repr=False)
    """The failures that another model answers: classes of errors, functions of an error, `FirstToken(seconds)`, "refused" or "length" (of a
    reply without text), or a list of these. None, and where no error is named: what the model's own retries repeat, refused keys, spent
    quotas, unknown models. Never a deadline, a cancellation, or a reader who has left."""
    fallback_attempts: int = 1
    """Maximum number of attempts at a model, including the first, while another one is left."""
    cooldown: float | None = None
    """Seconds for which a model that has failed is asked only if all have failed, in all runs of the process. None: none."""
    after_text: AfterText = "continue"
    """Action when a model fails after text has left: `continue` keeps the text as a message with which another model goes on, `raise`
    raises the error."""

    _not_per_call: ClassVar[frozenset[str]] = BindableChatModel._not_per_call | {
        *("fallbacks", "fallback_on", "fallback_attempts", "cooldown", "after_text"),
    }

    def _failover(self, tools: Callable[[], Sequence[Any]]) -> Sequence[TurnWrapper]:
        """Return the failover of a run of the model; nothing without fallbacks.

        Args:
            tools: Returns the tools that the model declares itself.

        Raises:
            ConfigurationError: A fallback cannot take the model's place.
        """
        if not self.fallbacks:
            return ()
        from .failover import Failover  # here, because it costs every other program its import

        return (Failover(self, tools()),)
