"""The open state of a run whose events are converted to AG-UI."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class OpenRun:
    """The open state of a run.

    Attributes:
        id: Its id.
        tag: The id of its subagent; None for a run that no tool made.
        turn: The message of the turn that its step is.
        step: The name of that step.
        text: The message whose text is open.
        shown: Whether anything of the turn's message was sent.
        reasoning: The reasoning that is open.
        thoughts: How many pieces of reasoning the turn's message has.
        model: Who made its last message: vendor and model.
        discarded: How many attempts at the message of each id were discarded: the client keeps what it has of them.
    """

    id: str
    tag: str | None
    turn: str | None = None
    step: str | None = None
    text: str | None = None
    shown: bool = False
    reasoning: str | None = None
    thoughts: int = 0
    model: tuple[str | None, str | None] = (None, None)
    discarded: Counter[str] = field(default_factory=Counter)
