"""`before_turn`: a function of the caller's that changes the next request of a run."""

import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

from langchain_core.messages import BaseMessage

from ..compat import should_stream
from ..errors import ConfigurationError
from ..executor.names import tool_keys, tool_name
from .settings import check_output, drop_settings, form_of
from .turn_wrappers import AsyncProceed, Proceed, TurnPart, TurnRequest, TurnWrapper, generator_of


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
        async with aclosing(generator_of(cast("AsyncIterator[Any]", proceed(_applied(request, turn, changed))))) as parts:
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
    run_only = keywords != request.keywords and drop_settings(request.model, dict(keywords)) is not None
    if run_only or (keywords != request.keywords and {"tools", "tool_choice"} & keywords.keys()):
        raise ConfigurationError("the keywords of one turn are the vendor's: settings of a run, tools and tool_choice have no effect there")
    if model is not request.model:
        model = request.model._for_one_turn(model, tools)
        request = replace(request, streams=request.streams and should_stream(model, {"tools": tools}, async_api=False))
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
