"""Values of a run as plain JSON in the database, so that nothing has to be unpickled."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, wraps
from typing import Any, TypeVar, cast
from urllib.parse import quote

from langchain_core.messages import AIMessage, BaseMessage, messages_from_dict
from langchain_core.runnables import RunnableConfig

from ..compat import unvalidated
from ..errors import AutoToolsError, ConfigurationError
from ..executor import Decision
from ..messages.incremental import copy_containers
from ..messages.run_messages import serialize_messages
from ..strict_json import mend_surrogates

_NOT_OF_ITS_FORM = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
_TRAVELS = ("tags", "metadata", "configurable")
_SAYS_NOTHING: Mapping[str, Any] = {"recursion_limit": 25, "callbacks": None, "max_concurrency": None, "run_name": None}
_LONGEST = 1000  # bytes of a name as it is in an id: PostgreSQL indexes no more than some 2,700 in all
_T = TypeVar("_T")
_M = TypeVar("_M", bound=BaseMessage)


class RunFailedError(AutoToolsError):
    """Raised for a durable run that failed, here or in another process; the text names its error and message."""


# ---------------------------------------------------------------------------------------------- reading
#
# A row that is not of its form is an error of the run, whatever is in it.


@contextmanager
def reading(what: str, is_new: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Translate what the body raises over stored data that is not of its form.

    Args:
        what: What is read.
        is_new: Whether the body has made the data, and not read it.

    Raises:
        RunFailedError: It is not.
    """
    try:
        yield
    except AutoToolsError:
        raise
    except Exception as error:
        if is_new() or not (isinstance(error, _NOT_OF_ITS_FORM) or type(error) is Exception):  # DBOS's own of a step without a record
            raise
        raise RunFailedError(f"{what} cannot be read: it is not as a run stores it ({type(error).__name__})") from error


def stored(what: str) -> Callable[[Callable[[Any], _T]], cached_property[_T]]:
    """Return a decorator of a method that reads what is stored of its run: a cached property that raises as of `reading`."""

    def decorate(read: Callable[[Any], _T]) -> cached_property[_T]:
        @wraps(read)
        def checked(run: Any) -> _T:
            with reading(f"{what} of run {run.id!r}"):
                return read(run)

        return cached_property(checked)

    return decorate


def mapping_of(value: Any, *keys: str) -> Mapping[str, Any]:
    """Return a stored value that must be a mapping with these keys.

    Raises:
        TypeError: It is none.
    """
    if not isinstance(value, Mapping) or not value.keys() >= {*keys}:
        raise TypeError(f"a mapping with {', '.join(keys) or 'any keys'} is stored here, not {type(value).__name__}")
    return value


def checked(data: Mapping[str, Any], **kinds: Any) -> Mapping[str, Any]:
    """Return stored data whose values of these names, where it has them, must be of these types.

    Raises:
        TypeError: One is of another type.
    """
    for name, kind in kinds.items():
        if name in data and not isinstance(data[name], kind):
            raise TypeError(f"{name} is no {type(data[name]).__name__}")
    return data


# ---------------------------------------------------------------------------------------------- plain JSON of values, and back


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


def storable_text(text: str) -> str:
    """Return a text with U+FFFD in place of NUL and lone surrogates, which no database column can store. JSON can contain NUL."""
    return mend_surrogates(text).replace("\0", "\ufffd")


def storable(value: _T) -> _T:
    """Return plain JSON whose texts have U+FFFD in place of lone surrogates, which have no UTF-8."""
    text = json.dumps(value, ensure_ascii=False)
    mended = mend_surrogates(text)
    return value if mended == text else cast("_T", json.loads(mended))


def _plain_json(value: Any, what: str) -> Any:
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
    return {name: _plain_json(given[name], name) for name in _TRAVELS if given.get(name)}


def plain_keywords(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords of a call as plain JSON, with decisions and messages as dicts.

    Raises:
        ConfigurationError: One of them is not, or has no effect on a durable run.
    """
    if keywords.get("cancel") is not None:
        raise ConfigurationError("a durable run is cancelled by its id, from any process: durable(...).cancel(run_id)")
    if keywords.get("inbox") is not None:
        words = (
            'an inbox is a queue of this process, which a durable run may leave: Conversations.send(..., while_running="steer") reaches it'
        )
        raise ConfigurationError(words)
    resume = keywords.get("resume")
    if isinstance(resume, Sequence) and not isinstance(resume, str):
        keywords = {**keywords, "resume": [one.to_dict() if isinstance(one, Decision) else one for one in resume]}
    elif isinstance(resume, Mapping):
        keywords = {**keywords, "resume": {key: one.to_dict() if isinstance(one, Decision) else one for key, one in resume.items()}}
    if isinstance(message := keywords.get("message"), BaseMessage):
        keywords = {**keywords, "message": plain_messages([message])[0]}
    return {name: _plain_json(value, name) for name, value in keywords.items()}


def plain_messages(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """Return messages as plain JSON."""
    return cast("list[dict[str, Any]]", _plain_json(serialize_messages(messages), "the messages"))


def message_of(data: Mapping[str, Any]) -> Any:
    """Return the message from its plain form."""
    return messages_from_dict([dict(data)])[0]


def copy_of(message: _M) -> _M:
    """Return a copy of a message of plain data, which its reader may change."""
    extra = message.__pydantic_extra__
    values, known = copy_containers(message.__dict__), {*message.__pydantic_fields_set__}
    return unvalidated(message.__class__, values, known, None if extra is None else copy_containers(extra))


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
