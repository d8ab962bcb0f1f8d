"""Conversion of LangChain messages to the JSON of Messages API requests."""

import json
import logging
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from ...errors import UnsupportedFeatureError
from .._encode.calls import without_call
from .._encode.json_text import dumps, encode, request_body, to_bytes
from .._encode.system import as_user_text, count_leading_system
from .blocks import text_part
from .calls import CallId
from .encode import Encoded, MessagesEncoder, stands_alone

_logger = logging.getLogger("langchain_autotools")

_THOUGHTS = (b'{"type":"thinking"', b'{"type":"redacted_thinking"')
_OPENING = encode(text_part("(The conversation begins with the assistant.)"))


class MessagesMapper(MessagesEncoder):
    """Encodes requests. Safe for use by any number of threads.

    Args:
        origin: Digest of the endpoint and the model. Opaque blocks (thinking, server tools) go back only to the origin they
            came from; "" keeps none.
        model: The model's name.
        system_anywhere: Whether the model takes system messages in the middle of a conversation.
    """

    def __init__(self, *, origin: str = "", model: str = "", system_anywhere: bool = False) -> None:
        super().__init__(origin, model)
        self._system_anywhere = system_anywhere

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
        first = count_leading_system(messages)
        system = [block for message in messages[:first] for block in self._in_place(message, (), False, 0, ()).blocks]
        if system and cache:
            system[-1] = system[-1][:-1] + to_bytes(f',"cache_control":{dumps(cache)}}}')
        head = {key: value for key, value in params.items() if key != "system"}
        if not system and params.get("system"):
            head["system"] = params["system"]
        before = b'"system":[%s],' % b",".join(system) if system else b""
        return request_body(head, "messages", self._grouped(messages[first:]), before)

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

    def _grouped(self, messages: Sequence[BaseMessage]) -> list[bytes]:
        """Return the wire's messages: neighbours of one role are merged, with results before other content."""
        groups: list[tuple[str, list[bytes], list[bytes]]] = []
        encoded_messages = _from_summary(list(self._each(messages)))
        for encoded in _place_system_messages(_drop_unanswered_server_tools(encoded_messages), self._system_anywhere):
            if not groups or groups[-1][0] != encoded.role:
                groups.append((encoded.role, [], []))
            groups[-1][1].extend(encoded.results)
            groups[-1][2].extend(encoded.blocks)
        if groups and groups[0][0] == "assistant" and not any(map(stands_alone, groups[0][2][:1])):
            groups.insert(0, ("user", [], [_OPENING]))
        return [_message_json(role, [*results, *blocks]) for role, results, blocks in groups]

    def _each(self, messages: Sequence[BaseMessage]) -> Iterable[Encoded]:
        """Yield each message that has content."""
        ids: tuple[CallId, ...] = ()
        taken: set[str] = set()
        place = 0
        for number, message in enumerate(messages):
            last = number == len(messages) - 1 and isinstance(message, AIMessage)
            encoded = self._in_place(message, ids, last, place, taken)
            if isinstance(message, AIMessage):
                ids = encoded.calls
                taken.update(call.sent for call in ids)
                place += len(ids)
            elif isinstance(message, ToolMessage):
                ids = without_call(message.tool_call_id, ids)
            if encoded.blocks or encoded.results:
                yield encoded

    def _in_place(self, message: BaseMessage, ids: tuple[CallId, ...], last: bool, place: int, taken: Container[str]) -> Encoded:
        """Encode a message with the ids that it answers and the ids that it must not reuse."""
        answered = ids if any(call.sent != call.known or call.toolset for call in ids) else ()
        context = (answered, last)
        encoded = self._memo.get(message, context)
        if encoded is None:
            encoded = self.encode(message, answered)
            encoded = self._put(message, context, _as_prefill(encoded) if last else encoded)
        if taken and isinstance(message, AIMessage) and any(call.sent in taken for call in encoded.calls):
            return self._assistant(message, taken, place)  # an id of another server's that came before
        return encoded


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
    end = max(number for number, message in enumerate(messages) if message.blocks)
    kept = [_without_unanswered(message, answered) for message in messages[:end]]
    return [message for message in kept if message.blocks or message.results] + messages[end:]


def _without_unanswered(message: Encoded, answered: Container[str]) -> Encoded:
    doomed = {place for place, identifier in message.asked if identifier not in answered}
    kept = tuple(block for place, block in enumerate(message.blocks) if place not in doomed)
    return replace(message, blocks=kept) if doomed else message


def _message_json(role: str, blocks: Iterable[bytes]) -> bytes:
    return b'{"role":"%s","content":[%s]}' % (role.encode(), b",".join(blocks))


def _as_prefill(encoded: Encoded) -> Encoded:
    """Return an AI message that ends the request, without white space after its last text (wire quirk C-18)."""
    if not encoded.blocks:
        return encoded
    block = json.loads(encoded.blocks[-1])
    if block.get("type") != "text":
        return encoded
    kept = {**block, "text": block["text"].rstrip()}
    return replace(encoded, blocks=(*encoded.blocks[:-1], encode(kept)))
