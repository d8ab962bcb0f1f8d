"""A chat model that makes one request per call: LangChain's own methods over a subclass's `raw_stream`.

The synchronous and asynchronous methods differ only by their `await`s; what a turn does with its raw chunks is in `turn`.
"""

import inspect
import re
import sys
import uuid
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import aclosing, closing, nullcontext, suppress
from difflib import get_close_matches
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Self, TypeVar, cast, overload

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManager, CallbackManagerForLLMRun
from langchain_core.callbacks.manager import handle_event
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompt_values import ChatPromptValue, PromptValue
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config, run_in_executor
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_core.utils.utils import LC_ID_PREFIX
from pydantic import AliasChoices, AliasPath, BaseModel, SecretStr, model_validator

from ..compat import CACHE_KEY, OF_FILES, is_core, may_hold_files, new_message_id, normalized_messages, should_stream
from ..errors import ConfigurationError
from ..executor.names import own_name, tool_name
from ..messages.blocks import media_type, unnumbered, whole_content
from ..messages.incremental import MessageMemo
from ..messages.metadata import CACHED_ID, keep_reply, own_metadata, with_own_metadata, without_cost
from .stored_messages import canonical_message, stored_form, with_output_version
from .subclass_methods import check_raw_methods, derived_methods, install_overrides
from .tools import ToolChoice, declaring, format_tool_choice, format_tools, listed, read_choice
from .turn import Turn, combined_outputs, generation, in_time

MISTAKEN: Final = {"tool_timeout": "the time of a tool is that of its policy: default_policy=ToolPolicy(timeout=...)"}
"""Replacements for unknown argument names that are not near to the right one."""

_MISSPELT: Final = 0.79  # the least similarity of a misspelt name: that of two swapped letters among five
_PER_CALL: Final = frozenset({"cancel", "inbox", "resume", "message"})
_VERSIONS: Final = "lc_versions"  # what LangChain notes in the metadata of every model


def names_of(model: type[BaseModel], field: str) -> tuple[str, ...]:
    """Return the names under which a constructor accepts a field, starting with that for type checkers.

    That is the alias where it is given as `alias`, and the field's own name where it is given as `validation_alias`.
    """
    info = model.model_fields[field]
    choices = info.validation_alias.choices if isinstance(info.validation_alias, AliasChoices) else [info.validation_alias]
    firsts = (alias.path[0] if isinstance(alias, AliasPath) else alias for alias in (info.alias, *choices))
    return tuple(dict.fromkeys((info.alias or field, field, *(first for first in firsts if isinstance(first, str)))))


@lru_cache(maxsize=256)
def argument_names(model: type[BaseModel]) -> frozenset[str]:
    """Return all names of all arguments."""
    return frozenset(name for field in model.model_fields for name in names_of(model, field))


def unknown_argument(model: type[BaseModel], name: str, known: Collection[str], others: str = "", *, kind: str = "argument") -> str:
    """Return the error text for an unknown argument, with the one that it misspells.

    Args:
        model: The model's class.
        name: The name that was given.
        known: The names that there are.
        others: A description of where other arguments go; "" for nowhere.
        kind: What it is: an argument of the constructor, or a keyword of a call.
    """
    refused = f"{model.__name__} has no {kind} {name!r}"
    if name in _PER_CALL:
        return f"{refused}: it belongs to one call: give it to invoke, stream or their asynchronous twins"
    if name in MISTAKEN:
        return f"{refused}: {MISTAKEN[name]}"
    near = likely_name(name, known)
    hints = [*([f"did you mean {near!r}?"] if near else []), *([others] if others else [])]
    return f"{refused}: {' '.join(hints)}" if hints else refused


def likely_name(name: str, known: Collection[str]) -> str | None:
    """Return the known name of which another one is a misspelling; None if it is none (`top_k` is another word than `top_p`)."""
    spelt = {one.replace("_", "").lower(): one for one in sorted(known, reverse=True)}
    near = get_close_matches(name.replace("_", "").lower(), spelt, n=1, cutoff=_MISSPELT)
    return spelt[near[0]] if near else None


def given_arguments(model: BaseModel, shown: Iterable[tuple[str | None, Any]]) -> Iterator[tuple[str | None, Any]]:
    """Yield the arguments that a model was given, under the names for type checkers.

    Args:
        model: The model.
        shown: The names and values of fields for a repr. The long profile and empty values are omitted.
    """
    for name, value in shown:
        if name == "metadata" and isinstance(value, Mapping):
            value = {key: inner for key, inner in value.items() if key != _VERSIONS}
        is_field = name in type(model).model_fields
        if is_field and (name == "profile" or name not in model.model_fields_set or value is None or value in ({}, [], ())):
            continue
        yield (names_of(type(model), name)[0] if name and is_field else name), value


def tool_labels(tools: Any) -> list[str]:
    """Return the names of tools in any form; for a builtin tool without one, its type."""
    if isinstance(tools, Mapping):
        return [*map(str, tools)]
    return [
        tool_name(tool) or str(next(iter(tool), "tool"))
        if isinstance(tool, Mapping)
        else str(getattr(tool, "name", None) or getattr(tool, "__name__", type(tool).__name__))
        for tool in tools or ()
    ]


# ----------------------------------------------------------------------------------- descriptions of fields, from the docstrings under them
#
# pydantic does the same with `use_attribute_docstrings`, by parsing the module once for each class: that is most of what an import costs.


_PACKAGE = __name__.partition(".")[0]

_CLASS_OR_FIELD = re.compile(
    r'^class (?P<class>\w+)|^    (?P<field>\w+): .*\n(?:(?: {8}| {4}[)\]}]).*\n)*    """(?P<text>(?s:.*?))"""',
    re.MULTILINE,
)


def describe_fields(model: type[BaseModel]) -> None:
    """Set the `description` of the fields that a class of this package declares."""
    if model.__module__.partition(".")[0] != _PACKAGE:
        return
    fields = model.model_fields
    for name, text in _docstrings(model.__module__).get(model.__name__, {}).items():
        if name in fields and fields[name].description is None:
            fields[name].description = text


@cache
def _docstrings(module: str) -> dict[str, dict[str, str]]:
    """Return the docstrings under annotated names, by class and name; empty without the source."""
    try:
        source = sys.modules[module].__loader__.get_source(module)  # type: ignore[union-attr]
    except (AttributeError, ImportError, OSError):
        source = None
    found: dict[str, dict[str, str]] = {}
    inside = ""
    for match in _CLASS_OR_FIELD.finditer(source or ""):
        inside = match["class"] or inside
        if match["field"]:
            found.setdefault(inside, {})[match["field"]] = inspect.cleandoc(match["text"])
    return found


# ------------------------------------------------------------------------------- fields whose constructor accepts more types than they hold
#
# A key may be given as text and is held as a `SecretStr`.


_Part = TypeVar("_Part", bound=AIMessage)
Held = TypeVar("Held")
Given = TypeVar("Given")

if TYPE_CHECKING:

    class Converted(Generic[Held, Given]):
        """A field for type checkers, which use a descriptor's `__set__` as the constructor's parameter type."""

        @overload
        def __get__(self, instance: None, owner: Any) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: Any) -> Held: ...
        def __get__(self, instance: object, owner: Any) -> Any: ...
        def __set__(self, instance: object, value: Given) -> None: ...

    Secret = Converted[SecretStr | None, SecretStr | str | None]
else:
    Secret = SecretStr | None


class SingleTurnChatModel(BaseChatModel):
    """A chat model implemented by `raw_stream`: one request at a time, tools declared and never executed."""

    skip_invalid_tools: bool = False
    """Whether to omit and log a tool that the vendor does not accept, such as one with `oneOf` at the root of its schema. Otherwise such a
    tool raises a `ConfigurationError`."""

    lists_content: ClassVar[bool] = False
    """Whether the content of replies to requests with tools is always a list of blocks, never a string."""

    _not_per_call: ClassVar[frozenset[str]] = frozenset({"skip_invalid_tools"})
    """Arguments of the constructor that are refused as keywords of a call, where they would have no effect."""
    _first_request_only: ClassVar[frozenset[str]] = frozenset()
    """Names of the parameters that apply only to the first request of a run: repeated, they would prevent its end."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        unknown = kwargs.keys() - self._argument_names()
        if unknown and self.model_config.get("extra") != "allow":
            raise ConfigurationError(self._unknown(min(unknown)))
        super().__init__(*args, **kwargs)

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        return given_arguments(self, super().__repr_args__())

    def _convert_input(self, model_input: LanguageModelInput) -> PromptValue:
        if type(model_input) is list and all(issubclass(cls, BaseMessage) for cls in {*map(type, model_input)}):
            return ChatPromptValue.model_construct(messages=readable_messages([*model_input]))
        try:
            prompt = super()._convert_input(model_input)
        except (NotImplementedError, TypeError, ValueError) as error:
            _refuse_fields(model_input)
            raise error.with_traceback(None) from None  # its text says what is wrong, whatever core met on the way
        messages = prompt.messages if isinstance(prompt, ChatPromptValue) else ()
        made = readable_messages(messages)
        return prompt if made is messages else ChatPromptValue.model_construct(messages=made)

    @property
    def _llm_type(self) -> str:
        """The name of the kind of model for traces and caches: that of a chat model behind the mixin, else the class's."""
        return super()._llm_type or type(self).__name__  # type: ignore[safe-super]

    @classmethod
    def _argument_names(cls) -> frozenset[str]:
        return argument_names(cls)

    @classmethod
    def _unknown(cls, name: str) -> str:
        """Return the error text for an unknown constructor argument, with its replacement."""
        return unknown_argument(cls, name, cls._argument_names())

    def _check_keywords(self, names: Set[str]) -> None:
        """Raise if a keyword of a call, besides those of runs, is unknown; by default none is, since a class may take what it likes."""

    def _public(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keywords of a request for a repr."""
        return dict(kwargs)

    def _secret_names(self, kwargs: Mapping[str, Any]) -> list[str]:
        """Return the names of keywords of a request that no pickle may hold."""
        return []

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        cls.model_config.pop("defer_build", None)  # of a class that is only a base; its subclasses are validated with
        describe_fields(cls)
        check_raw_methods(cls, SingleTurnChatModel)
        install_overrides(cls, SingleTurnChatModel, cls._derived)

    @classmethod
    def _derived(cls, new: Collection[str]) -> Mapping[str, Any]:
        """Return the methods of core that follow from the class's own ones among them, by their names."""
        return derived_methods(new, streams=cls.raw_stream is not SingleTurnChatModel.raw_stream)

    def raw_stream(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> Iterator[AIMessage]:
        """Make one request and yield its reply, chunk by chunk, unchanged: with the wire's ids and fragments.

        Text is `content`; fragments of tool calls are `tool_call_chunks`, or the wire's own dicts in
        `additional_kwargs["tool_calls"]`; `usage_metadata` and `response_metadata` may come on any chunk. A stream that
        broke off before its end ends in a chunk with `response_metadata={"finish_reason": "incomplete"}`, or raises. A whole
        `AIMessage` may stand for a chunk: each of its calls is one, also where two are equal.

        Args:
            messages: The messages to send, valid for any vendor.
            stop: Stop sequences.
            **kwargs: `tools` and `tool_choice` as `format_tool` and `format_tool_choice` made them, and the caller's own.

        Raises:
            NotImplementedError: The class has no stream of its own.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement raw_stream")

    async def araw_stream(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> AsyncIterator[AIMessage]:
        """Like `raw_stream`, asynchronously. Runs `raw_stream` in a thread by default."""
        chunks, end = iter(self.raw_stream(messages, stop, **kwargs)), AIMessage("")
        try:
            while (chunk := await run_in_executor(None, next, chunks, end)) is not end:
                yield chunk
        finally:
            with suppress(ValueError):  # its thread still reads: it closes when that read returns
                getattr(chunks, "close", lambda: None)()

    def raw_invoke(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> AIMessage:
        """Make one request without streaming and return its reply. Uses `raw_stream` by default."""
        raise NotImplementedError

    async def araw_invoke(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> AIMessage:
        """Like `raw_invoke`, asynchronously. Runs `raw_invoke` in a thread by default."""
        return await run_in_executor(None, lambda: self.raw_invoke(messages, stop, **kwargs))

    def format_tool(self, tool: Any, *, strict: bool | None = None) -> dict[str, Any]:
        """Return a tool's declaration in the wire's form; by default OpenAI's."""
        with declaring(tool):
            return convert_to_openai_tool(tool, strict=strict)

    def answers_in_blocks(self, tools: Sequence[Mapping[str, Any]]) -> bool:
        """Whether replies to requests with these tools, from `format_tool`, always have a list of blocks as content."""
        return self.lists_content

    def client_tool_names(self, tools: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
        """Return the names of the vendor's tools among these that run on the caller's machine, each with the kind of its handlers."""
        return {}

    def read_added_tools(self, messages: Sequence[BaseMessage]) -> set[str]:
        """Return the names of the tools that messages declare, whose calls are then left to the caller; by default none."""
        return set()

    def format_tool_choice(self, choice: Any, tools: Sequence[Mapping[str, Any]]) -> Any:
        """Return a tool choice in the wire's form; by default unchanged."""
        return choice

    def read_tool_choice(self, choice: Any) -> ToolChoice:
        """Return the effect of a tool choice from `format_tool_choice` on a run: the part for later turns, and the allowed tools.
        By default `auto`, `none`, and OpenAI's `allowed_tools` are known; all else requires a call in the first turn."""
        return read_choice(choice)

    def take_tool_choice(self, keywords: dict[str, Any]) -> Any:
        """The tool choice of one call, taken out of its keywords.

        Raises:
            ConfigurationError: It is in an `extra_body`, where no run can hold to it.
        """
        if any("tool_choice" in (body or {}) for body in (getattr(self, "extra_body", None), keywords.get("extra_body"))):
            raise ConfigurationError("tool_choice is an argument of its own: in extra_body a run with tools could not hold to it")
        return keywords.pop("tool_choice", None)

    def continues_conversation(self, kwargs: Mapping[str, Any]) -> bool:
        """Whether a request continues a conversation stored by the server; by default none does.

        Results that are before the first AI message then answer calls that only the server knows, and are sent.

        Args:
            kwargs: The call's keywords.
        """
        return False

    # ------------------------------------------------------------------------------------------ streams, for users

    def stream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, *, stop: list[str] | None = None, **kwargs: Any
    ) -> Iterator[AIMessageChunk]:
        """Stream the reply, as core's `stream` does, but without its work for callback handlers if there are none.

        Args:
            input: The messages, a prompt or a text.
            config: The configuration of the call.
            stop: Stop sequences.
            **kwargs: Further keywords of the request.
        """
        if self._is_direct(super().stream, config, kwargs, async_api=False):
            return self._direct(input, config, stop, kwargs)
        return keeping_reply(cast("Generator[AIMessageChunk, None, None]", super().stream(input, config, stop=stop, **kwargs)))

    def astream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, *, stop: list[str] | None = None, **kwargs: Any
    ) -> AsyncIterator[AIMessageChunk]:
        """Like `stream`, asynchronously."""
        if self._is_direct(super().astream, config, kwargs, async_api=True):
            return self._adirect(input, config, stop, kwargs)
        return akeeping_reply(cast("AsyncGenerator[AIMessageChunk, None]", super().astream(input, config, stop=stop, **kwargs)))

    # ------------------------------------------------------------------------------------------ streams without listeners
    #
    # Core does for every chunk of a stream what handlers need: it wraps the chunk, sets its fields through pydantic, tells the handlers,
    # keeps it, and adds all of them up at the end. Where there is no handler, what else core does for a stream is done here.

    def _is_direct(self, stream: Any, config: RunnableConfig | None, kwargs: dict[str, Any], *, async_api: bool) -> bool:
        """Whether a reply goes past core. (For v1 blocks core does more than notify handlers.)"""
        own, ours = (self._astream, SingleTurnChatModel._astream) if async_api else (self._stream, SingleTurnChatModel._stream)
        if self.output_version == "v1" or getattr(own, "__func__", None) is not ours or not is_core(stream):
            return False
        callbacks = ensure_config(config).get("callbacks")
        if CallbackManager.configure(callbacks, self.callbacks, self.verbose).handlers:  # also of the context or the environment
            return False
        return should_stream(self, kwargs, async_api=async_api)

    def _check_call(self, kwargs: Mapping[str, Any]) -> None:
        """Raise if keywords of a call cannot work."""

    def _direct_turn(
        self, input: LanguageModelInput, config: RunnableConfig | None, stop: list[str] | None, kwargs: dict[str, Any]
    ) -> tuple[Turn, str]:
        """Return the turn of a reply that goes past core, and the id that core would give its message."""
        for name in ("ls_structured_output_format", "structured_output_format"):  # what traces are told
            kwargs.pop(name, None)
        self._check_call({"stop": stop, **kwargs})
        return self._turn(normalized_messages(self, input), kwargs), new_message_id(config)

    def _direct(
        self, input: LanguageModelInput, config: RunnableConfig | None, stop: list[str] | None, kwargs: dict[str, Any]
    ) -> Iterator[AIMessageChunk]:
        turn, message_id = self._direct_turn(input, config, stop, kwargs)
        if self.rate_limiter:
            self.rate_limiter.acquire(blocking=True)
        replies = self.raw_stream(turn.messages, stop, **kwargs)
        with closing(cast("Generator[AIMessage, None, None]", replies)) if hasattr(replies, "close") else nullcontext():
            for raw in replies:
                if (part := turn.feed(raw)) is not None:
                    fields = part.__dict__
                    fields["id"] = message_id if fields["id"] is None else fields["id"]
                    yield part
        last = turn.finish()
        last.id = message_id if last.id is None else last.id
        yield last

    async def _adirect(
        self, input: LanguageModelInput, config: RunnableConfig | None, stop: list[str] | None, kwargs: dict[str, Any]
    ) -> AsyncIterator[AIMessageChunk]:
        turn, message_id = self._direct_turn(input, config, stop, kwargs)
        if self.rate_limiter:
            await self.rate_limiter.aacquire(blocking=True)
        async with aclosing(cast("AsyncGenerator[AIMessage, None]", self.araw_stream(turn.messages, stop, **kwargs))) as replies:
            async for raw in replies:
                if (part := turn.feed(raw)) is not None:
                    fields = part.__dict__
                    fields["id"] = message_id if fields["id"] is None else fields["id"]
                    yield part
        last = turn.finish()
        last.id = message_id if last.id is None else last.id
        yield last

    # ------------------------------------------------------------------------------------------ one turn, for core

    def _reply_message(self, message: AIMessage) -> AIMessage:
        """Return the whole message of a reply, as it leaves."""
        return self._stored_message(canonical_message(message), self.output_version, brief=True)

    def _stored_message(self, message: AIMessage, output_version: str | None, *, brief: bool = False) -> AIMessage:
        """Return the canonical message of a turn of this model in its stored form."""
        return self._whole_message(with_output_version(stored_form(message, brief=brief), output_version))

    def _whole_message(self, message: AIMessage) -> AIMessage:
        """Return a message with the content that it has as a whole, whether or not it was added up from chunks."""
        is_v1 = message.response_metadata.get("output_version") == "v1"
        content = unnumbered(message.content) if is_v1 else self._whole_content(message)
        return message if content is message.content else message.model_copy(update={"content": content})

    def _whole_content(self, message: AIMessage) -> str | list[Any]:
        """Return the content of a whole message, in the form in which the vendor's LangChain package gives whole replies."""
        return message.content if isinstance(message.content, str) else whole_content(message.content)

    def _turn(self, messages: list[BaseMessage], kwargs: dict[str, Any], *, runs: bool = False) -> Turn:
        return Turn(self, messages, kwargs, runs=runs)

    def _stream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: CallbackManagerForLLMRun | None = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        turn = self._turn(messages, kwargs)
        for part in _parts(turn, self.raw_stream(turn.messages, stop, **kwargs)):
            chunk = generation(part)
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        turn = self._turn(messages, kwargs)
        replies = cast("AsyncGenerator[AIMessage, None]", self.araw_stream(turn.messages, stop, **kwargs))
        at_once = _inline_notifier(run_manager)
        async with aclosing(_aparts(turn, replies)) as parts:
            async for part in parts:
                chunk = generation(part)
                if at_once:
                    at_once(chunk)
                elif run_manager:
                    await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: CallbackManagerForLLMRun | None = None, **kwargs: Any
    ) -> ChatResult:
        turn = self._turn(messages, kwargs)
        if type(self).raw_invoke is SingleTurnChatModel.raw_invoke:
            return turn.result(in_time(self.raw_stream(turn.messages, stop, **kwargs)))
        return turn.result([self.raw_invoke(turn.messages, stop, **kwargs)])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        turn = self._turn(messages, kwargs)
        own = type(self)
        mixin = SingleTurnChatModel
        if own.raw_invoke is mixin.raw_invoke and own.araw_invoke is mixin.araw_invoke:
            return turn.result([chunk async for chunk in self.araw_stream(turn.messages, stop, **kwargs)])
        return turn.result([await self.araw_invoke(turn.messages, stop, **kwargs)])

    def _replay_v2_events_for_cache_hit(self, generations: list[ChatGeneration], **kwargs: Any) -> None:
        _identify_cached(generations, kwargs["run_manager"])
        super()._replay_v2_events_for_cache_hit(generations, **kwargs)

    async def _areplay_v2_events_for_cache_hit(self, generations: list[ChatGeneration], **kwargs: Any) -> None:
        _identify_cached(generations, kwargs["run_manager"])
        await super()._areplay_v2_events_for_cache_hit(generations, **kwargs)

    def _combine_llm_outputs(self, llm_outputs: list[dict[str, Any] | None]) -> dict[str, Any]:
        return combined_outputs(llm_outputs)

    # ------------------------------------------------------------------------------------------ the profile, which follows the name

    @model_validator(mode="before")
    @classmethod
    def _forget_profile(cls, values: Any) -> Any:
        """Discard the profile of a model that LangChain creates from another model's fields (`configurable_fields`)."""
        if isinstance(values, Mapping) and isinstance(values.get("profile"), _LookedUpProfile):
            return {name: value for name, value in values.items() if name != "profile"}
        return values

    @model_validator(mode="after")
    def _mark_profile(self) -> Self:
        found = self._looked_up_profile()
        if found is not None and self.profile == found:
            self.__dict__["profile"] = found
        return self

    def _looked_up_profile(self) -> "_LookedUpProfile | None":
        with suppress(Exception):  # as core looks it up
            found = self._resolve_model_profile()
            return None if found is None else _LookedUpProfile(found)
        return None

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy without the state derived from this model's fields: core's cache key, and a looked-up profile."""
        copy = super().model_copy(update=update, deep=deep)
        copy.__dict__.pop(CACHE_KEY, None)
        if update and "profile" not in update and isinstance(self.profile, _LookedUpProfile):
            copy.__dict__["profile"] = copy._looked_up_profile()
        return copy

    # ------------------------------------------------------------------------------------------ declaring tools

    if not TYPE_CHECKING:  # the type that core gives it is private to core

        def bind(self, **kwargs: Any) -> Any:
            """Return the model with these keywords in every request. A tool declared twice is sent once.

            Raises:
                ConfigurationError: Two of the `tools` have one name, and are not the same.
            """
            if kwargs.get("tools"):
                kwargs["tools"] = _distinct_tools(listed(kwargs["tools"]))
            return super().bind(**kwargs)

    def bind_tools(
        self,
        tools: Sequence[Any],
        *,
        tool_choice: Any = None,
        parallel_tool_calls: bool | None = None,
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Declare tools without executing them: their calls are left to the caller.

        Args:
            tools: Functions, pydantic classes, TypedDicts, `BaseTool`s, or dicts in the wire's form.
            tool_choice: `auto`, `any`, `none`, a tool's name, True (the only tool), or the wire's own form.
            parallel_tool_calls: Whether one turn may hold several calls; None leaves that to the vendor. False is logged where the
                wire cannot say it.
            strict: Whether the vendor must hold to the schema.
            **kwargs: Bound to every request.

        Raises:
            ConfigurationError: A tool cannot be declared, or the choice names none.
        """
        declared = format_tools(self, tools, strict=strict)
        if tool_choice is not None:
            choice = format_tool_choice(self, tool_choice, declared)
            kwargs |= {} if choice is None else {"tool_choice": choice}
        if parallel_tool_calls is not None:
            kwargs["parallel_tool_calls"] = parallel_tool_calls
        return self.bind(tools=declared, **kwargs)


def _distinct_tools(tools: Iterable[Any]) -> list[Any]:
    """Return the declared tools, each once: no vendor accepts two with one name."""
    distinct: dict[object, Any] = {}
    for tool in tools:
        name = own_name(tool) if isinstance(tool, Mapping) else None
        first = distinct.setdefault(name or object(), tool)
        if first is not tool and _essence(first) != _essence(tool):
            raise ConfigurationError(f"two tools are named {name!r}: the model could not tell which one it calls; rename one")
    return list(distinct.values())


def _essence(value: Any) -> Any:
    """Return a declaration without the titles that pydantic derives from names, which some forms of a tool lack."""
    if isinstance(value, Mapping):
        return {key: _essence(inner) for key, inner in value.items() if not (key == "title" and isinstance(inner, str))}
    return [_essence(inner) for inner in value] if isinstance(value, list) else value


def _identify_cached(generations: list[ChatGeneration], run_manager: Any) -> None:
    """Replace cached generations in the list by copies whose messages have ids of their own: the reply of another run is another message.

    Args:
        generations: The generations. The cache may hold them too.
        run_manager: That of the LLM run, which has the id; None where there is none.
    """
    run_id = getattr(run_manager, "run_id", None) or uuid.uuid4()
    for number, one in enumerate(generations):
        message = one.message
        known = {**own_metadata(message), **({CACHED_ID: message.id} if message.id else {})}
        metadata = with_own_metadata(message.response_metadata, known)
        changed = {"id": f"{LC_ID_PREFIX}-{run_id}" + (f"-{number}" if number else ""), "response_metadata": metadata}
        generations[number] = one.model_copy(update={"message": message.model_copy(update=changed)})


describe_fields(SingleTurnChatModel)


class _LookedUpProfile(dict[str, Any]):
    """A profile that was looked up by the model's name, not given by the user."""


def _parts(turn: Turn, replies: Iterable[object]) -> Iterator[AIMessageChunk]:
    for raw in replies:
        if (part := turn.feed(raw)) is not None:
            yield part
    yield turn.finish()


async def _aparts(turn: Turn, replies: AsyncGenerator[AIMessage, None]) -> AsyncGenerator[AIMessageChunk, None]:
    async with aclosing(replies):
        async for raw in replies:
            if (part := turn.feed(raw)) is not None:
                yield part
    yield turn.finish()


# ---------------------------------------------------------------------------------------------- streams


def keeping_reply(chunks: Generator[_Part, None, None]) -> Iterator[_Part]:
    """Yield the parts of an LLM run of core; an error of theirs keeps the reply."""
    try:
        with closing(chunks):
            yield from chunks
    except BaseException as error:
        keep_reply(error)
        raise


async def akeeping_reply(chunks: AsyncGenerator[_Part, None]) -> AsyncGenerator[_Part, None]:
    """Like `keeping_reply`, asynchronously."""
    try:
        async with aclosing(chunks):
            async for chunk in chunks:
                yield chunk
    except BaseException as error:
        keep_reply(error)
        raise


# ---------------------------------------------------------------------------------------------- inputs
#
# Core need not convert again what it has converted once, and would fail at some blocks.


_V0: Mapping[Any, str] = {"url": "url", "base64": "data", "id": "id", "text": "url"}  # the key of a v0 block's data, by its source
_PDF = "data:application/pdf;base64,"
_MADE_BY_CORE = frozenset({"base64", "file_id", "filename", "mime_type", "url"})
_known_readable: MessageMemo[BaseMessage] = MessageMemo()


def readable_messages(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """Return messages without blocks that core fails at, or misreads, when it formats them for tracers and for models.

    A picture without its media type gets the one of its data; any other such block is wrapped, as one of no standard form. The cost that
    core notes on a reply from its cache is left out: it would change the key of the next request.
    """
    try:
        is_odd = may_hold_files(messages) or _has_cost(messages)
    except AttributeError:  # core refuses what is no message, in its own words
        return messages
    return [*map(_readable_message, messages)] if is_odd else messages


def _has_cost(messages: Sequence[BaseMessage]) -> bool:
    """Whether core has noted a cost on a message. It calls no function for one, as `may_hold_files` does not."""
    for message in messages:
        fields = message.__dict__
        if "usage_metadata" in fields and fields["usage_metadata"] and "total_cost" in fields["usage_metadata"]:
            return True
    return False


def _readable_message(message: BaseMessage) -> BaseMessage:
    usage, listed = getattr(message, "usage_metadata", None), isinstance(getattr(message, "content", None), list)
    counts = without_cost(usage)
    if not listed and counts is usage:
        return message
    known = _known_readable.get(message)
    if known is not None:
        return known
    blocks = [_readable_block(block) if isinstance(block, dict) else block for block in message.content] if listed else message.content
    if counts is usage and all(new is old for new, old in zip(blocks, message.content, strict=True)):
        return message
    made = message.model_copy(update={"content": blocks, **({} if counts is usage else {"usage_metadata": counts})})
    _known_readable.put(message, None, made)
    return made


def _readable_block(block: dict[Any, Any]) -> dict[Any, Any]:
    kind = block.get("type")
    if kind not in OF_FILES:
        return block
    key = "data" if block.get("source_type") == "base64" else "base64"
    data = block.get(key)
    if kind == "image" and data and isinstance(data, str | bytes) and not block.get("mime_type") and "url" not in block:
        mime_type = media_type(data)
        typed = {"mime_type": mime_type} if mime_type else {}
        block = {**block, key: data if isinstance(data, str) else b64encode(data).decode(), **typed}
    return {"type": "non_standard", "value": block} if _is_odd(kind, block) else block


def _is_odd(kind: str, block: dict[Any, Any]) -> bool:
    """Whether core would fail at a block, or misread it."""
    inner = block.get(kind)
    if isinstance(inner, Mapping):  # of chat completions
        data = inner.get("file_data") if kind == "file" else inner.get("data")
        misread = kind == "file" and isinstance(data, str) and data.startswith("data:") and not data.startswith(_PDF)
        return misread or data == "" or not _MADE_BY_CORE.isdisjoint(block)
    if "source_type" in block:
        source = block["source_type"]
        key = _V0.get(source) if isinstance(source, str) else None
        untyped = kind == "image" and source == "base64" and "url" not in block and "mime_type" not in block
        return key is None or not block.get(key) or ("id" in block and source != "id") or untyped
    is_data = any(key in block for key in ("url", "base64", "text"))
    return kind == "image" and is_data and "url" not in block and not (block.get("base64") and "mime_type" in block)


def _refuse_fields(given: Any) -> None:
    """Raise a helpful error if the input is a list to which a message was added with `+=`, which iterates over its fields.

    Raises:
        ConfigurationError: That is so.
    """
    if isinstance(given, list) and any(isinstance(item, tuple) and item[:1] == ("content",) for item in given):
        raise ConfigurationError(
            "the history holds the fields of a message, as tuples: `history += message` adds what iterating over it gives. "
            "Write `history += new_messages(message)`, or `history.append(message)`"
        )


# ---------------------------------------------------------------------------------------------- handlers that run inline
#
# Core's asynchronous manager calls an inline handler with a plain method in the event loop's own thread, as its synchronous one does:
# only the way there is longer, by coroutines and a future for each chunk.


def _inline_notifier(manager: AsyncCallbackManagerForLLMRun | None) -> Callable[[ChatGenerationChunk], None] | None:
    """Return the function that notifies a manager's handlers of a chunk at once; None if one of them must be awaited or needs a thread."""
    if manager is None or type(manager).on_llm_new_token is not AsyncCallbackManagerForLLMRun.on_llm_new_token:
        return None
    handlers = manager.handlers
    if not all(one.run_inline and not inspect.iscoroutinefunction(one.on_llm_new_token) for one in handlers):
        return None
    run_id, parent, tags = manager.run_id, manager.parent_run_id, manager.tags

    def notify(chunk: ChatGenerationChunk) -> None:
        text = chunk.text
        handle_event(handlers, "on_llm_new_token", "ignore_llm", text, chunk=chunk, run_id=run_id, parent_run_id=parent, tags=tags)

    return notify
