"""Middleware made of generator functions, and models that have it."""

from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage

from langchain_autotools.testing import ScriptedChatModel


def look(at: str = "") -> str:
    """Look."""
    return f"seen {at}"


def call(at: str = "Rome", name: str = "look", text: str = "") -> AIMessage:
    """A turn that calls one tool."""
    return AIMessage(text, tool_calls=[{"name": name, "args": {"at": at}, "id": f"call {at}"}])


class Around(AgentMiddleware[Any, Any]):
    """Middleware made of steps: a generator function that yields requests and is sent the responses."""

    def __init__(self, model: Any = None, tool: Any = None) -> None:
        self.model, self.tool = model, tool

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Around a turn."""
        return self._driven(self.model, request, handler)

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """The same, asynchronously."""
        return await self._adriven(self.model, request, handler)

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        """Around a call."""
        return self._driven(self.tool, request, handler)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        """The same, asynchronously."""
        return await self._adriven(self.tool, request, handler)

    @staticmethod
    def _driven(steps: Any, request: Any, handler: Any) -> Any:
        if steps is None:
            return handler(request)
        made = steps(request)
        try:
            asked = next(made)
            while True:
                try:
                    response = handler(asked)
                except Exception as error:
                    asked = made.throw(error)
                else:
                    asked = made.send(response)
        except StopIteration as end:
            return end.value

    @staticmethod
    async def _adriven(steps: Any, request: Any, handler: Any) -> Any:
        if steps is None:
            return await handler(request)
        made = steps(request)
        try:
            asked = next(made)
            while True:
                try:
                    response = await handler(asked)
                except Exception as error:
                    asked = made.throw(error)
                else:
                    asked = made.send(response)
        except StopIteration as end:
            return end.value


def model_of(*replies: Any, middleware: Any, **fields: Any) -> ScriptedChatModel:
    """A model with one tool and middleware."""
    return ScriptedChatModel(**{"tools": [look], "replies": list(replies), "middleware": middleware, "no_progress": None, **fields})
