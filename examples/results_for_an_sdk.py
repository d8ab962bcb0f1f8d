"""Tools for a program that calls a vendor's SDK itself: the executor runs the calls, `format_for_openai` writes their results."""

import json
from typing import Any

from openai import OpenAI

from langchain_autotools import ToolExecutor
from langchain_autotools.providers.results import format_for_openai


def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return {"Paris": "21 °C", "Rome": "27 °C"}.get(city, "unknown")


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS: Any = [{"type": "function", "function": {"name": "get_temperature", "description": "Temperature of a city.", "parameters": SCHEMA}}]


def main() -> None:
    """Ask, run what was asked for, and go on until there is an answer."""
    executor = ToolExecutor([get_temperature])
    messages: list[Any] = [{"role": "user", "content": "How warm is it in Paris and in Rome?"}]
    with OpenAI() as client:
        while True:
            reply: Any = client.chat.completions.create(model="gpt-5", messages=messages, tools=TOOLS).choices[0].message
            messages.append(reply.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True))
            if not reply.tool_calls:
                break
            calls = [{"id": call.id, "name": call.function.name, "args": json.loads(call.function.arguments)} for call in reply.tool_calls]
            messages += format_for_openai(executor.execute_all(calls))
    print(reply.content)


if __name__ == "__main__":
    main()
