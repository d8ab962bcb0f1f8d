"""Metadata of a conversation: its owner, its labels, its title.

The row of its first run carries them, and the number of its last run as far as whoever sent has noted it: that one may be behind, never
ahead. The row of the last run carries what changes: when it was sent, when it ended, and (here) what it left.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from ..errors import ConfigurationError
from ..executor import pending_calls
from .conversation_requests import check_name
from .conversation_run import LABELS, LAST, LEFT, OWNER, TITLE, ConversationRun
from .plain import is_storable

_LONGEST_TITLE = 80


def check_owner(owner: str | None) -> None:
    """Raise if the owner is not a valid text.

    Raises:
        ConfigurationError: As `send` does.
    """
    if owner is not None:
        check_name("the owner of a conversation", owner)


def check_labels(labels: Mapping[str, str] | None) -> None:
    """Raise if the labels are invalid.

    Raises:
        ConfigurationError: As `send` does.
    """
    if labels is None:
        return
    if not isinstance(labels, Mapping) or not all(isinstance(text, str) for pair in labels.items() for text in pair):
        raise ConfigurationError(f"labels are a dict of texts, not {labels!r:.200}")
    if not all(is_storable(text) for pair in labels.items() for text in pair):
        raise ConfigurationError(f"labels have neither NUL nor lone surrogates, which no database can store: {labels!r:.200}")


@dataclass(frozen=True)
class Metadata:
    """The metadata given with a new run of a conversation.

    Attributes:
        owner: Its owner.
        labels: Its labels.
        messages: The added messages.

    Raises:
        ConfigurationError: It is no owner, or they are no labels.
    """

    owner: str | None = None
    labels: Mapping[str, str] | None = None
    messages: Sequence[BaseMessage] = ()

    def __post_init__(self) -> None:
        check_owner(self.owner)
        check_labels(self.labels)

    def check_owner_of(self, runs: Sequence[ConversationRun]) -> None:
        """Raise if the owner differs from that of the first run.

        Raises:
            ConfigurationError: It is another one, or the conversation has none.
        """
        if self.owner is not None and runs and runs[0].noted.get(OWNER) != self.owner:
            raise ConfigurationError(f"conversation {runs[0].conversation!r} was not begun by the owner {self.owner!r}")

    def noted_first(self) -> dict[str, Any]:
        """Return the attributes of the conversation's first run."""
        noted = {OWNER: self.owner, LABELS: dict(self.labels or {}), TITLE: title_of(self.messages)}
        return {name: value for name, value in noted.items() if value}

    def noted_later(self, first: ConversationRun, number: int) -> dict[str, Any]:
        """Return the new attributes of the first run when a run with this number is added."""
        title = "" if TITLE in first.noted else title_of(self.messages)
        return {LAST: number} | ({} if self.labels is None else {LABELS: dict(self.labels)}) | ({TITLE: title} if title else {})


def noted_at_end(made: BaseMessage | Sequence[BaseMessage], error: str | None = None) -> dict[str, Any]:
    """Return the attributes of a finished run that failed or left calls that wait; empty otherwise."""
    left = "failed" if error is not None else "calls_pending" if made and pending_calls(made) else None
    return {LEFT: left} if left else {}


def title_of(messages: Sequence[BaseMessage]) -> str:
    """Return the beginning of the user's first text, in one line; empty if there is none."""
    question = next((message.text for message in messages if isinstance(message, HumanMessage)), "")
    line = "".join(one if is_storable(one) else "\ufffd" for one in " ".join(question[: 20 * _LONGEST_TITLE].split()))
    return line if len(line) <= _LONGEST_TITLE else line[: _LONGEST_TITLE - 1].rstrip() + "…"
