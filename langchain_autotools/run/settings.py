"""What is fixed of a run before it begins, by the model's fields together with the keywords of a call.

Its settings are one record, its optional parts another: its end, clock, journal, observer, wrappers. A run asks nothing of these: it has
an end that may never come, an observer that may do nothing, and turns that nothing may wrap.
"""

import time
import uuid
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache, partial
from inspect import signature
from typing import Any, ClassVar, Protocol, cast

from langchain_core.messages import BaseMessage, HumanMessage, messages_from_dict

from ..deadline import NEVER, Deadline, abounded, bounded, checked_cancel, deadline_after, deadline_of
from ..errors import ConfigurationError
from ..event_bus import current_scope
from ..executor import ToolExecutor
from ..executor.approvals import Admission, Approvals, Reservation
from ..executor.executor import ExecutionSettings, checked_listener
from ..executor.names import OtherwiseNamed, tool_keys, tool_name
from ..executor.nested_runs import current_nested_runs
from ..executor.run_tool import is_run_tool
from ..executor.steps import CallWrapper
from ..executor.tools import ToolSource, callable_tools
from ..messages.calls import FOR_CALLER
from ..messages.metadata import InnerUsage
from ..turn.model import MISTAKEN
from ..turn.tools import Formatter, ToolChoice, format_request_tools, format_tool_choice, format_tools, is_builtin
from .decisions import read_resume
from .loop import Limits, RunPlan
from .turn_wrappers import (
    NOTHING_DECLARED,
    AsyncProceed,
    Proceed,
    RunClaims,
    RunJournal,
    RunObserver,
    TurnPart,
    TurnRequest,
    Turns,
    TurnWrapper,
    WireForm,
)

_OUTPUT = "ls_structured_output_format"
"""The keyword of a call whose output has a schema, as LangChain's tracing knows it."""

_OF_ANOTHER = frozenset({"model", "model_name"})
_LIMITS = frozenset(one.name for one in fields(Limits))
_OF_EXECUTION = frozenset(signature(ExecutionSettings.read).parameters)
_OTHERS = frozenset(
    {"message_separator", "carry_messages", "resume", "message", "cancel", "inbox", "journal", "before_turn", "prices", "output_check"}
)

RUN_KEYWORDS = _LIMITS | _OTHERS | _OF_EXECUTION - {"approval_key"}
"""Keywords of a call that configure a run and never reach the vendor."""

_LIFTED_BY_NONE = _LIMITS - {"on_limit", "polling_tools"}
_NEAR = 2


class Configured(Formatter, Protocol):
    """The interface of a model whose fields configure its runs.

    It also has one field for each name in `RUN_KEYWORDS` except `resume`, `message`, `cancel`, `inbox`, `journal` and `output_check`."""

    tools: Any
    handlers: Any
    output_version: str | None
    context_window: int | None
    profile: Any
    middleware: Any
    _not_per_call: ClassVar[frozenset[str]]
    _first_request_only: ClassVar[frozenset[str]]


@dataclass(frozen=True)
class Toolbox:
    """A model's own tools, prepared once.

    Attributes:
        source: The value of the model's `tools` that this was made of.
        executor: Executes them.
        objects: They, and the builtin tools of the vendor, as they were given, each with its name.
        declarations: The same in the wire's form.
        caller_tools: The names of those builtin tools that run on the caller's machine, and that nothing here executes.
        sources: Those tools that are sources of others.
        makes_runs: Whether models or agents are among the tools.
        handlers: The value of the model's `handlers`.
        requests: What the model remembers of the requests that declare them.
    """

    source: Any
    executor: ToolExecutor
    objects: Sequence[tuple[str, Any]]
    declarations: Sequence[Mapping[str, Any]]
    caller_tools: frozenset[str] = frozenset()
    sources: Sequence[ToolSource] = ()
    makes_runs: bool = False
    handlers: Any = None
    requests: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class CallSettings:
    """The settings of one call, from the model's fields and the call's keywords.

    Attributes:
        limits: The limits of the run.
        usage_limits: The names of those among them that somebody has set and that need to know the usage of tokens.
        separator: The separator between the texts of two turns.
        carry_messages: Whether chunks carry the new messages as data.
        decisions: The decisions about calls at the end of the input.
        message: The user's message behind the results of these calls; None if there is none.
        cancel: The caller's cancellation flag; None if there is none.
        inbox: The queue of what the user says during the run; None if there is none.
        output_check: Checks the output of each reply, and makes the turn again; None where nothing does.
        before_turn: Changes each request; None where nothing does.
        middleware: Stands around the turns and calls.
        journal: Remembers what the run does, so that a later process goes on with it; None where nothing does.
        call: How this call wants the tools' calls executed.
        fields: How the model's fields do.
        prices: Prices of models, for `max_cost`.
    """

    limits: Limits
    usage_limits: Sequence[str]
    separator: str
    carry_messages: bool
    decisions: Any
    message: HumanMessage | None
    cancel: Any
    inbox: Any
    output_check: Any
    before_turn: Any
    middleware: Sequence[Any]
    journal: RunJournal | None
    call: ExecutionSettings
    fields: ExecutionSettings
    prices: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def executor(self, own: ToolExecutor) -> ToolExecutor:
        """Return the executor as this run wants it.

        Raises:
            ConfigurationError: A setting names a tool that the executor does not have.
        """
        settings = self.call.over(own.settings).over(self.fields)
        return own.with_settings(settings if own.tools or own.handlers else replace(settings, policies=own.policies))


@dataclass(frozen=True)
class RunSettings:
    """The presentation settings of a run, fixed before it starts.

    Attributes:
        plan: Limits, and whose calls are whose.
        call: What the model's fields and the keywords of the call say.
        executor: Executes the calls.
        form: What requests declare, in the form of the model's wire.
        approvals: What calls need before they run; None for nothing.
        tools: The declared tools: objects where they are known as such, else as the caller declared them.
        tool_choice: The tool choice as the caller gave it.
        last_text_only: Whether the texts of turns that call tools are withheld: a parser reads what the run says.
        output_version: The model's output version.
        lists_content: Whether the content of its replies is always a list of blocks.
        client_tools: The names of tools of the vendor's that run on the caller's machine: pending calls say so.
    """

    plan: RunPlan
    call: CallSettings
    executor: ToolExecutor
    form: WireForm = NOTHING_DECLARED
    tools: Sequence[Any] = ()
    tool_choice: Any = None
    last_text_only: bool = False
    output_version: str | None = None
    lists_content: bool = False
    usage_limits: Sequence[str] = ()
    approvals: Approvals | None = None
    client_tools: frozenset[str] = frozenset()


def toolbox_of(model: Configured) -> Toolbox:
    """Return the model's tools, prepared.

    Raises:
        ConfigurationError: Something in `tools` can be neither executed nor declared.
    """
    builtin: list[Any] = []
    tools = () if model.tools is None else model.tools
    if isinstance(tools, ToolExecutor):
        executor = tools
    elif isinstance(tools, Mapping):
        executor = ToolExecutor(callable_tools(tools) if model.skip_invalid_tools else tools)
    elif isinstance(tools, str) or not isinstance(tools, Sequence):
        raise ConfigurationError(f"tools must be a list, a mapping or a ToolExecutor, not {type(tools).__name__}")
    else:
        builtin = [tool for tool in tools if is_builtin(tool)]
        own_tools = [tool for tool in tools if not is_builtin(tool)]
        executor = ToolExecutor(callable_tools(own_tools) if model.skip_invalid_tools else own_tools)
    on_client = model.client_tool_names(builtin)
    if model.handlers:
        executor = executor.with_handlers(model.handlers, on_client)
    own = [
        (name, tool) for name, tool in executor.tools.items() if name not in on_client
    ]  # what runs the vendor's is not declared beside it
    objects = [*own, *((tool_name(tool), tool) for tool in builtin)]
    declarations = format_tools(model, [tool for _, tool in objects], checked=True)
    sources = [tool for tool in (tools if isinstance(tools, Sequence) else ()) if isinstance(tool, ToolSource)]
    makes_runs = any(map(is_run_tool, executor.tools.values()))
    handlers = executor.handlers
    left = [name for name, kind in on_client.items() if name not in executor.tools and (handlers is None or not handlers.has(kind))]
    return Toolbox(model.tools, executor, objects, declarations, frozenset(left), sources, makes_runs, handlers=model.handlers)


def run_settings(model: Configured, toolbox: Toolbox, keywords: dict[str, Any], messages: Sequence[BaseMessage] = ()) -> RunSettings:
    """The settings of one run over these messages; takes what belongs to it out of `keywords`.

    Raises:
        ConfigurationError: A setting cannot work.
    """
    prices_of_call = keywords.get("prices")
    call = call_settings(model, keywords)
    if prices_of_call is not None and call.limits.max_cost is None:
        raise ConfigurationError("prices has an effect only with max_cost; run_cost takes prices of its own")
    around = current_nested_runs.get()
    call = call if around is None else around.bound(call)
    if call.limits.polling_tools and toolbox.source:
        call = replace(call, limits=_with_tool_keys(call.limits, toolbox.executor.tools))
    own_tools, caller_choice = keywords.pop("tools", None), model.take_tool_choice(keywords)
    if caller_choice is None:
        caller_choice = _by_model(model).get("tool_choice")
    bound = format_request_tools(model, own_tools)
    declared = {tool_name(tool) for tool in bound}
    own, caller_tools = _with_bound(model, toolbox.executor, bound, declared)
    added = model.read_added_tools(messages) - own.tools.keys()
    tools = [tool for tool in toolbox.declarations if tool_name(tool) not in declared] + bound
    form, ends = wire_form(model, tools, caller_choice, caller_tools, keywords)
    check_output(keywords, caller_tools, form.choice.allowed)
    meant = partial(own.meant, only=form.choice.allowed)
    executor = call.executor(own)
    if form.choice.single:
        executor = executor.with_settings(replace(executor.settings, parallel=False))
    approvals = executor.approvals
    if approvals is not None:
        approvals = approvals if around is None else around.governs(approvals)
        executor = executor.with_settings(replace(executor.settings, approvals=replace(approvals, judged=True)))
    optional: dict[str, Any] = {}
    if _OUTPUT in keywords:
        alone = not (own.tools or own.handlers or added or toolbox.caller_tools)
        optional["outputs"] = None if alone else {*_output_names(keywords)}
    if approvals is not None and approvals.approve is not None:
        optional["leaves"] = ("caller", *FOR_CALLER)
    used = None if around is None else around.used
    parsed = is_parsed(model, keywords)
    if call.inbox is not None:
        from .inbox import Inbox  # here, because it costs every other program its import

        optional["inbox"] = Inbox(call.inbox, after_reply=not parsed)
    if toolbox.makes_runs:
        optional["inner"] = _inner_runs(call, used)
    return RunSettings(
        plan=RunPlan(
            call.limits,
            caller_tools | added | toolbox.caller_tools,
            meant,
            ends,
            read_resume(call.decisions),
            used=used,
            waiting=() if call.message is None else (call.message,),
            **optional,
        ),
        call=call,
        executor=executor,
        form=form,
        approvals=approvals,
        client_tools=toolbox.caller_tools,
        tools=[*(tool for name, tool in toolbox.objects if name not in declared), *bound],
        tool_choice=caller_choice,
        last_text_only=parsed,
        output_version=model.output_version,
        lists_content=model.answers_in_blocks(tools),
        usage_limits=call.usage_limits,
    )


def _with_bound(
    model: Configured, executor: ToolExecutor, bound: Sequence[Mapping[str, Any]], declared: set[str]
) -> tuple[ToolExecutor, set[str]]:
    """Return the executor of a run with bound tools, whose handlers answer those of the vendor's, and the names that stay the caller's."""
    otherwise = {tool_name(tool): tool for tool in bound if isinstance(tool, OtherwiseNamed)}
    if otherwise:
        executor = copy(executor)
        executor._declared = otherwise
    if executor.handlers is None or not bound:
        return executor, declared
    on_client = model.client_tool_names(bound).items()
    handled = {name: kind for name, kind in on_client if executor.handlers.has(kind) and name not in executor.tools}
    return (executor.with_handlers({}, handled), declared - handled.keys()) if handled else (executor, declared)


def _with_tool_keys(limits: Limits, tools: Mapping[str, Any]) -> Limits:
    """Return the limits of a run with the keys of the tools that their rules name.

    Raises:
        ConfigurationError: A rule names a tool that does not exist.
    """
    names = tool_keys(limits.polling_tools, tools)
    unknown = [name for name in names if name not in tools]
    if unknown:
        raise ConfigurationError(f"polling_tools names tools that do not exist: {', '.join(map(repr, unknown))}")
    return replace(limits, polling_tools=names)


def _inner_runs(call: CallSettings, around: InnerUsage | None) -> CallWrapper:
    from .inner_runs import InnerRuns  # here, because it costs every other program its import

    return InnerRuns(call.limits, call.prices, around)


def check_output(keywords: Mapping[str, Any], declared: Collection[str], allowed: Collection[str] | None) -> None:
    """Raise if a tool choice rules out the call that holds the structured output.

    Raises:
        ConfigurationError: It is such a choice.
    """
    form = keywords.get(_OUTPUT)
    method = form.get("kwargs", {}).get("method") if isinstance(form, Mapping) else None
    if method == "function_calling" and allowed is not None and not {*declared} & {*allowed}:
        names = " or ".join(map(repr, declared))
        raise ConfigurationError(f"the output is a call of {names}, which this tool_choice leaves out: allow it, or leave tool_choice out")


def _output_names(keywords: Mapping[str, Any]) -> Iterator[str]:
    """Yield the name of the tool whose call holds the structured output; nothing where the text does."""
    form = keywords[_OUTPUT]
    if isinstance(form, Mapping) and form.get("kwargs", {}).get("method") == "function_calling" and isinstance(form.get("schema"), Mapping):
        yield tool_name(form["schema"])


def is_parsed(model: Any, keywords: Mapping[str, Any]) -> bool:
    """Whether the caller parses the run's text: structured output, or a `response_format` other than text, of the call or the model."""
    form = keywords.get("response_format", _by_model(model).get("response_format"))
    plain = form is None or (isinstance(form, Mapping) and form.get("type") == "text")
    return not plain or _OUTPUT in keywords


# ---------------------------------------------------------------------------------------------- the keywords of a call


def _checked(kind: type, words: str, name: str, value: Any) -> Any:
    if not isinstance(value, kind):
        raise ConfigurationError(f"{name} must be {words}, not {value!r}")
    return value


_boolean, _text = partial(_checked, bool, "True or False"), partial(_checked, str, "a text")


def call_settings(model: Configured, keywords: dict[str, Any]) -> CallSettings:
    """Return the settings of one call and remove them from `keywords`.

    Raises:
        ConfigurationError: A setting cannot work, a keyword has no effect at a call, or is very nearly the name of one that has.
    """
    _check_names(model, keywords)
    limits = {name: _setting(model, name, keywords) for name in sorted(_LIMITS - {"context_window"})}
    counting = {"token_budget": limits["token_budget"], "context_window": keywords.get("context_window", model.context_window)}
    call = {name: keywords.pop(name) for name in sorted(_OF_EXECUTION & RUN_KEYWORDS) if _is_given(name, keywords)}
    return CallSettings(
        limits=Limits(**limits, context_window=_context_window(model, keywords)),
        usage_limits=[name for name, value in counting.items() if value is not None],
        separator=_text("message_separator", _setting(model, "message_separator", keywords)),
        carry_messages=_boolean("carry_messages", _setting(model, "carry_messages", keywords)),
        message=_message(keywords.pop("message"), keywords.get("resume")) if _is_given("message", keywords) else None,
        decisions=keywords.pop("resume", None),
        cancel=checked_cancel(keywords.pop("cancel")) if _is_given("cancel", keywords) else None,
        inbox=keywords.pop("inbox", None),
        output_check=keywords.pop("output_check", None),
        before_turn=checked_listener("before_turn", _setting(model, "before_turn", keywords)),
        middleware=model.middleware,
        journal=keywords.pop("journal", None),
        call=ExecutionSettings.read(**call),
        fields=ExecutionSettings.read(**{name: getattr(model, name) for name in sorted(_OF_EXECUTION)}),
        prices=_prices(_setting(model, "prices", keywords)),
    )


def drop_settings(model: Configured, keywords: dict[str, Any]) -> Limits | None:
    """Remove the settings of a run from the keywords of a single request; return the limits, or None if no keyword is set.

    Raises:
        ConfigurationError: As of `call_settings`.
    """
    if RUN_KEYWORDS.isdisjoint(keywords):
        _check_names(model, keywords)
        return None
    return call_settings(model, keywords).limits


def _is_given(name: str, keywords: dict[str, Any]) -> bool:
    """Whether the call sets this keyword: None lifts a limit, and is no value for other keywords."""
    if name in keywords and keywords[name] is None and name not in _LIFTED_BY_NONE:
        del keywords[name]
    return name in keywords


def _setting(model: Any, name: str, keywords: dict[str, Any]) -> Any:
    return keywords.pop(name) if _is_given(name, keywords) else getattr(model, name)


def _message(given: Any, decisions: Any) -> HumanMessage:
    """Return the message that a resumed run takes, as `repair` leaves it; it may be given as a dict of LangChain's.

    Raises:
        ConfigurationError: It is none, or nothing is resumed.
    """
    if decisions is None:
        raise ConfigurationError("message goes with resume=decisions, behind the results of the calls: here it has no effect")
    from .inbox import user_message  # here, because it costs every other program its import

    if isinstance(given, Mapping) and given.get("type") == "human":
        with suppress(LookupError, TypeError, ValueError):
            (given,) = messages_from_dict([dict(given)])
    return user_message("message", given)


def _prices(prices: Any) -> Mapping[str, Mapping[str, Any]]:
    if prices is None:
        return {}
    from ..pricing import own_prices  # here, because it costs every other program its import

    return own_prices(prices)


def _context_window(model: Configured, keywords: dict[str, Any]) -> int | None:
    """Return the context window of the call, the model or its profile, which only applies to the model's own name."""
    if "context_window" in keywords:
        asked: int | None = keywords.pop("context_window")
        return asked
    profile = {} if _OF_ANOTHER & keywords.keys() else model.profile or {}
    known = profile.get("max_input_tokens") if isinstance(profile, Mapping) else None
    of_profile = known if isinstance(known, int) and known > 0 else None  # a class of somebody else's may have anything there
    return of_profile if model.context_window is None else model.context_window


# ---------------------------------------------------------------------------------------------- hints for misspelt keywords


def _check_names(model: Configured, keywords: Mapping[str, Any]) -> None:
    if "show_progress" in keywords:
        raise ConfigurationError("show_progress is for batch, abatch and their kin: here it has no effect")
    for name in keywords.keys() - RUN_KEYWORDS:
        if name in model._not_per_call:
            raise ConfigurationError(
                f"{name} is set where the model is made, not at a call; a vendor's own parameter of that name goes in extra_body"
            )
        if name in MISTAKEN and not _is_known(model, name):
            raise ConfigurationError(f"there is no keyword {name!r}: {MISTAKEN[name]}")
        near = _nearest(name)
        if near is not None and not _is_known(model, name):
            raise ConfigurationError(f"there is no keyword {name!r}: did you mean {near!r}?")


def _is_known(model: Any, name: str) -> bool:
    """Whether the model itself accepts a keyword of this name, as a constructor argument or in its request methods."""
    own = type(model)
    return name in own._argument_names() or any(name in signature(method).parameters for method in (own.raw_stream, own._stream))


@lru_cache(maxsize=512)
def _nearest(name: str) -> str | None:
    """Return the run keyword within two letters of `name`."""
    near = [(_distance(name, keyword), keyword) for keyword in sorted(RUN_KEYWORDS) if abs(len(name) - len(keyword)) <= _NEAR]
    distance, keyword = min(near, default=(_NEAR + 1, ""))
    return keyword if distance <= _NEAR else None


def _distance(one: str, other: str) -> int:
    """Return the edit distance of two words."""
    row: Sequence[int] = range(len(other) + 1)
    for number, letter in enumerate(one, 1):
        last, above = number, number - 1
        made = [last]
        for column, against in enumerate(other, 1):
            last = min(last + 1, row[column] + 1, above + (letter != against))
            above = row[column]
            made.append(last)
        row = made
    return row[-1]


# ---------------------------------------------------------------------------------------------- the optional parts


_UNWRAPPED = Turns()
"""Turns without wrappers: LLM runs of core alone."""


def _random_uuid(message_id: str, call_id: str) -> str:
    return str(uuid.uuid4())


def _unmetered(request: TurnRequest, history: Sequence[BaseMessage]) -> None:
    return None


_UNOBSERVED = RunObserver()
"""An observer that does nothing, for runs without a listener."""

_UNCLAIMED = RunClaims()
"""The claims of a run without a store of them."""


@dataclass(frozen=True)
class RunParts:
    """The optional parts of a run.

    Attributes:
        end: The deadline, and the caller's cancellation.
        clock: Seconds since any fixed start.
        observer: Observes the run.
        turns: Makes its turns.
        admissions: What admits its calls besides approvals, one after another.
        meter: Returns the function that tells whether the next request would cost too much; None if there is no such limit.
        call_wrappers: What stands around each of its calls, the outermost first.
        new_uuid: Makes the UUID of a call that waits, of the ids of its message and of the call.
        claimed: What it has claimed in the caller's store.
    """

    end: Deadline = NEVER
    clock: Callable[[], float] = time.monotonic
    observer: RunObserver = _UNOBSERVED
    turns: Turns = _UNWRAPPED
    admissions: Sequence[Admission] = ()
    meter: Callable[[TurnRequest, Sequence[BaseMessage]], Callable[[Sequence[BaseMessage]], bool] | None] = _unmetered
    call_wrappers: Sequence[CallWrapper] = ()
    new_uuid: Callable[[str, str], str] = _random_uuid
    claimed: RunClaims = _UNCLAIMED


def run_parts(
    call: CallSettings, wrappers: Iterable[TurnWrapper] = (), call_wrappers: Sequence[CallWrapper] = (), claim: Any = None
) -> RunParts:
    """Compose the optional parts of a run.

    Args:
        call: The settings of the call.
        wrappers: Wrappers of turns that the model and the call bring.
        call_wrappers: Wrappers of calls, likewise, the outermost first.
        claim: The caller's store of claims; None for none.
    """
    parts = compose(call.cancel, call.limits.deadline, call.journal, separator=call.separator, wrappers=wrappers, claim=claim)
    meter = _unmetered if call.limits.max_cost is None else partial(_meter, call)
    return replace(parts, meter=meter, call_wrappers=call_wrappers) if call_wrappers or meter is not _unmetered else parts


def _meter(call: CallSettings, request: TurnRequest, history: Sequence[BaseMessage]) -> Callable[[Sequence[BaseMessage]], bool]:
    """Return the function that tells whether the next request of a run would exceed its maximum cost.

    Args:
        call: The settings of the call.
        request: The run's requests, but for their messages.
        history: The messages that the run begins with.

    Raises:
        ConfigurationError: The model has no price.
    """
    from ..pricing import CostMeter  # here, because it costs every other program its import

    return CostMeter(cast("float", call.limits.max_cost), call.prices, request, history).exceeded


def compose(
    cancel: Any,
    seconds: float | None,
    journal: RunJournal | None = None,
    *,
    separator: str = "",
    wrappers: Iterable[TurnWrapper] = (),
    claim: Any = None,
) -> RunParts:
    """Compose the optional parts of a run or a reply.

    Args:
        cancel: The caller's cancellation flag; None if there is none.
        seconds: The time limit; None for no limit.
        journal: Records the run; None if nothing does.
        separator: The separator between the texts of two turns.
        wrappers: Wrappers of turns that the model brings.
        claim: The caller's store of claims; None for none.

    Raises:
        ConfigurationError: The flag is neither an event nor a function.
    """
    around = list(wrappers)
    clock, new_uuid = time.monotonic, _random_uuid
    admissions: Sequence[Admission] = ()
    if journal is not None:
        around.append(journal)
        admissions = (Reservation(journal.entries),)
        cancel, seconds, clock, new_uuid = journal.is_cancelled, journal.left(seconds), journal.now, journal.uuid
    end = deadline_after(seconds) if cancel is None else deadline_of(cancel, seconds)
    if end is not NEVER:
        around.append(_Bounded())
    observer: RunObserver = _UNOBSERVED
    if (place := current_scope.get()) is not None:
        from .event_emitter import RunEvents  # here, because it costs every other program its import

        observer = events = RunEvents(place, separator)
        around.append(events)
    claimed = _UNCLAIMED
    if claim is not None:
        from .claimed_turn import ClaimedTurn  # here, because it costs every other program its import

        claimed = turn = ClaimedTurn(claim, end)
        around.append(turn)
    turns = Turns(around) if around else _UNWRAPPED
    return RunParts(end, clock, observer, turns, admissions, new_uuid=new_uuid, claimed=claimed)


class _Bounded(TurnWrapper):
    """A wrapper that ends a turn at the end of its run."""

    layer: ClassVar[str] = "end"

    def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[TurnPart]:
        return bounded(proceed(request), request.end)

    def awrap_turn(self, request: TurnRequest, proceed: AsyncProceed) -> AsyncGenerator[TurnPart, None]:
        return abounded(cast("AsyncGenerator[TurnPart, None]", proceed(request)), request.end)


# ---------------------------------------------------------------------------------------------- requests in the form of a model's wire


def run_request(model: Configured, settings: RunSettings, parts: RunParts, keywords: Mapping[str, Any], *, streams: bool) -> TurnRequest:
    """The requests of a run, but for their messages, choice and configuration."""
    return TurnRequest(
        model=model,
        messages=(),
        choice="requested",
        keywords=keywords,
        end=parts.end,
        tools=settings.tools,
        caller_tools=frozenset(settings.plan.caller_tools),
        tool_choice=settings.tool_choice,
        form=settings.form,
        streams=streams,
        output_version=settings.output_version,
    )


def form_of(model: Configured, request: TurnRequest) -> WireForm:
    """What a request says besides its messages, in the form of a model's wire, written anew."""
    tools = format_request_tools(model, request.tools)
    form = wire_form(model, tools, request.tool_choice, request.caller_tools, request.keywords)[0]
    return form.insisting() if request.insists else form


def wire_form(
    model: Configured, tools: Sequence[Mapping[str, Any]], tool_choice: Any, caller_tools: Collection[str], keywords: Mapping[str, Any]
) -> tuple[WireForm, Collection[str]]:
    """What the requests of a run say besides their messages, in the form of a model's wire, and the names of the tools one of which must
    be called to end the run.

    Args:
        model: The model whose wire it is.
        tools: The declared tools in the wire's form.
        tool_choice: The tool choice as the caller gave it.
        caller_tools: The names of those tools whose calls are left to the caller.
        keywords: The caller's other keywords.
    """
    choice = _tool_choice(model, tool_choice, tools, keywords)
    any_tool = model.format_tool_choice("any", tools) if caller_tools and choice.forced else None
    until_called = any_tool is not None and (choice.asked == any_tool or _OUTPUT in keywords)
    ends = caller_tools if until_called else ()
    once = model._first_request_only & {*keywords, *_by_model(model)}
    lasting = replace(choice, asked=any_tool, lasting=any_tool) if until_called else choice
    return WireForm(model, tools, lasting, model.format_tool_choice(_last_choice(ends), tools), once), ends


def _tool_choice(model: Configured, choice: Any, tools: Sequence[Mapping[str, Any]], keywords: Mapping[str, Any]) -> ToolChoice:
    """The tool choice of the call, within that of the constructor's `model_kwargs`; also whether the call rules out parallel calls."""
    by_model = _by_model(model)
    asked, outer = (model.read_tool_choice(format_tool_choice(model, one, tools)) for one in (choice, by_model.get("tool_choice")))
    within, single = asked.within(outer), asked.single or outer.single
    for body in (keywords, keywords.get("extra_body"), by_model, vars(model).get("extra_body")):
        if isinstance(body, dict) and body.get("parallel_tool_calls") is not None:
            single = single or not body["parallel_tool_calls"]
            break
    return replace(within, single=True) if single else within


def _by_model(model: Any) -> Mapping[str, Any]:
    """Return the keywords of every call that the constructor sets, with its tool choice under that name."""
    keywords = dict(getattr(model, "model_kwargs", None) or {})
    choice = model.take_tool_choice(keywords) if keywords else None
    return keywords if choice is None else {**keywords, "tool_choice": choice}


def _last_choice(ends: Collection[str]) -> str:
    """Return the tool choice of a last turn: the call that must end the run, or no call."""
    return "none" if not ends else next(iter(ends)) if len(ends) == 1 else "any"
