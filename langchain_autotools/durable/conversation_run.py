"""One stored run of a conversation: its request, its outcome, its attributes, each read when somebody asks for it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, cast

from dbos import WorkflowStatus
from langchain_core.messages import AIMessage, BaseMessage

from ..event_types import MessageDone
from ..messages.carrier import new_messages
from ..messages.live import attach_messages
from .errors import RunFailedError
from .plain import copy_of, message_of, reply_of
from .reading import ENDED_FROM_OUTSIDE, events_so_far
from .recorded_texts import with_texts
from .stored import checked, mapping_of, stored
from .streams import GOES_ON

SEND, DECIDE, APPEND = "send", "decide", "append"
"""The kinds of runs: answering a message, continuing with decisions, or only adding messages."""

DECIDED = "autotools_decided"
"""The attribute with the calls that a run decides about, as JSON text, since PostgreSQL's JSON type does not accept every text."""

OWNER, LABELS, TITLE, LAST = "autotools_owner", "autotools_labels", "autotools_title", "autotools_last"
"""Attributes of the first run: the conversation's metadata, and a lower bound of its last run's number."""

LEFT = "autotools_left"
"""The attribute of a finished run that left something: `calls_pending`, or `failed`."""

KEY = "autotools_key"  # what a run was added for: the same is added once
CONVERSATION = "autotools_conversation"
_ATTRIBUTES = {OWNER: str, LABELS: Mapping, TITLE: str, LAST: int, LEFT: str, DECIDED: str, KEY: str, CONVERSATION: str}


@dataclass(frozen=True)
class ConversationRun:
    """A run of a conversation.

    Attributes:
        status: Its workflow; with what went in and came out where that was asked for.
    """

    status: WorkflowStatus

    @property
    def id(self) -> str:
        """The run's id in the database."""
        return str(self.status.workflow_id)

    @property
    def number(self) -> int:
        """The run's number in the conversation, from 1 on."""
        return int(self.id.rpartition("/")[2])

    def beside(self, number: int) -> str:
        """Return the id of another run of the same conversation."""
        return f"{self.id.rpartition('/')[0]}/{number}"

    @property
    def has_ended(self) -> bool:
        """Whether the run has ended, successfully or not."""
        return self.status.status not in GOES_ON

    @property
    def is_final(self) -> bool:
        """Whether the run has ended in a way that never changes."""
        return bool(self.status.status == "SUCCESS")

    @stored("the request")
    def request(self) -> Mapping[str, Any]:
        """The request of the run."""
        return mapping_of(cast("Any", self.status.input)["args"][0], "kind", "messages")

    @stored("the outcome")
    def outcome(self) -> Mapping[str, Any]:
        """The outcome of the run."""
        return mapping_of(with_texts(self.id, self.status.output or {}))

    @stored("the outcome")
    def message(self) -> AIMessage:
        """The run message of the finished run."""
        return reply_of(self.outcome["message"])

    @stored("the attributes")
    def noted(self) -> Mapping[str, Any]:
        """The attributes of the run."""
        return _attributes_of(self.status.attributes or {})

    @property
    def key(self) -> Any:
        """The key under which the run was added."""
        return self.noted.get(KEY)

    @stored("the decisions")
    def decided(self) -> Mapping[str, Any]:
        """The calls that the run decides about, and the decisions."""
        return mapping_of(json.loads(self.noted.get(DECIDED, "{}")))

    @property
    def conversation(self) -> str:
        """The conversation of the run."""
        return str(self.noted[CONVERSATION])

    @property
    def begun(self) -> datetime:
        """The time at which the run was added."""
        return datetime.fromtimestamp((self.status.created_at or 0) / 1000, UTC)

    @property
    def ended(self) -> datetime | None:
        """The time at which the run ended; None while it continues."""
        ended = self.status.completed_at
        return datetime.fromtimestamp(ended / 1000, UTC) if ended and self.has_ended else None

    @property
    def waits(self) -> bool:
        """Whether the run has not begun."""
        return self.status.status in ("ENQUEUED", "DELAYED")

    @property
    def goes_on(self) -> bool:
        """Whether a worker executes the run, or did when it died."""
        return bool(self.status.status == "PENDING")

    @property
    def error(self) -> str | None:
        """The error of the run; None if it has not failed."""
        if not self.has_ended or self.status.status == "SUCCESS":
            error = self.outcome.get("error")
            return None if error is None else str(error)
        return ENDED_FROM_OUTSIDE

    def raise_failed(self) -> None:
        """Raise the run's error, with the messages that it had completed."""
        if self.error is not None:
            failed = RunFailedError(self.error)
            attach_messages(failed, self.made())
            raise failed

    def added(self) -> list[BaseMessage]:
        """The messages that the run was begun with."""
        return [copy_of(message) for message in self._added]

    def made(self) -> list[BaseMessage]:
        """The messages of the finished run."""
        return [copy_of(message) for message in self._made]

    def made_so_far(self) -> list[BaseMessage]:
        """The messages of the run so far."""
        if not self.goes_on:
            return self.made()
        return [one.message for one in events_so_far(self.id) if isinstance(one, MessageDone) and one.parent_run_id is None]

    @property
    def messages(self) -> Sequence[BaseMessage]:
        """The messages that the run was begun with and those of the finished run. Nobody changes them."""
        return [*self._added, *self._made]

    @cached_property
    def size(self) -> int:
        """The number of characters of the run's input and output as JSON."""
        return len(json.dumps([self.request, self.outcome]))

    @property
    def message_ids(self) -> list[str | None]:
        """The ids of the messages that the run has added and made so far."""
        return [one.id for one in (*self._added, *(self.made_so_far() if self.goes_on else self._made))]

    @stored("the request")
    def _added(self) -> list[BaseMessage]:
        return [message_of(data) for data in self.request["messages"]]

    @stored("the outcome")
    def _made(self) -> list[BaseMessage]:
        outcome = self.outcome
        return new_messages(self.message) if "message" in outcome else [message_of(data) for data in outcome.get("messages", ())]

    def exported(self) -> dict[str, Any]:
        """Return the run's exported data, other than its messages."""
        status = "waits" if self.waits else "goes on" if self.goes_on else "ended" if self.error is None else "failed"
        return {"id": self.id, "kind": self.request["kind"], "begun": self.begun.isoformat(), "status": status, "error": self.error}


def _attributes_of(data: Any) -> Mapping[str, Any]:
    """Return the attributes of a run, which must be of their form.

    Raises:
        TypeError: They are not.
    """
    noted = checked(mapping_of(data, CONVERSATION), **_ATTRIBUTES)
    left, labels = noted.get(LEFT, "failed"), noted.get(LABELS, {}).values()
    if left not in ("failed", "calls_pending") or not all(isinstance(one, str) for one in labels):
        raise TypeError("attributes of other values")
    return noted
