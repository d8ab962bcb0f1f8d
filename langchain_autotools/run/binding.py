"""Keywords bound to a chat model: LangChain's `RunnableBinding` with `resume`, its batches with a progress bar."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing, contextmanager, nullcontext
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig
from langchain_core.tools import BaseTool

from ..errors import ConfigurationError, DecisionProblem, DecisionsError
from ..executor import Decision
from ..executor.run_tool import ModelRuns, RunTool
from ..executor.tools import GivenAsTool
from ..history.expansion import expand
from ..messages.blocks import is_call_block
from ..pickling import check_portable, left_out, refuse
from ..turn.model import SingleTurnChatModel, tool_labels
from .decisions import PlainDecision
from .settings import RUN_KEYWORDS, drop_settings


def _with_countable_calls(message: BaseMessage) -> BaseMessage:
    """Return a message whose blocks have its calls: in a message with blocks, core's counter counts those calls alone."""
    if not isinstance(message, AIMessage) or not message.tool_calls or any(map(is_call_block, message.content)):
        return message
    blocks = [*message.content, *({"type": "tool_use", **call} for call in message.tool_calls)]
    return message.model_copy(update={"content": blocks})


class Batched:
    """Core's methods for several inputs, with an optional progress bar, and without `resume`: decisions are about one history."""

    if not TYPE_CHECKING:  # core's types stay what they are

        def batch(self, inputs: Any, config: Any = None, *, show_progress: bool = False, **kwargs: Any) -> Any:
            """Run core's `batch`.

            Args:
                inputs: The inputs.
                config: LangChain's configuration, one or one for each input.
                show_progress: Whether a bar on standard error counts the inputs that are done (tqdm's, or rich's where that is missing).
                **kwargs: Keywords of core's `batch` and of `invoke`.
            """
            with self._shown(inputs, kwargs, show_progress) as shown:
                return (shown or super()).batch(inputs, config, **kwargs)

        async def abatch(self, inputs: Any, config: Any = None, *, show_progress: bool = False, **kwargs: Any) -> Any:
            """Run core's `abatch`; `show_progress` as for `batch`."""
            with self._shown(inputs, kwargs, show_progress) as shown:
                return await (shown or super()).abatch(inputs, config, **kwargs)

        def batch_as_completed(self, inputs: Any, config: Any = None, *, show_progress: bool = False, **kwargs: Any) -> Any:
            """Run core's `batch_as_completed`; `show_progress` as for `batch`."""
            _check_batch(kwargs)
            return self._as_completed(inputs, config, kwargs, show_progress)

        def abatch_as_completed(self, inputs: Any, config: Any = None, *, show_progress: bool = False, **kwargs: Any) -> Any:
            """Run core's `abatch_as_completed`; `show_progress` as for `batch`."""
            _check_batch(kwargs)
            return self._aas_completed(inputs, config, kwargs, show_progress)

        def _as_completed(self, inputs: Any, config: Any, kwargs: Any, show_progress: bool) -> Any:
            with self._shown(inputs, kwargs, show_progress) as shown:
                yield from (shown or super()).batch_as_completed(inputs, config, **kwargs)

        async def _aas_completed(self, inputs: Any, config: Any, kwargs: Any, show_progress: bool) -> Any:
            with self._shown(inputs, kwargs, show_progress) as shown:
                async with aclosing((shown or super()).abatch_as_completed(inputs, config, **kwargs)) as done:
                    async for one in done:
                        yield one

    def _shown(self: Any, inputs: Any, kwargs: dict[str, Any], show_progress: Any) -> AbstractContextManager[Any]:
        """Return a context manager for a batch with a progress bar, which enters as its runner; as None without one."""
        _check_batch(kwargs)
        if not isinstance(show_progress, bool):
            raise ConfigurationError(f"show_progress must be True or False, not {show_progress!r}")
        return _counted(self, len(inputs)) if show_progress and inputs else nullcontext()


def _check_batch(keywords: Mapping[str, Any]) -> None:
    if keywords.get("resume") is not None:
        raise ConfigurationError("resume is about the calls of one history: batch takes none")
    if keywords.get("inbox") is not None:
        raise ConfigurationError("an inbox is one run's: batch takes none")


Decisions = Mapping[str, PlainDecision] | Sequence[Decision | Mapping[str, Any]] | Literal[True]
"""Decisions for `resume`: from pending calls, or their dicts; plain decisions by call id; True for all calls."""


class Resumable(Batched, GivenAsTool):
    """A model or binding that can resume a history with unanswered calls, and that can be given as a tool."""

    if not TYPE_CHECKING:  # core's type is narrower

        def as_tool(self, args_schema: Any = None, *, name: Any = None, description: Any = None, arg_types: Any = None) -> BaseTool:
            """Return the model as a tool of another one: each call is a run, and where that run waits, the call waits with it.

            Args:
                args_schema: As for any runnable: with it, or with `arg_types`, this is LangChain's own `as_tool`.
                name: The name of the tool. None: the model's own `name`.
                description: The description for the model that calls it.
                arg_types: As for any runnable.
            """
            if args_schema is not None or arg_types is not None:
                return super().as_tool(args_schema, name=name, description=description, arg_types=arg_types)
            return RunTool.of(
                ModelRuns(self), "a model", name or self.name or getattr(getattr(self, "bound", None), "name", None), description
            )

    def resume(
        self: Any,
        history: LanguageModelInput,
        decisions: Decisions = True,
        config: RunnableConfig | None = None,
        *,
        message: str | HumanMessage | None = None,
        **kwargs: Any,
    ) -> AIMessage:
        """Continue a history that ends in unanswered calls, executing those that `decisions` approve.

        Without this a run answers such calls as interrupted: a history may come from anybody. The keyword `resume=decisions`
        (with `message=`) does the same for `stream`, `ainvoke` and `astream`, and for what `bind_tools` returns.

        Args:
            history: The messages; the last AI message has calls without results.
            decisions: A list of decisions from the methods of `PendingCall`, or their dicts. For calls that need no approval also by
                id: True to execute, a dict to execute with these arguments instead (the result says so), False or a text to refuse (the
                text is what the model is told). True alone executes all of them, with the arguments that the history has, whoever wrote it,
                unless they contradict what is recorded of the model's own. A call without a decision stays pending: the run then makes no
                request and ends with `calls_pending`.
            config: LangChain's configuration.
            message: What the user says as well, a text or a `HumanMessage`. It is behind the results of the calls and before the
                reply, in the new messages too. It is sent once all calls are answered and a request follows; of a run that ends before,
                `run.response_metadata["autotools"]["message_sent"]` is False, and the stop reason says why.
            **kwargs: Keywords of `invoke`.

        Raises:
            DecisionsError: No call waits. A decision is about none that waits, or not about the call as it is. A call that needs approval
                would run without. A call to execute belongs to no tool of the model. Its tool does not take the arguments that it was given
                instead. True is said of one whose arguments were changed. Nothing has run.
        """
        run: AIMessage = self.invoke(history, config, resume=_checked_decisions(decisions), message=message, **kwargs)
        return run

    async def aresume(
        self: Any,
        history: LanguageModelInput,
        decisions: Decisions = True,
        config: RunnableConfig | None = None,
        *,
        message: str | HumanMessage | None = None,
        **kwargs: Any,
    ) -> AIMessage:
        """Like `resume`, asynchronously."""
        run: AIMessage = await self.ainvoke(history, config, resume=_checked_decisions(decisions), message=message, **kwargs)
        return run

    def check(self: Any, history: LanguageModelInput, decisions: Decisions = True, **kwargs: Any) -> list[DecisionProblem]:
        """Return what is wrong with decisions about the calls that a history ends in; empty if `resume` can carry them out.

        This is the first step of `resume`, also for runs inside calls of models and agents: no request is made, no call is
        claimed, and no tool runs. A rule that is a function is called, as `resume` calls it.

        Args:
            history: As of `resume`.
            decisions: As of `resume`.
            **kwargs: As of `resume`: keywords of the call that is to resume.

        Raises:
            ConfigurationError: What `resume` would raise besides `DecisionsError`, such as for a keyword that cannot work.
        """
        try:
            self._check_decisions(history, {**kwargs, "resume": _checked_decisions(decisions)})
        except DecisionsError as error:
            problems: list[DecisionProblem] = error.problems
            return problems
        return []


def _checked_decisions(decisions: Any) -> Any:
    """Return the decisions for `resume`; raise if they are invalid.

    Raises:
        ConfigurationError: They are None, which elsewhere means that nothing is resumed.
    """
    if decisions is None:
        raise ConfigurationError("resume takes True, or decisions by call id, not None")
    return decisions


class BoundChatModel(Resumable, RunnableBinding[LanguageModelInput, AIMessage]):  # type: ignore[no-redef, unused-ignore]
    """A model with tools or other keywords bound to it.

    LangChain's own binding hands methods that it does not know to the model, without what was bound: a `resume` would run calls of
    tools that were declared to be asked about, and `bind_tools` would forget that calls wait for approval.
    """

    if not TYPE_CHECKING:  # core's types stay what they are

        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            """Declare tools on the model; bound run settings stay."""
            made = self.bound.bind_tools(tools, **kwargs)
            return made.model_copy(update={"kwargs": {**self._settings(), **made.kwargs}})

        def with_structured_output(self, *args: Any, **kwargs: Any) -> Any:
            """Return a runnable with structured output from the model; bound run settings stay."""
            return self.bound.with_structured_output(*args, **{**self._settings(), **kwargs})

        def with_tools(self, tools: Any) -> Any:
            """Replace the tools of the model; other bound keywords stay."""
            return self.model_copy(update={"bound": self.bound.with_tools(tools)})

    def _check_decisions(self, history: LanguageModelInput, kwargs: dict[str, Any]) -> None:
        """Check decisions with the model, under what is bound."""
        self.bound._check_decisions(history, {**self.kwargs, **kwargs})  # type: ignore[attr-defined]

    def _shown(self, inputs: Any, kwargs: dict[str, Any], show_progress: Any) -> AbstractContextManager[Any]:
        """Return the model's progress display, which may be bound too."""
        super()._shown((), kwargs, show_progress)
        kwargs.update({"show_progress": True} if show_progress else {})
        return nullcontext()

    def __getstate__(self) -> dict[Any, Any]:
        owner = f"what is bound to {type(self.bound).__name__}"
        if isinstance(self.bound, SingleTurnChatModel):
            refuse(left_out(owner, self.bound._secret_names(self.kwargs)))
        inbox = [] if self.kwargs.get("inbox") is None else ["inbox"]
        refuse(left_out(owner, inbox, "what is put into a queue of this process reaches no copy of it: give it to the call that runs here"))
        check_portable(owner, {**self.kwargs, "config": self.config, "config_factories": self.config_factories})
        return super().__getstate__()

    def _settings(self) -> dict[str, Any]:
        return {name: value for name, value in self.kwargs.items() if name in RUN_KEYWORDS}

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        kwargs = self.bound._public(self.kwargs)  # type: ignore[attr-defined]
        if kwargs.get("tools"):
            kwargs["tools"] = tool_labels(kwargs["tools"])
        yield from {"bound": self.bound, "kwargs": kwargs, **({"config": self.config} if self.config else {})}.items()

    @classmethod
    def lc_id(cls) -> list[str]:
        """Return LangChain's own id, because the binding is restored as LangChain's."""
        return RunnableBinding.lc_id()

    @classmethod
    def of(cls, binding: Any) -> Any:
        """Return the same binding as a `BoundChatModel`."""
        return cls(**{name: getattr(binding, name) for name in RunnableBinding.model_fields if name != "name"})


class BindableChatModel(Resumable, SingleTurnChatModel, defer_build=True):
    """A chat model whose bindings can be resumed, because each is a `BoundChatModel`."""

    def _estimated_tokens(self, messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]]) -> int:
        """Return the estimated number of tokens of a request with these messages and tools in the wire's form, offline."""
        counted = [_with_countable_calls(message) if isinstance(message.content, list) else message for message in messages]
        return count_tokens_approximately(counted, tools=[dict(tool) for tool in tools])

    if not TYPE_CHECKING:  # the type that core gives a binding is private to core; core's counter takes lists alone

        def get_num_tokens_from_messages(self, messages: Sequence[BaseMessage], *args: Any, **kwargs: Any) -> int:
            """Return the model's own count of the tokens of these messages. A run message counts as those that it carries."""
            return super().get_num_tokens_from_messages(expand(messages), *args, **kwargs)

        def bind(self, **kwargs: Any) -> Any:
            """Return the model with these keywords, run settings included, in every request. A tool declared twice is sent once.

            Raises:
                ConfigurationError: A run setting cannot work, or two of the `tools` have one name, and are not the same.
            """
            drop_settings(self, {name: value for name, value in kwargs.items() if name != "show_progress"})
            return BoundChatModel.of(super().bind(**kwargs))

        def with_config(self, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
            """Return the model with this configuration in every request."""
            return BoundChatModel.of(super().with_config(config, **kwargs))

        def with_types(self, **types: Any) -> Any:
            """Return the model with other types of input and output."""
            return BoundChatModel.of(super().with_types(**types))

        def with_listeners(self, **listeners: Any) -> Any:
            """Return the model with listeners for the start and end of its runs."""
            return BoundChatModel.of(super().with_listeners(**listeners))

        def with_alisteners(self, **listeners: Any) -> Any:
            """Return the model with asynchronous listeners, like `with_listeners`."""
            return BoundChatModel.of(super().with_alisteners(**listeners))


# ---------------------------------------------------------------------------------------------- a progress bar for a batch


@contextmanager
def _counted(runnable: Runnable[Any, Any], total: int) -> Iterator[Runnable[Any, Any]]:
    """Yield the runnable with its answers and errors counted on standard error while the body runs.

    Args:
        runnable: The runnable.
        total: The total number of answers.

    Raises:
        ConfigurationError: Nothing is installed that draws a bar.
    """
    draw, lock = _drawer(), threading.Lock()
    with draw(total) as advance:

        def count() -> None:
            with lock:  # the bars' own counting is not safe for threads
                advance()

        yield _Counted(runnable, count)


class _Counted(Runnable[Any, Any]):
    """A runnable whose answers and errors are counted.

    Args:
        runnable: The runnable.
        count: Called after each.
    """

    def __init__(self, runnable: Runnable[Any, Any], count: Callable[[], object]) -> None:
        self._runnable, self._count = runnable, count

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        try:
            return self._runnable.invoke(input, config, **kwargs)
        finally:
            self._count()

    async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        try:
            return await self._runnable.ainvoke(input, config, **kwargs)
        finally:
            self._count()


def _drawer() -> Callable[[int], AbstractContextManager[Callable[[], object]]]:
    if find_spec("tqdm"):
        return _tqdm_bar
    if find_spec("rich"):
        return _rich_bar
    raise ConfigurationError("show_progress needs tqdm or rich: pip install tqdm")


@contextmanager
def _tqdm_bar(total: int) -> Iterator[Callable[[], object]]:
    from tqdm.auto import tqdm  # in notebooks a widget

    with tqdm(total=total) as bar:
        yield bar.update


@contextmanager
def _rich_bar(total: int) -> Iterator[Callable[[], object]]:
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress

    with Progress(*Progress.get_default_columns(), MofNCompleteColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)
        yield lambda: bar.advance(task)
