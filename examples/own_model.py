"""A chat model of one's own: one method for one request, and the mixin supplies the tool loop. Needs no key and no network."""

from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.tools import tool

from langchain_autotools import ToolsAndMessagesMixin, new_messages


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return {"Paris": "21 °C", "Rome": "27 °C"}.get(city, "unknown")


class ChatThermometer(ToolsAndMessagesMixin, BaseChatModel):
    """Asks for the temperature of every capitalised word but the first, then repeats what it was told."""

    def raw_stream(self, messages: Sequence[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
        """One request: the chunks as they would come from a wire, calls in pieces and all."""
        results = [message.text for message in messages if message.type == "tool"]
        if results:
            for result in results:
                yield AIMessageChunk(content=f"{result}. ")
            return
        yield AIMessageChunk(content="Let me look.")
        cities = [word.strip("?,.") for word in messages[-1].text.split()[1:] if word[0].isupper()]
        for index, city in enumerate(cities):
            header = {"index": index, "id": f"call_{index}", "function": {"name": "get_temperature", "arguments": ""}}
            yield AIMessageChunk(content="", additional_kwargs={"tool_calls": [header]})
            piece = {"index": index, "function": {"arguments": f'{{"city": "{city}"}}'}}
            yield AIMessageChunk(content="", additional_kwargs={"tool_calls": [piece]})


def main() -> None:
    """Stream one conversation and show the messages that came of it."""
    model = ChatThermometer(tools=[get_temperature])
    for chunk in model.stream("How warm is it in Paris and in Rome?"):
        print(chunk.text, end="", flush=True)
        for message in new_messages(chunk):
            print(f"\n[{message.type}] {message.text}")


if __name__ == "__main__":
    main()
