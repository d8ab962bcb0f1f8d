"""Where a run's text has a separator between the texts of two messages."""

from langchain_core.messages import AIMessage


class Joints:
    """Follows the texts of a run's messages, in order, and gives the separators between them.

    One stands before the first text that follows tool calls, where the text so far does not end in white space. A turn that goes on with
    one that was interrupted goes on with its text too.

    Args:
        separator: The separator.

    Attributes:
        is_due: Whether tool calls stand between the text so far and the next one.
    """

    def __init__(self, separator: str) -> None:
        self.separator = separator
        self.is_due = False
        self._last_character = ""

    @property
    def pending(self) -> str:
        """The separator that belongs before the next text; empty where none does."""
        return self.separator if self.is_due and self._last_character and not self._last_character.isspace() else ""

    def before(self, text: str) -> str:
        """Note the next text; returns the separator that belongs before it, empty where none does."""
        if not text:
            return ""
        separator = self.pending if self.is_due else ""
        self._last_character, self.is_due = text[-1], False
        return separator

    def ended(self, message: AIMessage) -> None:
        """Note the end of a message: a separator is due after one that calls tools."""
        self.is_due = self.is_due or bool(message.tool_calls or message.invalid_tool_calls)

    def ask(self) -> None:
        """Note that the next text is a direct result, before which a separator is always due."""
        self.is_due = True
