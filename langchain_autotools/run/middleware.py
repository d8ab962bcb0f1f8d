"""What a program changes in the requests or calls of a run: its `before_turn`, its LangChain middleware.

A middleware is a function around a whole reply, and a turn is streamed. So the middleware runs beside the turn, in a thread or task of
its own, and the turn's own thread or task makes the requests that it asks for. What may be shown leaves at once; a reply whose text has
left can neither be made again nor be replaced.
"""

import asyncio
import inspect
import json
import logging
import queue
import threading
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, SystemMessage, ToolMessage

from ..chunks import ChunkSum
from ..compat import middleware_types, new_graph_runtime, should_stream
from ..deadline import Deadline
from ..errors import ConfigurationError
from ..executor import ToolExecutor
from ..executor.call import ToolRun
from ..executor.names import tool_keys, tool_name
from ..executor.plan import PlannedCall
from ..executor.results import ToolCallResult, is_changed, tool_message_of
from ..executor.steps import PENDING, CallWrapper, Outcome, Steps, Wrap, ends_as
from ..executor.steps import Proceed as CallProceed
from ..executor.user_functions import NOTHING, run_beside
from ..messages.blocks import is_call_block
from ..messages.incremental import copy_containers
from ..messages.metadata import KEY, with_rejected
from ..turn.stored_messages import canonical_message
from ..turn.tools import is_builtin
from .settings import check_output, drop_settings, form_of
from .turn_wrappers import ENDS, AsyncProceed, Proceed, Restart, Stored, TurnPart, TurnRequest, TurnWrapper

_logger = logging.getLogger("langchain_autotools")
MODEL_HOOKS = ("wrap_model_call", "awrap_model_call")
TOOL_HOOKS = ("wrap_tool_call", "awrap_tool_call")
_OTHER_HOOKS = tuple(f"{prefix}{hook}" for hook in ("before_agent", "before_model", "after_model", "after_agent") for prefix in ("", "a"))

_HIDES_CALLS = "InternalCallTransformer"
"""LangChain's transformer of an agent's stream that hides a middleware's own calls of models; no stream of a run has them."""


def checked_middleware(given: Any) -> Sequence[Any]:
    """Return the middleware of a model; raise if one needs what only LangChain's agents have.

    Raises:
        ConfigurationError: One is no middleware, or has other hooks than those around calls, a state or transformers of its own.
    """
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise ConfigurationError(f"middleware must be a list of LangChain's middleware, not {type(given).__name__}")
    objects = list(given)
    for middleware in objects:
        needs = _needs(middleware)
        if needs:
            text = f"{_middleware_name(middleware)} needs {', '.join(needs)}, which only LangChain's agents have: use create_agent"
            raise ConfigurationError(f"{text}, or middleware that has wrap_model_call and wrap_tool_call alone")
        if not _has_hook(middleware, MODEL_HOOKS) and not _has_hook(middleware, TOOL_HOOKS) and not _tools_of(middleware):
            raise ConfigurationError(
                f"{_middleware_name(middleware)} has neither wrap_model_call nor wrap_tool_call, nor tools: it has no effect"
            )
    return objects


def with_hook(middleware: Iterable[Any], names: Collection[str]) -> list[Any]:
    """Return the middleware that implements one of these methods."""
    return [one for one in middleware if _has_hook(one, names)]


def with_brought_tools(tools: Any, middleware: Sequence[Any]) -> Any:
    """Return a model's tools with those that its middleware brings; the same value if they are there."""
    own = tools.tools.values() if isinstance(tools, ToolExecutor) else tools.values() if isinstance(tools, Mapping) else tools or ()
    brought = [tool for one in middleware for tool in _tools_of(one) if not any(tool is known for known in own)]
    if not brought:
        return tools
    if isinstance(tools, ToolExecutor):
        made = ToolExecutor([*own, *brought]).with_settings(tools.settings)
        return made if tools.handlers is None else made.with_handlers(tools.handlers, {})
    if isinstance(tools, Mapping):
        return {**tools, **{tool.name: tool for tool in brought}}
    return [*own, *brought]


def _middleware_name(middleware: Any) -> str:
    """Return the name of a middleware for error texts."""
    if isinstance(middleware, type):
        return f"the class {middleware.__name__}"
    return str(getattr(middleware, "name", None) or type(middleware).__name__)


def _has_hook(middleware: Any, names: Collection[str]) -> bool:
    """Whether a middleware implements one of these methods."""
    base = middleware_types().AgentMiddleware
    own = None if isinstance(middleware, type) else type(middleware)
    return any(getattr(own, name, None) not in (None, getattr(base, name, None)) for name in names)


def _tools_of(middleware: Any) -> Sequence[Any]:
    """Return the tools that a middleware brings."""
    return tuple(getattr(middleware, "tools", None) or ())


def _hook_of(middleware: Any, name: str, *, twin: str) -> Any:
    """Return a method of a middleware.

    Raises:
        ConfigurationError: It implements only the twin for the other kind of run.
    """
    if not _has_hook(middleware, [name]):
        kind = "asynchronous" if name.startswith("a") else "synchronous"
        raise ConfigurationError(f"{_middleware_name(middleware)} has {twin} and no {name}: {kind} runs need it")
    return getattr(middleware, name)


def _needs(middleware: Any) -> list[str]:
    """Return what a middleware needs that a run does not have."""
    types = middleware_types()
    schema = getattr(middleware, "state_schema", None)
    state = set(_keys(schema)) - set(_keys(types.AgentState))
    needs = [name for name in _OTHER_HOOKS if _has_hook(middleware, [name])]
    needs += [f"the state {', '.join(sorted(state))}"] if state else []
    own = [one for one in getattr(middleware, "transformers", None) or () if getattr(one, "__name__", "") != _HIDES_CALLS]
    return needs + (["transformers"] if own else [])


def _keys(schema: Any) -> Iterable[str]:
    return [key for kind in getattr(schema, "__mro__", ()) for key in getattr(kind, "__annotations__", ())]


# ---------------------------------------------------------------------------------------------- `before_turn`


@dataclass(frozen=True)
class NextTurn:
    """The next request of a run, which `before_turn` gets and may return changed, by `dataclasses.replace`.

    Attributes:
        number: The number of the request in its run, from 1 on. Changing it has no effect.
        messages: The messages to send. A change holds for this request alone.
        model: The model that makes it.
        tools: The names of the declared tools. Those that are left out are not declared, and their calls do not run in this turn.
        tool_choice: The tool choice of this request alone; as it comes, the choice of the call, which asks in the first request only.
        keywords: The keyword arguments for the vendor, such as `temperature`.
    """

    number: int
    messages: Sequence[BaseMessage]
    model: Any
    tools: Sequence[str]
    tool_choice: Any
    keywords: Mapping[str, Any]


class BeforeTurn(TurnWrapper):
    """A wrapper that has the caller's function change each request before any model gets it.

    Args:
        function: Gets a `NextTurn`, and returns one, or None for no change. Asynchronous only in asynchronous runs.
    """

    layer: ClassVar[str] = "before_turn"

    def __init__(self, function: Callable[[NextTurn], Any]) -> None:
        self._function = function

    def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[TurnPart]:
        """Make the turn of the changed request.

        Raises:
            ConfigurationError: The change cannot work, or the function is asynchronous.
        """
        turn = _next_turn(request)
        changed = self._function(turn)
        if inspect.isawaitable(changed):
            getattr(changed, "close", lambda: None)()
            raise ConfigurationError("before_turn is asynchronous: a synchronous run cannot await it")
        return proceed(_applied(request, turn, changed))

    async def awrap_turn(self, request: TurnRequest, proceed: AsyncProceed) -> AsyncIterator[TurnPart]:
        """Make the turn of the changed request asynchronously.

        Raises:
            ConfigurationError: The change cannot work.
        """
        turn = _next_turn(request)
        changed = self._function(turn)
        if inspect.isawaitable(changed):
            changed = await changed
        async with aclosing(cast("AsyncGenerator[Any, None]", proceed(_applied(request, turn, changed)))) as parts:
            async for part in parts:
                yield part


def _next_turn(request: TurnRequest) -> NextTurn:
    names = tuple(map(declared_name, request.tools))
    return NextTurn(request.number, tuple(request.messages), request.model, names, request.tool_choice, dict(request.keywords))


def _applied(request: TurnRequest, turn: NextTurn, changed: Any) -> TurnRequest:
    """Return the request with the changes of a turn.

    Raises:
        ConfigurationError: They cannot work.
    """
    if changed is None or changed is turn:
        return request
    if not isinstance(changed, NextTurn):
        raise ConfigurationError(f"before_turn must return the NextTurn, changed or not, or None, not {type(changed).__name__}")
    declared = {declared_name(tool): tool for tool in request.tools}
    names = set(tool_keys(changed.tools, declared))
    unknown = sorted(names - set(turn.tools))
    if unknown:
        raise ConfigurationError(f"before_turn names tools that are not declared: {', '.join(map(repr, unknown))}")
    tools = request.tools if names == set(turn.tools) else [tool for tool in request.tools if declared_name(tool) in names]
    if not isinstance(changed.messages, Sequence) or not all(isinstance(one, BaseMessage) for one in changed.messages):
        raise ConfigurationError("the messages of before_turn must be a list of messages")
    return with_changes(request, list(changed.messages), changed.model, tools, changed.tool_choice, changed.keywords)


def declared_name(tool: Any) -> str:
    """Return the name of a declared tool."""
    return tool_name(tool) if isinstance(tool, Mapping) else str(tool.name)


def with_changes(
    request: TurnRequest, messages: Sequence[BaseMessage], model: Any, tools: Sequence[Any], tool_choice: Any, keywords: Mapping[str, Any]
) -> TurnRequest:
    """Return a request with changes, checked as a model's own settings are, in the form of its model's wire.

    Raises:
        ConfigurationError: A change cannot work.
    """
    if model is not request.model:
        model = request.model._for_one_turn(model, tools)
        request = replace(request, streams=request.streams and should_stream(model, {"tools": tools}, async_api=False))
    run_only = keywords != request.keywords and drop_settings(model, dict(keywords)) is not None
    if run_only or (keywords != request.keywords and {"tools", "tool_choice"} & keywords.keys()):
        raise ConfigurationError("the keywords of one turn are the vendor's: settings of a run, tools and tool_choice have no effect there")
    same_choice = tool_choice is request.tool_choice or tool_choice == request.tool_choice
    made = replace(request, messages=messages, model=model, keywords=keywords)
    if same_choice and tools is request.tools:
        return made
    made = replace(made, tools=tools, tool_choice=tool_choice, insists=request.insists or not same_choice)
    form = form_of(model, made)
    if request.form.choice.allowed is not None:  # what the call restricts holds in each of its turns
        form = replace(form, choice=form.choice.within(request.form.choice))
    check_output(keywords, made.caller_tools, form.names)
    return replace(made, form=form)


# ---------------------------------------------------------------------------------------------- the requests and replies of one turn


_TEXT_HAS_LEFT = (
    "{name} answers otherwise than the model, whose text has left already: disable_streaming=True on the model holds turns back"
)
_ASKS_AGAIN = "{name} asks for the turn again, and its text has left already: disable_streaming=True on the model holds turns back"


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
        whole = canonical_message(self._whole or self._sum.message())
        self.message = self.request.model._stored_message(whole, self.request.output_version)
        return self.message


class _Layer:
    """One middleware around one turn: checks what it does with the turn."""

    def __init__(self, calls: "_ModelCalls", middleware: Any) -> None:
        self._calls = calls
        self._name = _middleware_name(middleware)
        self._entered = False

    def entered(self, request: Any) -> Any:
        """Note that the middleware asks for the turn.

        Raises:
            Exception: It asks again after text has left: the error of the first reply, or one that names the middleware.
        """
        if self._entered and self._calls.shown is not None:
            raise ConfigurationError(_ASKS_AGAIN.format(name=self._name)) if self._calls.error is None else self._calls.error
        self._entered = True
        return request

    def checked(self, response: Any) -> Any:
        """Return the response of the middleware in one form.

        Raises:
            ConfigurationError: It is not one AI message, brings more than that, or replaces what has left.
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
            raise ConfigurationError(_TEXT_HAS_LEFT.format(name=self._name)) if self._calls.error is None else self._calls.error
        return types.ModelResponse(result=list(messages))


class _ModelCalls:
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
        known = set(map(declared_name, own.tools))
        added = [] if same else [name for tool in tools if not is_builtin(tool) and (name := declared_name(tool)) not in known]
        if added:
            raise ConfigurationError(f"a middleware adds tools that the run does not have: {', '.join(map(repr, added))}")
        messages = [*([] if asked.system_message is None else [asked.system_message]), *asked.messages]
        model = own.model if asked.model is self._model else asked.model
        choice = own.tool_choice if asked.tool_choice is self._choice else asked.tool_choice
        keywords = {**own.keywords, **asked.model_settings} if asked.model_settings else own.keywords
        made = with_changes(own, messages, model, own.tools if same else tools, choice, keywords)
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


# ---------------------------------------------------------------------------------------------- `wrap_model_call` around turns


_SECONDS_TO_END = 1.0


class ModelMiddleware(TurnWrapper):
    """The wrapper of turns that holds all middleware around model calls.

    Args:
        middleware: The middleware, the outermost first.
    """

    layer: ClassVar[str] = "middleware"

    def __init__(self, middleware: Sequence[Any]) -> None:
        self._middleware = middleware

    def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[TurnPart]:
        """Make a turn inside the middleware."""
        calls, side = _ModelCalls(request), _MiddlewareThread(request.end)
        handler: Callable[[Any], Any] = side.ask
        for one in reversed(self._middleware):
            wrap = _hook_of(one, "wrap_model_call", twin="awrap_model_call")
            handler = partial(_layer, calls, one, wrap, handler)
        with closing(side):
            side.start(partial(handler, calls.model_request()))
            while (asked := side.next()).answer is None:
                attempt = calls.attempt(asked.request)
                try:
                    for part in proceed(attempt.request):
                        yield from attempt.feed(part)
                except ENDS:
                    raise
                except Exception as error:
                    side.reply(error=calls.failed(attempt, error))
                else:
                    side.reply(calls.done(attempt))
        yield from calls.parts_of(asked.answer)

    async def awrap_turn(self, request: TurnRequest, proceed: AsyncProceed) -> AsyncIterator[TurnPart]:
        """Make a turn inside the middleware asynchronously."""
        calls, side = _ModelCalls(request), _MiddlewareTask()
        handler: Callable[[Any], Awaitable[Any]] = side.ask
        for one in reversed(self._middleware):
            wrap = _hook_of(one, "awrap_model_call", twin="wrap_model_call")
            handler = partial(_alayer, calls, one, wrap, handler)
        async with aclosing(side):
            side.start(handler(calls.model_request()))
            while (asked := await side.next()).answer is None:
                attempt = calls.attempt(asked.request)
                try:
                    async for part in _attempt_parts(proceed, attempt):
                        yield part
                except ENDS:
                    raise
                except Exception as error:
                    side.reply(error=calls.failed(attempt, error))
                else:
                    side.reply(calls.done(attempt))
        for part in calls.parts_of(asked.answer):
            yield part


def _layer(calls: _ModelCalls, middleware: Any, wrap: Callable[..., Any], handler: Callable[[Any], Any], request: Any) -> Any:
    """Call one middleware; `handler` is what is inside of it."""
    around = _Layer(calls, middleware)
    return around.checked(wrap(request, lambda inner: handler(around.entered(inner))))


async def _alayer(
    calls: _ModelCalls, middleware: Any, wrap: Callable[..., Any], handler: Callable[[Any], Awaitable[Any]], request: Any
) -> Any:
    """Like `_layer`, asynchronously."""
    around = _Layer(calls, middleware)

    async def inside(inner: Any) -> Any:
        return await handler(around.entered(inner))

    return around.checked(await wrap(request, inside))


async def _attempt_parts(proceed: AsyncProceed, attempt: Attempt) -> AsyncIterator[TurnPart]:
    async with aclosing(cast("AsyncGenerator[Any, None]", proceed(attempt.request))) as parts:
        async for part in parts:
            for out in attempt.feed(part):
                yield out


class _FromMiddleware(NamedTuple):
    """What comes from beside a turn: a request to make, or the answer."""

    request: Any = None
    answer: Any = None


class _TurnOver(BaseException):
    """Raised inside a middleware whose turn is over. No `except Exception` catches it."""


class _MiddlewareThread:
    """Middleware in a thread beside a turn.

    Args:
        end: The end of the run, before which it is waited for.
    """

    def __init__(self, end: Deadline) -> None:
        self._end = end
        self._asked: queue.SimpleQueue[_FromMiddleware | BaseException] = queue.SimpleQueue()
        self._replies: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        self._closed = False
        self._news, self._ended = threading.Event(), threading.Event()

    def start(self, work: Callable[[], Any]) -> None:
        """Begin."""
        run_beside(partial(copy_context().run, self._work, work))

    def _work(self, work: Callable[[], Any]) -> None:
        try:
            self._put(_FromMiddleware(answer=work()))
        except BaseException as error:
            self._put(error)
        finally:
            self._ended.set()

    def _put(self, asked: _FromMiddleware | BaseException) -> None:
        self._asked.put(asked)
        self._news.set()

    def ask(self, request: Any) -> Any:
        """Have the turn's thread make a request; returns the response, or raises. Called in the middleware's thread."""
        if self._closed:
            raise _TurnOver
        self._put(_FromMiddleware(request))
        reply, error = self._replies.get()
        if error is not None:
            raise error
        return reply

    def next(self) -> _FromMiddleware:
        """Return what the middleware asks for next.

        Raises:
            BaseException: What the middleware has raised, or the end of the run.
        """
        self._end.wait(self._news)
        if not self._news.is_set():
            self._end.check()
        self._news.clear()
        asked = self._asked.get()
        if isinstance(asked, BaseException):
            raise asked
        return asked

    def reply(self, response: Any = None, error: BaseException | None = None) -> None:
        """Answer the request that was asked for."""
        self._replies.put((response, error))

    def close(self) -> None:
        """End the middleware, wherever it waits. A thread that does not end within a second is left behind."""
        self._closed = True
        self._replies.put((None, _TurnOver()))
        if not self._ended.wait(_SECONDS_TO_END):
            _logger.warning("a middleware goes on although its turn is over: a thread cannot be stopped")


class _MiddlewareTask:
    """Middleware in a task beside a turn."""

    def __init__(self) -> None:
        self._asked: asyncio.Queue[_FromMiddleware] = asyncio.Queue()
        self._reply: asyncio.Future[Any]
        self._task: asyncio.Task[Any]

    def start(self, work: Awaitable[Any]) -> None:
        """Begin."""
        self._task = asyncio.ensure_future(work)

    async def ask(self, request: Any) -> Any:
        """Have the turn's task make a request; returns the response, or raises. Called in the middleware's task."""
        self._reply = asyncio.get_running_loop().create_future()
        self._asked.put_nowait(_FromMiddleware(request))
        return await self._reply

    async def next(self) -> _FromMiddleware:
        """Return what the middleware asks for next.

        Raises:
            BaseException: What the middleware has raised.
        """
        asked = asyncio.ensure_future(self._asked.get())
        try:
            await asyncio.wait([asked, self._task], return_when=asyncio.FIRST_COMPLETED)
            return asked.result() if asked.done() else _FromMiddleware(answer=self._task.result())
        finally:
            asked.cancel()

    def reply(self, response: Any = None, error: BaseException | None = None) -> None:
        """Answer the request that was asked for."""
        if self._reply.done():
            return
        if error is None:
            self._reply.set_result(response)
        else:
            self._reply.set_exception(error)

    async def aclose(self) -> None:
        """End the middleware. A task that swallows its cancellation for a second is left behind."""
        self._task.cancel()
        await asyncio.wait([self._task], timeout=_SECONDS_TO_END)
        if not self._task.done():
            _logger.warning("a middleware goes on although its turn is over and it was cancelled")
        elif not self._task.cancelled():
            self._task.exception()


# ---------------------------------------------------------------------------------------------- `wrap_tool_call` around calls


def call_wrapper(middleware: Any) -> CallWrapper:
    """Return a middleware's `wrap_tool_call` and its asynchronous twin as a wrapper of calls."""
    return partial(_call_in_middleware, middleware)


def _call_in_middleware(middleware: Any, planned: PlannedCall, proceed: CallProceed) -> Steps:
    handling = _MiddlewareCall(middleware, planned, proceed)
    outcome: Any = yield Wrap(handling.handled, handling.ahandled)
    return planned.unfinished(None) if outcome is NOTHING else outcome


class _MiddlewareCall:
    """One call inside one middleware."""

    def __init__(self, middleware: Any, planned: PlannedCall, proceed: CallProceed) -> None:
        self._middleware = middleware
        self._planned = planned
        self._proceed = proceed
        self._last: ToolCallResult | None = None
        self._attempts = 0

    def handled(self, carry: Callable[[Steps], Outcome]) -> Outcome:
        """Call the middleware, whose handler carries out the call."""
        wrap = _hook_of(self._middleware, "wrap_tool_call", twin="awrap_tool_call")
        try:
            return self._outcome(wrap(self._request(), lambda request: self._answer(carry(self._steps(request)))))
        except _StaysPending as left:
            return cast("Outcome", left.args[0])
        except Exception as error:
            return self._failed(error)

    async def ahandled(self, carry: Callable[[Steps], Awaitable[Outcome]]) -> Outcome:
        """Like `handled`, asynchronously."""

        async def handler(request: Any) -> Any:
            return self._answer(await carry(self._steps(request)))

        wrap = _hook_of(self._middleware, "awrap_tool_call", twin="wrap_tool_call")
        try:
            return self._outcome(await wrap(self._request(), handler))
        except _StaysPending as left:
            return cast("Outcome", left.args[0])
        except Exception as error:
            return self._failed(error)

    @property
    def _run(self) -> ToolRun:
        assert self._planned.run is not None  # only calls that run have wrappers
        return self._planned.run

    def _request(self) -> Any:
        call, context = self._planned.call, self._run.graph_runtime()
        known = {"name": call.name, "args": copy_containers(call.args or {}), "id": call.id, "type": "tool_call"}
        return middleware_types().ToolCallRequest(tool_call=known, tool=self._run.prepared.tool, state=context.state, runtime=context)

    def _steps(self, request: Any) -> Steps:
        """Return the steps of the call as a middleware wants it.

        Raises:
            ConfigurationError: It is another call, not the same with other arguments.
        """
        call, asked = self._planned.call, request.tool_call
        if (asked["name"], asked["id"]) != (call.name, call.id) or request.tool is not self._run.prepared.tool:
            raise ConfigurationError(
                f"{_middleware_name(self._middleware)} makes another call of {call.name!r}: it may change the arguments alone"
            )
        if self._last is not None:
            failed = not self._last.success and isinstance(self._last.error, Exception)  # what was cancelled may have had its effect
            may_run_again = not self._last.executed or (failed and not self._run.is_late)
            if (self._run.found or call.decision is not None) and asked["args"] == call.args and not may_run_again:
                return ends_as(replace(self._last, attempts=0))
            self._run.begin_anew()
        if asked["args"] == call.args:
            return self._proceed(self._planned)
        changed = replace(call, args=dict(asked["args"]), arguments=json.dumps(asked["args"], ensure_ascii=False))
        return self._proceed(replace(self._planned, call=changed))

    def _answer(self, outcome: Outcome) -> ToolMessage:
        """Return a call's message, or raise what its tool raised."""
        if outcome is PENDING or is_changed(outcome):
            raise _StaysPending(outcome)
        self._last = outcome
        self._attempts += outcome.attempts
        if outcome.executed and not outcome.success and isinstance(outcome.error, Exception):
            raise outcome.error
        return outcome.message

    def _failed(self, error: Exception) -> ToolCallResult:
        """Return the result of a tool whose exception the middleware has let through; raise any other exception."""
        if self._last is None or error is not self._last.error:
            raise error
        return replace(self._last, attempts=self._attempts)

    def _outcome(self, answer: Any) -> ToolCallResult:
        """Return what a middleware has returned as the result of the call."""
        last = self._last
        if last is not None and answer is last.message:
            return replace(last, attempts=self._attempts)
        call = self._planned.call if last is None else last.call
        message, commands = tool_message_of(call, answer)
        known: dict[str, Any] = {"executed": last is not None and last.executed, "attempts": self._attempts, "commands": commands}
        direct = self._run.prepared.tool.return_direct and message.status != "error"
        return ToolCallResult(call, message, duration=0.0 if last is None else last.duration, return_direct=direct, **known)


class _StaysPending(BaseException):
    """Raised inside a middleware around a call that stays pending, with its outcome. No `except Exception` catches it."""
