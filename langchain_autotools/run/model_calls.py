"""The requests and replies of one turn in the form of LangChain's middleware."""

import uuid
from collections.abc import Iterable, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk, SystemMessage

from ..chunks import ChunkSum
from ..compat import middleware_types, new_graph_runtime
from ..errors import ConfigurationError
from ..messages.blocks import is_call_block
from ..messages.metadata import KEY
from ..messages.rejected import with_rejected
from ..turn.output_version import stored_message
from ..turn.tools import is_builtin
from .before_turn import name_of_tool, with_changes
from .middleware import name_of
from .turn_wrappers import Restart, Stored, TurnPart, TurnRequest

_LEFT = "{name} answers otherwise than the model, whose text has left already: disable_streaming=True on the model holds turns back"
_AGAIN = "{name} asks for the turn again, and its text has left already: disable_streaming=True on the model holds turns back"


class Attempt:
    """One request of a turn, and the parts of its reply.

    Attributes:
        request: The request.
        held: The parts that have not left.
        left: Whether parts that show something have left.
        message: The whole reply.
    """

    def __init__(self, request: TurnRequest) -> None:
        self.request = request
        self.held: list[TurnPart] = []
        self.left = False
        self.message: AIMessage | None = None
        self._sum = ChunkSum()
        self._whole: AIMessage | None = None

    def feed(self, part: TurnPart) -> Sequence[TurnPart]:
        """Process a part; return the parts that leave at once. What shows nothing yet is held, and so is the last part."""
        self._add(part)
        self.held.append(part)
        if isinstance(part, AIMessage) and getattr(part, "chunk_position", "last") == "last":
            return ()
        self.left = self.left or (self.request.streams and _shows(part))
        if not self.left:
            return ()
        out, self.held = self.held, []
        return out

    def _add(self, part: TurnPart) -> None:
        if isinstance(part, Restart):
            self._sum = ChunkSum()
        elif isinstance(part, Stored):
            self._whole = part.message
        elif isinstance(part, AIMessageChunk):
            self._sum.add(part)
        elif isinstance(part, AIMessage):
            self._whole = part

    def end(self) -> AIMessage:
        """Return the whole reply in its stored form."""
        self.message = stored_message(self._whole or self._sum.message(), self.request.output_version)
        return self.message


class Layer:
    """One middleware around one turn: checks what it does with the turn."""

    def __init__(self, calls: "ModelCalls", middleware: Any) -> None:
        self._calls = calls
        self._name = name_of(middleware)
        self._entered = False

    def entered(self, request: Any) -> Any:
        """Note that the middleware asks for the turn.

        Raises:
            Exception: It asks again after text has left: the error of the first reply, or one that names the middleware.
        """
        if self._entered and self._calls.shown is not None:
            raise self._calls.error or ConfigurationError(_AGAIN.format(name=self._name))
        self._entered = True
        return request

    def checked(self, response: Any) -> Any:
        """Return the response of the middleware in one form.

        Raises:
            ConfigurationError: It is not one AI message, brings more than that, or stands in place of what has left.
        """
        types = middleware_types()
        if isinstance(response, types.ExtendedModelResponse):
            if response.command is not None:
                raise ConfigurationError(f"{self._name} returns a command, which only LangChain's agents apply")
            response = response.model_response
        messages: list[Any] = [response] if isinstance(response, AIMessage) else list(getattr(response, "result", ()))
        if len(messages) != 1 or not isinstance(messages[0], AIMessage) or getattr(response, "structured_response", None) is not None:
            raise ConfigurationError(f"{self._name} must return one AI message, not {response!r:.200}")
        shown = self._calls.shown
        if shown is not None and messages[0] is not shown.message:
            raise self._calls.error or ConfigurationError(_LEFT.format(name=self._name))
        return types.ModelResponse(result=list(messages))


class ModelCalls:
    """The model calls of one turn.

    Attributes:
        shown: The attempt of which text has left; None as long as there is none.
        error: Its error, if it has failed.
    """

    def __init__(self, request: TurnRequest) -> None:
        self._request = request
        self._attempts: list[Attempt] = []
        self.shown: Attempt | None = None
        self.error: Exception | None = None
        self._model = request.model._for_one_turn(request.model)
        self._choice = request.tool_choice if request.choice == "requested" or request.insists else None
        messages = list(request.messages)
        self._system = messages.pop(0) if messages and isinstance(messages[0], SystemMessage) else None
        self._messages = messages

    def layer(self, middleware: Any) -> Layer:
        """Return the check of one middleware."""
        return Layer(self, middleware)

    def model_request(self) -> Any:
        """Return the turn's request in the form that middleware gets."""
        return middleware_types().ModelRequest(
            model=self._model,
            messages=list(self._messages),
            system_message=self._system,
            tool_choice=self._choice,
            tools=list(self._request.tools),
            state={"messages": list(self._messages)},
            runtime=new_graph_runtime(),
            model_settings={},
        )

    def attempt(self, asked: Any) -> Attempt:
        """Return a new attempt at a request as middleware wants it.

        Raises:
            ConfigurationError: The request cannot be made.
        """
        if asked.response_format is not None:
            raise ConfigurationError("a middleware sets response_format: use with_structured_output of the model")
        own, tools = self._request, list(asked.tools)
        same = len(tools) == len(own.tools) and all(one is other for one, other in zip(tools, own.tools, strict=True))
        known = set(map(name_of_tool, own.tools))
        added = [] if same else [name for tool in tools if not is_builtin(tool) and (name := name_of_tool(tool)) not in known]
        if added:
            raise ConfigurationError(f"a middleware adds tools that the run does not have: {', '.join(map(repr, added))}")
        made = with_changes(
            own,
            messages=[*([] if asked.system_message is None else [asked.system_message]), *asked.messages],
            model=own.model if asked.model is self._model else asked.model,
            tools=own.tools if same else tools,
            tool_choice=own.tool_choice if asked.tool_choice is self._choice else asked.tool_choice,
            keywords={**own.keywords, **asked.model_settings} if asked.model_settings else own.keywords,
        )
        self._attempts.append(Attempt(made))
        return self._attempts[-1]

    def failed(self, attempt: Attempt, error: Exception) -> Exception:
        """Note that an attempt has failed, and return its error."""
        if attempt.left:
            self.shown, self.error = attempt, error
        return error

    def done(self, attempt: Attempt) -> Any:
        """Note that an attempt is whole, and return the response for the middleware."""
        message = attempt.end()
        if attempt.left:
            self.shown = attempt
        return middleware_types().ModelResponse(result=[message])

    def parts_of(self, response: Any) -> Iterable[TurnPart]:
        """Return the parts of the answer that have not left: those of the chosen reply, or the message in its place."""
        (message,) = response.result
        chosen = next((one for one in self._attempts if one.message is message), None)
        held: Sequence[TurnPart] = [self._judged(message)] if chosen is None else chosen.held
        return with_records(held, self._rejected(message))

    def _rejected(self, answer: AIMessage) -> Sequence[AIMessage]:
        """Return the whole replies that the answer is not, nor made of: its usage then is theirs."""
        replies = [one.message for one in self._attempts if one.message is not None]
        used = [one for one in replies if one is answer] or [
            one for one in replies if one.usage_metadata == answer.usage_metadata is not None
        ]
        return [one for one in replies if one is not (used[-1] if used else None)]

    def _judged(self, message: AIMessage) -> AIMessage:
        """Return a message of a middleware's own as a whole turn, with a verdict on its calls."""
        metadata = {key: value for key, value in message.response_metadata.items() if key != KEY}
        plain = message.model_copy(update={"response_metadata": metadata, "id": message.id or str(uuid.uuid4())})
        turn = self._request.model._turn(list(self._request.messages), {"tools": list(self._request.form.tools)})
        return cast("AIMessage", turn.result([plain]).generations[0].message)


def with_records(parts: Sequence[TurnPart], rejected: Sequence[AIMessage]) -> Sequence[TurnPart]:
    """Return the parts of a reply, its message with records of the replies that were rejected before."""
    if not rejected:
        return parts
    last = max(number for number, part in enumerate(parts) if isinstance(part, AIMessage | Stored))
    part = parts[last]
    marked = Stored(with_rejected(part.message, rejected)) if isinstance(part, Stored) else with_rejected(cast("AIMessage", part), rejected)
    return [*parts[:last], marked, *parts[last + 1 :]]


def _shows(part: TurnPart) -> bool:
    """Whether a part has text or anything else that a reader sees."""
    if not isinstance(part, AIMessage):
        return False
    if isinstance(part.content, str):
        return bool(part.content)
    return any(isinstance(block, str) or not is_call_block(block) for block in part.content)
