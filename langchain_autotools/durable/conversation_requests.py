"""What runs of conversations are begun with: messages, and decisions about the calls that wait."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig

from ..errors import ConfigurationError
from ..executor import Decision, PendingCall, pending_calls
from .conversation_runs import APPEND, DECIDE, DECIDED, ConversationRun
from .plain import plain_config, plain_keywords, plain_messages

_LONGEST = 1000  # bytes of a name as it stands in an id: PostgreSQL indexes no more than some 2,700 in all

# ---------------------------------------------------------------------------------------------- what is sent


def check_id(conversation: str) -> None:
    """Refuse what is no id of a conversation.

    Raises:
        ConfigurationError: It is none, or one that a database could not keep apart from others.
    """
    check_name("the id of a conversation", conversation)


def check_name(what: str, name: str) -> None:
    """Refuse a name that cannot stand in the ids of runs on every database.

    Args:
        what: What it is the name of, for the error.
        name: The name.

    Raises:
        ConfigurationError: It is empty or no text, or has a NUL or a lone surrogate, or is too long.
    """
    if not (isinstance(name, str) and name):
        raise ConfigurationError(f"{what} is a text that is not empty, not {name!r}")
    if not is_storable(name):
        raise ConfigurationError(f"{what} has neither NUL nor lone surrogates, which no database can store: {name!r:.200}")
    size = len(quote(name, safe=""))
    if size > _LONGEST:
        raise ConfigurationError(f"{what} has at most {_LONGEST} bytes once it is quoted as in a URL: this one has {size}")


def is_storable(text: str) -> bool:
    """Whether every database can store a text: it has no NUL and no lone surrogate."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def named(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The messages, each with an id."""
    return [one if one.id else one.model_copy(update={"id": uuid.uuid4().hex}) for one in messages]


def key_of(messages: Sequence[BaseMessage]) -> str:
    """What messages are added for: the same messages are added once."""
    return "messages " + " ".join(str(one.id) for one in messages)


def request_of(
    kind: str, messages: Sequence[BaseMessage], config: RunnableConfig | None = None, keywords: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What a run is begun with, as plain JSON."""
    said = {"messages": plain_messages(messages), "config": plain_config(config), "keywords": plain_keywords(keywords or {})}
    return {"kind": kind, **said}


# ---------------------------------------------------------------------------------------------- what is decided


def shown_as(one: PendingCall | Decision) -> str:
    """A call as it was shown."""
    return f"{one.id} {one.digest}"


def waiting(runs: Sequence[ConversationRun]) -> list[PendingCall]:
    """The calls that nobody has decided about, at the end of a conversation."""
    history: list[BaseMessage] = []
    decided: set[str] = set()
    for run in runs:
        if run.has_ended:
            history += [*run.added(), *run.made()]
        elif run.request["kind"] == DECIDE:
            decided |= run.decided.keys()
        else:
            return []
    return [call for call in pending_calls(history) if shown_as(call) not in decided]


def request_of_decisions(
    runs: Sequence[ConversationRun], given: Sequence[Decision], config: RunnableConfig | None
) -> ConversationRun | tuple[dict[str, Any], dict[str, Any]]:
    """What a run is begun with that goes on with decisions, and what is noted of it; the run that has followed them, where none is new.

    It has the keywords of the run that left the calls, and its configuration unless one is given: what that one was not allowed to do, it
    is not either, and its tools act for the same user.

    Raises:
        ConfigurationError: As `decide` does.
    """
    new = _new_decisions(runs, given)
    if isinstance(new, ConversationRun):
        return new
    last = next((run for run in reversed(runs) if run.request["kind"] != APPEND), None)
    before = {"config": None, "keywords": {}} if last is None else last.request
    keywords = {**before["keywords"], "resume": new}
    request = request_of(DECIDE, [], before["config"] if config is None else config, keywords)
    return request, {DECIDED: {shown_as(one): one.to_dict() for one in new}}


def _new_decisions(runs: Sequence[ConversationRun], given: Sequence[Decision]) -> ConversationRun | list[Decision]:
    """Those of the decisions that are new; where none is, the run that has followed them.

    Raises:
        ConfigurationError: As `decide` does.
    """
    open_calls = {shown_as(call): call for call in waiting(runs)}
    made = {name: (run, decision) for run in runs for name, decision in run.decided.items()}
    new, followed = [], None
    for one in given:
        run, before = made.get(shown_as(one), (None, None))
        if shown_as(one) in open_calls and open_calls[shown_as(one)].uuid == one.uuid:
            new.append(one)
        elif before == one.to_dict():
            followed = run
        elif run is not None:
            raise ConfigurationError(f"call {one.id!r} was decided otherwise before")
        else:
            raise ConfigurationError(f"call {one.id!r} does not wait for a decision, or is another call than was shown")
    return new if new or followed is None else followed
