"""Conversion of values to plain JSON for the database, so that nothing has to be unpickled."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, messages_from_dict
from langchain_core.runnables import RunnableConfig

from ..compat import unvalidated
from ..errors import ConfigurationError
from ..executor import Decision, ToolCallResult
from ..messages.calls import ToolCallRecord
from ..messages.carrier import serialize_messages
from ..messages.memo import copy_containers
from ..strict_json import mend_surrogates
from .errors import RunFailedError
from .stored import checked, mapping_of

_T = TypeVar("_T")
_M = TypeVar("_M", bound=BaseMessage)

_TRAVELS = ("tags", "metadata", "configurable")
_SAYS_NOTHING: Mapping[str, Any] = {"recursion_limit": 25, "callbacks": None, "max_concurrency": None, "run_name": None}
_KEEPS = ("executed", "duration", "return_direct", "attempts")


def is_storable(text: str) -> bool:
    """Whether every database can store a text unchanged: it has no NUL and no lone surrogate."""
    return storable_text(text) == text


def check_storable(what: str, text: str) -> None:
    """Raise if a database cannot store a name.

    Raises:
        ConfigurationError: It has a NUL or a lone surrogate.
    """
    if not is_storable(text):
        raise ConfigurationError(f"{what} has neither NUL nor lone surrogates, which no database can store: {text!r:.200}")


def storable_text(text: str) -> str:
    """Return a text with U+FFFD in place of NUL and lone surrogates, which no database column can store. JSON can contain NUL."""
    return mend_surrogates(text).replace("\0", "\ufffd")


def storable(value: _T) -> _T:
    """Return plain JSON whose texts have U+FFFD in place of lone surrogates, which have no UTF-8."""
    text = json.dumps(value, ensure_ascii=False)
    mended = mend_surrogates(text)
    return value if mended == text else cast("_T", json.loads(mended))


def plain(value: Any, what: str) -> Any:
    """Return a value as plain JSON, with U+FFFD in place of lone surrogates.

    Raises:
        ConfigurationError: It is not plain JSON, and would come back as something else or not at all.
    """
    try:
        same = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"{what} of a durable run must be plain JSON: {error}") from None
    if same != _listed(value):
        raise ConfigurationError(f"{what} of a durable run must be plain JSON: it would not come back as it is")
    return storable(same)


def _listed(value: Any) -> Any:
    """Return a value with its tuples as lists, as in JSON."""
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items()}
    return [_listed(item) for item in value] if isinstance(value, list | tuple) else value


def plain_config(config: RunnableConfig | None) -> dict[str, Any]:
    """Return the part of a configuration that is sent to the process that continues a run.

    Raises:
        ConfigurationError: It holds what would be lost on the way.
    """
    given: dict[str, Any] = dict(config or {})
    lost = [name for name in given if name not in (*_TRAVELS, "run_id") and given[name] != _SAYS_NOTHING.get(name) and given[name]]
    if lost:
        raise ConfigurationError(
            f"of the config of a durable run only {', '.join(_TRAVELS)} travel, not {', '.join(sorted(lost))}: give callbacks to the model"
        )
    return {name: plain(given[name], name) for name in _TRAVELS if given.get(name)}


def plain_keywords(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords of a call as plain JSON, with decisions as dicts.

    Raises:
        ConfigurationError: One of them is not, or has no effect on a durable run.
    """
    if keywords.get("cancel") is not None:
        raise ConfigurationError("a durable run is cancelled by its id, from any process: durable(...).cancel(run_id)")
    resume = keywords.get("resume")
    if isinstance(resume, Sequence) and not isinstance(resume, str):
        keywords = {**keywords, "resume": [one.to_dict() if isinstance(one, Decision) else one for one in resume]}
    elif isinstance(resume, Mapping):
        keywords = {**keywords, "resume": {key: one.to_dict() if isinstance(one, Decision) else one for key, one in resume.items()}}
    return {name: plain(value, name) for name, value in keywords.items()}


def plain_messages(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """Return messages as plain JSON."""
    return cast("list[dict[str, Any]]", plain(serialize_messages(messages), "the messages"))


def message_of(data: Mapping[str, Any]) -> Any:
    """Return the message from its plain form."""
    return messages_from_dict([dict(data)])[0]


def copy_of(message: _M) -> _M:
    """Return a copy of a message of plain data, which its reader may change."""
    extra = message.__pydantic_extra__
    values, known = copy_containers(message.__dict__), {*message.__pydantic_fields_set__}
    return unvalidated(message.__class__, values, known, None if extra is None else copy_containers(extra))


def plain_result(result: ToolCallResult) -> dict[str, Any]:
    """Return a call's result as plain JSON. An artifact that is not plain data is replaced by a mark, as in the run message."""
    error = None if result.error is None else f"{type(result.error).__name__}: {result.error}"
    kept = {name: getattr(result, name) for name in _KEEPS}
    return {"message": plain_messages([result.message])[0], "error": error, **kept}


def result_of(call: ToolCallRecord, data: Mapping[str, Any]) -> ToolCallResult:
    """Return a call's result from its plain form.

    Raises:
        TypeError: It is none.
    """
    message = message_of(data["message"])
    if not isinstance(message, ToolMessage):
        raise TypeError(f"a result is no {type(message).__name__}")
    error = None if data["error"] is None else RunFailedError(data["error"])
    return replace(ToolCallResult(call, message, error), **{name: data[name] for name in _KEEPS})


def reply_of(data: Mapping[str, Any]) -> AIMessage:
    """Return a model's message, or a run message, from its plain form.

    Raises:
        TypeError: It is none.
    """
    message = message_of(data)
    if not isinstance(message, AIMessage):
        raise TypeError(f"a reply is no {type(message).__name__}")
    return message


def request_of_run(request: Any, *keys: str) -> Mapping[str, Any]:
    """Return a stored request, which must be one and have these keys too.

    Raises:
        TypeError: It is none.
    """
    return checked(mapping_of(request, "messages", "config", "keywords", *keys), config=Mapping, keywords=Mapping, started=int | float)
