"""Requests of runs of conversations: what each is asked to answer, append, decide or repeat."""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig

from ..errors import ConfigurationError
from ..executor import Decision, PendingCall, ToolExecutor, pending_calls
from ..executor.pending import ELICITATION, check_answer, check_offered
from ..messages.calls import ToolCallRecord
from .conversation_runs import APPEND, DECIDE, DECIDED, SEND, ConversationRun
from .stored import check_storable, plain_config, plain_keywords, plain_messages

_LONGEST = 1000  # bytes of a name as it stands in an id: PostgreSQL indexes no more than some 2,700 in all

# ---------------------------------------------------------------------------------------------- what is sent


def check_id(conversation: str) -> None:
    """Raise if the id is not valid for a conversation.

    Raises:
        ConfigurationError: It is none, or one that a database could not keep apart from others.
    """
    check_name("the id of a conversation", conversation)


def check_name(what: str, name: str) -> None:
    """Raise for a name that cannot be part of run ids on every database.

    Args:
        what: The kind of name, for the error.
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
    """Return the messages, each with an id.

    Raises:
        ConfigurationError: An id cannot be stored as it is, and could become that of another message.
    """
    for one in messages:
        check_storable("the id of a message", one.id or "")
    return [one if one.id else one.model_copy(update={"id": uuid.uuid4().hex}) for one in messages]


def key_of(messages: Sequence[BaseMessage]) -> str:
    """Return the key under which messages are added, equal for equal messages, so that they are added once."""
    return "messages " + " ".join(str(one.id) for one in messages)


def request_of(
    kind: str, messages: Sequence[BaseMessage], config: RunnableConfig | None = None, keywords: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the request of a run as plain JSON."""
    body = {"messages": plain_messages(messages), "config": plain_config(config), "keywords": plain_keywords(keywords or {})}
    return {"kind": kind, **body}


def request_of_appended(
    runs: Sequence[ConversationRun], messages: Sequence[BaseMessage]
) -> ConversationRun | tuple[dict[str, Any], dict[str, Any]]:
    """Return the request of a run that appends the messages that the conversation lacks; the last one's run if it has all."""
    there, new = _runs_by_message(runs), dict[str | None, BaseMessage]()
    for one in messages:
        if one.id not in there:
            new.setdefault(one.id, one)
    return (request_of(APPEND, list(new.values())), {}) if new else there[messages[-1].id]


def request_of_sent(
    runs: Sequence[ConversationRun], message: BaseMessage | None, request: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the request of a run that answers a message, which it includes unless that is already the last one.

    Args:
        runs: The runs of the conversation.
        message: The message; None where its id was made just now.
        request: The request of the run.

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
    """Return the runs by the ids of the messages that they added."""
    return {message_id: run for run in runs for message_id in run.message_ids}


# ---------------------------------------------------------------------------------------------- what is decided


def _call_key(one: PendingCall | Decision) -> str:
    """Return the digest of a call as it was shown."""
    return f"{one.id} {one.digest}"


def undecided_calls(runs: Sequence[ConversationRun]) -> list[PendingCall]:
    """Return the undecided calls at the end of a conversation."""
    history: list[BaseMessage] = []
    decided: set[str] = set()
    for run in runs:
        if run.has_ended:
            history += [*run.added(), *run.made()]
        elif run.request["kind"] == DECIDE:
            decided |= run.decided.keys()
        else:
            return []
    return [call for call in pending_calls(history) if _call_key(call) not in decided]


def check_decision(executor: ToolExecutor, call: PendingCall, decision: Decision) -> None:
    """Raise if the run could not carry out a decision.

    Raises:
        ConfigurationError: Such a call takes no such decision, its tool does not take the arguments, or its question not the answer.
    """
    check_offered(call.id, call.kind, decision.action)
    if call.kind == ELICITATION and decision.action == "respond":
        check_answer(call.args, decision.value)
    if decision.action == "edit" and (executor.handlers is None or executor.find(call.name) is not None):  # handlers take what is given
        executor.decided(ToolCallRecord(call.id, call.name, "", call.args), decision)


NewRun = tuple[dict[str, Any], dict[str, Any]]
"""The request of a run, and its attributes."""


def request_of_decisions(
    runs: Sequence[ConversationRun],
    given: Sequence[Decision],
    config: RunnableConfig | None,
    check: Callable[[PendingCall, Decision], None],
) -> ConversationRun | NewRun:
    """Return request and attributes of a run that continues with decisions; the run that has followed them if none is new.

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
    return request, {DECIDED: json.dumps({_call_key(one): one.to_dict() for one in new})}


def _new_decisions(
    runs: Sequence[ConversationRun], given: Sequence[Decision], check: Callable[[PendingCall, Decision], None]
) -> ConversationRun | list[Decision]:
    """Return the new ones of the decisions; if there is none, the run that has followed them.

    Raises:
        ConfigurationError: As `decide` does.
    """
    open_calls = {_call_key(call): call for call in undecided_calls(runs)}
    made = {name: (run, decision) for run in runs for name, decision in run.decided.items()}
    new, followed = [], None
    for one in given:
        run, before = made.get(_call_key(one), (None, None))
        if _call_key(one) in open_calls and open_calls[_call_key(one)].uuid == one.uuid:
            check(open_calls[_call_key(one)], one)
            new.append(one)
        elif before == one.to_dict():
            followed = run
        elif run is not None:
            raise ConfigurationError(f"call {one.id!r} was decided otherwise before")
        else:
            raise ConfigurationError(f"call {one.id!r} does not wait for a decision, or is another call than was shown")
    return new if new or followed is None else followed


# ---------------------------------------------------------------------------------------------- what is tried again


def request_of_retry(runs: Sequence[ConversationRun], failed: ConversationRun) -> NewRun:
    """Return the request of a run that repeats the unfinished part of a failed one.

    What that one had completed stands in the history: this one adds no message, and goes on from there.

    Raises:
        ConfigurationError: It has not failed, it is not the last one, or it has left calls that wait for decisions.
    """
    if failed.error is None:
        raise ConfigurationError(f"run {failed.id!r} has not failed: there is nothing to try again")
    if runs[-1].id != failed.id:
        raise ConfigurationError(f"run {failed.id!r} is not the last one of its conversation: others went on from what it had come to")
    if undecided_calls(runs):
        raise ConfigurationError(
            f"run {failed.id!r} has left calls that wait, and what it did of them is not known: decide about them again"
        )
    keywords = {name: value for name, value in failed.request["keywords"].items() if name != "resume"}
    return request_of(SEND, [], failed.request["config"], keywords), {}
