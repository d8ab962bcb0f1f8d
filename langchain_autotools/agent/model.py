"""The model of an agent: which kinds are accepted, how output of a schema is requested from it."""

import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from langchain_core.exceptions import OutputParserException
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration
from langchain_core.runnables import RunnableBinding, RunnableConfig
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ValidationError

from ..errors import ConfigurationError, DecisionProblem
from ..executor import pending_calls
from ..executor.names import tool_name
from ..messages.calls import calls_of
from ..messages.metadata import text_of
from ..messages.run_messages import numbered_result, result_id
from ..mixin import ToolsAndMessagesMixin
from ..providers.registry import init_chat_model
from ..run.binding import BoundChatModel


@runtime_checkable
class ModelOfRuns(Protocol):
    """An object that makes the runs of a model, such as the result of `langchain_autotools.durable.durable(model, name)`."""

    @property
    def model(self) -> ToolsAndMessagesMixin:
        """The model."""

    def invoke(self, input: list[BaseMessage], config: RunnableConfig | None = None, **kwargs: Any) -> AIMessage:
        """Invoke the model."""

    async def ainvoke(self, input: list[BaseMessage], config: RunnableConfig | None = None, **kwargs: Any) -> AIMessage:
        """Invoke the model asynchronously."""

    def stream(self, input: list[BaseMessage], config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
        """Stream from the model."""

    def astream(self, input: list[BaseMessage], config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[AIMessageChunk]:
        """Stream from the model asynchronously."""

    def check(self, input: list[BaseMessage], decisions: Any, **kwargs: Any) -> list[DecisionProblem]:
        """Return why the model could not go on with decisions; empty if it can."""


AgentModel: TypeAlias = ToolsAndMessagesMixin | BoundChatModel | ModelOfRuns


def agent_model(model: Any, tools: Any, kwargs: dict[str, Any]) -> AgentModel:
    """Return the model of an agent.

    Args:
        model: As `Agent` takes it.
        tools: The tools that it runs; None for its own.
        kwargs: Arguments of a model that is named.

    Raises:
        ConfigurationError: It is no such model, or is made already and takes neither arguments nor tools.
    """
    if isinstance(model, str):
        named: Any = init_chat_model(model, **({} if tools is None else {"tools": tools}), **kwargs)
        return named  # type: ignore[no-any-return]
    if isinstance(model, RunnableBinding) and not isinstance(model, BoundChatModel) and isinstance(model.bound, ToolsAndMessagesMixin):
        model = BoundChatModel.of(model)
    if not isinstance(model, AgentModel) or not isinstance(plain_model(model), ToolsAndMessagesMixin):
        raise ConfigurationError(
            f"model is 'provider:model', a chat model of this package, what bind made of one, or durable(...), not {type(model).__name__}"
        )
    if kwargs:
        raise ConfigurationError(f"the model is made already: give {', '.join(sorted(kwargs))} to it")
    if tools is None:
        return model
    if not isinstance(model, ToolsAndMessagesMixin | BoundChatModel):
        raise ConfigurationError(f"the tools of {model!r} are those of its model: give them to that one")
    return model.with_tools(tools)


def plain_model(model: AgentModel) -> Any:
    """Return the model itself, without bindings and without the object that makes its runs."""
    if isinstance(model, ToolsAndMessagesMixin):
        return model
    return model.bound if isinstance(model, BoundChatModel) else model.model


# ---------------------------------------------------------------------------------------------- output
# The structured output of an agent.


_RETURNED = "Returned to the caller."


class StructuredOutput:
    """Requests output of a schema from a model, and parses it from the run message.

    Args:
        model: The agent's model.
        schema: The schema, as `with_structured_output` takes it.

    Raises:
        ConfigurationError: The model has no structured output, or not of this schema.
    """

    def __init__(self, model: AgentModel, schema: Any) -> None:
        from langchain_core.output_parsers import BaseLLMOutputParser  # here, because core's parsers take long to import

        plain = plain_model(model)
        steps: Any = getattr(plain.with_structured_output(schema), "steps", ())
        if len(steps) != 2 or not isinstance(steps[0], BoundChatModel) or not isinstance(steps[1], BaseLLMOutputParser):
            raise ConfigurationError(f"output= needs a model followed by a parser: with_structured_output of {plain!r} gives none")
        self._parser = steps[1]
        keywords = _as_data(steps[0].kwargs)
        self._names = {tool_name(tool) for tool in keywords.get("tools") or ()}
        self._keywords = _with_tools(keywords, model.kwargs.get("tools") if isinstance(model, BoundChatModel) else None)

    def keywords(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keywords of a call with those that request the output."""
        return _with_tools({**self._keywords, **kwargs, "tools": self._keywords.get("tools")}, kwargs.get("tools"))

    def read(self, message: AIMessage) -> Any:
        """Return the output; None if calls wait for a decision.

        Raises:
            OutputParserException: There is none, or it does not fit the schema.
            ModelRefusalError: The model declined.
        """
        if any(call.path or call.name not in self._names for call in pending_calls(message)):
            return None
        try:
            output = self._parser.parse_result([ChatGeneration(message=message)])
        except ValidationError as error:  # as core's parsers of calls raise it
            raise OutputParserException(f"the output does not fit the schema: {error}", llm_output=text_of(message)) from error
        if output is None:
            raise OutputParserException("the model has ended its answer without the output", llm_output=text_of(message))
        return output

    def results(self, message: AIMessage, history: Sequence[BaseMessage]) -> list[ToolMessage]:
        """Return the results of the calls that were the output, so that they are answered when the conversation continues.

        Args:
            message: The run message.
            history: The conversation up to its end.
        """
        ids = {call["id"] for call in message.tool_calls if call["name"] in self._names}
        last = next((one for one in reversed(history) if isinstance(one, AIMessage)), message) if ids else message
        return [_output_result(last, place, call.id, call.spelling) for place, call in enumerate(calls_of(last)) if call.id in ids]


def _as_data(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords with the schema for traces as data, which can be sent to another process."""
    shown = keywords.get("ls_structured_output_format")
    if not shown or isinstance(shown.get("schema"), dict | None):
        return dict(keywords)
    return {**keywords, "ls_structured_output_format": {**shown, "schema": convert_to_openai_tool(shown["schema"])}}


def _with_tools(keywords: Mapping[str, Any], others: Sequence[Any] | None) -> dict[str, Any]:
    """Return the keywords with other tools before theirs if they declare any."""
    tools = keywords.get("tools")
    if tools and others:
        return {**keywords, "tools": [*others, *tools]}
    return {name: value for name, value in {**keywords, "tools": tools or others}.items() if name != "tools" or value}


def _output_result(message: AIMessage, place: int, call_id: str, name: str) -> ToolMessage:
    result = ToolMessage(_RETURNED, tool_call_id=call_id, name=name, id=result_id(message, call_id) or str(uuid.uuid4()))
    return numbered_result(result, message, place)
