"""Sources of tools: things among a model's tools that bring several, and may bring others later."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import Field


class ToolSource(ABC):
    """A source of tools. A model reads it anew between runs when it has changed, and an executor when it is made."""

    @abstractmethod
    def tools(self) -> Sequence[BaseTool]:
        """Return the tools, as they are now."""

    @abstractmethod
    def is_changed(self) -> bool:
        """Whether `tools` would return others than at its last call."""


class GivenAsTool:
    """A model or an agent, which can be given as a tool: its method `as_tool` takes a name and a description."""


class SourceTool(StructuredTool):
    """A tool of a source: an asynchronous one that works on any event loop."""

    check_continued: Any = Field(default=None, exclude=True, repr=False)
    """Raises if a call that waits cannot go on with what was decided, a `ContinuedRun`; None where no call of the tool waits."""
