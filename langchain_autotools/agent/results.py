"""The result of a question to an agent."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata

from ..messages.carrier import run_usage
from ..messages.endings import HoldsRun, stop_reason
from ..messages.markdown import markdown_of
from ..messages.metadata import text_of
from ..messages.stop_reasons import StopReason


@dataclass(frozen=True)
class AgentResult(HoldsRun):
    """The result of a question to an agent.

    Attributes:
        message: The run message, as the model's `invoke` returns it.
        messages: The new messages: the question (unless the run was resumed), replies and results, in order.
        output: The output parsed from the answer, if the agent has a schema (`output=`). None without one, and while calls wait.
    """

    message: AIMessage = field(repr=False)
    messages: Sequence[BaseMessage] = field(repr=False)
    output: Any = None

    def __repr__(self) -> str:
        shown = self.text if self.output is None else self.output
        return f"AgentResult({shown!r}, {self.stop_reason}, {len(self.messages)} messages)"

    def _repr_markdown_(self) -> str:
        return markdown_of(self)

    @property
    def text(self) -> str:
        """The text of all turns."""
        return text_of(self.message)

    @property
    def usage(self) -> UsageMetadata | None:
        """The token usage of all turns; None if no reply reported any."""
        return run_usage(self.message)

    @property
    def stop_reason(self) -> StopReason | None:
        """The reason why the run ended."""
        return stop_reason(self.message)
