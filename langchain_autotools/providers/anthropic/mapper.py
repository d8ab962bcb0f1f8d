"""Conversion of a whole conversation to the JSON of a Messages API request."""

import json
import logging
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from ...errors import UnsupportedFeatureError
from ...messages.incremental import fold_over
from .._encode.encoder import as_user_text, dumps, encode, request_body, to_bytes, without_call
from .encode import CallId, Encoded, MessagesEncoder, stands_alone, text_part

_logger = logging.getLogger("langchain_autotools")

_THOUGHTS = (b'{"type":"thinking"', b'{"type":"redacted_thinking"')
_OPENING = encode({"role": "user", "content": [text_part("(The conversation begins with the assistant.)")]}) + b","


class MessagesMapper(MessagesEncoder):
    """Encodes requests. Safe for use by any number of threads.

    Args:
        origin: Digest of the endpoint and the model. Opaque blocks (thinking, server tools) go back only to the origin they
            came from; "" keeps none.
        model: The model's name.
        system_anywhere: Whether the model takes system messages in the middle of a conversation.
        unsigned: Whether thinking without a signature goes back too, as servers of other vendors want it.
    """

    def __init__(self, *, origin: str = "", model: str = "", system_anywhere: bool = False, unsigned: bool = False) -> None:
        super().__init__(origin, model)
        self._system_anywhere, self.unsigned = system_anywhere, unsigned

    def encode_request(
        self, messages: Sequence[BaseMessage], params: Mapping[str, Any], *, cache: Mapping[str, Any] | None = None
    ) -> bytes:
        """Encode a request.

        Args:
            messages: The messages. System messages at the start become the request's `system`.
            params: Everything else, in the wire's names.
            cache: The `cache_control` to put on the end of the system prompt, if any.

        Raises:
            ConfigurationError: A parameter is no JSON value.
            UnsupportedFeatureError: A message has content that the wire cannot carry.
        """
        replies_last = bool(messages) and isinstance(messages[-1], AIMessage)
        encoded = fold_over(messages, self, partial(_Messages, self), len(messages) - replies_last)
        if replies_last:
            encoded = encoded.copy()
            encoded.add(messages[-1], last=True)
        system = [*encoded.system]
        if system and cache:
            system[-1] = system[-1][:-1] + to_bytes(f',"cache_control":{dumps(cache)}}}')
        head = {key: value for key, value in params.items() if key != "system"}
        if not system and params.get("system"):
            head["system"] = params["system"]
        before = b'"system":[%s],' % b",".join(system) if system else b""
        groups = encoded.groups(self._system_anywhere).all()
        if messages and not encoded.begun:
            raise UnsupportedFeatureError("a system message alone asks for nothing, and the vendor refuses it: add a HumanMessage")
        return request_body(head, "messages", groups, before)

    def last_container(self, messages: Sequence[BaseMessage], *, ever: bool) -> str | None:
        """Return the id of the container in which the vendor's code last ran, by the messages since the user's last one.

        Calls that such code made are answered in it only: without its id the vendor refuses them.

        Args:
            messages: The history.
            ever: Whether to look at all messages.
        """
        for message in reversed(messages):
            if isinstance(message, HumanMessage) and not ever:
                return None
            container = message.response_metadata.get("container") if isinstance(message, AIMessage) else None
            if isinstance(container, Mapping) and container.get("id") and isinstance(message, AIMessage) and self.is_same_origin(message):
                return str(container["id"])
        return None

    def goes_on_without_thinking(self, messages: Sequence[BaseMessage]) -> bool:
        """Whether messages end in the results of a tool loop whose first reply has no thinking to send, because another model wrote it.

        The API then refuses `thinking` of type `enabled` until the loop is closed (docs, "Preserving thinking blocks"); adaptive thinking
        it takes.
        """
        if not messages or not isinstance(messages[-1], ToolMessage):
            return False
        first: AIMessage | None = None
        for message in reversed(messages):
            if not isinstance(message, AIMessage | ToolMessage):
                break
            first = message if isinstance(message, AIMessage) else first
        if first is None or any(block.startswith(_THOUGHTS) for block in self._assistant(first).blocks[:1]):
            return False
        _logger.warning("thinking is off until the tool calls of another model are answered: the API takes no others while it is on")
        return True

    def in_place(self, message: BaseMessage, ids: tuple[CallId, ...], last: bool, place: int, taken: Container[str]) -> Encoded:
        """Encode a message with the ids that it answers and the ids that it must not reuse."""
        answered = ids if any(call.sent != call.known or call.toolset or call.alone for call in ids) else ()
        context = (answered, last)
        encoded = self._memo.get(message, context)
        if encoded is None:
            encoded = self.encode(message, answered)
            encoded = self._put(message, context, _as_prefill(encoded) if last else encoded)
        if taken and isinstance(message, AIMessage) and any(call.sent in taken for call in encoded.calls):
            return self._assistant(message, taken, place)  # an id of another server's that came before
        return encoded


class _Groups:
    """The wire's messages: neighbours of one role are merged, with results before other content."""

    __slots__ = ("_blocks", "_done", "_results", "_role")

    def __init__(self) -> None:
        self._done: list[bytes] = []  # pieces of their JSON
        self._role: str | None = None  # of the one that is still open, with its parts:
        self._results: list[bytes] = []
        self._blocks: list[bytes] = []

    def copy(self) -> "_Groups":
        """Return an independent copy."""
        made = _Groups()
        made._done, made._role, made._results, made._blocks = [*self._done], self._role, [*self._results], [*self._blocks]
        return made

    def add(self, encoded: Encoded) -> None:
        """Append a message."""
        if self._role != encoded.role:
            self._done += self._ended()
            self._role, self._results, self._blocks = encoded.role, [], []
        self._results += encoded.results
        self._blocks += encoded.blocks

    def all(self) -> list[bytes]:
        """Return the JSON of all messages, joined by commas."""
        return [] if self._role is None else [b"".join((*self._done, *self._ended()))]

    def _ended(self) -> list[bytes]:
        """Return the pieces of the open message, after those before it."""
        if self._role is None:
            return []
        start = b'%s{"role":"%s","content":[' % (b"," if self._done else b"", self._role.encode())
        if not self._done and self._role == "assistant" and not any(map(stands_alone, self._blocks[:1])):
            start = _OPENING + start
        pieces: list[bytes] = []
        for part in (*self._results, *self._blocks):
            pieces += (start, part)
            start = b","
        return [*pieces, b"]}"]


class _Messages:
    """A fold of the messages of a request.

    Args:
        mapper: Encodes each message.

    Attributes:
        system: The blocks of the system messages that the history begins with.
        begun: Whether any other message has been read.
    """

    __slots__ = ("_answered", "_groups", "_mapper", "_messages", "_place", "_plain", "_taken", "begun", "system")

    def __init__(self, mapper: MessagesMapper) -> None:
        self._mapper = mapper
        self.system: list[bytes] = []
        self._messages: list[Encoded] = []
        self._groups = _Groups()
        self._plain = True  # whether no message changes others, so that the groups are as they were read
        self._answered: tuple[CallId, ...] = ()
        self._taken: set[str] = set()
        self._place = 0
        self.begun = False

    def copy(self) -> "_Messages":
        """Return an independent copy."""
        made = _Messages(self._mapper)
        made.system, made._messages, made._groups, made._plain = [*self.system], [*self._messages], self._groups.copy(), self._plain
        made._answered, made._taken, made._place, made.begun = self._answered, {*self._taken}, self._place, self.begun
        return made

    def read(self, messages: Sequence[BaseMessage]) -> None:
        """Read the next messages."""
        for message in messages:
            self.add(message)

    def add(self, message: BaseMessage, *, last: bool = False) -> None:
        """Add a message; `last` for a reply that ends the request."""
        encoded = self._mapper.in_place(message, self._answered, last, self._place, self._taken)
        if isinstance(message, AIMessage):
            self._answered = encoded.calls
            self._taken.update(call.sent for call in encoded.calls)
            self._place += len(encoded.calls)
        elif isinstance(message, ToolMessage):
            self._answered = without_call(message.tool_call_id, self._answered)
        self.begun = self.begun or encoded.role != "system"
        if not self.begun:
            self.system += encoded.blocks
            return
        self._append(encoded)
        if encoded.media:
            self._append(Encoded("user", encoded.media))

    def _append(self, encoded: Encoded) -> None:
        if encoded.blocks or encoded.results:
            self._messages.append(encoded)
            self._plain = self._plain and not (encoded.role == "system" or encoded.asked or any(map(stands_alone, encoded.blocks)))
            if self._plain:
                self._groups.add(encoded)

    def groups(self, system_anywhere: bool) -> _Groups:
        """Return the wire's messages."""
        if self._plain:
            return self._groups
        groups = _Groups()
        for encoded in _place_system_messages(_drop_unanswered_server_tools(_from_summary(self._messages)), system_anywhere):
            groups.add(encoded)
        return groups


def _from_summary(messages: list[Encoded]) -> list[Encoded]:
    """Return the messages from the last summary on, which replaces those before it."""
    starts = (number for number in range(len(messages) - 1, 0, -1) if any(map(stands_alone, messages[number].blocks)))
    return messages[next(starts, 0) :]


def _place_system_messages(messages: list[Encoded], system_anywhere: bool) -> list[Encoded]:
    """Return the messages with each system message where the model accepts it, else as marked text of the user.

    A model that takes any takes them after the user, before the assistant or at the end (docs, "Mid-conversation system messages").
    """
    before, placed = None, list[Encoded]()
    for number, encoded in enumerate(messages):
        if encoded.role != "system":
            before = encoded.role
            placed.append(encoded)
            continue
        after = next((later.role for later in messages[number:] if later.role != "system"), None)
        placed.append(encoded if system_anywhere and before == "user" and after != "user" else _as_user(encoded))
    return placed


def _as_user(encoded: Encoded) -> Encoded:
    blocks = [json.loads(block) for block in encoded.blocks]
    change = next((block["type"] for block in blocks if block["type"] != "text"), None)
    if change:
        where = "only a model that takes system messages in the middle takes it, after the user, and before the assistant or at the end"
        raise UnsupportedFeatureError(f"content block of type {change!r} cannot be sent: {where}")
    return Encoded("user", (encode(text_part(as_user_text(block["text"] for block in blocks))),))


def _drop_unanswered_server_tools(messages: list[Encoded]) -> list[Encoded]:
    """Return the messages without unanswered calls of server tools after which the conversation has gone on.

    At the end, results of other calls apart, such a block is a turn that the server has paused and goes on with (wire quirk C-15).
    """
    if not any(message.asked for message in messages):
        return messages
    answered = {identifier for message in messages for identifier in message.answered}
    end = max(number for number, message in enumerate(messages) if message.blocks and not message.results)
    kept = [_without_unanswered(message, answered) for message in messages[:end]]
    return [message for message in kept if message.blocks or message.results] + messages[end:]


def _without_unanswered(message: Encoded, answered: Container[str]) -> Encoded:
    doomed = {place for place, identifier in message.asked if identifier not in answered}
    kept = tuple(block for place, block in enumerate(message.blocks) if place not in doomed)
    return replace(message, blocks=kept) if doomed else message


def _as_prefill(encoded: Encoded) -> Encoded:
    """Return an AI message that ends the request, without white space after its last text (wire quirk C-18)."""
    if not encoded.blocks:
        return encoded
    block = json.loads(encoded.blocks[-1])
    if block.get("type") != "text":
        return encoded
    kept = {**block, "text": block["text"].rstrip()}
    return replace(encoded, blocks=(*encoded.blocks[:-1], encode(kept)))
