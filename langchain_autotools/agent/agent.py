"""`Agent`: questions, the conversation that it keeps, and copies of it."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig

from ..errors import ConfigurationError
from ..mixin import ToolsAndMessagesMixin
from ..providers.registry import init_chat_model
from .attachments import Attachment, question_message
from .exchange import Exchange
from .floor import Floor
from .memory import OwnMemory
from .results import AgentResult
from .streams import AgentStream, AsyncAgentStream


class Agent:
    """A model that runs its tools, a system prompt, and the conversation with it.

    Args:
        model: `"provider:model"` as `init_chat_model` takes it, or a chat model of this package.
        tools: The tools, as the model takes them. None leaves a given model its own.
        system_prompt: What stands before every conversation.
        history: The messages that the conversation begins with. They are copied.
        **kwargs: Arguments of the model, where it is named: `max_turns=5`, `requires_approval=[...]`, `temperature=0`.

    Attributes:
        model: The chat model.
        system_prompt: The system prompt as a message; None for none.

    Raises:
        ConfigurationError: The model is none of this package, or arguments are given for a model that is made already.
    """

    def __init__(
        self,
        model: str | ToolsAndMessagesMixin,
        *,
        tools: Any = None,
        system_prompt: str | SystemMessage | None = None,
        history: Iterable[BaseMessage] = (),
        **kwargs: Any,
    ) -> None:
        self.model = _model(model, tools, kwargs)
        self.system_prompt = SystemMessage(system_prompt) if isinstance(system_prompt, str) else system_prompt
        self._memory = OwnMemory(history)
        self._floor = Floor()

    @property
    def history(self) -> list[BaseMessage]:
        """The conversation so far, without the system prompt."""
        return self._memory.messages

    @history.setter
    def history(self, messages: list[BaseMessage]) -> None:
        self._memory.messages = messages

    def __getstate__(self) -> dict[str, Any]:
        memory = OwnMemory(self.history)
        return {**{name: value for name, value in self.__dict__.items() if name != "_floor"}, "_memory": memory}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _floor=Floor())

    def __repr__(self) -> str:
        return f"Agent({self.model!r}, {len(self.history)} messages)"

    def run(
        self,
        question: str | HumanMessage | None = None,
        *,
        attachments: Iterable[Attachment] = (),
        history: Sequence[BaseMessage] | None = None,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AgentResult:
        """Ask a question.

        Args:
            question: The question. None with `resume=decisions`, which goes on with calls that wait for them.
            attachments: What the question comes with: bytes, paths of local files, addresses.
            history: The conversation before the question. Without it the agent's own, which then gets the new messages; with it the
                agent keeps nothing, and any number of questions may be asked at once.
            config: LangChain's configuration.
            **kwargs: As of the model's `invoke`: `max_turns=3`, `cancel=event`, `resume=decisions`.

        Raises:
            ConfigurationError: There is no question, an attachment's type cannot be told, or the agent is answering already.
            OSError: An attachment cannot be read.
        """
        exchange = self._exchange(question, attachments, history, kwargs)
        with exchange.under_way() as messages:
            return exchange.finish(self.model.invoke(messages, exchange.announced(config), **kwargs))

    async def arun(
        self,
        question: str | HumanMessage | None = None,
        *,
        attachments: Iterable[Attachment] = (),
        history: Sequence[BaseMessage] | None = None,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AgentResult:
        """Like `run`, asynchronously."""
        exchange = self._exchange(question, attachments, history, kwargs)
        async with exchange.aunder_way() as messages:
            return exchange.finish(await self.model.ainvoke(messages, exchange.announced(config), **kwargs))

    def run_stream(
        self,
        question: str | HumanMessage | None = None,
        *,
        attachments: Iterable[Attachment] = (),
        history: Sequence[BaseMessage] | None = None,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AgentStream:
        """Like `run`, piece by piece: a chunk that brings the question, those of the answer as they come, then its `result`."""
        exchange = self._exchange(question, attachments, history, kwargs)
        return AgentStream(exchange, partial(self.model.stream, **kwargs), config)

    def arun_stream(
        self,
        question: str | HumanMessage | None = None,
        *,
        attachments: Iterable[Attachment] = (),
        history: Sequence[BaseMessage] | None = None,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncAgentStream:
        """Like `run_stream`, asynchronously."""
        exchange = self._exchange(question, attachments, history, kwargs)
        return AsyncAgentStream(exchange, partial(self.model.astream, **kwargs), config)

    def _exchange(
        self, question: Any, attachments: Iterable[Attachment], history: Sequence[BaseMessage] | None, kwargs: dict[str, Any]
    ) -> Exchange:
        if question is None and kwargs.get("resume") is None:
            raise ConfigurationError("there is no question; resume=decisions goes on without one")
        asked = None if question is None else question_message(question, list(attachments))
        if history is not None:
            return Exchange(asked, self.system_prompt, OwnMemory(history, keeps=False), Floor())
        return Exchange(asked, self.system_prompt, self._memory, self._floor)


def _model(model: Any, tools: Any, kwargs: dict[str, Any]) -> ToolsAndMessagesMixin:
    if isinstance(model, str):
        named: Any = init_chat_model(model, **({} if tools is None else {"tools": tools}), **kwargs)
        return named  # type: ignore[no-any-return]
    if not isinstance(model, ToolsAndMessagesMixin):
        raise ConfigurationError(f"model is 'provider:model' or a chat model of this package, not {type(model).__name__}")
    if kwargs:
        raise ConfigurationError(f"the model is made already: give {', '.join(sorted(kwargs))} to it")
    return model if tools is None else model.with_tools(tools)
