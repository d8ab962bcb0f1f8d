"""What a run tells readers in other processes, and after a crash: texts as they are written, messages as they are recorded."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage

from .plain import message_of


@dataclass(frozen=True)
class LiveText:
    """A piece of a reply that is being written. What came of the same turn with a lower `attempt` is void: its process has died.

    Attributes:
        position: Where it stands in the run's stream; `follow(run_id, after=position)` goes on behind it.
        turn: The number of the turn, from 1 on.
        attempt: Which attempt at this turn writes it, from 1 on.
        text: What was written.
        reasoning: What was thought.
    """

    position: int
    turn: int
    attempt: int
    text: str = ""
    reasoning: str = ""


@dataclass(frozen=True)
class RecordedMessage:
    """A new message of the history. It is final, and comes once; an AI message says all that the texts of its turn said.

    Attributes:
        position: Where it stands in the run's stream.
        message: The message.
    """

    position: int
    message: AIMessage | ToolMessage


RunPiece = LiveText | RecordedMessage
"""What `follow` gives."""


class Pieces:
    """Reads the values of a run's stream, one after another.

    Args:
        after: The position before the first one that is wanted.
    """

    def __init__(self, after: int) -> None:
        self._after = after
        self._next = 0
        self._attempts: dict[int, list[str]] = {}

    def piece(self, value: Mapping[str, Any]) -> RunPiece | None:
        """The next value as a piece; None where the reader has it."""
        position = self._next
        self._next += 1
        piece = self._message(position, value) if "message" in value else self._text(position, value)
        return piece if position > self._after else None

    def _message(self, position: int, value: Mapping[str, Any]) -> RunPiece:
        return RecordedMessage(position, message_of(value["message"]))

    def _text(self, position: int, value: Mapping[str, Any]) -> RunPiece:
        executions = self._attempts.setdefault(value["turn"], [])
        if value["execution"] not in executions:
            executions.append(value["execution"])
        attempt = executions.index(value["execution"]) + 1
        return LiveText(position, value["turn"], attempt, value.get("text", ""), value.get("reasoning", ""))
