"""Separators between the texts of a run's messages."""

from langchain_core.messages import AIMessage

from .calls import awaited_calls


class Joints:
    """Tracks the texts of a run's messages, in order, and returns the separators between them.

    A separator precedes the first text after tool calls, unless the text so far ends in white space. A turn that continues a paused
    one continues its text too.

    Args:
        separator: The separator.

    Attributes:
        is_due: Whether tool calls stand between the text so far and the next one.
        last: The last text; may be set in place of calling `before` while no separator is due.
    """

    def __init__(self, separator: str) -> None:
        self.separator = separator
        self.is_due = False
        self.last = ""

    @property
    def pending(self) -> str:
        """The separator before the next text; empty if none is due."""
        return self.separator if self.is_due and self.last and not self.last[-1].isspace() else ""

    def before(self, text: str) -> str:
        """Record the next text, and return the separator before it; empty if none is due."""
        if not text:
            return ""
        separator = self.pending if self.is_due else ""
        self.last, self.is_due = text, False
        return separator

    def ended(self, message: AIMessage) -> None:
        """Record the end of a message: a separator is due after one with tool calls, or with the vendor's own that the caller answers."""
        self.is_due = self.is_due or bool(message.tool_calls or message.invalid_tool_calls or self._awaits(message))

    @staticmethod
    def _awaits(message: AIMessage) -> bool:
        return isinstance(message.content, list) and bool(awaited_calls(message))

    def ask(self) -> None:
        """Record that the next text is a direct result, before which a separator is always due."""
        self.is_due = True
