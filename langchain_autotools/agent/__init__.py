"""`Agent`: a chat model that runs its tools, asked within one conversation.

It owns no loop: every question is one run of the model. `exchange` is one question with what comes of it, `model` makes one of whatever
is given as a model.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool

from ..errors import ConfigurationError, DecisionProblem
from ..executor.run_tool import RunTool
from ..executor.tools import GivenAsTool
from ..mixin import ToolsAndMessagesMixin
from ..run.binding import BoundChatModel
from .exchange import (
    AgentResult,
    AgentStream,
    AsyncAgentStream,
    Attachment,
    ConversationLock,
    Exchange,
    OwnMemory,
    memory_of,
    question_message,
)
from .model import AgentModel, StructuredOutput, agent_model, plain_model

if TYPE_CHECKING:
    from langchain_core.chat_history import BaseChatMessageHistory

__all__ = ["Agent", "AgentResult", "AgentStream", "AsyncAgentStream"]


# ---------------------------------------------------------------------------------------------- agent
# `Agent`: questions, and the conversation that it keeps.


class Agent(GivenAsTool):
    """A model that runs its tools, with a system prompt and a conversation.

    Args:
        model: `"provider:model"` as `init_chat_model` takes it, a chat model of this package, what its `bind`, `bind_tools` or
            `with_config` returned, or a durable model (`langchain_autotools.durable.durable`).
        tools: The tools, as the model takes them. None leaves a given model its own.
        system_prompt: The system prompt before every conversation.
        history: The messages that the conversation begins with. They are copied.
        conversation: The storage of the conversation: LangChain's `BaseChatMessageHistory`, such as `Conversations(...)["alice"]`. It is
            read before each question, and gets the new messages. None keeps it in the agent.
        output: The schema of the answers, as the model's `with_structured_output` takes it; `AgentResult.output` is then an object of it.
        **kwargs: Arguments of the model, where it is named: `max_turns=5`, `requires_approval=[...]`, `temperature=0`.

    Attributes:
        model: The chat model.
        system_prompt: The system prompt as a message; None for none.

    Raises:
        ConfigurationError: The model is none of this package, arguments are given for a model that is made already, it has no structured
            output, or the conversation is none.
    """

    def __init__(
        self,
        model: str | AgentModel,
        *,
        tools: Any = None,
        system_prompt: str | SystemMessage | None = None,
        history: Iterable[BaseMessage] = (),
        conversation: "BaseChatMessageHistory | None" = None,
        output: Any = None,
        **kwargs: Any,
    ) -> None:
        self.model = agent_model(model, tools, kwargs)
        self.system_prompt = SystemMessage(system_prompt) if isinstance(system_prompt, str) else system_prompt
        self._memory = memory_of(history, conversation)
        self._output = None if output is None else StructuredOutput(self.model, output)
        self._floor = ConversationLock()

    @property
    def history(self) -> list[BaseMessage]:
        """The conversation so far, without the system prompt. Can be set unless it is kept elsewhere."""
        return self._memory.read()

    @history.setter
    def history(self, messages: list[BaseMessage]) -> None:
        if not isinstance(self._memory, OwnMemory):
            raise ConfigurationError("the conversation of this agent is kept elsewhere: change it there")
        self._memory.messages = messages

    def __getstate__(self) -> dict[str, Any]:
        memory = OwnMemory(self._memory.messages) if isinstance(self._memory, OwnMemory) else self._memory
        return {**{name: value for name, value in self.__dict__.items() if name != "_floor"}, "_memory": memory}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _floor=ConversationLock())

    def __repr__(self) -> str:
        kept = f"{len(self.history)} messages" if isinstance(self._memory, OwnMemory) else "a conversation that is kept elsewhere"
        return f"Agent({self.model!r}, {kept})"

    def run(
        self,
        question: str | HumanMessage | None = None,
        *,
        attachments: Iterable[Attachment] = (),
        history: Sequence[BaseMessage] | None = None,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AgentResult:
        """Ask a question and return the result.

        Args:
            question: The question. None with `resume=decisions`, which goes on with calls that wait for them; a question beside
                decisions is the model's `message=`, behind the results of the calls.
            attachments: Attachments of the question: bytes, paths of local files, addresses.
            history: The conversation before the question. Without it the agent's own, which then gets the new messages; with it the
                agent keeps nothing, and any number of questions may be asked at once.
            config: LangChain's configuration.
            **kwargs: As of the model's `invoke`: `max_turns=3`, `cancel=event`, `resume=decisions`.

        Raises:
            ConfigurationError: There is no question, an attachment's type cannot be told, or the agent is answering already.
            OSError: An attachment cannot be read.
            OutputParserException: (with `output=`) The answer is incomplete or does not fit the schema; the conversation keeps it.
            ModelRefusalError: (with `output=`) The model declined.
        """
        exchange = self._exchange(question, attachments, history, kwargs)
        with exchange as messages:
            return exchange.finish(self.model.invoke(messages, exchange.announced(config), **self._asked(kwargs)))

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
        async with exchange as messages:
            return exchange.finish(await self.model.ainvoke(messages, exchange.announced(config), **self._asked(kwargs)))

    def run_stream(
        self,
        question: str | HumanMessage | None = None,
        *,
        attachments: Iterable[Attachment] = (),
        history: Sequence[BaseMessage] | None = None,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AgentStream:
        """Like `run`, but return a stream of chunks: first the question, then the answer. At its end the stream has a `result`."""
        exchange = self._exchange(question, attachments, history, kwargs)
        return AgentStream(exchange, partial(self.model.stream, **self._asked(kwargs)), config)

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
        return AsyncAgentStream(exchange, partial(self.model.astream, **self._asked(kwargs)), config)

    def check(self, decisions: Any, *, history: Sequence[BaseMessage] | None = None, **kwargs: Any) -> list[DecisionProblem]:
        """Return what is wrong with decisions about the calls that wait; empty if `run(resume=decisions)` can carry them out.

        No request is made, no call is claimed, and no tool runs.

        Args:
            decisions: The decisions, as `resume` of a model takes them.
            history: The conversation that ends in the calls. Without it the agent's own.
            **kwargs: As of `run`.

        Raises:
            ConfigurationError: An argument cannot work.
        """
        return self._problems(self._memory.read() if history is None else history, decisions, kwargs)

    async def acheck(self, decisions: Any, *, history: Sequence[BaseMessage] | None = None, **kwargs: Any) -> list[DecisionProblem]:
        """Like `check`, asynchronously."""
        return self._problems(await self._memory.aread() if history is None else history, decisions, kwargs)

    def _problems(self, history: Sequence[BaseMessage], decisions: Any, kwargs: dict[str, Any]) -> list[DecisionProblem]:
        prompt = [] if self.system_prompt is None else [self.system_prompt]
        return self.model.check([*prompt, *history], decisions, **self._asked(kwargs))

    def as_tool(self, name: str | None = None, description: str | None = None) -> BaseTool:
        """Return the agent as a tool of another model or agent: each call is a question in a conversation of its own, without the agent's.

        Where its run waits, the call waits with it: `pending_calls` of the outer run shows the inner calls with the `path` to them.

        Args:
            name: The name of the tool. None: the `name` of the agent's model.
            description: The description for the model that calls it.

        Raises:
            ConfigurationError: There is no name, or the agent's model is a durable one.
        """
        _check_given_as_tool(self.model)
        return RunTool.of(self, "an agent", name or plain_model(self.model).name, description)

    def _exchange(
        self, question: Any, attachments: Iterable[Attachment], history: Sequence[BaseMessage] | None, kwargs: dict[str, Any]
    ) -> Exchange:
        if question is None and kwargs.get("resume") is None:
            raise ConfigurationError("there is no question; resume=decisions goes on without one")
        for name in ("output", "conversation"):
            if name in kwargs:
                raise ConfigurationError(f"{name} is an argument of Agent: here it has no effect")
        message = None if question is None else question_message(question, list(attachments))
        if message is not None and kwargs.get("resume") is not None:
            if kwargs.get("message") is not None:
                raise ConfigurationError("with resume= the question is the message: give one of both")
            message, kwargs["message"] = None, message
        if history is not None:
            return Exchange(message, self.system_prompt, OwnMemory(history, keeps=False), ConversationLock(), self._output)
        return Exchange(message, self.system_prompt, self._memory, self._floor, self._output)

    def _asked(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the keywords of a run."""
        return kwargs if self._output is None else self._output.keywords(kwargs)


def _check_given_as_tool(model: AgentModel) -> None:
    """Raise if the runs of an agent's model cannot be runs inside a tool.

    Raises:
        ConfigurationError: They are made elsewhere, as those of a durable model.
    """
    if not isinstance(model, ToolsAndMessagesMixin | BoundChatModel):
        raise ConfigurationError(
            f"an agent whose model is a {type(model).__name__} cannot be a tool: its runs are apart from the run around them. Give an "
            "agent of the chat model itself, and make the outer model durable"
        )
