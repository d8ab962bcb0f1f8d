"""Failover inside a run: a turn whose model fails is made by the next of the model's fallbacks.

Before any text has left, another model is asked and the caller does not notice. After text, the turn ends as a cut one: the text is a
message of its own, its calls never run, and the next turn goes to the next model, which is asked to go on.
"""

import asyncio
import hashlib
import logging
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, Final, Literal, TypeVar, cast, get_args

from langchain_core.exceptions import (
    ContextOverflowError,
    ModelAuthenticationError,
    ModelError,
    ModelNotFoundError,
    ModelPermissionDeniedError,
    ModelRateLimitError,
    ModelTimeoutError,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import SecretStr

from ..chunks import ChunkSum
from ..deadline import Deadline, DeadlinePassed, reply_begins
from ..errors import ConfigurationError, StreamError, UnsupportedFeatureError
from ..event_types import ModelChanged
from ..executor.names import tool_name
from ..messages.metadata import (
    cut_reply,
    last_failover_mark,
    open_cuts,
    own_metadata,
    text_of,
    with_failover_mark,
    with_own_metadata,
    with_rejected,
)
from ..messages.run_messages import stop_reason
from ..retry import is_transient
from ..turn.model import SingleTurnChatModel
from ..turn.tools import format_tools, is_builtin
from .adopted_models import AdoptedChatModel
from .run import cut_message
from .settings import RUN_KEYWORDS, AfterText, RunFields, is_parsed, wire_form
from .turn_wrappers import (
    NOTHING_DECLARED,
    AsyncProceed,
    Discarded,
    Mark,
    Notice,
    Proceed,
    Restart,
    Stored,
    TurnPart,
    TurnRequest,
    TurnWrapper,
    WireForm,
)

EndedAs = Literal["refused", "length"]
"""A stop reason of a reply without text that may lead to another model."""

_ALWAYS: Final = (ModelAuthenticationError, ModelPermissionDeniedError, ModelNotFoundError, ModelRateLimitError)
_REFUSED_KEYS: Final = (401, 402, 403, 404)
_TRANSPORT: Final = frozenset({"TransportError", "APIConnectionError", "NetworkError", "HTTPClientError", "ConnectionError", "Timeout"})


@dataclass(frozen=True)
class FirstToken:
    """A condition of `fallback_on`: a streamed reply has not begun within so many seconds.

    It holds for each attempt at a model while another model is left. It begins with its first piece of text, reasoning or a tool call. The
    synchronous methods give up a silent server only in models of this package.

    Attributes:
        seconds: The seconds.

    Raises:
        ConfigurationError: They are not above 0.
    """

    seconds: float

    def __post_init__(self) -> None:
        if isinstance(self.seconds, bool) or not isinstance(self.seconds, int | float) or not self.seconds > 0:
            raise ConfigurationError(f"FirstToken takes a number of seconds above 0, not {self.seconds!r}")


Condition = type[BaseException] | Callable[[Any], bool] | FirstToken | EndedAs
"""A condition of `fallback_on`."""


@dataclass(frozen=True)
class FailoverRules:
    """The rules of one model's failover.

    Attributes:
        errors: Classes of errors, and predicates over an error; one of them must hold.
        first_token: Seconds within which a streamed reply must begin; None for no limit.
        ended_as: The stop reasons of a reply without text that lead to another model.
        attempts: Maximum number of attempts at a model, including the first, while another model is left.
        cooldown: Seconds for which a model that failed is asked only where all have failed; None for none.
        after_text: Action when a model fails after text has left.
    """

    errors: Sequence[type[BaseException] | Callable[[Any], bool]]
    first_token: float | None
    ended_as: frozenset[str]
    attempts: int
    cooldown: float | None
    after_text: AfterText

    @classmethod
    def of(cls, model: Any) -> "FailoverRules":
        """Return the rules that a model's fields set.

        Raises:
            ConfigurationError: One of them cannot work.
        """
        conditions = _conditions(model.fallback_on)
        errors = [one for one in conditions if not isinstance(one, FirstToken | str)]
        times = [one.seconds for one in conditions if isinstance(one, FirstToken)]
        attempts, cooldown = model.fallback_attempts, model.cooldown
        if isinstance(attempts, bool) or not isinstance(attempts, int) or attempts < 1:
            raise ConfigurationError(f"fallback_attempts must be a whole number, 1 or more, not {attempts!r}")
        if cooldown is not None and (isinstance(cooldown, bool) or not isinstance(cooldown, int | float) or not cooldown > 0):
            raise ConfigurationError(f"cooldown must be a number of seconds above 0, or None for none, not {cooldown!r}")
        if model.after_text not in get_args(AfterText):
            raise ConfigurationError(f"after_text must be one of {', '.join(get_args(AfterText))}, not {model.after_text!r}")
        ended_as = frozenset(one for one in conditions if isinstance(one, str))
        return cls(errors or [_is_failure], min(times, default=None), ended_as, attempts, cooldown, model.after_text)

    def applies(self, error: BaseException) -> bool:
        """Whether another model answers this error."""
        return any(isinstance(error, one) if isinstance(one, type) else bool(one(error)) for one in self.errors)


def _is_failure(error: BaseException) -> bool:
    """Whether an error is a failure of its model or server, which another one need not have: what retries repeat, refused keys, spent
    quotas and unknown models. A request that is wrong, or too long, is none."""
    if isinstance(error, ContextOverflowError):
        return False
    if getattr(error, "is_retryable", False) is True or isinstance(error, (*_ALWAYS, ConnectionError, TimeoutError)):
        return True
    status = _status_of(error)
    if status is not None:
        return status in _REFUSED_KEYS or is_transient(status)
    return not _TRANSPORT.isdisjoint(cls.__name__ for cls in type(error).__mro__)


def _status_of(error: BaseException) -> int | None:
    """Return the HTTP status of an SDK's error; None if it has none."""
    response = getattr(error, "response", None)
    parsed = response.get("ResponseMetadata") if isinstance(response, Mapping) else None
    values = (
        getattr(error, "status_code", None),
        getattr(response, "status_code", None),
        parsed.get("HTTPStatusCode") if isinstance(parsed, Mapping) else None,
        getattr(error, "code", None),
    )
    return next((value for value in values if isinstance(value, int) and 400 <= value <= 599), None)


def _conditions(given: Any) -> list[Any]:
    listed = [] if given is None else list(given) if isinstance(given, list | tuple | set | frozenset) else [given]
    for one in listed:
        known = callable(one) if not isinstance(one, str) else one in get_args(EndedAs)
        if not (known or isinstance(one, FirstToken)) or (isinstance(one, type) and not issubclass(one, BaseException)):
            stops = " or ".join(map(repr, get_args(EndedAs)))
            raise ConfigurationError(
                f"fallback_on takes classes of errors, functions of an error, FirstToken(seconds), {stops}; not {one!r}"
            )
    return listed


_logger = logging.getLogger("langchain_autotools")

FALLBACK_FORMATS: Final = "fallback_formats"
"""Keyword of a call with the parameters that ask for its structured output, for the run's own model and for each fallback."""

_PORTABLE: Final = frozenset(
    {
        *("stop", "temperature", "top_p", "max_tokens", "timeout", "parallel_tool_calls", "reasoning_effort"),
        "ls_structured_output_format",
    }
)
"""Keywords of a call that mean the same to every model."""

_OF_SOME: Final = frozenset({"seed"})
"""Keywords of a call that mean the same to every model that has a field of this name."""

_SERVER_STATE: Final = frozenset({"previous_response_id", "conversation", "container"})
"""Keywords that continue what only one server knows."""

_OF_RUNS: Final = RUN_KEYWORDS | (RunFields.model_fields.keys() - {"tools", "handlers", "middleware"})
"""The fields of a model that configure a run."""

_OF_ACCOUNTS: Final = ("api_key", "token_provider", "credentials", "organization", "project")
"""The ends of the names of fields that say, beside secrets and headers, for whom a model asks."""

_FORMATS = ("response_format", "response_schema", "response_json_schema", "response_mime_type", "format")
_HOLD_FORMATS = ("output_config", "text")
_cooling: dict[tuple[str, ...], float] = {}  # until when, by the monotonic clock, by endpoint, model and whose key asks


class Failover(TurnWrapper):
    """The failover of one run.

    Args:
        model: The run's model.
        tools: The tools that it declares itself.

    Raises:
        ConfigurationError: A fallback cannot take the model's place.
    """

    layer: ClassVar[str] = "failover"

    def __init__(self, model: Any, tools: Sequence[Any]) -> None:
        _check_fallbacks(model, tools)
        self.rules = FailoverRules.of(model)
        self.models = _FailoverModels(model)
        self._is_checked = False

    def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[TurnPart]:
        """Yield the parts of a turn by the first model that does not fail, or up to where one fails after text."""
        turn = self._begin(request)
        while not turn.is_over:
            try:
                with closing(_first_in_time(proceed(turn.request), turn.first_token)) as parts:
                    for part in parts:
                        yield from turn.part(part)
                turn.is_over = True
            except Exception as error:
                yield from turn.failed(error)

    async def awrap_turn(self, request: TurnRequest, proceed: AsyncProceed) -> AsyncGenerator[TurnPart, None]:
        """Like `wrap_turn`, asynchronously."""
        turn = self._begin(request)
        while not turn.is_over:
            try:
                async with aclosing(_aparts(turn, proceed)) as parts:
                    async for part in parts:
                        yield part
            except Exception as error:
                for one in turn.failed(error):
                    yield one

    def _begin(self, request: TurnRequest) -> "_Turn":
        if not self._is_checked:  # before the first request, not when a model has failed
            self.models.check(request)
            self._is_checked = True
        return _Turn(self.rules, self.models, request)


async def _aparts(turn: "_Turn", proceed: AsyncProceed) -> AsyncGenerator[TurnPart, None]:
    """Yield what leaves of one model's reply, and end the turn with it."""
    made = cast("AsyncGenerator[TurnPart, None]", proceed(turn.request))
    async with aclosing(_afirst_in_time(made, turn.first_token)) as parts:
        async for part in parts:
            for one in turn.part(part):
                yield one
    turn.is_over = True


# ---------------------------------------------------------------------------------------------- one turn


_BROKEN_OFF = frozenset({"incomplete", "error", "failed", "aborted", "abort", "insufficient_system_resource"})
"""Finish reasons, in lower case, of a reply that its server could not complete (wire quirks T-03, E-08)."""


class _Turn:
    """One turn, by one model after another.

    Args:
        rules: The rules.
        models: The models.
        request: The request for the run's own model.

    Attributes:
        is_over: Whether the turn has its end.
        request: The request of the current attempt.
    """

    def __init__(self, rules: FailoverRules, models: "_FailoverModels", request: TurnRequest) -> None:
        self.is_over = False
        self._rules = rules
        self._models = models
        self._asked = request
        self._left = models.order(request.messages)
        self._begun_at = self._left[0]
        self._number = self._begun_at
        self._notes: list[str] = []
        self._rejected: list[AIMessage] = []
        self._cause: Exception | None = None
        self._first: list[TurnPart] = []
        first = models.warm(self._left)
        if first != self._left[0]:
            _logger.warning("%s has failed lately and cools down: %s is asked", models.names[self._left[0]], models.names[first])
        self._go_to(first, None)

    def _go_to(self, number: int, error: Exception | None) -> None:
        """Begin the attempts at a model, after this error of another one."""
        if number != self._number:
            self._first.append(self._notice(number, error, after_text=False))
        if number and not self._number:
            self._models.left_behind(self._asked)
        self._number = number
        self._left.remove(number)
        self.request = self._models.request(number, self._asked, self._rules.attempts if self._left else None)
        self._chunks = ChunkSum()
        self._held: list[TurnPart] = []
        self._has_text = False

    @property
    def first_token(self) -> float | None:
        """The seconds within which the current attempt must begin; None for no limit."""
        return self._rules.first_token if self._left and self.request.streams else None

    # ------------------------------------------------------------------------------------------ what comes

    def part(self, part: TurnPart) -> Sequence[TurnPart]:
        """Return what leaves of a part. White space before the text is held back: it makes no text.

        Raises:
            _BrokenOff: The reply ends, and not well.
        """
        if isinstance(part, Mark):
            return self._out(part)
        if getattr(part, "chunk_position", "last") == "last":
            return self._last(part)
        if not self._has_text:
            text = text_of(part)
            self._has_text = bool(text.strip())
            if not self._has_text and (text or self._held):
                self._held.append(part)
                return ()
        held, self._held = self._held, []
        for one in (*held, part):
            self._chunks.add(cast("AIMessageChunk", one))
        return self._out(*held, part)

    def _last(self, part: AIMessage) -> Sequence[TurnPart]:
        reason = str(part.response_metadata.get("finish_reason") or "").lower()
        if reason in _BROKEN_OFF:
            raise _BrokenOff(StreamError(f"the reply did not come to its end (finish reason {reason!r})"), part)
        if self._rules.ended_as and not self._has_text and (ended := stop_reason(part)) in self._rules.ended_as:
            raise _BrokenOff(ModelError(f"the reply ended as {ended!r}"), part)
        return self._end(part)

    def _end(self, part: AIMessage) -> Sequence[TurnPart]:
        """Return the last parts of a reply that stays."""
        self.is_over = True
        if self._number != self._begun_at:
            part = with_failover_mark(part, self._mark(self._begun_at, self._number, after_text=False))
        held, self._held = self._held, []
        return self._out(*held, with_rejected(part, self._rejected))

    def _out(self, *parts: TurnPart) -> Sequence[TurnPart]:
        first, self._first = self._first, []
        return [*first, *parts]

    # ------------------------------------------------------------------------------------------ what fails

    def failed(self, error: Exception) -> Sequence[TurnPart]:
        """Return the marks between a failed attempt and what comes next.

        Raises:
            Exception: The error, where no other model answers it.
        """
        part = error.part if isinstance(error, _BrokenOff) else None
        cause = error.error if isinstance(error, _BrokenOff) else error
        if self.is_over or isinstance(error, DeadlinePassed):
            raise error
        self._asked.end.check()
        note = f"{self._models.names[self._number]} failed before: {type(cause).__name__}"
        if isinstance(cause, UnsupportedFeatureError) and self._cause is not None:
            cause = self._cause  # what a fallback's wire cannot carry is no answer to what has failed before
        elif part is None and not self._rules.applies(cause):
            raise self._noted(cause)
        else:
            self._cause = cause
            self._models.cool(self._number, self._rules.cooldown)
        if not self._left or (self._has_text and not self._may_go_on()):
            if part is not None and not (self._left and self._rules.after_text == "raise"):
                return self._end(part)
            raise self._noted(cause)
        self._notes.append(note)
        name = self._models.names[self._number]
        _logger.warning("%s failed (%s): %s is asked", name, note.rpartition(" ")[2], self._models.names[self._models.warm(self._left)])
        known = part or cut_reply(cause)
        return self._cut(cause, known) if self._has_text and not self._is_withheld() else self._again(cause, known)

    def _again(self, error: Exception, part: AIMessage | None) -> Sequence[TurnPart]:
        """Ask the next model for the same turn. The tokens that the last part of a reply reports count."""
        if isinstance(part, AIMessageChunk):
            self._chunks.add(part)
            part = self._chunks.message()
        if part is not None and part.usage_metadata is not None:
            self._rejected.append(part)
        marks = self._out(Discarded())
        self._go_to(self._models.warm(self._left), error)
        return [*marks, *self._out()]

    def _cut(self, error: Exception, part: AIMessage | None) -> Sequence[TurnPart]:
        """End the turn with the text that has left."""
        self.is_over = True
        to = self._models.warm(self._left)
        if isinstance(part, AIMessageChunk):
            self._chunks.add(part)
        message = cast("AIMessage", cut_message(self._chunks.message()))  # it has text
        own = {name: value for name, value in own_metadata(message).items() if name == "origin"}
        said = {**message.response_metadata, "finish_reason": "incomplete"}
        stored = message.model_copy(update={"response_metadata": with_own_metadata(said, own)})
        stored = with_rejected(with_failover_mark(stored, self._mark(self._number, to, after_text=True)), self._rejected)
        return self._out(Restart(), self._notice(to, error, after_text=True), Stored(stored))

    def _may_go_on(self) -> bool:
        """Whether another model may follow after text."""
        return self._is_withheld() or (self._rules.after_text == "continue" and not self._is_formatted())

    def _is_withheld(self) -> bool:
        """Whether the run holds text back until its turn is whole, because somebody parses it."""
        return is_parsed(self._asked.model, self._asked.keywords)

    def _is_formatted(self) -> bool:
        """Whether the call or the model's own fields demand a form of its reply, which two models cannot write together."""
        model = self.request.model
        given = {**(getattr(model, "model_kwargs", None) or {}), **self.request.keywords}
        values = {name: given.get(name) or getattr(model, name, None) for name in (*_FORMATS, *_HOLD_FORMATS)}
        inside = [values.pop(name) for name in _HOLD_FORMATS]
        return any(values.values()) or any(isinstance(value, Mapping) and value.get("format") for value in inside)

    def _noted(self, error: Exception) -> Exception:
        for note in self._notes:
            error.add_note(note)
        self._notes = []
        return error

    def _mark(self, number: int, to: int, *, after_text: bool) -> dict[str, Any]:
        return {"from": self._models.names[number], "to": self._models.names[to], "after_text": after_text}

    def _notice(self, to: int, error: Exception | None, *, after_text: bool) -> Notice:
        names = self._models.names
        return Notice(ModelChanged(run_id="", from_model=names[self._number], to_model=names[to], error=error, after_text=after_text))


class _BrokenOff(Exception):
    """Raised for a reply whose last part says that it did not end well.

    Attributes:
        error: The error that describes it.
        part: The last part.
    """

    def __init__(self, error: Exception, part: AIMessage) -> None:
        super().__init__(str(error))
        self.error = error
        self.part = part


# ---------------------------------------------------------------------------------------------- the models


class _FailoverModels:
    """The models of one run's failover: the run's own, and its fallbacks.

    Args:
        model: The run's own model.
    """

    def __init__(self, model: Any) -> None:
        shared = {"tools": model.tools, "fallbacks": model.fallbacks, "output_version": model.output_version}
        self._models = [model, *(fallback.model_copy(update=shared) for fallback in model.fallbacks)]
        self._forms: dict[int, tuple[WireForm, WireForm]] = {}  # by model: the one that it was made of, and its own

    @cached_property
    def names(self) -> Sequence[str]:
        """The models' names, `<vendor>/<model>`; of several with one name with a number."""
        names: list[str] = []
        for model in self._models:
            params = model._get_ls_params()
            name = f"{params.get('ls_provider')}/{params.get('ls_model_name') or type(model).__name__}"
            again = sum(one.partition("#")[0] == name for one in names)
            names.append(f"{name}#{again + 1}" if again else name)
        return names

    # ------------------------------------------------------------------------------------------ whose turn it is

    def order(self, messages: Sequence[BaseMessage]) -> list[int]:
        """Return the models to ask for the next reply, in order: first the one that the run is at, then those after it, those before it.

        Those that have failed at this very turn, after text, are not among them, unless all have.
        """
        mark = last_failover_mark(messages)
        current = self._number_of(mark.get("to")) if mark else 0
        failed = {self.names.index(name) for mark in open_cuts(messages) if (name := mark.get("from")) in self.names}
        numbers = [(current + place) % len(self._models) for place in range(len(self._models))]
        return [number for number in numbers if number not in failed] or numbers[:1]

    def _number_of(self, name: Any) -> int:
        if name in self.names:
            return self.names.index(name)
        _logger.warning("the history says that %s goes on with this run, which is not among its models: %s is asked", name, self.names[0])
        return 0

    def warm(self, numbers: Sequence[int]) -> int:
        """Return the first of these models that does not cool down; where all do, the first."""
        now = time.monotonic()
        return next((number for number in numbers if _cooling.get(self._place(number), now) <= now), numbers[0])

    def cool(self, number: int, seconds: float | None) -> None:
        """Leave a model alone for so many seconds, in this process."""
        if seconds is not None:
            _cooling[self._place(number)] = time.monotonic() + seconds

    def _place(self, number: int) -> tuple[str, ...]:
        model = self._models[number]
        endpoint = getattr(model, "_endpoint", None) or getattr(model, "base_url", None)
        return type(model).__qualname__, self.names[number].partition("#")[0], _account(model, str(endpoint))

    # ------------------------------------------------------------------------------------------ what is sent

    def check(self, request: TurnRequest) -> None:
        """Raise if a model cannot make this request of the run's own model.

        Raises:
            ConfigurationError: One cannot; the text names the model and what it cannot take.
        """
        for number in range(1, len(self._models)):
            self._keywords(number, request)
            self._form(number, request)

    def request(self, number: int, request: TurnRequest, attempts: int | None) -> TurnRequest:
        """Return the request for a model.

        Args:
            number: The model.
            request: The request for the run's own model.
            attempts: Maximum number of attempts; None for the model's own.
        """
        own = request.model if number == 0 else self._models[number]
        model = own if attempts is None else _with_attempts(own, attempts)
        if number == 0:
            form = replace(request.form, model=model) if request.form.model is own else request.form
            keywords = {name: value for name, value in request.keywords.items() if name != FALLBACK_FORMATS}
            return replace(request, model=model, keywords=keywords, form=form)
        form = self._form(number, request)
        form = form if form.model is None else replace(form, model=model)
        return replace(request, model=model, keywords=self._keywords(number, request), form=form)

    def _keywords(self, number: int, request: TurnRequest) -> dict[str, Any]:
        """Return the caller's keywords for a model."""
        same = type(self._models[number]) is type(self._models[0])
        formats = request.keywords.get(FALLBACK_FORMATS)
        kept: dict[str, Any] = {}
        for name, value in request.keywords.items():
            if name == FALLBACK_FORMATS or (formats and name in formats[0]):
                continue
            known = name in _PORTABLE or (name, value) == ("response_format", None)
            known = known or (name in _OF_SOME and name in type(self._models[number]).model_fields)
            if known or (same and not name.startswith("extra_") and name not in _SERVER_STATE):
                kept[name] = value
            elif name not in _SERVER_STATE and value is not None:
                raise ConfigurationError(
                    f"{name} is a keyword for {self.names[0]}, which the fallback {self.names[number]} cannot take: "
                    "set it where the models are made, each its own"
                )
        return {**kept, **formats[number]} if formats else kept

    def left_behind(self, request: TurnRequest) -> None:
        """Log what of a conversation only the server of the run's own model knows."""
        own = self._models[0]
        given = [request.keywords, getattr(own, "model_kwargs", None) or {}, {name: getattr(own, name, None) for name in _SERVER_STATE}]
        given += [one.response_metadata for one in request.messages if isinstance(one, AIMessage)]  # where a reply has opened one
        state = sorted(name for name in _SERVER_STATE if any(one.get(name) for one in given))
        if state:
            _logger.warning("%s continues what only the server of %s knows: the next model does without", ", ".join(state), self.names[0])

    def _form(self, number: int, request: TurnRequest) -> WireForm:
        """Return the tools and the choice in the form of a model's wire."""
        if request.form.model is None and not request.tools:
            return NOTHING_DECLARED
        known = self._forms.get(number)
        if known is None or known[0] is not request.form:
            model = self._models[number]
            tools = _declarations_for(self._models[0], model, request.tools)
            choice = _neutral_choice(request.tool_choice)
            form = wire_form(model, tools, choice, request.caller_tools, self._keywords(number, request))[0]
            known = self._forms[number] = (request.form, form.insisting() if request.insists else form)
        return known[1]


def _account(model: Any, endpoint: str) -> str:
    """Return a digest of where a model asks, and for whom: what failed for the key of one customer may be fine for another's."""
    known = [endpoint]
    for name, value in sorted(vars(model).items()):
        if name in _OF_RUNS:
            continue
        if isinstance(value, SecretStr):
            known.append(f"{name}={value.get_secret_value()}")
        elif isinstance(value, Mapping):
            sent = value if name.endswith(("headers", "query")) else {key: value[key] for key in ("auth", "headers") if key in value}
            known += [f"{name}.{key}={inner}" for key, inner in sorted(sent.items())]
        elif value is not None and name.endswith(_OF_ACCOUNTS):
            known.append(f"{name}={value if isinstance(value, str) else id(value)}")
    return hashlib.sha256("\n".join(known).encode()).hexdigest()


def _with_attempts(model: Any, attempts: int) -> Any:
    """Return a model with at most so many attempts at a request. One whose client makes them, of another package, is returned unchanged."""
    if "max_retries" not in type(model).model_fields or isinstance(model, AdoptedChatModel):
        return model
    own = getattr(getattr(model, "retry", None), "attempts", attempts) - 1 if model.max_retries is None else model.max_retries
    return model.model_copy(update={"max_retries": min(own, attempts - 1)})


def _declarations_for(model: Any, other: Any, tools: Sequence[Any]) -> list[Mapping[str, Any]]:
    """Return tools of a model in the form of another one's wire.

    Raises:
        ConfigurationError: One is the vendor's own, or cannot be declared there.
    """
    made: list[Mapping[str, Any]] = []
    for tool in tools:
        if not isinstance(tool, Mapping):
            made += format_tools(other, [tool])
        elif not is_builtin(tool) or "input_schema" in tool:
            made += format_tools(other, [_function(tool)])
        elif type(other) is type(model):
            made.append(tool)
        else:
            kind = type(other).__name__
            raise ConfigurationError(
                f"the tool {tool_name(tool)!r} is one of {type(model).__name__}'s vendor: the fallback {kind} has none of it"
            )
    return made


def _function(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return the declaration of a function, in the form of any wire, as OpenAI's."""
    if "input_schema" in tool:
        named = {"name": tool["name"], "description": tool.get("description", ""), "parameters": tool["input_schema"]}
        return {"type": "function", "function": named}
    return convert_to_openai_tool(dict(tool))


def _neutral_choice(choice: Any) -> Any:
    """Return a tool choice in the form of any wire as a word or a tool's name; one of several allowed tools stays."""
    if not isinstance(choice, Mapping) or choice.get("type") == "allowed_tools":
        return choice
    inner = choice.get("function")
    name = inner.get("name") if isinstance(inner, Mapping) else choice.get("name")
    return name or choice.get("type", choice)


# ---------------------------------------------------------------------------------------------- what can be no fallback


def _check_fallbacks(model: Any, tools: Sequence[Any]) -> None:
    """Raise if one of a model's fallbacks cannot take its place.

    Args:
        model: The model.
        tools: The tools that the model declares.

    Raises:
        ConfigurationError: One cannot; the text names it, and why.
    """
    for fallback in model.fallbacks:
        kind = type(fallback).__name__
        if not isinstance(fallback, SingleTurnChatModel):
            hint = f": with_tools({kind}(...), []) makes one of it" if isinstance(fallback, BaseChatModel) else ""
            raise ConfigurationError(f"a fallback is a chat model of this package, not {kind}{hint}")
        if getattr(fallback, "tools", None):
            raise ConfigurationError(
                f"the fallback {kind} has tools of its own, which would not be declared: the run's are those of its model"
            )
        known, given = type(fallback).model_fields, _OF_RUNS & fallback.model_fields_set
        unused = [one for one in sorted(given) if getattr(fallback, one) not in (getattr(model, one), known[one].get_default())]
        if unused:
            raise ConfigurationError(
                f"{', '.join(unused)} of the fallback {kind} would have no effect: a run has the settings of the model that begins it"
            )
        _declarations_for(model, fallback, tools)


# ---------------------------------------------------------------------------------------------- a limit on the time until a reply begins


_Part = TypeVar("_Part")


def _first_in_time(parts: Iterator[_Part], seconds: float | None) -> Generator[_Part, None, None]:
    """Yield parts of which the first must come within so many seconds; None for no limit. Closes them.

    Raises:
        ModelTimeoutError: It does not.
    """
    try:
        if seconds is not None:
            yield from _first(parts, seconds)
        yield from parts
    finally:
        getattr(parts, "close", lambda: None)()


def _first(parts: Iterator[_Part], seconds: float) -> Sequence[_Part]:
    deadline = _BeginDeadline(seconds)
    token = reply_begins.set(deadline.release)
    try:
        with deadline.in_sight():
            return [*islice(parts, 1)]
    except DeadlinePassed as passed:
        if passed.deadline is not deadline:
            raise
        raise _too_late(seconds) from None
    finally:
        reply_begins.reset(token)
        deadline.release()


async def _afirst_in_time(parts: AsyncGenerator[_Part, None], seconds: float | None) -> AsyncGenerator[_Part, None]:
    """Like `_first_in_time`, asynchronously."""
    async with aclosing(parts):
        if seconds is not None:
            for first in await _afirst(parts, seconds):
                yield first
        async for part in parts:
            yield part


async def _afirst(parts: AsyncGenerator[_Part, None], seconds: float) -> Sequence[_Part]:
    try:
        async with asyncio.timeout(seconds) as scope:
            token = reply_begins.set(lambda: scope.reschedule(None))
            try:
                async for part in parts:
                    return [part]
                return []
            finally:
                reply_begins.reset(token)
    except TimeoutError:
        if not scope.expired():
            raise
        raise _too_late(seconds) from None


class _BeginDeadline(Deadline):
    """The end of the wait for a reply's first piece."""

    ends_run = False

    def longest(self) -> float | None:
        """Return the time that the deadlines around this one leave: a reply that has begun may pause for longer than it took to begin."""
        return None if self._around is None else self._around.longest()

    def release(self) -> None:
        """Let the reply go on: from here on only the deadlines around this one count."""
        self.at = float("inf") if self._around is None else self._around.at


def _too_late(seconds: float) -> ModelTimeoutError:
    return ModelTimeoutError(f"the reply had not begun after {seconds:g} s")
