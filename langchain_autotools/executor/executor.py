"""`ToolExecutor`: the tools that a model may call, executed in batches of calls."""

import weakref
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool
from pydantic import SecretStr

from ..compat import is_resumed
from ..deadline import NEVER, CancelFlag, Deadline, deadline_of
from ..errors import AlreadyResumedError, ConfigurationError, DecisionProblem, DecisionsError
from ..messages.calls import ToolCallRecord, awaited_calls, calls_of, read_call
from ..messages.metadata import attach_messages
from ..pickling import check_portable
from .approvals import Admission, Approvals, Gate
from .batch import BatchOptions, CallObserver
from .batch_drivers import AsyncToolCallBatch, ToolCallBatch
from .call import ToolRun
from .claims import Claim, Claims, reserved
from .names import find_name
from .nested_runs import current_nested_runs
from .pending import CallIdentity, Decision, PendingCall, Refusals, identities_of_given, with_decision
from .plan import Answer, Call, Calls, Meaning, Only, PositionSetter, answer_of, position_setters
from .policies import CachedCall, Policies, ToolPolicy, checked_cache
from .results import ToolCallResult
from .run_tool import continue_batch
from .steps import CallWrapper
from .tool import ArgumentsOf, PreparedTools
from .tools import collected, dump_tools, restore_tools, tools_by_name
from .user_functions import Home, running_loop

if TYPE_CHECKING:
    from .handlers import Handlers

OnExecuting = Callable[[ToolCallRecord], Awaitable[None] | None]
OnExecuted = Callable[[ToolCallResult], Awaitable[None] | None]
OnProgress = Callable[[ToolCallRecord, Any], Awaitable[None] | None]
Approve = Callable[[PendingCall], Awaitable[Decision | None] | Decision | None]


# ---------------------------------------------------------------------------------------------- settings
#
# Three places may say how calls are executed: a call (its keywords), the executor, and the fields of the model that the executor was given
# to. What restricts holds together: every rule of `requires_approval`, and the smallest `max_concurrency`. Of everything else the nearest
# place decides: the call, then the executor, then the fields. (`run/settings.py` declares the fields, and reads what no executor says.)


@dataclass(frozen=True)
class Setting:
    """What is to know of a setting: where it may be given, what is refused, how the values of several places are joined.

    It is in the type of the field that declares the setting: `Annotated[int | None, Setting(...)]`.

    Attributes:
        check: Returns the value as it is used, of the setting's name and the value that is given; raises `ConfigurationError`.
        join: Joins the value of the nearer place with that of the other one; None: the nearer one decides.
        part_of: The attribute of an executor that the value is a part of; "" for one of the setting's own name.
        at: Where it may be given besides the field: at a call, to an executor.
        lifted: Whether None at a call lifts a limit. For other settings it is no value.
    """

    check: Callable[[str, Any], Any]
    join: Callable[[Any, Any], Any] | None = None
    part_of: str = ""
    at: Collection[str] = ("call", "executor")
    lifted: bool = False

    @classmethod
    def of(cls, is_right: Callable[[Any], bool], words: str, **rest: Any) -> Self:
        """Return a setting whose values are those of which a condition holds.

        Args:
            is_right: The condition.
            words: What a value must be, for the error.
            **rest: The setting's other attributes.
        """

        def checked(name: str, value: Any) -> Any:
            if not is_right(value):
                raise ConfigurationError(f"{name} must be {words}, not {value!r}")
            return value

        return cls(checked, **rest)


def _checked_listener(name: str, listener: Any) -> Any:
    if not callable(listener):
        raise ConfigurationError(f"{name} must be a function that is called, not {type(listener).__name__}")
    return listener


EXECUTION: Mapping[str, Setting] = {
    "parallel": Setting.of(lambda value: isinstance(value, bool), "True or False"),
    "max_concurrency": Setting.of(
        lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= 1,
        "a whole number of at least 1, or None",
        join=min,
    ),
    "on_executing": Setting(_checked_listener),
    "on_executed": Setting(_checked_listener),
    "on_progress": Setting(_checked_listener),
    "policies": Setting(lambda _, value: Policies.read(policies=value), Policies.over),
    "default_policy": Setting(lambda _, value: Policies.read(default_policy=value), Policies.over, "policies"),
    "requires_approval": Setting(lambda _, value: Approvals.of(value), Approvals.over, "approvals"),
    "approve": Setting(lambda _, value: Approvals.of(approve=value), Approvals.over, "approvals"),
    "approval_key": Setting(lambda _, value: Approvals.of(key=value), Approvals.over, "approvals", at=("executor",)),
    "claim": Setting(lambda _, value: Approvals.of(claim=value), Approvals.over, "approvals"),
}
"""The settings of the execution of calls."""

_PARTS = {one.part_of or name: one.join for name, one in EXECUTION.items()}


def read_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what one place says of the execution of calls, by the executor's attributes. What is None or left out it leaves open.

    Raises:
        ConfigurationError: A value cannot work.
    """
    read: dict[str, Any] = {}
    for name, value in given.items():
        if value is not None:
            row = EXECUTION[name]
            read = joined(read, {row.part_of or name: row.check(name, value)})
    return read


def joined(near: Mapping[str, Any], far: Mapping[str, Any]) -> dict[str, Any]:
    """Return what two places say together, of which one is nearer to the call."""
    both = {**far, **near}
    for name in near.keys() & far.keys():
        if (join := _PARTS[name]) is not None:
            both[name] = join(near[name], far[name])
    return both


_REMADE = frozenset({"tools", "prepared", "_home"})


class Portable:
    """Base class of objects that can be copied and, if their parts can, pickled."""

    def __copy__(self) -> Self:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = object.__new__(type(self))
        made.__setstate__(deepcopy(self._parts(), memo))
        return made

    def _parts(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _REMADE}

    def __getstate__(self) -> dict[str, Any]:
        parts = self._parts()
        check_portable("ToolExecutor", {name.strip("_"): value for name, value in parts.items() if name != "_given"})
        return {**parts, "_given": dump_tools("ToolExecutor", parts["_given"])}

    def __setstate__(self, state: dict[str, Any]) -> None:
        given = restore_tools(state["_given"])
        tools = tools_by_name(given)
        handlers = state["handlers"]
        prepared = PreparedTools(tools if handlers is None else handlers.beside(tools))
        self.__dict__.update(state, _given=given, tools=tools, prepared=prepared, _home=_home_of_caller())


# ---------------------------------------------------------------------------------------------- reading
# What an executor makes of a model's calls before any of them runs: which tool or handler each means, and what was decided about it.


class ReadsCalls(Portable):
    """An object that has tools and handlers, and finds those that calls mean."""

    tools: dict[str, BaseTool]
    prepared: PreparedTools
    handlers: "Handlers | None"
    approvals: Approvals | None
    parallel: bool | None
    _declared: Mapping[str, Any] = MappingProxyType({})

    def find(self, name: str) -> BaseTool | None:
        """Return the tool that a model means by `name`; None if there is none, or if the name is ambiguous.

        An exact name always wins. Else what some models and servers add is ignored: white space, special tokens, a prefix
        such as `functions.`, a number such as `:0`, and letter case, `-` and `_` if that leaves one tool only.
        """
        key = find_name(name, self.tools)
        return None if key is None else self.tools[key]

    def handled(self, calls: Iterable[ToolCallRecord]) -> list[ToolCallRecord]:
        """Return the calls of a reply, those for which there is a handler under its name.

        What a history ends in is not a reply: a client may have written it.
        """
        handlers = self.handlers
        return list(calls) if handlers is None else [call if call.args is None else handlers.taken(call, self.tools) for call in calls]

    def meant(
        self, calls: Iterable[ToolCallRecord], *, caller_tools: Collection[str] = (), only: Only | None = None
    ) -> list[ToolCallRecord]:
        """Return the calls under their tools' own names, with the calls that they bundle.

        Args:
            calls: The calls as the model wrote them.
            caller_tools: Names of tools that this executor leaves to the caller, also where it has one of that name.
            only: Rule for calls that may be executed, as for `stream`. Other calls have no `args`, and a reason.
        """
        known = {**self._declared, **self.tools} if self._declared else self.tools
        if only is not None and not callable(only) and (isinstance(only, str) or not isinstance(only, Collection)):
            raise ConfigurationError(f"only must be a list of tools' names, a function of the call, or None for all, not {only!r}")
        meaning = Meaning(known, caller_tools, only, self.prepared.arguments_of)
        return [call if call.args is None else meaning.of(call) for call in calls]

    def pending_calls(self, calls: Calls) -> list[PendingCall]:
        """Return the pending calls, including those queued behind them, in call order.

        Args:
            calls: The AI message, or its calls.
        """
        read = _read_calls(calls)
        known = identities_of_given(calls, read, [], _read_calls)
        meant = self.meant(self.handled(read))
        return (self.approvals or Approvals()).pending(meant, known, self.prepared.arguments_of, in_order=self.parallel is False)

    def decided(self, call: ToolCallRecord, decision: Decision, *, only: Only | None = None) -> ToolCallRecord:
        """Return the call with its decision applied: to run, or (with `args` None) to be answered.

        Raises:
            DecisionsError: It is to run with arguments that its tool does not take.
        """
        made = with_decision(call, decision)
        return _approved_edit(self.meant([made], only=only)[0], decision, self.prepared.arguments_of) if decision.action == "edit" else made


def _approved_edit(call: ToolCallRecord, decision: Decision, arguments: ArgumentsOf) -> ToolCallRecord:
    """Return the call with edited arguments validated, including those of bundled calls.

    Raises:
        DecisionsError: They are not what the tool takes.
    """
    problems: dict[str, None] = {}
    for one in call.inner or (call,):
        known = None if one.args is None else arguments(one.name)
        problem = None if one.args is None else f"{one.name!r} is no tool" if known is None else known.problem(one.args)
        problems |= {problem: None} if problem else {}
    if problems:
        texts = [f"the edited arguments of call {call.id!r} cannot be used: {problem}" for problem in problems]
        words = [DecisionProblem(decision.uuid, decision.id, f"{one.removesuffix('.')}.") for one in problems]
        raise DecisionsError("; ".join(texts), words)
    return call


# ---------------------------------------------------------------------------------------------- executor
# `ToolExecutor`: the tools that a model may call, and the execution of its calls.


_B = TypeVar("_B")
_MakeRun = Callable[[ToolCallRecord], ToolRun]


class ToolExecutor(ReadsCalls):
    """Executes the tool calls of a model, each answered exactly once, in call order.

    Errors are answers too: an unknown name, bad arguments, an exception and a timeout give a message with status "error" that
    tells the model what to do better. An executor keeps no state of what it runs: threads and tasks may share one.

    What is None here is left open: a model that the executor is given to sets it by its own fields. See `EXECUTION` for what
    holds where a call, the executor and the fields say different things.

    Args:
        tools: A list of tools, or a mapping of name to tool: `BaseTool`s, functions and other callables, synchronous or
            asynchronous, and runnables that LangChain can convert.
        parallel: Whether the calls of one turn run in parallel (the default). If False, each begins when the result of the one
            before it has been consumed.
        max_concurrency: Maximum number of calls of one turn that run at the same time; None for all. The smallest value applies: this,
            that of a model's field or of a call, or the one in the configuration.
        policies: Policies of single tools, by name: timeouts, retries, caches, output limits, exclusive execution.
        default_policy: Policy of all other tools, and for unset fields of `policies`. `ToolPolicy(timeout=10)` limits each call; a
            synchronous tool that takes longer continues in its thread, but its result is dropped.
        on_executing: Callback for each call just before its tool runs; may be asynchronous.
        on_executed: Callback for each result as soon as there is one; may be asynchronous.
        on_progress: Callback for each value that a tool reports (`ToolContext.report`), with its call; may be asynchronous. An
            exception in one of these three ends the run, after the running calls have ended.
        requires_approval: Rule for calls that need approval: names of tools, a function that returns True or
            False for a `ToolCallRecord` with the arguments that the tool will get, or True for all. See `pending_calls`.
        approve: Callback that decides at once: it gets a `PendingCall` and returns one of its decisions, or None to leave the call
            pending; may be asynchronous. Without `requires_approval` it is called for every call.
        approval_key: Key of the digests of pending calls, so that nobody else can create them. No pickle holds it.
        claim: Store by which decided calls run once, however often they are executed and in however many processes. It is `claims(url)`, an
            object with `take(key, owner)`, `begin`, `done`, `release` and `end`, one with `take(key)`, or a function that returns True once
            for each key. May be asynchronous. The AI message needs an id.
        handlers: Functions that answer calls of the vendor's tools for the caller's machine, by kind; see `Handler`.

    Attributes:
        tools: The tools by name.
        prepared: The prepared tools, by name.
        parallel: The value of the argument.
        max_concurrency: The value of the argument.
        approvals: The approvals of its calls; None for none.
        handlers: The handlers; None for none.

    Raises:
        ConfigurationError: something is not a tool, two tools have one name, or a number cannot work.
    """

    max_concurrency: int | None
    policies: Policies | None
    on_executing: OnExecuting | None
    on_executed: OnExecuted | None
    on_progress: OnProgress | None

    max_threads: ClassVar[int] = 128
    """Maximum number of threads for the tools of all executors in this process; further calls wait for one. Set it on the class.

    Tools that run tools themselves never wait for their own: each depth of runs inside runs counts its own threads."""

    def __init__(
        self,
        tools: Any,
        *,
        parallel: bool | None = None,
        max_concurrency: int | None = None,
        policies: Mapping[str, ToolPolicy] | None = None,
        default_policy: ToolPolicy | None = None,
        on_executing: OnExecuting | None = None,
        on_executed: OnExecuted | None = None,
        on_progress: OnProgress | None = None,
        requires_approval: Any = None,
        approve: Approve | None = None,
        approval_key: SecretStr | str | None = None,
        claim: Claim | None = None,
        handlers: Mapping[Any, Any] | None = None,
    ) -> None:
        given = read_settings({name: value for name, value in locals().items() if name in EXECUTION})  # the arguments
        self.handlers = None
        self._given = collected(tools)
        self.tools: dict[str, BaseTool] = tools_by_name(self._given)
        self.prepared = PreparedTools(self.tools)
        self._home = _home_of_caller()
        self.policies = None
        self._changes: dict[str, ToolPolicy] = {}  # the policies that say more than a timeout
        self._timeouts: dict[str, float | None] = {}
        self._timeout: float | None = None
        self._set(given)
        if handlers:
            self._add_handlers(handlers, {})

    def __repr__(self) -> str:
        return f"ToolExecutor([{', '.join(self.tools)}])"

    @property
    def settings(self) -> dict[str, Any]:
        """What the executor says of the execution of calls; what it leaves open is left out."""
        return {name: value for name in _PARTS if (value := getattr(self, name)) is not None}

    def with_settings(self, settings: Mapping[str, Any]) -> Self:
        """Return the same executor with other settings.

        Raises:
            ConfigurationError: They name a tool that does not exist, or say of one what it cannot have.
        """
        other = copy(self)
        other._set(settings)
        return other

    def between(self, call: Mapping[str, Any], fields: Mapping[str, Any]) -> Self:
        """Return a copy of the executor for a run: what it says goes before the fields of its model, and after what the call says.

        Raises:
            ConfigurationError: As of `with_settings`.
        """
        settings = joined(joined(call, self.settings), fields)
        return self.with_settings(settings if self.tools or self.handlers else {**settings, "policies": self.policies})

    def with_handlers(self, handlers: Any, client_tools: Mapping[str, str]) -> Self:
        """Return the same executor with handlers besides its own.

        Args:
            handlers: Handlers, or functions, by kind.
            client_tools: The kinds of the vendor's tools that the model calls like functions, by name.

        Raises:
            ConfigurationError: Something is no handler.
        """
        other = copy(self)
        other._add_handlers(handlers, client_tools)
        return other

    def _add_handlers(self, handlers: Any, client_tools: Mapping[str, str]) -> None:
        from .handlers import Handlers  # here, because it costs every other program its import

        added = Handlers.read(handlers, client_tools)
        self.handlers = made = added if self.handlers is None else self.handlers.over(added)
        taken = sorted(made.tools.keys() & self.tools.keys())
        if taken:
            raise ConfigurationError(f"no tool may have the name of a handler: {', '.join(map(repr, taken))}")
        self.prepared = PreparedTools(made.beside(self.tools))
        rule = Approvals(of_handlers=made.need_approval)
        self.approvals = rule if self.approvals is None else rule.over(self.approvals)
        self._govern(self.policies or Policies())

    def _set(self, settings: Mapping[str, Any]) -> None:
        policies, approvals = settings.get("policies"), settings.get("approvals")
        approvals = approvals and approvals.for_tools(self.tools)
        if policies is not None and policies is not self.policies:
            policies = policies.for_tools(self.tools)
            self._govern(policies)
        self.__dict__.update({**dict.fromkeys(_PARTS), **settings, "policies": policies, "approvals": approvals})

    def _govern(self, policies: Policies) -> None:
        policies = policies if self.handlers is None else self.handlers.policies(policies)
        changes = policies.of_tools(self.tools if self.handlers is None else {**self.tools, **self.handlers.tools})
        for name in [name for name, policy in changes.items() if policy.caches and policy.cache_key is None]:
            if self.prepared[name].arguments.needs_program:
                raise ConfigurationError(f"the results of {name!r} depend on more than its arguments: its cache needs a cache_key")
        self._changes, self._timeouts = changes, policies.timeouts()
        self._timeout = None if policies.default is None else policies.default.seconds

    # ------------------------------------------------------------------------------------------ executing

    def execute(self, call: Call, config: RunnableConfig | None = None, **options: Any) -> ToolCallResult:
        """Execute one call.

        Args:
            call: A `ToolCallRecord`, an entry of an AI message's `tool_calls`, or a call as OpenAI's or Anthropic's API has it.
            config: LangChain's configuration: callbacks, tags, metadata and `configurable` reach the tool.
            **options: Options of `stream`.

        Raises:
            BaseException: As of `stream`.
        """
        with self.stream([call], config, **options) as results:
            for result in results:
                return result
        raise ConfigurationError("the call waits for approval, or for its caller: see pending_calls")

    async def aexecute(self, call: Call, config: RunnableConfig | None = None, **options: Any) -> ToolCallResult:
        """Like `execute`, asynchronously."""
        async with self.astream([call], config, **options) as results:
            async for result in results:
                return result
        raise ConfigurationError("the call waits for approval, or for its caller: see pending_calls")

    def execute_all(self, calls: Calls, config: RunnableConfig | None = None, **options: Any) -> list[ToolMessage]:
        """Execute the calls of an AI message, or a list of calls, and return their results in call order.

        Args:
            calls: The AI message, or its calls.
            config: LangChain's configuration: callbacks, tags, metadata and `configurable` reach every tool.
            **options: Options of `stream`.

        Raises:
            BaseException: As of `stream`. `new_messages(error)` gives the results that there are.
        """
        results = self.stream(calls, config, **options)
        with _attaching_results(results):
            return [result.message for result in results]

    async def aexecute_all(self, calls: Calls, config: RunnableConfig | None = None, **options: Any) -> list[ToolMessage]:
        """Like `execute_all`, asynchronously."""
        results = self.astream(calls, config, **options)
        with _attaching_results(results):
            return [result.message async for result in results]

    def stream(
        self,
        calls: Calls,
        config: RunnableConfig | None = None,
        *,
        messages: Sequence[BaseMessage] | None = None,
        only: Only | None = None,
        on_executing: OnExecuting | None = None,
        on_executed: OnExecuted | None = None,
        on_progress: OnProgress | None = None,
        deadline: float | None = None,
        turn: int | None = None,
        cancel: CancelFlag | None = None,
        cache: MutableMapping[str, Any] | None = None,
        decisions: Sequence[Decision | Mapping[str, Any]] | None = None,
    ) -> ToolCallBatch:
        """Execute calls and yield each result, in call order, as soon as it and all before it are complete.

        Args:
            calls: An AI message, or its calls.
            config: LangChain's configuration: callbacks, tags, metadata and `configurable` reach every tool.
            messages: The conversation so far, by default the AI message alone. Tools may ask for it; calls with results there do not run.
            only: Rule for calls that may be executed: names of tools, or a function that returns True or False for a `ToolCallRecord`;
                None for all. Any other call, however the model writes its name and inside a bundle too, does not run: it is
                answered with an error that says so.
            on_executing: Called in place of the executor's own.
            on_executed: Called in place of the executor's own.
            on_progress: Called in place of the executor's own.
            deadline: Maximum duration of all calls together in seconds, from now on; None for no limit. Unfinished calls are then answered
                with that: an asynchronous tool is cancelled, a thread is abandoned, and calls that have not begun do not run.
            turn: The number of the model's turn that made the calls, for `ToolContext.turn`.
            cancel: A `threading.Event`, an `asyncio.Event` or a function that returns True or False. Once it is set, or true, calls
                that have not ended are answered as cancelled: what runs is stopped as at the deadline, what has not begun does not run.
            cache: Cache of the results of tools with `ToolPolicy(cache=True)`: give all turns of a loop of your own the same
                dict. By default they are kept for these calls only.
            decisions: Decisions about the calls from `pending_calls`, or their dicts. Calls without one stay
                out; those that need none run, which without `messages` is logged as a warning.

        Returns:
            An iterator that can be closed. It raises what must not be told to a model: KeyboardInterrupt, a graph's interrupts,
            errors of `on_executing`, `on_executed`, `on_progress`, `cancel` and of callback handlers that are to raise.

        Raises:
            DecisionsError: A decision cannot be carried out.
        """
        observers: dict[str, Any] = {"on_executing": on_executing, "on_executed": on_executed, "on_progress": on_progress}
        known: dict[str, Any] = {"messages": messages, "only": only, "turn": turn, "cache": cache, "decisions": decisions}
        return self.batch(ToolCallBatch, calls, config, deadline_of(cancel, deadline), **known, **observers)

    def check(
        self,
        calls: Calls,
        decisions: Sequence[Decision | Mapping[str, Any]],
        *,
        messages: Sequence[BaseMessage] | None = None,
        only: Only | None = None,
    ) -> list[DecisionProblem]:
        """Return what is wrong with decisions about calls; empty if `execute_all(calls, decisions=decisions)` can carry them out.

        Args:
            calls: As of `stream`.
            decisions: As of `stream`.
            messages: As of `stream`.
            only: As of `stream`.

        Raises:
            ConfigurationError: What `stream` would raise besides `DecisionsError`.
        """
        known = messages if messages is not None else [calls] if isinstance(calls, AIMessage) else []
        read = _read_calls(calls)
        meant = self.meant(self.handled(read) if isinstance(calls, AIMessage) else read, only=only)
        identities = identities_of_given(calls, read, known, _read_calls)
        try:
            self._decided_calls(self.approvals or Approvals(), calls, known, decisions, meant, identities, only=only, alone=False)
        except DecisionsError as error:
            return error.problems
        return []

    def astream(self, calls: Calls, config: RunnableConfig | None = None, **options: Any) -> AsyncToolCallBatch:
        """Like `stream` with its options, asynchronously: asynchronous tools run as tasks on the running loop, others in threads."""
        return self.batch(
            AsyncToolCallBatch, calls, config, deadline_of(options.pop("cancel", None), options.pop("deadline", None)), **options
        )

    # ------------------------------------------------------------------------------------------ preparing

    def batch(
        self,
        kind: Callable[..., _B],
        calls: Calls,
        config: RunnableConfig | None,
        end: Deadline = NEVER,
        *,
        messages: Sequence[BaseMessage] | None = None,
        only: Only | None = None,
        on_executing: OnExecuting | None = None,
        on_executed: OnExecuted | None = None,
        on_progress: OnProgress | None = None,
        turn: int | None = None,
        cache: MutableMapping[str, Any] | None = None,
        decisions: Sequence[Decision | Mapping[str, Any]] | None = None,
        observer: CallObserver | None = None,
        admissions: Sequence[Admission] = (),
        wrappers: Sequence[CallWrapper] = (),
        placed: PositionSetter | None = None,
        claims: Claims | None = None,
        in_run: bool = False,
    ) -> _B:
        """Execute calls like `stream` and `astream`: as a batch of this kind that ends at the deadline `end`.

        What a run claims are its `claims`; an executor alone claims for the batch. In a run, `turn` is 0 for calls of its input.
        """
        alone = messages is None
        given = {"on_executing": on_executing, "on_executed": on_executed, "on_progress": on_progress}
        listeners = {name: getattr(self, name) if one is None else _checked_listener(name, one) for name, one in given.items()}
        if messages is None:
            messages = [calls] if isinstance(calls, AIMessage) else []
        own = ensure_config(config)
        own.pop("run_id", None)  # these two name one run, not each of many
        own.pop("run_name", None)
        places = position_setters(calls) if placed is None else repeat(placed)
        read = _read_calls(calls)
        meant = self.meant(self.handled(read) if isinstance(calls, AIMessage) else read, only=only)
        gated = decisions is not None or any(call.waits for call in meant)
        approvals = self.approvals or (Approvals() if gated else None)
        known = identities_of_given(calls, read, messages, _read_calls, results_only=approvals is None)
        found = in_run and turn == 0
        run = partial(self._run, own, messages, found=found)
        govern = partial(_apply_policies, policies=self._changes, cache=cache)
        if approvals is not None:
            if decisions is None:
                meant = approvals.prepared(meant, self.prepared.arguments_of, in_order=self.parallel is False)
            else:
                meant, known = self._decided_calls(approvals, calls, messages, decisions, meant, known, only=only, alone=alone)
            plan = partial(self._answer_decided, run, only)
            if not in_run and approvals.claim is not None:
                claims = Claims(approvals.claim)
            opened = [one for one in known if one.result is None]
            gate = Gate(approvals, opened, plan, govern, self.parallel is False, found, claims)
            claiming = () if claims is None else (reserved(claims, calls, messages, turn if in_run else None, _read_calls),)
            admissions = (gate, *claiming, *admissions)
        open_calls = [(call, place) for call, place, one in zip(meant, places, known, strict=False) if one.result is None]
        if (around := current_nested_runs.get()) is not None:
            around.take_up(call.id for call, _ in open_calls if call.waits is None or call.decision is not None)
        answers = [answer_of(call, place, self.tools, run) for call, place in open_calls]
        if approvals is None and self._changes:
            govern(answers)
        limits = filter(None, (1 if self.parallel is False or is_resumed(own) else self.max_concurrency, own.get("max_concurrency")))
        options = BatchOptions(
            threads=self.max_threads,
            limit=min(limits, default=None),  # 1 where a graph goes on: a call could be given the answer to another one's question
            end=end,
            turn=turn,
            admissions=admissions,
            in_order=self.parallel is False,
            claims=claims,
            in_run=in_run,
            wrappers=wrappers,
            is_concerned=partial(is_concerned, approvals, self.prepared.arguments_of),
            observer=observer,
            **{name: () if one is None else (one,) for name, one in listeners.items()},
        )
        return kind(answers, options)

    def _decided_calls(
        self,
        approvals: Approvals,
        calls: Calls,
        messages: Sequence[BaseMessage],
        decisions: Any,
        meant: Sequence[ToolCallRecord],
        known: Sequence[CallIdentity],
        *,
        only: Only | None,
        alone: bool,
    ) -> tuple[list[ToolCallRecord], list[CallIdentity]]:
        """Return the calls of a batch, each with the reason why it waits and its decision, and their identities.

        Raises:
            DecisionsError: A decision cannot be carried out.
        """
        with Refusals() as refusals:
            own, continued, identities = continue_batch(self, calls, messages, decisions, meant, known, refusals)
            judged = approvals.prepared(continued, self.prepared.arguments_of, in_order=self.parallel is False)
            made = approvals.decided(judged, identities, own, self.prepared.arguments_of, refusals, alone=alone)
            for call in made:
                if call.decision is not None and call.decision.action == "edit" and call.approved is None:
                    with refusals.collected():
                        self.decided(call, call.decision, only=only)
        return made, identities

    def _answer_decided(self, run: _MakeRun, only: Only | None, answer: Answer, decision: Decision | None) -> Answer:
        """Return the answer to a call with a decision."""
        call = answer.call
        decided = replace(call, waits=None) if decision is None else self.decided(call, decision, only=only)
        if decided.edited and self.approvals is not None and self.approvals.judged:
            decided = _admitted_edit(call, decided)
        return answer_of(decided, answer.place, self.tools, run)

    def _run(self, config: RunnableConfig, messages: Sequence[BaseMessage], call: ToolCallRecord, *, found: bool) -> ToolRun:
        prepared, key = self.prepared[call.name], call.name
        if key in self._changes and self._changes[key].progress:
            prepared = prepared.yielding
        timeout = self._timeouts.get(key, self._timeout)
        return ToolRun(call, prepared, config, messages, self.tools, timeout, self._home, self.approvals, found=found)


def _read_calls(calls: Calls) -> list[ToolCallRecord]:
    """Return the calls as records; one without an id gets one derived from its position."""
    records = [*calls_of(calls), *awaited_calls(calls)] if isinstance(calls, AIMessage) else [read_call(call) for call in calls]
    return [record if record.id else replace(record, id=f"call_{position}") for position, record in enumerate(records)]


@contextmanager
def _attaching_results(results: ToolCallBatch | AsyncToolCallBatch) -> Iterator[None]:
    """A context manager that attaches the results of running calls to an exception that ends them."""
    try:
        yield
    except AlreadyResumedError:
        raise
    except BaseException as error:
        attach_messages(error, [result.message for result in results.settled()])
        raise


def _apply_policies(answers: Sequence[Answer], policies: Mapping[str, ToolPolicy], cache: MutableMapping[str, Any] | None) -> None:
    """Apply the tools' policies to the calls of a batch.

    Args:
        answers: The answers to the calls.
        policies: By name of tool.
        cache: Keeps the results of those whose policy names no mapping; by default as long as these calls run.
    """
    own = {} if cache is None else checked_cache("cache", cache)
    for run in [planned.run for answer in answers for planned in answer.planned if planned.run is not None]:
        run.policy = policy = policies.get(run.call.name)
        if policy is not None and policy.caches and run.call.run is None:  # what one that goes on is to give is its own
            mapping: Any = own if policy.cache is True else policy.cache
            run.cached = CachedCall(run.call, mapping, policy.cache_key, direct=run.prepared.tool.return_direct)


def is_concerned(approvals: Approvals | None, arguments: ArgumentsOf, before: ToolCallRecord, after: ToolCallRecord) -> bool:
    """Whether a call that was changed on its way to its tool must not run so: it, or what it was before, needs approval."""
    if approvals is None:
        return False
    judged = approvals.judge_one(replace(after, waits=None, decision=None), arguments)
    return before.decision is not None or judged.waits is not None


_NOT_COUNTED = "Not run: the edited call bundles more calls than could run of the one that the model made."


def _admitted_edit(call: ToolCallRecord, made: ToolCallRecord) -> ToolCallRecord:
    """Return the edited call. Of its bundled calls at most as many run as before, because limits have counted those."""
    left = sum(one.args is not None for one in call.inner)
    inner: list[ToolCallRecord] = []
    for one in made.inner:
        left -= one.args is not None
        inner.append(replace(one, args=None, why=_NOT_COUNTED) if left < 0 and one.args is not None else one)
    return replace(made, inner=inner)


def _home_of_caller() -> Home:
    """Return a function that returns the loop running in this thread. The loop is not kept alive."""
    loop = running_loop()
    return (lambda: None) if loop is None else weakref.ref(loop)
