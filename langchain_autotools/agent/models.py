"""The kinds of models that an agent accepts."""

from collections.abc import AsyncIterator, Iterator
from typing import Any, Protocol, TypeAlias, runtime_checkable

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.runnables import RunnableBinding, RunnableConfig

from ..errors import ConfigurationError
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


def check_given_as_tool(model: AgentModel) -> None:
    """Raise if the runs of an agent's model cannot be runs inside a tool.

    Raises:
        ConfigurationError: They are made elsewhere, as those of a durable model.
    """
    if not isinstance(model, ToolsAndMessagesMixin | BoundChatModel):
        raise ConfigurationError(
            f"an agent whose model is a {type(model).__name__} cannot be a tool: its runs are apart from the run around them. Give an "
            "agent of the chat model itself, and make the outer model durable"
        )
