"""Whole chat model classes of somebody else's, which know nothing of this package: with a stream and without, and what they were sent."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, PrivateAttr, SecretStr


def call_of(name: str = "shout", **args: Any) -> dict[str, Any]:
    """A call as a message has it."""
    return {"name": name, "args": args or {"text": "x"}, "id": "call_1", "type": "tool_call"}


class ChatHouse(BaseChatModel):
    """A company's model, with a wire form of its own for tools: it says only names, and knows the choices `any` and a tool's name."""

    model: str = "house-1"
    temperature: float = 0.5
    key: SecretStr = SecretStr("of the house")
    script: Any = Field(default=(), exclude=True)
    """What is said to messages of an even and an odd number; else a call of the first tool, then text."""

    _client: Any = PrivateAttr(default=None)

    def model_post_init(self, context: Any) -> None:
        """A connection, and what was sent through it."""
        self._client = []

    @property
    def _llm_type(self) -> str:
        return "house"

    @property
    def sent(self) -> list[Any]:
        """Each request: its messages and its keywords."""
        requests: list[Any] = self._client
        return requests

    def bind_tools(self, tools: Any, *, tool_choice: Any = None, **kwargs: Any) -> Runnable[Any, AIMessage]:
        """Names, in a form that nobody else has."""
        names = [convert_to_openai_tool(one)["function"]["name"] for one in tools]
        choice = {} if tool_choice is None else {"pick": {"what": "any"} if tool_choice == "any" else {"tool": tool_choice}}
        return self.bind(tools=[{"toolSpec": {"name": name}} for name in names], **choice, **kwargs)

    def _reply(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        self._client.append((list(messages), kwargs))
        if self.script:
            reply: AIMessage = self.script[len(self._client) - 1]
            return reply
        if kwargs.get("tools") and messages[-1].type == "human":
            return AIMessage("look", tool_calls=[call_of(kwargs["tools"][0]["toolSpec"]["name"])])
        return AIMessage(f"done {messages[-1].text}", usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3})

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        reply = self._reply(messages, kwargs)
        return ChatResult(generations=[ChatGeneration(message=reply)], llm_output={"house": "yes"})


class ChatStreams(ChatHouse):
    """The same with a stream, which asks its own `_generate`, as partners' do."""

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        (made,) = self._generate(messages, stop, None, **kwargs).generations
        reply: Any = made.message
        for letter in reply.text:
            yield ChatGenerationChunk(message=AIMessageChunk(content=letter))
        blocks = {block["id"]: block for block in reply.content if isinstance(block, dict) and "id" in block}
        for index, call in enumerate([*reply.tool_calls, *reply.invalid_tool_calls]):
            text = call["args"] if isinstance(call["args"], str) else json.dumps(call["args"])
            for name, identifier, piece in [(call["name"], call["id"], text[:3]), (None, None, text[3:])]:
                fragment = {"name": name, "id": identifier, "args": piece, "index": index, "type": "tool_call_chunk"}
                content: Any = [{**blocks[identifier], "input": {}, "index": index}] if identifier in blocks else ""
                yield ChatGenerationChunk(message=AIMessageChunk(content=content, tool_call_chunks=[fragment]))  # type: ignore[list-item]
        last = AIMessageChunk(content="", usage_metadata=reply.usage_metadata)
        yield ChatGenerationChunk(message=last, generation_info=dict(reply.response_metadata))


class ChatStreamsBoth(ChatStreams):
    """The same with an asynchronous stream and reply of its own."""

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream(*args, **kwargs):
            yield chunk

    async def _agenerate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return self._generate(messages, stop, None, **kwargs)
