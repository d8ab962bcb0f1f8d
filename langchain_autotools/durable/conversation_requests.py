"""What runs of conversations are begun with: messages, and decisions about the calls that wait."""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig

from ..errors import ConfigurationError
from ..executor import Decision, PendingCall, ToolExecutor, pending_calls
from ..executor.approval.pending import check_offered
from ..messages.calls import ToolCallRecord
from .conversation_runs import APPEND, DECIDE, DECIDED, SEND, ConversationRun
from .plain import check_storable, plain_config, plain_keywords, plain_messages

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
    check_storable(what, name)
    size = len(quote(name, safe=""))
    if size > _LONGEST:
        raise ConfigurationError(f"{what} has at most {_LONGEST} bytes once it is quoted as in a URL: this one has {size}")


def named(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The messages, each with an id.

    Raises:
        ConfigurationError: An id cannot be stored as it is, and could become that of another message.
    """
    for one in messages:
        check_storable("the id of a message", one.id or "")
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


def request_of_appended(
    runs: Sequence[ConversationRun], messages: Sequence[BaseMessage]
) -> ConversationRun | tuple[dict[str, Any], dict[str, Any]]:
    """What a run is begun with that adds those of the messages that the conversation does not have; where it has all, the last one's."""
    there, new = _runs_by_message(runs), dict[str | None, BaseMessage]()
    for one in messages:
        if one.id not in there:
            new.setdefault(one.id, one)
    return (request_of(APPEND, list(new.values())), {}) if new else there[messages[-1].id]


def request_of_sent(
    runs: Sequence[ConversationRun], message: BaseMessage | None, request: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a run is begun with that answers a message: with the message, unless that was appended and is the last one.

    Args:
        runs: Those of the conversation.
        message: The message; None where its id was made just now.
        request: What it is begun with.

    Raises:
        ConfigurationError: The conversation has a message with this id elsewhere.
    """
    run = None if message is None else _runs_by_message(runs).get(message.id)
    if message is None or run is None:
        return request, {}
    if run is runs[-1] and run.request["kind"] == APPEND and run.added()[-1].id == message.id:
        return {**request, "messages": []}, {}
    raise ConfigurationError(f"the conversation has a message {message.id!r} already, and others behind it: send one with an id of its own")


def _runs_by_message(runs: Sequence[ConversationRun]) -> dict[str | None, ConversationRun]:
    """The runs that have brought messages, by the ids of these."""
    return {one.id: run for run in runs for one in (*run.added(), *run.made_so_far())}


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


def check_decision(executor: ToolExecutor, call: PendingCall, decision: Decision) -> None:
    """Refuse a decision that the run which goes on with it could not carry out.

    Raises:
        ConfigurationError: Such a call takes no such decision, or its tool does not take the arguments.
    """
    check_offered(call.id, call.kind, decision.action)
    if decision.action == "edit":
        executor.decided(ToolCallRecord(call.id, call.name, "", call.args), decision)


Begun = tuple[dict[str, Any], dict[str, Any]]
"""What a run is begun with, and what is noted of it."""


def request_of_decisions(
    runs: Sequence[ConversationRun],
    given: Sequence[Decision],
    config: RunnableConfig | None,
    check: Callable[[PendingCall, Decision], None],
) -> ConversationRun | Begun:
    """What a run is begun with that goes on with decisions, and what is noted of it; the run that has followed them, where none is new.

    It has the keywords of the run that left the calls, and its configuration unless one is given: what that one was not allowed to do, it
    is not either, and its tools act for the same user.

    Args:
        runs: The runs of the conversation.
        given: The decisions.
        config: The configuration that was given.
        check: Raises `ConfigurationError` where a call cannot be carried out as it was decided.

    Raises:
        ConfigurationError: As `decide` does.
    """
    new = _new_decisions(runs, given, check)
    if isinstance(new, ConversationRun):
        return new
    last = next((run for run in reversed(runs) if run.request["kind"] != APPEND), None)
    before = {"config": None, "keywords": {}} if last is None else last.request
    request = request_of(DECIDE, [], before["config"] if config is None else config, {**before["keywords"], "resume": new})
    return request, {DECIDED: json.dumps({shown_as(one): one.to_dict() for one in new})}


def _new_decisions(
    runs: Sequence[ConversationRun], given: Sequence[Decision], check: Callable[[PendingCall, Decision], None]
) -> ConversationRun | list[Decision]:
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
            check(open_calls[shown_as(one)], one)
            new.append(one)
        elif before == one.to_dict():
            followed = run
        elif run is not None:
            raise ConfigurationError(f"call {one.id!r} was decided otherwise before")
        else:
            raise ConfigurationError(f"call {one.id!r} does not wait for a decision, or is another call than was shown")
    return new if new or followed is None else followed


# ---------------------------------------------------------------------------------------------- what is tried again


def request_of_retry(runs: Sequence[ConversationRun], failed: ConversationRun) -> Begun:
    """What a run is begun with that does again what a failed one did not come to.

    What that one had completed stands in the history: this one adds no message, and goes on from there.

    Raises:
        ConfigurationError: It has not failed, it is not the last one, or it has left calls that wait for decisions.
    """
    if failed.error is None:
        raise ConfigurationError(f"run {failed.id!r} has not failed: there is nothing to try again")
    if runs[-1].id != failed.id:
        raise ConfigurationError(f"run {failed.id!r} is not the last one of its conversation: others went on from what it had come to")
    if waiting(runs):
        raise ConfigurationError(
            f"run {failed.id!r} has left calls that wait, and what it did of them is not known: decide about them again"
        )
    keywords = {name: value for name, value in failed.request["keywords"].items() if name != "resume"}
    return request_of(SEND, [], failed.request["config"], keywords), {}
