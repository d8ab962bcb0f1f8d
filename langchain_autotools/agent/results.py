"""What a question to an agent came to."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata

from ..messages.carrier import run_usage
from ..messages.endings import HoldsRun, stop_reason
from ..messages.metadata import text_of
from ..messages.stop_reasons import StopReason


@dataclass(frozen=True)
class AgentResult(HoldsRun):
    """What a question to an agent came to.

    Attributes:
        message: The run message, as the model's `invoke` returns it.
        messages: The new messages: the question (unless the run was resumed), replies and results, in order.
    """

    message: AIMessage = field(repr=False)
    messages: Sequence[BaseMessage] = field(repr=False)

    def __repr__(self) -> str:
        return f"AgentResult({self.text!r}, {self.stop_reason}, {len(self.messages)} messages)"

    @property
    def text(self) -> str:
        """The text of all turns."""
        return text_of(self.message)

    @property
    def usage(self) -> UsageMetadata | None:
        """The tokens of all turns together; None where no reply told of any."""
        return run_usage(self.message)

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the run ended."""
        return stop_reason(self.message)
