"""The settings of a run, from the model's fields and the keywords of a call."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from langchain_core.messages import BaseMessage

from ..errors import ConfigurationError
from ..executor import ToolExecutor
from ..executor.names import tool_name
from ..executor.nested_runs import inside
from ..executor.run_tool import is_run_tool
from ..executor.sources import ToolSource
from ..executor.steps import CallWrapper
from ..messages.calls import FOR_CALLER
from ..messages.inner_usage import InnerUsage
from ..turn.tool_choice import ToolChoice
from ..turn.tools import Formatter, format_request_tools, format_tool_choice, format_tools, is_builtin
from .composing import RunParts
from .decisions import read_resume
from .keywords import CallSettings, Settable, call_settings
from .loop import RunPlan
from .run import RunSettings
from .turn_wrappers import TurnRequest, WireForm

_logger = logging.getLogger("langchain_autotools")


class Configured(Formatter, Settable, Protocol):
    """The interface of a model whose fields configure its runs."""

    tools: Any
    handlers: Any
    output_version: str | None


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
        executor = ToolExecutor(tools)
    elif isinstance(tools, str) or not isinstance(tools, Sequence):
        raise ConfigurationError(f"tools must be a list, a mapping or a ToolExecutor, not {type(tools).__name__}")
    else:
        builtin = [tool for tool in tools if is_builtin(tool)]
        executor = ToolExecutor([tool for tool in tools if not is_builtin(tool)])
    on_client = model.client_tool_names(builtin)
    if model.handlers:
        executor = executor.with_handlers(model.handlers, on_client)
    own = [
        (name, tool) for name, tool in executor.tools.items() if name not in on_client
    ]  # what runs the vendor's is not declared beside it
    objects = [*own, *((tool_name(tool), tool) for tool in builtin)]
    declarations = format_tools(model, [tool for _, tool in objects])
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
    around = inside.get()
    call = call if around is None else around.bound(call)
    unknown = [name for name in call.limits.polling_tools if toolbox.source and name not in toolbox.executor.tools]
    if unknown:
        raise ConfigurationError(f"polling_tools names tools that do not exist: {', '.join(map(repr, unknown))}")
    own_tools, caller_choice = keywords.pop("tools", None), model.take_tool_choice(keywords)
    bound = format_request_tools(model, own_tools)
    declared = {tool_name(tool) for tool in bound}
    own, caller_tools = _with_bound(model, toolbox.executor, bound, declared)
    added = model.read_added_tools(messages) - own.tools.keys()
    tools = [tool for tool in toolbox.declarations if tool_name(tool) not in declared] + bound
    form, ends = wire_form(model, tools, caller_choice, caller_tools, keywords)
    check_output(keywords, caller_tools, form.choice.allowed)
    meant = partial(own.meant, only=form.choice.allowed)
    executor = call.executor(own)
    approvals = executor.approvals
    if approvals is not None:
        approvals = approvals if around is None else around.governs(approvals)
        executor = executor.with_settings(replace(executor.settings, approvals=replace(approvals, judged=True)))
    optional: dict[str, Any] = {}
    if approvals is not None and approvals.approve is not None:
        optional["leaves"] = ("caller", *FOR_CALLER)
    used = None if around is None else around.used
    if toolbox.makes_runs or ((call.middleware or toolbox.sources) and executor.parallel is False):
        optional["inner"] = _inner_runs(call, used, in_order=executor.parallel is False)
    return RunSettings(
        plan=RunPlan(
            call.limits, caller_tools | added | toolbox.caller_tools, meant, ends, read_resume(call.decisions), used=used, **optional
        ),
        call=call,
        executor=executor,
        form=form,
        approvals=approvals,
        client_tools=toolbox.caller_tools,
        tools=[*(tool for name, tool in toolbox.objects if name not in declared), *bound],
        tool_choice=caller_choice,
        last_text_only=is_parsed(keywords),
        output_version=model.output_version,
        lists_content=model.answers_in_blocks(tools),
        usage_limits=call.usage_limits,
    )


def _with_bound(
    model: Configured, executor: ToolExecutor, bound: Sequence[Mapping[str, Any]], declared: set[str]
) -> tuple[ToolExecutor, set[str]]:
    """Return the executor of a run with bound tools, whose handlers answer those of the vendor's, and the names that stay the caller's."""
    if executor.handlers is None or not bound:
        return executor, declared
    on_client = model.client_tool_names(bound).items()
    handled = {name: kind for name, kind in on_client if executor.handlers.has(kind) and name not in executor.tools}
    return (executor.with_handlers({}, handled), declared - handled.keys()) if handled else (executor, declared)


def _inner_runs(call: CallSettings, around: InnerUsage | None, *, in_order: bool) -> CallWrapper:
    from .inner_runs import InnerRuns  # here, because it costs every other program its import

    return InnerRuns(call.limits, call.prices, around, in_order=in_order)


def _tool_choice(model: Configured, choice: Any, tools: Sequence[Mapping[str, Any]]) -> ToolChoice:
    """The tool choice of the call, within that of the constructor's `model_kwargs`."""
    own = (getattr(model, "model_kwargs", None) or {}).get("tool_choice")
    asked, outer = (model.read_tool_choice(format_tool_choice(model, one, tools)) for one in (choice, own))
    return asked.within(outer)


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
    choice = _tool_choice(model, tool_choice, tools)
    any_tool = model.format_tool_choice("any", tools) if caller_tools and choice.forced else None
    until_called = any_tool is not None and (choice.asked == any_tool or "ls_structured_output_format" in keywords)
    ends = caller_tools if until_called else ()
    once = model._first_request_only & {*keywords, *(getattr(model, "model_kwargs", None) or ())}
    lasting = replace(choice, asked=any_tool, lasting=any_tool) if until_called else choice
    return WireForm(model, tools, lasting, model.format_tool_choice(_last_choice(ends), tools), once), ends


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


def request_form(model: Configured, request: TurnRequest) -> WireForm:
    """What a request says besides its messages, in the form of the wire of the model that makes it."""
    if request.form.model is model or request.form.model is None:
        return request.form
    return form_of(model, request)


def form_of(model: Configured, request: TurnRequest) -> WireForm:
    """What a request says besides its messages, in the form of a model's wire, written anew."""
    tools = format_request_tools(model, request.tools)
    form = wire_form(model, tools, request.tool_choice, request.caller_tools, request.keywords)[0]
    return form.insisting() if request.insists else form


def _last_choice(ends: Collection[str]) -> str:
    """Return the tool choice of a last turn: the call that must end the run, or no call."""
    return "none" if not ends else next(iter(ends)) if len(ends) == 1 else "any"


def check_output(keywords: Mapping[str, Any], declared: Collection[str], allowed: Collection[str] | None) -> None:
    """Raise if a tool choice rules out the call that holds the structured output.

    Raises:
        ConfigurationError: It is such a choice.
    """
    form = keywords.get("ls_structured_output_format")
    method = form.get("kwargs", {}).get("method") if isinstance(form, Mapping) else None
    if method == "function_calling" and allowed is not None and not {*declared} & {*allowed}:
        names = " or ".join(map(repr, declared))
        raise ConfigurationError(f"the output is a call of {names}, which this tool_choice leaves out: allow it, or leave tool_choice out")


def is_parsed(keywords: Mapping[str, Any]) -> bool:
    """Whether the caller parses the run's text: structured output, or a `response_format` other than text."""
    form = keywords.get("response_format")
    plain = form is None or (isinstance(form, Mapping) and form.get("type") == "text")
    return not plain or "ls_structured_output_format" in keywords
