"""Histories for tests of what repairs them: short ways to write messages, and to say what is wrong with them."""

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_autotools.history import validate

__all__ = ["HI", "ai", "kinds", "same", "tool"]

HI = HumanMessage("Hi")


def ai(*ids: str | None, text: str = "", name: str = "look_up", **fields: object) -> AIMessage:
    """An AI message that calls one tool once for each id."""
    calls = [{"type": "tool_call", "name": name, "args": {"call": number}, "id": call_id} for number, call_id in enumerate(ids)]
    return AIMessage(text, tool_calls=calls, **fields)


def tool(call_id: str, text: str = "ok", **fields: object) -> ToolMessage:
    """A tool's result."""
    return ToolMessage(text, tool_call_id=call_id, **fields)


def same(left: list[BaseMessage], right: list[BaseMessage]) -> bool:
    """Whether two lists hold the very same objects."""
    return len(left) == len(right) and all(one is other for one, other in zip(left, right, strict=True))


def kinds(messages: list[BaseMessage], **options: bool) -> list[str]:
    """The kinds of problem that `validate` finds."""
    return [problem.kind for problem in validate(messages, **options)]
