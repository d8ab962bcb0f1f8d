"""Chat models of other packages as models of this one: any LangChain class behind the mixin.

`AdoptedChatModel` comes between the mixin and that class, the *partner*. Its requests are the partner's own `_stream` and
`_generate`, its declarations the partner's own `bind_tools`; the mixin reads the replies and runs the tools.
"""

import json
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from copy import copy
from difflib import get_close_matches
from functools import lru_cache
from inspect import get_annotations, signature
from typing import TYPE_CHECKING, Any, TypeVar, cast, dataclass_transform

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableBinding
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, Field, PrivateAttr

from ..compat import CACHE_KEY, ModelMetaclass, unvalidated
from ..errors import ConfigurationError
from ..executor.names import own_name
from ..executor.tool import tool_inside
from ..messages.blocks import is_call_block
from ..messages.calls import KEYS_IN_BLOCKS, calls_of, records_of
from ..messages.metadata import KEY
from ..messages.run_messages import BLOCKING
from ..turn.model import SingleTurnChatModel
from ..turn.subclass_methods import generate_of_stream, mark_read, read_agenerate, read_astream, read_generate, read_stream
from ..turn.tools import ToolChoice, read_choice
from ..turn.turn import Turn
from .binding import BoundChatModel
from .settings import RUN_KEYWORDS, Toolbox

_OWN = ("raw_stream", "araw_stream", "raw_invoke", "araw_invoke")
_TWINS = ("_stream", "_astream", "_generate", "_agenerate")
_NO_HOOKS: Mapping[str, Any] = {"before_turn": None, "stop_when": None, "middleware": ()}


def adopted(mixin: type[BaseChatModel], model: BaseChatModel) -> Any:
    """Return the same model as an instance of the joined class, with the same objects in its fields."""
    cls = _adopted_class(mixin, type(model))
    held = {name: value for name, value in model.__dict__.items() if name != CACHE_KEY}
    new = {name: field for name, field in cls.model_fields.items() if name not in held}
    defaults = {name: field.get_default(call_default_factory=True, validated_data={}) for name, field in new.items()}
    made = unvalidated(cls, {**defaults, **held}, set(model.model_fields_set), model.__pydantic_extra__)
    private = {name: attribute.get_default() for name, attribute in cls.__private_attributes__.items()}
    object.__setattr__(made, "__pydantic_private__", {**private, **(model.__pydantic_private__ or {})})
    return made


def one_turn_model(mixin: type[BaseChatModel], model: Any, tools: Sequence[Any] = ()) -> Any:
    """Return a chat model for single turns: any LangChain chat model, without tools and hooks of its own.

    Args:
        mixin: The mixin of models of this package.
        model: The model.
        tools: The tools of the request that it is to make. A model of another package declares them by its own `bind_tools`.

    Raises:
        ConfigurationError: It is no chat model.
    """
    if not isinstance(model, BaseChatModel):
        raise ConfigurationError(f"the model of a turn must be a LangChain chat model, not {type(model).__name__}")
    own: Any = model if isinstance(model, mixin) else adopted(mixin, model)
    declared = [tool for tool in tools if not isinstance(tool, Mapping)] if isinstance(own, AdoptedChatModel) else []
    return own.model_copy(update={"tools": declared, **_NO_HOOKS})


@lru_cache(maxsize=256)
def _adopted_class(mixin: type[BaseChatModel], cls: type[BaseChatModel]) -> type[Any]:
    """Return a chat model class with the mixin before it, under the same name."""
    names = {name: getattr(cls, name) for name in ("__module__", "__qualname__", "__doc__")}
    return AdoptingMeta(cls.__name__, (mixin, cls), {**names, "__reduce__": _reduce})


def _reduce(model: Any) -> tuple[Any, ...]:
    """Return the pickle form of a model of a joined class: the mixin, the original class and the state."""
    mixin, *_, cls = type(model).__bases__
    return _empty_instance, (mixin, cls), model.__getstate__()


def _empty_instance(mixin: type[BaseChatModel], cls: type[BaseChatModel]) -> Any:
    return object.__new__(_adopted_class(mixin, cls))


@dataclass_transform(kw_only_default=True, field_specifiers=(Field, PrivateAttr))
class AdoptingMeta(ModelMetaclass):
    """The metaclass that combines the mixin and a whole chat model class: see `_adopting_bases`."""

    def __new__(mcs, cls_name: str, bases: tuple[type[Any], ...], namespace: dict[str, Any], *args: Any, **kwargs: Any) -> type:
        """Create the class."""
        return super().__new__(mcs, cls_name, _adopting_bases(cls_name, bases, namespace), namespace, *args, **kwargs)


def _adopting_bases(name: str, bases: tuple[type, ...], namespace: Mapping[str, Any]) -> tuple[type, ...]:
    """Return the bases of a new class, with `AdoptedChatModel` before a whole chat model class.

    A class that makes its requests itself (`raw_stream` or one of its like) has its bases as they are.

    Raises:
        ConfigurationError: The mixin comes behind the whole class, or a field of that class has the name of one of the mixin's.
    """
    ours = [place for place, base in enumerate(bases) if issubclass(base, SingleTurnChatModel)]
    whole = [place for place, base in enumerate(bases) if _is_complete(base)]
    raw = any(one in namespace for one in _OWN) or any(
        getattr(bases[place], one) is not getattr(SingleTurnChatModel, one) for place in ours for one in _OWN
    )
    if not ours or not whole or raw or any(issubclass(bases[place], AdoptedChatModel) for place in ours):
        return bases
    last = max(ours)
    if whole[0] < last:
        raise ConfigurationError(f"class {name}: put {bases[last].__name__} before {bases[whole[0]].__name__}, whose requests it makes")
    _check_fields(name, [bases[place] for place in ours], [bases[place] for place in whole])
    return (*bases[: last + 1], AdoptedChatModel, *bases[last + 1 :])


def _check_fields(name: str, ours: Sequence[Any], whole: Sequence[Any]) -> None:
    taken = {field for base in ours for field in base.model_fields} - BaseChatModel.model_fields.keys()
    shared = sorted(taken & {field for base in whole for field in base.model_fields})
    if shared:
        raise ConfigurationError(f"class {name}: {whole[0].__name__} has a field {shared[0]!r}, which is a field of the mixin's too")


def _is_complete(base: type) -> bool:
    if not issubclass(base, BaseChatModel) or issubclass(base, SingleTurnChatModel):
        return False
    return any(getattr(base, name) is not getattr(BaseChatModel, name) for name in _TWINS)


# ---------------------------------------------------------------------------------------------- one request


def _partner(model: Any) -> Any:
    return super(SingleTurnChatModel, model)


def _sent(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    return [_with_listed_calls(_with_call_blocks(_with_valid_calls(message))) for message in messages]


def _streamed(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
    request = self._request(kwargs)
    with _partner_call(self):
        chunks = _partner(self)._stream(_sent(messages), stop=stop, **request)
    return _chunks_of(self, iter(chunks))


def _astreamed(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
    request = self._request(kwargs)
    with _partner_call(self):
        chunks = _partner(self)._astream(_sent(messages), stop=stop, **request)
    return _achunks_of(self, chunks)


def _generated(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
    method, request = _partner(self)._generate, self._request(kwargs)
    with _partner_call(self):
        return _result_of(method(_sent(messages), stop=stop, **_unmanaged(method), **request))


async def _agenerated(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
    method, request = _partner(self)._agenerate, self._request(kwargs)
    with _partner_call(self):
        return _result_of(await method(_sent(messages), stop=stop, **_unmanaged(method), **request))


def _unmanaged(method: Callable[..., Any]) -> dict[str, None]:
    return {"run_manager": None} if "run_manager" in signature(method).parameters else {}


_read_stream, _read_astream = read_stream(_streamed), read_astream(_astreamed)
_read_generate, _read_agenerate = read_generate(_generated), read_agenerate(_agenerated)


class AdoptedChatModel(SingleTurnChatModel):
    """A chat model whose requests are made by the class behind it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        for name in kwargs.keys() - self._argument_names():
            if get_close_matches(name, [*RUN_KEYWORDS, "tools"], n=1, cutoff=0.85):
                raise ConfigurationError(self._unknown(name))
        super(SingleTurnChatModel, self).__init__(*args, **kwargs)  # what it makes of others is its own affair

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        shown: Iterator[tuple[str | None, Any]] = _partner(self).__repr_args__()
        return shown

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        for name, method in cls._missing().items():
            if getattr(cls, name) is vars(AdoptedChatModel)[name]:
                setattr(cls, name, method)
        cls._take_fields()
        super().__pydantic_init_subclass__(**kwargs)

    @classmethod
    def _take_fields(cls) -> None:
        """Use the partner's definitions of core's fields, since pydantic prefers those of the mixin."""
        partner: Any = next(base for base in cls.__bases__ if _is_complete(base)) if AdoptedChatModel in cls.__bases__ else BaseChatModel
        own = get_annotations(cls)
        anew = {
            name: copy(partner.model_fields[name])
            for name, field in BaseChatModel.model_fields.items()
            if name not in own and repr(partner.model_fields[name]) != repr(field)
        }
        if anew:
            cls.__pydantic_fields__.update(anew)
            cls.model_rebuild(force=True)

    @classmethod
    def _missing(cls) -> dict[str, Any]:
        """Return replacements for the methods that the partner lacks: core's own, or ones derived from another."""
        missing: dict[str, Any] = {name: getattr(BaseChatModel, name) for name in _TWINS if not _adopted_class_defines(cls, name)}
        if "_generate" in missing:
            missing["_generate"] = generate_of_stream
        return missing

    @classmethod
    def _derived(cls, new: Collection[str]) -> Mapping[str, Any]:
        """Return none: the class behind has the twins of a method itself."""
        return {}

    def _reply_message(self, message: AIMessage) -> AIMessage:
        """Return the whole message of a reply as it came, unless its calls were decided otherwise."""
        return super()._reply_message(message) if KEY in message.response_metadata else message

    def _turn(self, messages: list[BaseMessage], kwargs: dict[str, Any], *, runs: bool = False) -> Turn:
        named = [{"name": name} for tool in kwargs.get("tools") or () for name in _declared_names(tool)]
        return super()._turn(messages, {**kwargs, "tools": named}, runs=runs)

    def _request(self, keywords: dict[str, Any]) -> dict[str, Any]:
        """Return the keywords of a request, with the run's tools in the form of the partner's `bind_tools`."""
        own: Any = self
        if not keywords.get("tools"):
            return {name: value for name, value in keywords.items() if name != "tools"}  # vendors refuse an empty list
        if not own.tools or not _adopted_class_defines(type(self), "bind_tools"):
            return keywords
        return _bound_request(own, own._own_tools(), _partner(self).bind_tools, keywords)

    # ------------------------------------------------------------------------------------------ one turn, for core

    @mark_read
    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        if _in_partner_call(self):
            yield from _partner(self)._stream(messages, stop=stop, **kwargs)
            return
        for chunk in _read_stream(self, messages, stop, **kwargs):
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    @mark_read
    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        own = _in_partner_call(self)
        read = _partner(self)._astream(messages, stop=stop, **kwargs) if own else _read_astream(self, messages, stop, **kwargs)
        async with aclosing(read) as chunks:
            async for chunk in chunks:
                if run_manager and not own:
                    await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk

    @mark_read
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        method = _partner(self)._generate
        if _in_partner_call(self):
            return cast("ChatResult", method(messages, stop=stop, **_unmanaged(method), **kwargs))
        return cast("ChatResult", _read_generate(self, messages, stop, **kwargs))

    @mark_read
    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        method = _partner(self)._agenerate
        if _in_partner_call(self):
            return cast("ChatResult", await method(messages, stop=stop, **_unmanaged(method), **kwargs))
        return cast("ChatResult", await _read_agenerate(self, messages, stop, **kwargs))

    # ------------------------------------------------------------------------------------------ declaring tools

    def format_tool(self, tool: Any, *, strict: bool | None = None) -> dict[str, Any]:
        """Return a tool's declaration for the partner's `bind_tools`: OpenAI's form; a dict unchanged, if it is no schema."""
        own: Any = self
        declared = isinstance(tool, Mapping) and not (tool.get("type") == "object" and "title" in tool)
        return tool if declared or not own.tools else convert_to_openai_tool(tool, strict=strict)

    def read_tool_choice(self, choice: Any) -> ToolChoice:
        """Return the effect of a tool choice on a run, in the mixin's or a partner's form."""
        return _read_partner_choice(choice)

    if not TYPE_CHECKING:  # the types are the partner's

        def bind_tools(self, tools: Any, **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
            """Call the partner's method; with constructor tools return declarations beside those, for the partner to convert."""
            own = getattr(self, "tools", None)
            if own or not _adopted_class_defines(type(self), "bind_tools"):
                return super().bind_tools(tools, **kwargs)
            bound = _partner(self).bind_tools(tools, **kwargs)
            return BoundChatModel.of(bound) if type(bound) is RunnableBinding and bound.bound is self else bound

        def with_structured_output(self, schema: Any, **kwargs: Any) -> Runnable[LanguageModelInput, Any]:
            """Call the partner's method; with constructor tools the schema is one more tool, whose call ends the run.

            Raises:
                ConfigurationError: With constructor tools another method than function calling was asked for.
            """
            if not self.tools:
                return _partner(self).with_structured_output(schema, **kwargs)
            method = kwargs.pop("method", None)
            if method not in (None, "function_calling"):
                raise ConfigurationError(f"method={method!r} leaves no room for tools: with tools=[...] the method is 'function_calling'")
            return BaseChatModel.with_structured_output(self, schema, **kwargs)


def _adopted_class_defines(cls: type, name: str) -> bool:
    """Whether a partner's class defines a method of this name."""
    mro = cls.__mro__
    return any(name in vars(base) for base in mro[mro.index(SingleTurnChatModel) + 1 : mro.index(BaseChatModel)])


# ------------------------------------------------------------------------------------ a run's tools in the form of a partner's `bind_tools`


_UNKNOWN = "autotools_no_such_choice"

_REMEMBERED = 64
"""The number of cached declarations for one value of `tools`."""

_Bind = Callable[..., Any]


def _bound_request(model: Any, toolbox: Toolbox, bind: _Bind, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords of a request, with tools and choice from the partner's `bind_tools`; cached.

    Args:
        model: The model, whose fields `bind_tools` may read.
        toolbox: The model's own tools.
        bind: The partner's `bind_tools`.
        keywords: The keywords, with `tools` as `format_tool` made them and a `tool_choice`.
    """
    about = {name: keywords[name] for name in ("tools", "tool_choice", "parallel_tool_calls") if keywords.get(name) is not None}
    key = json.dumps(about, sort_keys=True, default=repr)
    fields = [model.__dict__.get(name) for name in type(model).model_fields]
    known = toolbox.requests.get(key)
    if known is None or any(one is not other for one, other in zip(known[0], fields, strict=True)):
        if len(toolbox.requests) >= _REMEMBERED:
            toolbox.requests.clear()
        known = toolbox.requests[key] = (fields, _declared(toolbox, bind, about))
    return {**known[1], **{name: value for name, value in keywords.items() if name not in about and name != "tool_choice"}}


def _declared(toolbox: Toolbox, bind: _Bind, about: Mapping[str, Any]) -> dict[str, Any]:
    choice = "any" if about.get("tool_choice") is True else about.get("tool_choice")  # of partners' classes few know the word True
    options = {name: value for name, value in about.items() if name == "parallel_tool_calls"}
    known = read_choice(choice)
    allowed = known.allowed
    narrowed = bool(allowed) and [tool for tool in about["tools"] if own_name(tool) in (allowed or ())]
    tools = [_original(tool, toolbox) for tool in narrowed or about["tools"]]
    if allowed is None:
        return _keywords(bind, tools, {**options, **({} if choice is None else {"tool_choice": choice})})
    if allowed:  # each partner knows what it means that a tool is not there
        return _keywords(bind, tools, {**options, **({"tool_choice": "any"} if known.forced else {})})
    return _without_calls(bind, tools, options)


def _without_calls(bind: _Bind, tools: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords of a request that rules out calls, if the partner can express that."""
    made = _tried(bind, tools, {**options, "tool_choice": "none"})
    other = _tried(bind, tools, {**options, "tool_choice": _UNKNOWN})
    is_name = made is not None and other is not None and _text(other).replace(_UNKNOWN, "none") == _text(made)
    if made is None or (is_name and made.get("tool_choice") != "none"):  # it would be the tool named "none"
        return _keywords(bind, tools, options)
    return made


def _tried(bind: _Bind, tools: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        return _keywords(bind, tools, options)
    except Exception:  # every partner has its own error for a word that it does not know
        return None


def _keywords(bind: _Bind, tools: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    return dict(getattr(bind(tools, **options), "kwargs", {}))


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


def _original(declared: Mapping[str, Any], toolbox: Toolbox) -> Any:
    """Return the tool behind a declaration: a partner may read more of it than its schema (`extras`, for example)."""
    name = own_name(declared)
    tool = toolbox.executor.tools.get(name) if name else None
    mine = tool is not None and any(one is declared or one == declared for one in toolbox.declarations)
    return (tool_inside(tool) or tool) if mine else declared


def _declared_names(tool: Any) -> Iterator[str]:
    """Yield the names of declared tools, in any partner's form."""
    if not isinstance(tool, Mapping):
        name = getattr(tool, "name", None)
        yield from [name] if isinstance(name, str) else ()
        return
    several = tool.get("function_declarations") or tool.get("functionDeclarations")
    for one in several if isinstance(several, list) else [tool]:
        name = own_name(one) if isinstance(one, Mapping) else getattr(one, "name", None)
        yield from [str(name)] if name else ()


def _read_partner_choice(choice: Any) -> ToolChoice:
    """Return the effect of a tool choice in a partner's form, also in the form `{"auto": {}}`."""
    if isinstance(choice, Mapping) and len(choice) == 1 and "type" not in choice:
        (word,) = choice
        if word in ("auto", "none"):
            return ToolChoice(choice, choice, () if word == "none" else None)
        return ToolChoice(choice, forced=True)
    return read_choice(choice)


# ---------------------------------------------------------------------------------------------- histories that every partner can send


_INVALID = "invalid_arguments"


def _with_valid_calls(message: BaseMessage) -> BaseMessage:
    """Return a message with only valid calls: some partners send no others, and a result without its call is rejected.

    Arguments that could not be read are kept as text under `invalid_arguments`.
    """
    if not isinstance(message, AIMessage) or not message.invalid_tool_calls:
        return message
    valid = {call["id"]: call for call in message.tool_calls}
    calls = [
        valid.get(call.id) or {"name": call.name, "args": {_INVALID: call.arguments}, "id": call.id, "type": "tool_call"}
        for call in calls_of(message)
    ]
    kept = {name: value for name, value in message.additional_kwargs.items() if name != "tool_calls"}
    return message.model_copy(update={"tool_calls": calls, "invalid_tool_calls": [], "additional_kwargs": kept})


def _with_call_blocks(message: BaseMessage) -> BaseMessage:
    """Return a message with its calls in its content too, where a call has keys that its partner writes and reads only there."""
    if not isinstance(message, AIMessage) or not any(entry.get("extra") for entry in records_of(message).values()):
        return message
    calls = calls_of(message)
    named = [{key: call.extra[key] for key in KEYS_IN_BLOCKS if call.extra.get(key)} for call in calls]
    text: list[Any] = [{"type": "text", "text": message.content}] if message.content else []
    content = message.content if isinstance(message.content, list) else text
    if not any(named) or any(map(is_call_block, content)):
        return message
    blocks = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.args, **own} for call, own in zip(calls, named, strict=True)
    ]
    return message.model_copy(update={"content": [*content, *blocks]})


def _with_listed_calls(message: BaseMessage) -> BaseMessage:
    """Return a message with its calls in its additional keywords too, the older of LangChain's two places and the only one some read."""
    if not isinstance(message, AIMessage) or not message.tool_calls or message.additional_kwargs.get("tool_calls"):
        return message
    listed = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}} for call in calls_of(message)
    ]
    return message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, "tool_calls": listed}})


# ---------------------------------------------------------------------------------------------- a partner's replies
#
# Its methods are isolated while they run, and its finish reasons are read.


_Reply = TypeVar("_Reply", bound=ChatGeneration)
_model: ContextVar[Any] = ContextVar("langchain_autotools_partner", default=None)
_ENDINGS = ("finish_reason", "stop_reason", "stopReason", "done_reason", "finishReason")


def _in_partner_call(model: Any) -> bool:
    """Whether a method of the partner's class is running for this model, so that nested calls belong to the partner."""
    return _model.get() is model


@contextmanager
def _partner_call(model: Any) -> Iterator[None]:
    """Mark a method of the partner's class as running."""
    token = _model.set(model)
    try:
        yield
    finally:
        _model.reset(token)


def _chunks_of(model: Any, chunks: Iterator[ChatGenerationChunk]) -> Iterator[ChatGenerationChunk]:
    """Yield a stream of the partner's. Its reader runs outside the mark."""
    try:
        while True:
            with _partner_call(model):
                chunk = next(chunks, None)
            if chunk is None:
                return
            yield _readable(chunk, {})
    finally:
        getattr(chunks, "close", lambda: None)()


async def _achunks_of(model: Any, chunks: AsyncIterator[ChatGenerationChunk]) -> AsyncIterator[ChatGenerationChunk]:
    """Like `_chunks_of`, asynchronously."""
    try:
        while True:
            with _partner_call(model):
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            yield _readable(chunk, {})
    finally:
        if hasattr(chunks, "aclose"):
            await chunks.aclose()


def _result_of(result: ChatResult) -> ChatResult:
    """Return a whole reply of the partner's."""
    made = [_readable(one, result.llm_output or {}) for one in result.generations]
    return ChatResult(generations=made, llm_output=result.llm_output)


def _readable(reply: _Reply, output: Mapping[str, Any]) -> _Reply:
    """Return the reply with a known ending and with its calls as data."""
    return _with_ending(_with_plain_calls(reply), output)


def _with_plain_calls(reply: _Reply) -> _Reply:
    """Return the reply with dictionaries for the calls that a vendor's client gives as objects of its own."""
    given = reply.message.additional_kwargs.get("tool_calls")
    if not isinstance(given, list) or all(isinstance(call, Mapping) for call in given):
        return reply
    plain = [call.model_dump(exclude_none=True) if isinstance(call, BaseModel) else call for call in given]
    kept = {**reply.message.additional_kwargs, "tool_calls": plain}
    return reply.model_copy(update={"message": reply.message.model_copy(update={"additional_kwargs": kept})})


def _with_ending(reply: _Reply, output: Mapping[str, Any]) -> _Reply:
    """Return the reply with a `finish_reason` if it was cut off or refused under another key."""
    message = reply.message
    metadata = {**output, **(reply.generation_info or {}), **message.response_metadata}
    reason = _cut(metadata) if metadata else None
    if reason is None or metadata.get("finish_reason") == reason:
        return reply
    changed = message.model_copy(update={"response_metadata": {**message.response_metadata, "finish_reason": reason}})
    return reply.model_copy(update={"message": changed})


def _cut(metadata: Mapping[str, Any]) -> str | None:
    """Return why a reply ended early; None if it did not."""
    details = metadata.get("incomplete_details")
    given = [metadata.get(name) for name in _ENDINGS]
    if metadata.get("status") in ("incomplete", "failed", "cancelled"):
        given += [details.get("reason") if isinstance(details, Mapping) else None, metadata["status"]]
    return next((reason for reason in given if isinstance(reason, str) and reason.lower() in BLOCKING), None)
