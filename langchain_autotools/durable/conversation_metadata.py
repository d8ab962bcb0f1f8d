"""What is noted of a conversation beside its messages: its owner, its labels, its title.

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
from .conversation_runs import LABELS, LAST, LEFT, OWNER, TITLE, ConversationRun
from .plain import is_storable

_LONGEST_TITLE = 80


def check_owner(owner: str | None) -> None:
    """Refuse what is no owner.

    Raises:
        ConfigurationError: As `send` does.
    """
    if owner is not None:
        check_name("the owner of a conversation", owner)


def check_labels(labels: Mapping[str, str] | None) -> None:
    """Refuse what are no labels.

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
    """What somebody who adds a run says of its conversation.

    Attributes:
        owner: Its owner.
        labels: Its labels.
        messages: What is added.

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
        """Refuse another owner than that of the first run.

        Raises:
            ConfigurationError: It is another one, or the conversation has none.
        """
        if self.owner is not None and runs and runs[0].noted.get(OWNER) != self.owner:
            raise ConfigurationError(f"conversation {runs[0].conversation!r} was not begun by the owner {self.owner!r}")

    def noted_first(self) -> dict[str, Any]:
        """What the first run of the conversation carries."""
        noted = {OWNER: self.owner, LABELS: dict(self.labels or {}), TITLE: title_of(self.messages)}
        return {name: value for name, value in noted.items() if value}

    def noted_later(self, first: ConversationRun, number: int) -> dict[str, Any]:
        """What the first run carries from now on, where a run with this number was added behind it."""
        title = "" if TITLE in first.noted else title_of(self.messages)
        return {LAST: number} | ({} if self.labels is None else {LABELS: dict(self.labels)}) | ({TITLE: title} if title else {})


def noted_at_end(made: BaseMessage | Sequence[BaseMessage], error: str | None = None) -> dict[str, Any]:
    """What a run carries that has ended: whether it failed, or left calls that wait. Nothing in any other case."""
    left = "failed" if error is not None else "calls_pending" if made and pending_calls(made) else None
    return {LEFT: left} if left else {}


def title_of(messages: Sequence[BaseMessage]) -> str:
    """The beginning of the first thing that a user says, in one line; empty where no text is among the messages."""
    said = next((message.text for message in messages if isinstance(message, HumanMessage)), "")
    line = "".join(one if is_storable(one) else "\ufffd" for one in " ".join(said[: 20 * _LONGEST_TITLE].split()))
    return line if len(line) <= _LONGEST_TITLE else line[: _LONGEST_TITLE - 1].rstrip() + "…"
