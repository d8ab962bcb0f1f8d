"""A whole LangChain chat model class behind the mixin: `class M(ToolsAndMessagesMixin, ChatBedrockConverse)`.

`WholeClassModel` stands between the mixin and that class, the *partner*. Its requests are the partner's own `_stream` and
`_generate`, its declarations the partner's own `bind_tools`; the mixin reads the replies and runs the tools.
"""

from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from copy import copy
from difflib import get_close_matches
from inspect import get_annotations, signature
from typing import TYPE_CHECKING, Any, cast, dataclass_transform

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableBinding
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, PrivateAttr

from ..compat import ModelMetaclass
from ..errors import ConfigurationError
from ..messages.metadata import KEY
from ..turn.model import SingleTurnChatModel
from ..turn.overrides import generate_of_stream, mark_read, read_agenerate, read_astream, read_generate, read_stream
from ..turn.tool_choice import ToolChoice
from ..turn.turn import Turn
from .binding import BoundChatModel
from .keywords import RUN_KEYWORDS
from .partner_replies import achunks_of, chunks_of, inside, is_inside, result_of
from .partner_tools import bound_request, declared_names, read_partner_choice, with_call_blocks, with_valid_calls

_OWN = ("raw_stream", "araw_stream", "raw_invoke", "araw_invoke")
_TWINS = ("_stream", "_astream", "_generate", "_agenerate")


def _behind(cls: type) -> list[type]:
    """Return the classes of the partner, nearest first."""
    mro = cls.__mro__
    return list(mro[mro.index(SingleTurnChatModel) + 1 : mro.index(BaseChatModel)])


def _gives(cls: type, name: str) -> bool:
    """Whether a partner's class defines a method of this name."""
    return any(name in vars(base) for base in _behind(cls))


def _is_whole(base: type) -> bool:
    if not issubclass(base, BaseChatModel) or issubclass(base, SingleTurnChatModel):
        return False
    return any(getattr(base, name) is not getattr(BaseChatModel, name) for name in _TWINS)


def joined_bases(name: str, bases: tuple[type, ...], namespace: Mapping[str, Any]) -> tuple[type, ...]:
    """Return the bases of a new class, with `WholeClassModel` before a whole chat model class.

    A class that makes its requests itself (`raw_stream` or one of its like) has its bases as they are.

    Raises:
        ConfigurationError: The mixin stands behind the whole class, or a field of that class has the name of one of the mixin's.
    """
    ours = [place for place, base in enumerate(bases) if issubclass(base, SingleTurnChatModel)]
    whole = [place for place, base in enumerate(bases) if _is_whole(base)]
    raw = any(one in namespace for one in _OWN) or any(
        getattr(bases[place], one) is not getattr(SingleTurnChatModel, one) for place in ours for one in _OWN
    )
    if not ours or not whole or raw or any(issubclass(bases[place], WholeClassModel) for place in ours):
        return bases
    last = max(ours)
    if whole[0] < last:
        raise ConfigurationError(f"class {name}: put {bases[last].__name__} before {bases[whole[0]].__name__}, whose requests it makes")
    _check_fields(name, [bases[place] for place in ours], [bases[place] for place in whole])
    return (*bases[: last + 1], WholeClassModel, *bases[last + 1 :])


def _check_fields(name: str, ours: Sequence[Any], whole: Sequence[Any]) -> None:
    taken = {field for base in ours for field in base.model_fields} - BaseChatModel.model_fields.keys()
    shared = sorted(taken & {field for base in whole for field in base.model_fields})
    if shared:
        raise ConfigurationError(f"class {name}: {whole[0].__name__} has a field {shared[0]!r}, which is a field of the mixin's too")


@dataclass_transform(kw_only_default=True, field_specifiers=(Field, PrivateAttr))
class JoiningMeta(ModelMetaclass):
    """The metaclass that combines the mixin and a whole chat model class: see `joined_bases`."""

    def __new__(mcs, cls_name: str, bases: tuple[type[Any], ...], namespace: dict[str, Any], *args: Any, **kwargs: Any) -> type:
        """Create the class."""
        return super().__new__(mcs, cls_name, joined_bases(cls_name, bases, namespace), namespace, *args, **kwargs)


# ---------------------------------------------------------------------------------------------- one request


def _partner(model: Any) -> Any:
    return super(SingleTurnChatModel, model)


def _sent(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    return [with_call_blocks(with_valid_calls(message)) for message in messages]


def _streamed(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
    request = self._request(kwargs)
    with inside(self):
        chunks = _partner(self)._stream(_sent(messages), stop=stop, **request)
    return chunks_of(self, iter(chunks))


def _astreamed(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
    request = self._request(kwargs)
    with inside(self):
        chunks = _partner(self)._astream(_sent(messages), stop=stop, **request)
    return achunks_of(self, chunks)


def _generated(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
    method, request = _partner(self)._generate, self._request(kwargs)
    with inside(self):
        return result_of(method(_sent(messages), stop=stop, **_unmanaged(method), **request))


async def _agenerated(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
    method, request = _partner(self)._agenerate, self._request(kwargs)
    with inside(self):
        return result_of(await method(_sent(messages), stop=stop, **_unmanaged(method), **request))


def _unmanaged(method: Callable[..., Any]) -> dict[str, None]:
    return {"run_manager": None} if "run_manager" in signature(method).parameters else {}


_read_stream, _read_astream = read_stream(_streamed), read_astream(_astreamed)
_read_generate, _read_agenerate = read_generate(_generated), read_agenerate(_agenerated)


class WholeClassModel(SingleTurnChatModel):
    """A chat model whose requests are made by the class behind it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        for name in kwargs.keys() - self._argument_names():
            if get_close_matches(name, [*RUN_KEYWORDS, "tools"], n=1, cutoff=0.85):
                raise ConfigurationError(self._unknown(name))
        super(SingleTurnChatModel, self).__init__(*args, **kwargs)  # what it makes of others is its own affair

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        for name, method in cls._missing().items():
            if getattr(cls, name) is vars(WholeClassModel)[name]:
                setattr(cls, name, method)
        cls._take_fields()
        super().__pydantic_init_subclass__(**kwargs)

    @classmethod
    def _take_fields(cls) -> None:
        """Use the partner's definitions of core's fields, since pydantic prefers those of the mixin."""
        partner: Any = next(base for base in cls.__bases__ if _is_whole(base)) if WholeClassModel in cls.__bases__ else BaseChatModel
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
        missing: dict[str, Any] = {name: getattr(BaseChatModel, name) for name in _TWINS if not _gives(cls, name)}
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
        named = [{"name": name} for tool in kwargs.get("tools") or () for name in declared_names(tool)]
        return super()._turn(messages, {**kwargs, "tools": named}, runs=runs)

    def _request(self, keywords: dict[str, Any]) -> dict[str, Any]:
        """Return the keywords of a request, with the run's tools in the form of the partner's `bind_tools`."""
        own: Any = self
        if not keywords.get("tools"):
            return {name: value for name, value in keywords.items() if name != "tools"}  # vendors refuse an empty list
        if not own.tools or not _gives(type(self), "bind_tools"):
            return keywords
        return bound_request(own, own._own_tools(), _partner(self).bind_tools, keywords)

    # ------------------------------------------------------------------------------------------ one turn, for core

    @mark_read
    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        if is_inside(self):
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
        own = is_inside(self)
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
        if is_inside(self):
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
        if is_inside(self):
            return cast("ChatResult", await method(messages, stop=stop, **_unmanaged(method), **kwargs))
        return cast("ChatResult", await _read_agenerate(self, messages, stop, **kwargs))

    # ------------------------------------------------------------------------------------------ declaring tools

    def format_tool(self, tool: Any, *, strict: bool | None = None) -> dict[str, Any]:
        """Return a tool's declaration for the partner's `bind_tools`: OpenAI's form, a dict unchanged."""
        own: Any = self
        return tool if isinstance(tool, Mapping) or not own.tools else convert_to_openai_tool(tool, strict=strict)

    def read_tool_choice(self, choice: Any) -> ToolChoice:
        """Return the effect of a tool choice on a run, in the mixin's or a partner's form."""
        return read_partner_choice(choice)

    if not TYPE_CHECKING:  # the types are the partner's

        def bind_tools(self, tools: Any, **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
            """Call the partner's method; with constructor tools return declarations beside those, for the partner to convert."""
            own = getattr(self, "tools", None)
            if own or not _gives(type(self), "bind_tools"):
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
