"""The models of a failover: their names, what a request to each of them says, and which of them are left alone for a while."""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from ..errors import ConfigurationError
from ..executor.names import tool_name
from ..messages.failover import marks_of_run, open_cuts
from ..turn.model import SingleTurnChatModel
from ..turn.tools import format_tools, is_builtin
from .keywords import RUN_KEYWORDS
from .settings import wire_form
from .turn_wrappers import NOTHING_DECLARED, TurnRequest, WireForm
from .whole_class import WholeClassModel

_logger = logging.getLogger("langchain_autotools")

_PORTABLE: Final = frozenset(
    {
        *("stop", "temperature", "top_p", "max_tokens", "timeout", "parallel_tool_calls", "reasoning_effort"),
        "ls_structured_output_format",
    }
)
"""Keywords of a call that mean the same to every model."""
_OF_SOME: Final = frozenset({"seed"})
"""Keywords of a call that mean the same to every model that has a field of this name."""
FALLBACK_FORMATS: Final = "fallback_formats"
"""Keyword of a call with the parameters that ask for its structured output, for the run's own model and for each fallback."""
_SERVER_STATE: Final = frozenset({"previous_response_id", "conversation", "container"})
"""Keywords that continue what only one server knows."""
_OF_RUNS: Final = RUN_KEYWORDS | {"approval_key", "fallbacks", "fallback_on", "fallback_attempts", "cooldown", "after_text"}
"""The fields of a model that configure a run."""

_cooling: dict[tuple[str, ...], float] = {}  # until when, by the monotonic clock, by endpoint and model


class FailoverModels:
    """The models of one run's failover: the run's own, and its fallbacks.

    Args:
        model: The run's own model.
    """

    def __init__(self, model: Any) -> None:
        shared = {"tools": model.tools, "fallbacks": model.fallbacks, "output_version": model.output_version}
        self._models = [model, *(fallback.model_copy(update=shared) for fallback in model.fallbacks)]
        self._forms: dict[int, tuple[WireForm, WireForm]] = {}  # by model: the one that it was made of, and its own

    def __len__(self) -> int:
        return len(self._models)

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
        marks = marks_of_run(messages)
        current = self._number_of(marks[-1].get("to")) if marks else 0
        failed = {self.names.index(name) for mark in open_cuts(messages) if (name := mark.get("from")) in self.names}
        numbers = [(current + place) % len(self) for place in range(len(self))]
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
        return type(model).__qualname__, str(endpoint), self.names[number].partition("#")[0]

    # ------------------------------------------------------------------------------------------ what is sent

    def check(self, request: TurnRequest) -> None:
        """Raise if a model cannot make this request of the run's own model.

        Raises:
            ConfigurationError: One cannot; the text names the model and what it cannot take.
        """
        for number in range(1, len(self)):
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
            known = name in _PORTABLE or (name in _OF_SOME and name in type(self._models[number]).model_fields)
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
            tools = declared(self._models[0], model, request.tools)
            choice = neutral_choice(request.tool_choice)
            form = wire_form(model, tools, choice, request.caller_tools, self._keywords(number, request))[0]
            known = self._forms[number] = (request.form, form.insisting() if request.insists else form)
        return known[1]


def _with_attempts(model: Any, attempts: int) -> Any:
    """Return a model with at most so many attempts at a request. One whose client makes them, of another package, is returned unchanged."""
    if "max_retries" not in type(model).model_fields or isinstance(model, WholeClassModel):
        return model
    own = getattr(getattr(model, "retry", None), "attempts", attempts) - 1 if model.max_retries is None else model.max_retries
    return model.model_copy(update={"max_retries": min(own, attempts - 1)})


def declared(model: Any, other: Any, tools: Sequence[Any]) -> list[Mapping[str, Any]]:
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


def neutral_choice(choice: Any) -> Any:
    """Return a tool choice in the form of any wire as a word or a tool's name; one of several allowed tools stays."""
    if not isinstance(choice, Mapping) or choice.get("type") == "allowed_tools":
        return choice
    inner = choice.get("function")
    name = inner.get("name") if isinstance(inner, Mapping) else choice.get("name")
    return name or choice.get("type", choice)


def check_fallbacks(model: Any, tools: Sequence[Any]) -> None:
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
        unused = sorted(_settings_of(fallback, model))
        if unused:
            raise ConfigurationError(
                f"{', '.join(unused)} of the fallback {kind} would have no effect: a run has the settings of the model that begins it"
            )
        declared(model, fallback, tools)


def _settings_of(fallback: Any, model: Any) -> set[str]:
    """Return the names of the run settings of a fallback that differ from those of the model that begins the run."""
    return {
        name
        for name in _OF_RUNS & fallback.model_fields_set
        if getattr(fallback, name) not in (getattr(model, name), type(fallback).model_fields[name].get_default())
    }
