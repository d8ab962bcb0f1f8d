"""A chat model that makes one request per call: the interface for subclasses, and the implementation of core's.

The synchronous and asynchronous methods differ only by their `await`s; what a turn does with its raw chunks is in `turn`.
"""

import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing, suppress
from typing import TYPE_CHECKING, Any, ClassVar, cast

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import run_in_executor
from langchain_core.utils.function_calling import convert_to_openai_tool

from ..compat import should_stream
from ..errors import ConfigurationError
from .constructor import argument_names, unknown_argument
from .descriptions import describe_fields
from .generation_info import combined_outputs
from .inline_handlers import inline_notifier
from .inputs import refuse_fields
from .output_version import stored_message
from .overrides import derived_methods, install_overrides
from .profiled import ProfiledChatModel
from .raw_methods import check_raw_methods
from .tool_choice import ToolChoice, read_choice
from .tools import distinct_tools, format_tools, listed
from .turn import Turn, generation, in_time
from .unwatched import UNWATCHED, Handover, closed_after, is_watched


class SingleTurnChatModel(ProfiledChatModel):
    """A chat model implemented by `raw_stream`: one request at a time, tools declared and never executed."""

    skip_invalid_tools: bool = False
    """Whether to omit and log a tool that the vendor does not accept, such as one with `oneOf` at the root of its schema. Otherwise such a
    tool raises a `ConfigurationError`."""

    lists_content: ClassVar[bool] = False
    """Whether the content of replies to requests with tools is always a list of blocks, never a string."""

    _not_per_call: ClassVar[frozenset[str]] = frozenset({"skip_invalid_tools", "approval_key", "middleware", "handlers"})
    """Arguments of the constructor that are refused as keywords of a call, where they would have no effect."""
    _first_request_only: ClassVar[frozenset[str]] = frozenset()
    """Names of the parameters that apply only to the first request of a run: repeated, they would prevent its end."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        unknown = kwargs.keys() - self._argument_names()
        if unknown and self.model_config.get("extra") != "allow":
            raise ConfigurationError(self._unknown(min(unknown)))
        super().__init__(*args, **kwargs)

    def _convert_input(self, model_input: LanguageModelInput) -> PromptValue:
        try:
            return super()._convert_input(model_input)
        except (NotImplementedError, TypeError, ValueError):
            refuse_fields(model_input)
            raise

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
            ConfigurationError: It stands in an `extra_body`, where no run can hold to it.
        """
        if any("tool_choice" in (body or {}) for body in (getattr(self, "extra_body", None), keywords.get("extra_body"))):
            raise ConfigurationError("tool_choice is an argument of its own: in extra_body a run with tools could not hold to it")
        return keywords.pop("tool_choice", None)

    def continues_conversation(self, kwargs: Mapping[str, Any]) -> bool:
        """Whether a request continues a conversation stored by the server; by default none does.

        Results that stand before the first AI message then answer calls that only the server knows, and are sent.

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
        handover = self._handover(config, kwargs, async_api=False)
        source = super().stream(input, config, stop=stop, **({UNWATCHED: handover} if handover else {}), **kwargs)
        with closing(cast("Generator[AIMessageChunk, None, None]", source)) as chunks:
            for chunk in chunks:
                if handover is None or (direct := handover.take()) is None:
                    yield chunk
                    continue
                turn, replies = direct
                run_id = chunk.id
                with closed_after(replies):
                    for raw in replies:
                        if (part := turn.feed(raw)) is not None:
                            fields = part.__dict__
                            fields["id"] = run_id if fields["id"] is None else fields["id"]
                            yield part
                last = turn.finish()
                last.id = run_id if last.id is None else last.id
                yield last

    async def astream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, *, stop: list[str] | None = None, **kwargs: Any
    ) -> AsyncIterator[AIMessageChunk]:
        """Like `stream`, asynchronously."""
        handover = self._handover(config, kwargs, async_api=True)
        source = super().astream(input, config, stop=stop, **({UNWATCHED: handover} if handover else {}), **kwargs)
        async with aclosing(cast("AsyncGenerator[AIMessageChunk, None]", source)) as chunks:
            async for chunk in chunks:
                if handover is None or (direct := handover.take()) is None:
                    yield chunk
                    continue
                turn, replies = direct
                run_id = chunk.id
                async with aclosing(replies):
                    async for raw in replies:
                        if (part := turn.feed(raw)) is not None:
                            fields = part.__dict__
                            fields["id"] = run_id if fields["id"] is None else fields["id"]
                            yield part
                last = turn.finish()
                last.id = run_id if last.id is None else last.id
                yield last

    def _handover(self, config: RunnableConfig | None, kwargs: dict[str, Any], *, async_api: bool) -> Handover | None:
        """Return the direct way past core for a stream without listeners. (For v1 blocks core does more than notify handlers.)"""
        own, ours = (self._astream, SingleTurnChatModel._astream) if async_api else (self._stream, SingleTurnChatModel._stream)
        overridden = getattr(own, "__func__", None) is not ours
        watched = overridden or self.output_version == "v1" or is_watched(self, config)
        return None if watched or not should_stream(self, kwargs, async_api=async_api) else Handover()

    # ------------------------------------------------------------------------------------------ one turn, for core

    def _reply_message(self, message: AIMessage) -> AIMessage:
        """Return the whole message of a reply, as it leaves."""
        return stored_message(message, self.output_version, brief=True)

    def _turn(self, messages: list[BaseMessage], kwargs: dict[str, Any], *, runs: bool = False) -> Turn:
        open_start, blocks = self.continues_conversation(kwargs), self.output_version == "v1"
        return Turn(messages, kwargs, blocks=blocks, new_id=_new_call_id, open_start=open_start, runs=runs)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        handover = kwargs.pop(UNWATCHED, None)
        turn = self._turn(messages, kwargs)
        replies = self.raw_stream(turn.messages, stop, **kwargs)
        if handover is not None:
            yield handover.put(turn, replies)
            return
        for part in _parts(turn, replies):
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
        handover = kwargs.pop(UNWATCHED, None)
        turn = self._turn(messages, kwargs)
        replies = cast("AsyncGenerator[AIMessage, None]", self.araw_stream(turn.messages, stop, **kwargs))
        if handover is not None:
            yield handover.put(turn, replies)
            return
        at_once = inline_notifier(run_manager)
        async with aclosing(_aparts(turn, replies)) as parts:
            async for part in parts:
                chunk = generation(part)
                if at_once:
                    at_once(chunk)
                elif run_manager:
                    await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
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

    def _combine_llm_outputs(self, llm_outputs: list[dict[str, Any] | None]) -> dict[str, Any]:
        return combined_outputs(llm_outputs)

    # ------------------------------------------------------------------------------------------ declaring tools

    if not TYPE_CHECKING:  # the type that core gives it is private to core

        def bind(self, **kwargs: Any) -> Any:
            """Return the model with these keywords in every request. A tool declared twice is sent once.

            Raises:
                ConfigurationError: Two of the `tools` have one name, and are not the same.
            """
            if kwargs.get("tools"):
                kwargs["tools"] = distinct_tools(listed(kwargs["tools"]))
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
            choice = self.format_tool_choice(tool_choice, declared)
            kwargs |= {} if choice is None else {"tool_choice": choice}
        if parallel_tool_calls is not None:
            kwargs["parallel_tool_calls"] = parallel_tool_calls
        return self.bind(tools=declared, **kwargs)


describe_fields(SingleTurnChatModel)


def _new_call_id() -> str:
    return f"call_{uuid.uuid4().hex}"


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
