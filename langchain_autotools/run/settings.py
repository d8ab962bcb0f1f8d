"""What is fixed of a run before it begins, by the model's fields together with the keywords of a call.

Its settings are one record, its optional parts another: its end, clock, journal, observer, wrappers. A run asks nothing of these: it has
an end that may never come, an observer that may do nothing, and turns that nothing may wrap.
"""

import time
import uuid
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from functools import lru_cache, partial
from inspect import iscoroutinefunction, signature
from typing import Annotated, Any, ClassVar, Literal, Protocol, cast, get_args

from langchain_core.messages import BaseMessage, HumanMessage, messages_from_dict
from pydantic import BaseModel, Field

from ..deadline import NEVER, Deadline, abounded, bounded, checked_cancel, deadline_after, deadline_of
from ..errors import ConfigurationError
from ..event_bus import current_scope
from ..executor import ToolExecutor
from ..executor.approvals import Admission, Approvals, Reservation
from ..executor.executor import EXECUTION, Setting, read_settings
from ..executor.names import OtherwiseNamed, tool_keys, tool_name
from ..executor.nested_runs import current_nested_runs
from ..executor.run_tool import is_run_tool
from ..executor.steps import CallWrapper
from ..executor.tools import ToolSource, callable_tools
from ..messages.calls import FOR_CALLER
from ..turn.model import MISTAKEN, Secret, describe_fields
from ..turn.tools import Formatter, format_request_tools, format_tool_choice, format_tools, is_builtin
from .decisions import read_resume
from .loop import Limits, OnLimit, RunPlan
from .turn_wrappers import AsyncProceed, Proceed, RunClaims, RunObserver, TurnPart, TurnRequest, Turns, TurnWrapper, WireForm

_OUTPUT = "ls_structured_output_format"
"""The keyword of a call whose output has a schema, as LangChain's tracing knows it."""

_OF_REQUESTS = frozenset({"stop", "tool_choice", "tools"})
"""Keywords of a call that every chat model has."""

_OF_ANOTHER = frozenset({"model", "model_name"})

AfterText = Literal["continue", "raise"]
"""Action when a model fails after text has left: another model goes on with the reply, or the error is raised."""


# ---------------------------------------------------------------------------------------------- the settings
#
# Each is a declared field with its docstring: the constructor's argument and, unless it says otherwise, the keyword of a call. What a
# `Setting` in its type says is all that is known of it anywhere else: which values are refused, and how those of several places are joined.


_of_runs = partial(Setting.of, at=("call",))
"""A setting that no executor has."""


def _limit(above: float, words: str) -> Setting:
    """A number that None lifts."""

    def is_right(value: Any) -> bool:  # Decimal's NaN refuses to be compared by size
        return isinstance(value, int | float | Decimal) and not isinstance(value, bool) and value == value and value > above

    return _of_runs(is_right, f"{words}, or None for no limit", lifted=True)


_LIMIT = _limit(0, "greater than 0")
_NAMES = _of_runs(lambda value: isinstance(value, Collection) and not isinstance(value, str), "a list of names of tools")
_ON_LIMIT = _of_runs(lambda value: value in get_args(OnLimit), f"one of {', '.join(get_args(OnLimit))}")
_STOP_WHEN = _of_runs(
    lambda value: callable(value) and not iscoroutinefunction(value), "a function that returns True or False at once", lifted=True
)
_BOOLEAN = _of_runs(lambda value: isinstance(value, bool), "True or False")
_TEXT = _of_runs(lambda value: isinstance(value, str), "a text")


def _checked_compaction(name: str, value: Any) -> Any:
    if value is False:
        return None
    from .compaction import checked_compaction  # here, because it costs every other program its import

    return checked_compaction(value)


def _checked_prices(name: str, value: Any) -> Mapping[str, Mapping[str, Any]]:
    from ..pricing import own_prices  # here, because it costs every other program its import

    return own_prices(value)


class RunFields(BaseModel, defer_build=True):
    """The fields of a chat model that configure its runs."""

    tools: Any = Field(default=(), exclude=True, repr=False)
    """Tools that the model runs itself: a list of functions and `BaseTool`s, a `{name: callable}` mapping, a `ToolExecutor`, or
    None for none. Builtin tools of the vendor (dicts) are only declared."""

    handlers: Any = Field(default=None, exclude=True, repr=False)
    """Functions that answer the calls of the vendor's tools for the caller's machine, by kind: `shell`, `apply_patch`, `computer`,
    `text_editor`, `memory`, `mcp_approval`, `tool_search`, and `(toolset, name)`; see `Handler`. Calls of other kinds end the run as
    pending."""

    max_turns: Annotated[int | None, _LIMIT] = 25
    """Maximum number of turns of one run that may call tools; None for no limit. With `on_limit="answer"` one more request is made,
    for the answer: at most 26 requests. Retries of failed requests are not counted."""
    max_tool_calls: Annotated[int | None, _limit(-1, "0 or more")] = None
    """Maximum number of tool calls of one run."""
    token_budget: Annotated[int | None, _LIMIT] = None
    """Maximum number of tokens of all turns of one run together."""
    max_cost: Annotated[float | Decimal | None, _LIMIT] = None
    """Maximum cost of one run in US dollars, by `prices` or the price data of the extra `cost`. A request that would exceed it is not made
    (`on_limit="answer"` acts as `return`); a reply may, where its `max_tokens` is not set. A reply that has no price ends the run too."""
    context_window: Annotated[int | None, _LIMIT] = None
    """Maximum number of tokens in the context: of the last turn, with `compact` those of the next request. None: the limit of the model's
    profile, if known."""
    compact: Annotated[Any, Setting(_checked_compaction, at=("call",))] = Field(default=None, exclude=True)
    """Whether old results are left out of requests that would outgrow the context window, each with a line in its place by which the model
    reads it again; at last a summary stands for the oldest turns. True, or a `Compaction`. The history stays whole. None or False: requests
    have the whole history."""
    deadline: Annotated[float | None, _LIMIT] = None
    """Maximum duration of a run in seconds. At the deadline the run returns what it has, whatever it waits for, and makes no last
    request (`on_limit="answer"` acts as `return`). Without `tools` it limits the single reply."""
    no_progress: Annotated[int | None, _limit(1, "2 or more")] = 3
    """Number of turns in a row with the same calls and the same results after which a run ends."""
    polling_tools: Annotated[Sequence[str], _NAMES] = ()
    """Names of tools exempt from the no-progress check, such as one that polls a job."""
    on_limit: Annotated[OnLimit, _ON_LIMIT] = "answer"
    """Action when a limit is reached: `answer` requests one last answer without tools, `return` returns the run as it is,
    `raise` raises `LimitReachedError`."""
    before_turn: Annotated[Any, Setting(EXECUTION["on_executed"].check, at=("call",))] = Field(default=None, exclude=True, repr=False)
    """Function that may change the next request of a run: it gets a `NextTurn` and returns one, or None. May be asynchronous in
    asynchronous runs."""
    middleware: Any = Field(default=(), exclude=True, repr=False)
    """LangChain's middleware, the outermost first: objects whose `wrap_model_call` wraps each turn and whose `wrap_tool_call`
    around each call. Their `tools` join the model's. One that needs other hooks or a state is refused."""
    stop_when: Annotated[Any, _STOP_WHEN] = Field(default=None, exclude=True, repr=False)
    """Condition that ends a run: a function called with a `RunSoFar` after each turn whose calls are answered. If it returns True the
    run ends with the stop reason `stop_when`, without another request."""

    fallbacks: Sequence[Any] = Field(default=(), exclude=True)
    """Models, in order, that make a turn whose model fails: of this package, or what `with_tools(model, [])` returns. The run goes on with
    the one that took over, under its tools, restrictions and limits; each model has its own parameters and retries."""
    fallback_on: Any = Field(default=None, exclude=True, repr=False)
    """The failures that another model answers: classes of errors, functions of an error, `FirstToken(seconds)`, "refused" or "length" (of a
    reply without text), or a list of these. None, and where no error is named: what the model's own retries repeat, refused keys, spent
    quotas, unknown models. Never a deadline, a cancellation, or a reader who has left."""
    fallback_attempts: int = 1
    """Maximum number of attempts at a model, including the first, while another one is left."""
    cooldown: float | None = None
    """Seconds for which a model that has failed is asked only if all have failed, in all runs of the process. None: none."""
    after_text: AfterText = "continue"
    """Action when a model fails after text has left: `continue` keeps the text as a message with which another model goes on, `raise`
    raises the error."""

    parallel: Annotated[bool, EXECUTION["parallel"]] = True
    """Whether the calls of one turn run in parallel."""
    max_concurrency: Annotated[int | None, EXECUTION["max_concurrency"]] = None
    """Maximum number of calls of one turn that run at the same time. The smallest value applies: this, that of a `ToolExecutor` given as
    `tools`, that of a call, or the one in the configuration."""
    policies: Annotated[Any, EXECUTION["policies"]] = Field(default=None, exclude=True, repr=False)
    """A `ToolPolicy` for each tool that needs one, by name. Those of a call and of an executor take precedence, field by field."""
    default_policy: Annotated[Any, EXECUTION["default_policy"]] = Field(default=None, exclude=True, repr=False)
    """The `ToolPolicy` of all other tools, and for unset fields of `policies`: `ToolPolicy(timeout=10)` limits each call of a tool."""

    prices: Annotated[Any, Setting(_checked_prices, at=("call",))] = Field(default=None, exclude=True, repr=False)
    """Prices for `max_cost` by the name of the model, in place of those of the price data; as `run_cost` takes them."""

    message_separator: Annotated[str, _TEXT] = "\n"
    """The separator in the run's text between the texts of two turns, unless the first ends in white space."""
    carry_messages: Annotated[bool, _BOOLEAN] = True
    """Whether the run message carries the new messages as data."""
    on_executing: Annotated[Any, EXECUTION["on_executing"]] = Field(default=None, exclude=True, repr=False)
    """Callback for each call just before it runs."""
    on_executed: Annotated[Any, EXECUTION["on_executed"]] = Field(default=None, exclude=True, repr=False)
    """Callback for each result as soon as its call has run."""
    on_progress: Annotated[Any, EXECUTION["on_progress"]] = Field(default=None, exclude=True, repr=False)
    """Callback for each value that a running tool reports (`ToolContext.report`), with its call."""

    requires_approval: Annotated[Any, EXECUTION["requires_approval"]] = Field(default=None, exclude=True, repr=False)
    """Rule for calls that need approval: names of tools, a function that returns True or False for a `ToolCallRecord`, or True for all
    calls. The rules of a `ToolExecutor` given as `tools` and of a call apply too; none replaces another. The run ends as
    `calls_pending`; `pending_calls` returns the calls, and `resume` takes the decisions."""
    approve: Annotated[Any, EXECUTION["approve"]] = Field(default=None, exclude=True, repr=False)
    """Callback that decides about such calls at once: it gets a `PendingCall` and returns one of its decisions, or None to leave the call
    pending. May be asynchronous. Without `requires_approval` it is called for every call."""
    approval_key: Annotated[Secret, EXECUTION["approval_key"]] = Field(default=None, exclude=True, repr=False, min_length=1)  # type: ignore[arg-type]
    """Key of the digests of pending calls, so that nobody else can create them. No pickle holds it."""
    claim: Annotated[Any, EXECUTION["claim"]] = Field(default=None, exclude=True, repr=False)
    """Store by which one of all runs that resume a history goes on, in any number of processes: `claims(url)`, an object with the same
    methods, one with `take(key)`, or a function that returns True once for each key. May be asynchronous. See `AlreadyResumedError`."""


describe_fields(RunFields)

SETTINGS: Mapping[str, Setting] = {
    name: one for name, declared in RunFields.model_fields.items() for one in declared.metadata if isinstance(one, Setting)
}
"""The settings of runs by name."""

_DEFAULTS = {name: RunFields.model_fields[name].default for name in SETTINGS}
_OF_EXECUTION = {name: _DEFAULTS.pop(name) for name in EXECUTION}
_OF_CALLS = ("resume", "message", "cancel", "inbox", "journal", "output_check")
_LIMITS = tuple(one.name for one in fields(Limits))

RUN_KEYWORDS = frozenset({*_OF_CALLS, *(name for name, one in SETTINGS.items() if "call" in one.at)})
"""Keywords of a call that configure a run and never reach the vendor."""


# ---------------------------------------------------------------------------------------------- a model's tools


class Configured(Formatter, Protocol):
    """The interface of a model whose fields configure its runs.

    It also has one field for each name in `RUN_KEYWORDS` except `resume`, `message`, `cancel`, `inbox`, `journal` and `output_check`."""

    tools: Any
    handlers: Any
    output_version: str | None
    profile: Any
    _not_per_call: ClassVar[frozenset[str]]
    _first_request_only: ClassVar[frozenset[str]]

    def _check_keywords(self, names: Set[str]) -> None: ...


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
class RunSettings:
    """What is fixed of a run before it starts.

    Attributes:
        values: The settings of the call by name, as the call gives them, else the model's fields; see `call_settings`.
        plan: Limits, and whose calls are whose.
        executor: Executes the calls.
        request: Its requests, but for their messages, choice, configuration and end.
        approvals: What calls need before they run; None for nothing.
        last_text_only: Whether the texts of turns that call tools are withheld: a parser reads what the run says.
        lists_content: Whether the content of its replies is always a list of blocks.
        client_tools: The names of tools of the vendor's that run on the caller's machine: pending calls say so.
    """

    values: Mapping[str, Any]
    plan: RunPlan
    executor: ToolExecutor
    request: TurnRequest
    approvals: Approvals | None = None
    last_text_only: bool = False
    lists_content: bool = False
    client_tools: frozenset[str] = frozenset()


def toolbox_of(model: Configured) -> Toolbox:
    """Return the model's tools, prepared.

    Raises:
        ConfigurationError: Something in `tools` can be neither executed nor declared.
    """
    tools = () if model.tools is None else model.tools
    if isinstance(tools, str) or not isinstance(tools, ToolExecutor | Mapping | Sequence):
        raise ConfigurationError(f"tools must be a list, a mapping or a ToolExecutor, not {type(tools).__name__}")
    builtin = [tool for tool in tools if is_builtin(tool)] if isinstance(tools, Sequence) else []
    if isinstance(tools, ToolExecutor):
        executor = tools
    else:
        given = tools if isinstance(tools, Mapping) else [tool for tool in tools if not is_builtin(tool)]
        executor = ToolExecutor(callable_tools(given) if model.skip_invalid_tools else given)
    on_client = model.client_tool_names(builtin)
    if model.handlers:
        executor = executor.with_handlers(model.handlers, on_client)
    # what runs the vendor's is not declared beside it
    own = [(name, tool) for name, tool in executor.tools.items() if name not in on_client]
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
    prices = keywords.get("prices")
    values, call, of_fields = call_settings(model, keywords)
    if prices is not None and values["max_cost"] is None:
        raise ConfigurationError("prices has an effect only with max_cost; run_cost takes prices of its own")
    if (around := current_nested_runs.get()) is not None:
        values = around.bound(values)
    if values["polling_tools"] and toolbox.source:
        values["polling_tools"] = _polling_tools(values["polling_tools"], toolbox.executor.tools)
    bound, choice = format_request_tools(model, keywords.pop("tools", None)), model.take_tool_choice(keywords)
    if choice is None:
        choice = _by_model(model).get("tool_choice")
    declared = {tool_name(tool) for tool in bound}
    own, caller_tools = _with_bound(model, toolbox.executor, bound, declared) if bound else (toolbox.executor, declared)
    added = model.read_added_tools(messages) - own.tools.keys()
    tools = [tool for tool in toolbox.declarations if tool_name(tool) not in declared] + bound
    form, ends = wire_form(model, tools, choice, caller_tools, keywords)
    optional: dict[str, Any] = {}
    if _OUTPUT in keywords:
        check_output(keywords, caller_tools, form.choice.allowed)
        alone, called = not (own.tools or own.handlers or added or toolbox.caller_tools), (_called_form(keywords) or {}).get("schema")
        optional["outputs"] = None if alone else {tool_name(called)} if isinstance(called, Mapping) else set()
    executor = own.between(call, of_fields) if call or of_fields else own
    if form.choice.single or executor.approvals is not None:
        executor = copy(executor)
        executor.parallel = False if form.choice.single else executor.parallel
    if (approvals := executor.approvals) is not None:
        approvals = approvals if around is None else around.governs(approvals)
        executor.approvals = replace(approvals, judged=True)
        if approvals.approve is not None:
            optional["leaves"] = ("caller", *FOR_CALLER)
    used, limits = None if around is None else around.used, Limits(**{name: values[name] for name in _LIMITS})
    if toolbox.makes_runs:
        from .inner_runs import InnerRuns  # here, because it costs every other program its import

        optional["inner"] = InnerRuns(limits, values["prices"] or {}, used)
    waiting, parsed = () if values["message"] is None else (values["message"],), is_parsed(model, keywords)
    inbox = None if values["inbox"] is None else _inbox(values["inbox"], after_reply=not parsed)
    left, meant = caller_tools | added | toolbox.caller_tools, partial(own.meant, only=form.choice.allowed)
    made = RunSettings(
        values=values,
        plan=RunPlan(limits, left, meant, ends, read_resume(values["resume"]), used=used, waiting=waiting, inbox=inbox, **optional),
        executor=executor,
        request=TurnRequest(
            model=model,
            messages=(),
            choice="requested",
            keywords=keywords,
            end=NEVER,
            tools=[*(tool for name, tool in toolbox.objects if name not in declared), *bound],
            caller_tools=frozenset(left),
            tool_choice=choice,
            form=form,
            output_version=model.output_version,
        ),
        approvals=approvals,
        last_text_only=parsed,
        lists_content=model.answers_in_blocks(tools),
        client_tools=toolbox.caller_tools,
    )
    return made if values["compact"] is None else _with_compaction(made, toolbox)


def _with_compaction(settings: RunSettings, toolbox: Toolbox) -> RunSettings:
    """Return the settings with what shortens the requests; the same where the model has no run in which it could."""
    if not (toolbox.source or toolbox.handlers):
        return settings
    from .compaction import with_compaction  # here, because it costs every other program its import

    return cast("RunSettings", with_compaction(settings, _window_of_profile))


def _with_bound(
    model: Configured, executor: ToolExecutor, bound: Sequence[Mapping[str, Any]], declared: set[str]
) -> tuple[ToolExecutor, set[str]]:
    """Return the executor of a run with bound tools, whose handlers answer those of the vendor's, and the names that stay the caller's."""
    otherwise = {tool_name(tool): tool for tool in bound if isinstance(tool, OtherwiseNamed)}
    if otherwise:
        executor = copy(executor)
        executor._declared = otherwise
    if executor.handlers is None:
        return executor, declared
    on_client = model.client_tool_names(bound).items()
    handled = {name: kind for name, kind in on_client if executor.handlers.has(kind) and name not in executor.tools}
    return (executor.with_handlers({}, handled), declared - handled.keys()) if handled else (executor, declared)


def _polling_tools(given: Collection[str], tools: Mapping[str, Any]) -> list[str]:
    """Return the keys of the tools that the names of `polling_tools` mean.

    Raises:
        ConfigurationError: One names a tool that does not exist.
    """
    names = tool_keys(given, tools)
    unknown = [name for name in names if name not in tools]
    if unknown:
        raise ConfigurationError(f"polling_tools names tools that do not exist: {', '.join(map(repr, unknown))}")
    return names


def check_output(keywords: Mapping[str, Any], declared: Collection[str], allowed: Collection[str] | None) -> None:
    """Raise if a tool choice rules out the call that holds the structured output.

    Raises:
        ConfigurationError: It is such a choice.
    """
    if _called_form(keywords) is not None and allowed is not None and not {*declared} & {*allowed}:
        names = " or ".join(map(repr, declared))
        raise ConfigurationError(f"the output is a call of {names}, which this tool_choice leaves out: allow it, or leave tool_choice out")


def _called_form(keywords: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the form of structured output that a call holds; None where there is none, or the text holds it."""
    form = keywords.get(_OUTPUT)
    return form if isinstance(form, Mapping) and form.get("kwargs", {}).get("method") == "function_calling" else None


def is_parsed(model: Any, keywords: Mapping[str, Any]) -> bool:
    """Whether the caller parses the run's text: structured output, or a `response_format` other than text, of the call or the model."""
    form = keywords.get("response_format", _by_model(model).get("response_format"))
    plain = form is None or (isinstance(form, Mapping) and form.get("type") == "text")
    return not plain or _OUTPUT in keywords


# ---------------------------------------------------------------------------------------------- the keywords of a call


def call_settings(model: Configured, keywords: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Take the settings of one call out of its `keywords`.

    Returns:
        The settings that no executor has, by name: the call's, else the model's field; also which limits need to know the usage of tokens
        (`usage_limits`). Then how the call wants the tools' calls executed, and how the model's fields do where they do not say what holds
        anyway, as `read_settings` returns it.

    Raises:
        ConfigurationError: A setting cannot work, a keyword has no effect at a call, or is very nearly the name of one that has.
    """
    _check_names(model, keywords)
    given = {name: keywords.pop(name) for name in RUN_KEYWORDS & keywords.keys()}
    given = {name: value for name, value in given.items() if value is not None or (name in SETTINGS and SETTINGS[name].lifted)}
    values = {name: given[name] if name in given else getattr(model, name) for name in _DEFAULTS}
    for name, default in _DEFAULTS.items():
        value, row = values[name], SETTINGS[name]
        if value is not default and (value is not None or not row.lifted):
            values[name] = row.check(name, value)
    values["usage_limits"] = [name for name in ("token_budget", "context_window") if values[name] is not None]
    if values["context_window"] is None and "context_window" not in given:
        values["context_window"] = _window_of_profile(model, keywords)
    values |= {name: given.get(name) for name in _OF_CALLS}
    if values["message"] is not None:
        values["message"] = _message(values["message"], values["resume"])
    if values["cancel"] is not None:
        values["cancel"] = checked_cancel(values["cancel"])
    call = {name: given[name] for name in _OF_EXECUTION if name in given}
    of_fields = {name: value for name, default in _OF_EXECUTION.items() if (value := getattr(model, name)) is not default}
    return values, read_settings(call) if call else call, read_settings(of_fields) if of_fields else of_fields


def drop_settings(model: Configured, keywords: dict[str, Any]) -> dict[str, Any] | None:
    """Remove the settings of a run from the keywords of a single request; return them by name, or None if no keyword is set.

    Raises:
        ConfigurationError: As of `call_settings`.
    """
    if RUN_KEYWORDS.isdisjoint(keywords):
        _check_names(model, keywords)
        return None
    return call_settings(model, keywords)[0]


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


def _inbox(given: Any, *, after_reply: bool) -> Any:
    from .inbox import Inbox  # here, because it costs every other program its import

    return Inbox(given, after_reply=after_reply)


def _window_of_profile(model: Configured, keywords: Mapping[str, Any]) -> int | None:
    """Return the context window of the model's profile, which only applies to the model's own name."""
    profile = {} if _OF_ANOTHER & keywords.keys() else model.profile or {}
    known = profile.get("max_input_tokens") if isinstance(profile, Mapping) else None
    return known if isinstance(known, int) and known > 0 else None  # a class of somebody else's may have anything there


# ---------------------------------------------------------------------------------------------- hints for misspelt keywords


def _check_names(model: Configured, keywords: Mapping[str, Any]) -> None:
    if "show_progress" in keywords:
        raise ConfigurationError("show_progress is for batch, abatch and their kin: here it has no effect")
    others = keywords.keys() - RUN_KEYWORDS
    for name in others:
        if name in model._not_per_call:
            raise ConfigurationError(
                f"{name} is set where the model is made, not at a call; a vendor's own parameter of that name goes in extra_body"
            )
        if name in MISTAKEN and not _is_known(model, name):
            raise ConfigurationError(f"there is no keyword {name!r}: {MISTAKEN[name]}")
        near = _nearest(name)
        if near is not None and not _is_known(model, name):
            raise ConfigurationError(f"there is no keyword {name!r}: did you mean {near!r}?")
    if further := others - _OF_REQUESTS:
        model._check_keywords(further)


def _is_known(model: Any, name: str) -> bool:
    """Whether the model itself accepts a keyword of this name, as a constructor argument or in its request methods."""
    own = type(model)
    return name in own._argument_names() or any(name in signature(method).parameters for method in (own.raw_stream, own._stream))


@lru_cache(maxsize=512)
def _nearest(name: str) -> str | None:
    """Return the run keyword within two letters of `name`."""
    return next((one for edits in (1, 2) for one in sorted(RUN_KEYWORDS) if _is_near(name, one, edits)), None)


def _is_near(one: str, other: str, edits: int) -> bool:
    """Whether at most so many letters are left out, put in or changed between two words."""
    while one and other and one[0] == other[0]:
        one, other = one[1:], other[1:]
    if not one or not other or not edits:
        return len(one) + len(other) <= edits
    return any(_is_near(*rest, edits - 1) for rest in ((one[1:], other), (one, other[1:]), (one[1:], other[1:])))


# ---------------------------------------------------------------------------------------------- the optional parts


_UNWRAPPED = Turns()
"""Turns without wrappers: LLM runs of core alone."""


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
        meter: Returns the `CostMeter` of a run with these requests and this input; None if no cost is limited.
        call_wrappers: What wraps each of its calls, the outermost first.
        new_uuid: Makes the UUID of a call that waits, of the ids of its message and of the call.
        claimed: What it has claimed in the caller's store.
    """

    end: Deadline = NEVER
    clock: Callable[[], float] = time.monotonic
    observer: RunObserver = _UNOBSERVED
    turns: Turns = _UNWRAPPED
    admissions: Sequence[Admission] = ()
    meter: Callable[[TurnRequest, Sequence[BaseMessage]], Any] | None = None
    call_wrappers: Sequence[CallWrapper] = ()
    new_uuid: Callable[[str, str], str] = lambda message_id, call_id: str(uuid.uuid4())
    claimed: RunClaims = _UNCLAIMED


def run_parts(
    values: Mapping[str, Any],
    wrappers: Iterable[TurnWrapper],
    call_wrappers: Sequence[CallWrapper] = (),
    approvals: Approvals | None = None,
) -> RunParts:
    """Compose the optional parts of a run, or of a single reply.

    Args:
        values: The settings of the call, as `call_settings` returns them; of a single reply its end alone.
        wrappers: Wrappers of turns that the model and the call bring.
        call_wrappers: Wrappers of calls, likewise, the outermost first.
        approvals: What calls need before they run; None for nothing.
    """
    cancel, seconds, journal = values["cancel"], values["deadline"], values.get("journal")
    around, parts = list(wrappers), dict[str, Any](call_wrappers=call_wrappers)
    if journal is not None:
        around.append(journal)
        cancel, seconds = journal.is_cancelled, journal.left(seconds)
        parts |= {"admissions": (Reservation(journal.entries),), "clock": journal.now, "new_uuid": journal.uuid}
    parts["end"] = end = deadline_after(seconds) if cancel is None else deadline_of(cancel, seconds)
    if end is not NEVER:
        around.append(_Bounded())
    if (place := current_scope.get()) is not None:
        from .event_emitter import RunEvents  # here, because it costs every other program its import

        parts["observer"] = events = RunEvents(place, values.get("message_separator", ""))
        around += (events, events.requests)
    if approvals is not None and approvals.claim is not None:
        from .claimed_turn import ClaimedTurn  # here, because it costs every other program its import

        parts["claimed"] = turn = ClaimedTurn(approvals.claim, end)
        around.append(turn)
    compaction = values.get("compact")
    if compaction is not None:
        parts["admissions"] = (compaction, *parts.get("admissions", ()))
    if values.get("max_cost") is not None:
        from ..pricing import CostMeter  # here, because it costs every other program its import

        sent = {} if compaction is None else {"sent": compaction.tokens_to_pay}
        parts["meter"] = partial(CostMeter, values["max_cost"], values["prices"] or {}, **sent)
    return RunParts(turns=Turns(around) if around else _UNWRAPPED, **parts)


class _Bounded(TurnWrapper):
    """A wrapper that ends a turn at the end of its run."""

    layer: ClassVar[str] = "end"

    def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[TurnPart]:
        return bounded(proceed(request), request.end)

    def awrap_turn(self, request: TurnRequest, proceed: AsyncProceed) -> AsyncGenerator[TurnPart, None]:
        return abounded(cast("AsyncGenerator[TurnPart, None]", proceed(request)), request.end)


# ---------------------------------------------------------------------------------------------- requests in the form of a model's wire


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
    by_model = _by_model(model)
    asked, outer = (model.read_tool_choice(format_tool_choice(model, one, tools)) for one in (tool_choice, by_model.get("tool_choice")))
    choice, single = asked.within(outer), asked.single or outer.single
    for body in (keywords, keywords.get("extra_body"), by_model, vars(model).get("extra_body")):
        if isinstance(body, dict) and body.get("parallel_tool_calls") is not None:
            single = single or not body["parallel_tool_calls"]
            break
    choice = replace(choice, single=True) if single else choice
    any_tool = model.format_tool_choice("any", tools) if caller_tools and choice.forced else None
    until_called = any_tool is not None and (choice.asked == any_tool or _OUTPUT in keywords)
    ends = caller_tools if until_called else ()
    last_choice = "none" if not ends else next(iter(ends)) if len(ends) == 1 else "any"
    lasting = replace(choice, asked=any_tool, lasting=any_tool) if until_called else choice
    once = model._first_request_only & {*keywords, *by_model}
    return WireForm(model, tools, lasting, model.format_tool_choice(last_choice, tools), once), ends


def _by_model(model: Any) -> Mapping[str, Any]:
    """Return the keywords of every call that the constructor sets, with its tool choice under that name."""
    keywords = dict(getattr(model, "model_kwargs", None) or {})
    choice = model.take_tool_choice(keywords) if keywords else None
    return keywords if choice is None else {**keywords, "tool_choice": choice}
