"""The base class of every wire's encoder. Each message is encoded alone, and the result cached for the message's lifetime.

The same history gives the same bytes, and a longer one starts with those of a shorter one.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage

from ...errors import UnsupportedFeatureError
from ...messages.memo import MessageMemo
from .calls import CallT, find_call
from .origin import is_same_origin


class _Encoded(Protocol):
    """One encoded message, with the data of its calls that their results need."""

    @property
    def calls(self) -> tuple[Any, ...]: ...


EncodedT = TypeVar("EncodedT", bound=_Encoded)


class MessageEncoder(ABC, Generic[EncodedT, CallT]):
    """Encodes messages of any vendor for one wire. Safe for use by any number of threads.

    Args:
        origin: Digest of the endpoint and model that are asked. Opaque state goes back only to the origin that it came from; "" keeps
            none.
        model: The model's name, for histories that other packages wrote: those name the model and no origin.
    """

    provider: ClassVar[str] = ""
    """The wire's name in replies stored by other packages; "": only replies that name their origin are recognised."""
    is_default_provider: ClassVar[bool] = False
    """Whether a message that names no vendor counts as one of this wire's."""

    def __init__(self, origin: str = "", model: str = "") -> None:
        self.origin = origin
        self.model = model
        self._memo: MessageMemo[EncodedT] = MessageMemo()

    def encode(self, message: BaseMessage, calls: tuple[CallT, ...] = ()) -> EncodedT:
        """Encode one message.

        Args:
            message: The message, of a repaired history.
            calls: The calls without a result so far.

        Raises:
            UnsupportedFeatureError: The message has content that the wire cannot carry.
        """
        match message:
            case AIMessage():
                return self._assistant(message)
            case ToolMessage():
                return self._result(message, find_call(message.tool_call_id, calls))
            case HumanMessage():
                return self._other(message, "user")
            case SystemMessage():
                return self._other(message, "system")
            case ChatMessage():
                return self._other(message, message.role)
        raise UnsupportedFeatureError(f"a {type(message).__name__} cannot be sent to a chat model")

    def remembered(self, message: BaseMessage, calls: tuple[CallT, ...] = ()) -> EncodedT:
        """Return an encoded message, as of `encode`: the same object as before if neither it nor the calls have changed."""
        return self._memo.get(message, calls) or self._put(message, calls, self.encode(message, calls))

    def is_same_origin(self, message: AIMessage) -> bool:
        """Whether a message comes from the requested endpoint and model, as far as its metadata tells."""
        assumed = self.provider if self.is_default_provider else None
        return is_same_origin(message, self.origin, self.model, self.provider, assumed=assumed)

    def _put(self, message: BaseMessage, context: Hashable, encoded: EncodedT) -> EncodedT:
        self._memo.put(message, context, encoded)
        return encoded

    @abstractmethod
    def _assistant(self, message: AIMessage) -> EncodedT:
        """Encode an AI message of any vendor."""

    @abstractmethod
    def _result(self, message: ToolMessage, call: CallT | None) -> EncodedT:
        """Encode the result of a call; `call` is None if the call is unknown."""

    @abstractmethod
    def _other(self, message: BaseMessage, role: str) -> EncodedT:
        """Encode a user message, a system message, or a message with the caller's own role."""
