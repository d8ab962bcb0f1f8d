"""The chat model that runs its tools: the tool loop on top of any LangChain `BaseChatModel`.

`ToolsAndMessagesMixin` makes a chat model of anything that can make one request: it needs `raw_stream` and gives the rest of the
interface, with tools that run. The methods here carry chunks between core, the model and a `Run`, once synchronously and once
asynchronously; what they decide is decided in `run/`. `with_tools` gives the same to an instance of any LangChain chat model.
"""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, cast, overload

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig
from pydantic import BaseModel, PrivateAttr, SecretStr, model_validator

from .compat import CACHE_KEY, input_messages, should_stream
from .errors import ConfigurationError, concise
from .executor.approvals import portable_key
from .executor.steps import CallWrapper
from .executor.tools import dump_tools, restore_tools
from .history import repair
from .pickling import refuse, unportable
from .run.adopted_models import AdoptingMeta, adopted, one_turn_model
from .run.binding import BindableChatModel, BoundChatModel
from .run.decisions import open_calls
from .run.run import Driven, Run, SingleAnswer, adrive, drive
from .run.settings import RUN_KEYWORDS, Configured, RunFields, Toolbox, drop_settings, form_of, run_parts, run_settings, toolbox_of
from .run.turn_wrappers import TurnRequest, TurnWrapper
from .turn.model import akeeping_reply, keeping_reply, readable_messages, tool_labels
from .turn.tools import format_tool_choice
from .turn.turn import Turn

_logger = logging.getLogger("langchain_autotools")


class ToolsAndMessagesMixin(RunFields, BindableChatModel, metaclass=AdoptingMeta, defer_build=True):
    """A chat model that runs its own tools.

    A subclass implements `raw_stream` (and, where it can, `araw_stream`, `raw_invoke`, `araw_invoke`) and inherits the whole
    interface of `BaseChatModel`. With `tools`, `invoke`, `stream`, their asynchronous twins, `batch` and the v3 event streams
    are a whole conversation: the model's calls are executed, their results sent back, until it answers. Without `tools` it
    behaves like any LangChain chat model; `bind_tools` declares tools and never executes them.
    """

    _not_per_call: ClassVar[frozenset[str]] = BindableChatModel._not_per_call | (RunFields.model_fields.keys() - RUN_KEYWORDS - {"tools"})
    _toolbox: Toolbox | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _check_run_settings(self) -> Self:
        if self.middleware:
            self.__dict__.update(_with_middleware(self.tools, self.middleware))
        run_settings(self, self._own_tools(), {})
        self._turn_wrappers()
        return self

    def model_post_init(self, context: Any) -> None:
        """Initialize as pydantic does for private attributes, but also run the initialization of a chat model class behind the mixin."""
        super().model_post_init(context)

    def model_dump(self, *, mode: str = "python", include: Any = None, exclude: Any = None, **options: Any) -> dict[str, Any]:
        """Return the fields as pydantic does; in Python mode also the tools and the rules about them, as the objects that they are.

        The class makes the same model of it. Neither JSON nor a trace has the objects.
        """
        data = super().model_dump(mode=mode, include=include, exclude=exclude, **options)
        if mode != "python":
            return data
        own = ToolsAndMessagesMixin.model_fields.items()  # those that are objects: tools, the rules about them, and what is told of them
        objects = [name for name, field in own if field.exclude and name not in BaseChatModel.model_fields]
        wanted = [name for name in objects if name not in (exclude or ()) and (include is None or name in include)]
        return data | {name: getattr(self, name) for name in wanted if name in self.model_fields_set}

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        yield from super().__repr_args__()
        tools = tool_labels(getattr(self.tools, "tools", self.tools))
        if tools:
            yield "tools", tools

    def with_tools(self, tools: Any) -> Self:
        """Return a copy of the model that runs these tools in place of its own. Both use the same connections.

        Raises:
            ConfigurationError: Something in `tools` can be neither executed nor declared, or a setting names a tool that is not there.
        """
        model = self.model_copy(update=_with_middleware(tools, self.middleware) if self.middleware else {"tools": tools})
        run_settings(model, model._own_tools(), {})
        model._turn_wrappers()
        return model

    def _own_tools(self) -> Toolbox:
        """The model's own tools, prepared once for each value of `tools`, and when one of their sources has others."""
        known = self._toolbox
        same = known is not None and known.source is self.tools and known.handlers is self.handlers
        if known is None or not same or (known.sources and any(one.is_changed() for one in known.sources)):
            known = self._toolbox = toolbox_of(self)
        return known

    def _turn(self, messages: list[BaseMessage], kwargs: dict[str, Any], *, runs: bool = True) -> Turn:
        """Return a turn with the model's declared tools, also outside a run (`generate` and the like)."""
        for name in ("cancel", "inbox", "resume", "deadline", "compact"):
            if kwargs.get(name) is not None:
                raise ConfigurationError(f"{name} is for invoke, stream and their asynchronous twins: here it has no effect")
        drop_settings(self, kwargs)
        if self.__dict__.get("model_kwargs"):
            self._add_standing(kwargs)
        if self.tools and "tools" not in kwargs:
            kwargs["tools"] = list(self._own_tools().declarations)
        elif not kwargs.get("tools", True):
            del kwargs["tools"]  # of this turn there are none, and wires refuse an empty list
        if "tool_choice" in kwargs:
            kwargs["tool_choice"] = format_tool_choice(self, kwargs["tool_choice"], kwargs.get("tools") or ())
        return super()._turn(messages, kwargs, runs=runs and bool(self.tools or self.handlers or self.fallbacks))

    def _add_standing(self, keywords: dict[str, Any]) -> None:
        """Add what `model_kwargs` says for every call to the keywords of a request; the class behind `with_tools` does that itself."""

    # ------------------------------------------------------------------------------------------ a run, for users

    def _driven(self, input: LanguageModelInput, kwargs: dict[str, Any], *, streamed: bool, async_api: bool = False) -> Driven:
        """Return a new run over the input, or the reply of a model that has no tools of its own; its keywords are removed from `kwargs`."""
        if not (self.tools or self.handlers or _needs_run(self, kwargs)) and kwargs.get("journal") is None:
            return SingleAnswer(self, input, kwargs, streamed=streamed, async_api=async_api)
        messages, open_start = input_messages(self, input), self.continues_conversation(kwargs)
        settings = run_settings(self, self._own_tools(), kwargs, messages)
        around = [*_turn_hooks(settings.values, self.middleware), *self._turn_wrappers()]
        parts = run_parts(settings.values, around, _call_hooks(self.middleware, settings.plan.inner), settings.approvals)
        tools = settings.request.form.tools
        streams = (streamed or parts.observer.listens) and should_stream(self, {**kwargs, "tools": tools}, async_api=async_api)
        request = replace(settings.request, end=parts.end, streams=streams)
        return Run(messages, settings, parts, request, open_start=open_start, async_api=async_api)

    def invoke(self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any) -> AIMessage:
        """Answer the input: run the whole tool loop if the model has `tools`, else one turn.

        Args:
            input: Messages, a prompt or a text.
            config: LangChain's configuration; callbacks, tags and metadata reach turns and tools.
            **kwargs: `stop`, any run setting (`max_turns=3`, `on_limit="raise"`, ...), `resume` (see `resume`), what goes to the vendor,
                `cancel` and `inbox`. `cancel` is an event or a function that returns True or False, by which another thread or task ends
                the answer, whatever it waits for. `inbox` is a queue of texts and `HumanMessage`s, which join the run between two of its
                requests.

        Returns:
            The run message; `new_messages` takes the new messages out of it.
        """
        with concise():
            *_, message = drive(self, input, config, kwargs, streamed=False)
        return cast("AIMessage", message)

    async def ainvoke(self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any) -> AIMessage:
        """Like `invoke`, asynchronously."""
        with concise():
            *_, message = [chunk async for chunk in adrive(self, input, config, kwargs, streamed=False)]
        return cast("AIMessage", message)

    def stream(self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
        """Stream the answer to the input: text as it is written, every new message as soon as it is complete.

        The chunks sum to what `invoke` returns; `new_messages(chunk)` gives the messages a chunk completes.
        """
        with concise():
            yield from drive(self, input, config, kwargs, streamed=True)  # a generator function, by which others know a stream

    async def astream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[AIMessageChunk]:
        """Like `stream`, asynchronously."""
        with concise():
            async with aclosing(adrive(self, input, config, kwargs, streamed=True)) as chunks:
                async for chunk in chunks:
                    yield chunk

    def _check_decisions(self, history: LanguageModelInput, kwargs: dict[str, Any], *, recorded: bool = False) -> None:
        """Raise if a call with these keywords, `resume` among them, cannot carry out the decisions.

        Args:
            history: The history.
            kwargs: The keywords. Those that configure a run are removed.
            recorded: Whether the call is recorded, and so a run also without tools.

        Raises:
            DecisionsError: It cannot.
        """
        if not (recorded or self.tools or self.handlers or _needs_run(self, kwargs)):
            self._driven(history, kwargs, streamed=False)  # which says what such a model lacks
        messages, open_start = input_messages(self, history), self.continues_conversation(kwargs)
        settings = run_settings(self, self._own_tools(), kwargs, messages)
        plan = settings.plan
        repaired = repair(messages, open_end=True, open_start=open_start)
        open_calls(repaired, plan.decisions, settings.executor, plan.caller_tools, settings.approvals, messages)

    def generate(self, messages: list[list[BaseMessage]], *args: Any, **kwargs: Any) -> LLMResult:
        """Make one turn for each list of messages, as core does. Tools are declared and never run: their calls are returned."""
        with concise():
            return self._noticed(super().generate([[*readable_messages(one)] for one in messages], *args, **kwargs), kwargs)

    async def agenerate(self, messages: list[list[BaseMessage]], *args: Any, **kwargs: Any) -> LLMResult:
        """Like `generate`, asynchronously."""
        with concise():
            return self._noticed(await super().agenerate([[*readable_messages(one)] for one in messages], *args, **kwargs), kwargs)

    def _noticed(self, result: LLMResult, kwargs: Mapping[str, Any]) -> LLMResult:
        """Log that the calls of a turn outside a run do not run, since callers that read only the text would miss them."""
        turns = [one for several in result.generations for one in several if isinstance(one, ChatGeneration) and not one.text]
        silent = any(isinstance(one.message, AIMessage) and one.message.tool_calls for one in turns)
        if self.tools and "tools" not in kwargs and silent:
            _logger.warning("generate made one turn, which ends in calls and has no text: use invoke, which runs the model's tools")
        return result

    def stream_events(self, input: LanguageModelInput, config: RunnableConfig | None = None, *, version: Any = "v2", **kwargs: Any) -> Any:
        """Stream the events of an answer; version "v3" of a model with tools streams the whole run as one message."""
        if version == "v3" and (self.tools or self.handlers or self.fallbacks):
            from .run.stream_events import run_events  # here, because it costs every other program its import

            return run_events(self, input, config, kwargs)
        return super().stream_events(input, config, version=version, **kwargs)

    def astream_events(self, input: LanguageModelInput, config: RunnableConfig | None = None, *, version: Any = "v2", **kwargs: Any) -> Any:
        """Like `stream_events`, asynchronously."""
        if version == "v3" and (self.tools or self.handlers or self.fallbacks):
            from .run.stream_events import arun_events

            return arun_events(self, input, config, kwargs)
        return super().astream_events(input, config, version=version, **kwargs)

    # ------------------------------------------------------------------------------------------ copies

    def __getstate__(self) -> dict[Any, Any]:
        name, listed = type(self).__name__, isinstance(self.tools, Mapping | Sequence)
        apart = {CACHE_KEY, *(("tools",) if listed else ())}
        refuse(unportable(name, {key: value for key, value in super().__getstate__()["__dict__"].items() if key not in apart}))
        changed = {"tools": dump_tools(name, self.tools), "approval_key": portable_key(self.approval_key)}
        state = super().__getstate__()  # not before: tracebacks of a refusal show local variables
        own = {**(state["__pydantic_private__"] or {}), "_toolbox": None}
        fields = {key: value for key, value in state["__dict__"].items() if key != CACHE_KEY}
        return {**state, "__dict__": {**fields, **changed}, "__pydantic_private__": own}

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        self.__dict__["tools"] = restore_tools(self.tools)

    # ------------------------------------------------------------------------------------------ one request of a run

    def _turn_wrappers(self) -> Sequence[TurnWrapper]:
        """Return what wraps each turn of the model's runs besides what belongs to every run: failover, where it has fallbacks.

        Raises:
            ConfigurationError: A fallback cannot take the model's place.
        """
        if not self.fallbacks:
            return ()
        from .run.failover import Failover  # here, because it costs every other program its import

        return (Failover(self, [tool for _, tool in self._own_tools().objects]),)

    def _for_one_turn(self, model: Any, tools: Sequence[Any] = ()) -> Any:
        """Return any chat model as one for single turns, which declare these tools."""
        return one_turn_model(ToolsAndMessagesMixin, model, tools)

    def _turn_parts(self, request: TurnRequest) -> Iterator[AIMessage]:
        """Make a request: an LLM run of core."""
        keywords = _keywords(self, request)
        if request.streams:
            return super().stream(request.messages, request.config, **keywords)
        invoke = super().invoke
        return keeping_reply(invoke(request.messages, request.config, **keywords) for _ in range(1))

    def _aturn_parts(self, request: TurnRequest) -> AsyncGenerator[AIMessage, None]:
        """Like `_turn_parts`, asynchronously."""
        keywords = _keywords(self, request)
        if request.streams:
            return cast("AsyncGenerator[AIMessage, None]", super().astream(request.messages, request.config, **keywords))
        invoke = super().ainvoke

        async def whole() -> AsyncGenerator[AIMessage, None]:
            yield await invoke(request.messages, request.config, **keywords)

        return akeeping_reply(whole())


def _keywords(model: Configured, request: TurnRequest) -> dict[str, Any]:
    """Return all keywords of a request, in the form of the wire of the model that makes it."""
    form = request.form if request.form.model is model or request.form.model is None else form_of(model, request)
    return {**request.keywords, **form.keywords(request.choice)}


# ---------------------------------------------------------------------------------------------- tools for an instance of any chat model


Output = TypeVar("Output", bound=BaseModel)
OwnModel = TypeVar("OwnModel", bound=ToolsAndMessagesMixin)

if TYPE_CHECKING:

    class ToolRunningModel(ToolsAndMessagesMixin):
        """The type of what `with_tools` makes of another package's chat model. At run time it is `ToolsAndMessagesMixin` itself."""

        @overload
        def with_structured_output(
            self, schema: type[Output], *, include_raw: Literal[False] = False, **kwargs: Any
        ) -> Runnable[LanguageModelInput, Output]: ...
        @overload
        def with_structured_output(
            self, schema: Mapping[str, Any] | type[Mapping[str, Any]], *, include_raw: Literal[False] = False, **kwargs: Any
        ) -> Runnable[LanguageModelInput, dict[str, Any]]: ...
        @overload
        def with_structured_output(
            self, schema: Any, *, include_raw: Literal[True], **kwargs: Any
        ) -> Runnable[LanguageModelInput, dict[str, Any]]: ...
        @overload
        def with_structured_output(self, schema: Any, *, include_raw: bool = False, **kwargs: Any) -> Runnable[LanguageModelInput, Any]: ...
        def with_structured_output(self, schema: Any, **kwargs: Any) -> Runnable[LanguageModelInput, Any]:
            """Return a runnable with structured output, as the class of the given model makes it."""

else:
    ToolRunningModel = ToolsAndMessagesMixin


@overload
def with_tools(model: OwnModel, tools: Any, **settings: Any) -> OwnModel: ...
@overload
def with_tools(model: BaseChatModel, tools: Any, **settings: Any) -> ToolRunningModel: ...
@overload
def with_tools(model: Runnable[LanguageModelInput, AIMessage], tools: Any, **settings: Any) -> Runnable[LanguageModelInput, AIMessage]: ...
def with_tools(model: Any, tools: Any, **settings: Any) -> Any:
    """Return a copy of a chat model that runs these tools itself, like the models of this package.

    The copy keeps the model's class, settings, secrets and clients: it is an instance of that class, its requests are that class's own,
    and `isinstance` and traces see what they saw before. The given model does not change.

    Args:
        model: A chat model of any LangChain package, or of this one (also with something bound to it).
        tools: The tools, as the constructor of a model of this package takes them: a list, a `{name: callable}` mapping, a `ToolExecutor`.
        **settings: Other fields of `ToolsAndMessagesMixin`: `max_turns=3`, `requires_approval=True`, ...

    Returns:
        The model: a subclass of the given model's class and of `ToolsAndMessagesMixin`.

    Raises:
        ConfigurationError: `model` is no chat model, or something is bound to it; a setting does not exist or cannot work; something in
            `tools` can be neither executed nor declared.
    """
    if isinstance(model, BoundChatModel):
        return model.model_copy(update={"bound": with_tools(model.bound, tools, **settings)})
    if not isinstance(model, BaseChatModel):
        raise ConfigurationError(_refusal(model))
    unknown = settings.keys() - (ToolsAndMessagesMixin.model_fields.keys() - BaseChatModel.model_fields.keys())
    if unknown:
        raise ConfigurationError(ToolsAndMessagesMixin._unknown(min(unknown)))
    if isinstance(settings.get("approval_key"), str):
        settings["approval_key"] = SecretStr(settings["approval_key"])
    own = model if isinstance(model, ToolsAndMessagesMixin) else adopted(ToolsAndMessagesMixin, model)
    return (own.model_copy(update=settings) if settings else own).with_tools(tools)


def _refusal(model: object) -> str:
    name = type(model).__name__
    if isinstance(model, type):
        wanted = f"class {model.__name__}WithTools(ToolsAndMessagesMixin, {model.__name__})"
        return f"with_tools takes a chat model, not the class {model.__name__}: make one of it, or write {wanted}"
    if isinstance(model, RunnableBinding):
        return f"with_tools takes a chat model, not {name}: bind to what it returns, with_tools(model, tools).bind(...)"
    if isinstance(model, Runnable):
        return f"with_tools takes a chat model, not {name}: give it the model inside, and make the {name} of what it returns"
    return f"with_tools takes a LangChain chat model, not {name}"


# --------------------------------------------------------------------------------------------- what the settings put around turns and calls
#
# A call that has none of it imports none of it.


def _needs_run(model: Any, keywords: Mapping[str, Any]) -> bool:
    """Whether a call of a model without tools is a run, too: something wraps its turns, or is checked before its request."""
    own = bool(model.fallbacks) or bool(model.middleware) or model.before_turn is not None or model.max_cost is not None
    given = keywords.get("before_turn"), keywords.get("output_check"), keywords.get("max_cost"), keywords.get("inbox")
    return own or given != (None, None, None, None)


def _with_middleware(tools: Any, middleware: Any) -> dict[str, Any]:
    """Return a model's fields for middleware, which is checked, and for tools, with those that middleware brings.

    Raises:
        ConfigurationError: Something is no middleware, or needs what a run does not have.
    """
    from .run.middleware import checked_middleware, with_brought_tools  # here, because it costs every other program its import

    checked = checked_middleware(middleware)
    return {"middleware": checked, "tools": with_brought_tools(tools, checked)}


def _turn_hooks(values: Mapping[str, Any], middleware: Sequence[Any]) -> Sequence[TurnWrapper]:
    """Return the wrappers of turns that the settings of a call and the model's middleware bring."""
    hooks: list[TurnWrapper] = []
    if values["before_turn"] is not None:
        from .run.middleware import BeforeTurn

        hooks.append(BeforeTurn(values["before_turn"]))
    if values["output_check"] is not None:
        hooks.append(values["output_check"])
    if values["compact"] is not None:
        hooks.append(values["compact"].wrapper())
    if middleware:
        from .run.middleware import MODEL_HOOKS, ModelMiddleware, with_hook

        around = with_hook(middleware, MODEL_HOOKS)
        hooks += [ModelMiddleware(around)] if around else []
    return hooks


def _call_hooks(middleware: Sequence[Any], inner: CallWrapper | None) -> Sequence[CallWrapper]:
    """Return the wrappers of calls that the model's middleware brings, the outermost first: `inner`, for models and agents as tools."""
    own = () if inner is None else (inner,)
    if not middleware:
        return own
    from .run.middleware import TOOL_HOOKS, call_wrapper, with_hook

    return [*own, *(call_wrapper(one) for one in with_hook(middleware, TOOL_HOOKS))]
