"""A streamed conversation in which tools run by themselves. Needs OPENAI_API_KEY, or any model below in place of ChatOpenAI.

Without a key: `from langchain_autotools import ChatLocal` and `model = ChatLocal(tools=[get_temperature])`.
"""

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.tools import tool

from langchain_autotools import ChatOpenAI, new_messages


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return {"Paris": "21 °C", "Rome": "27 °C"}.get(city, "unknown")


def main() -> None:
    """Ask once, print the text as it is written, then show the messages that came of it."""
    model = ChatOpenAI(model="gpt-5", tools=[get_temperature])
    history: list[BaseMessage] = [HumanMessage("How warm is it in Paris and in Rome?")]
    for chunk in model.stream(history):
        print(chunk.text, end="", flush=True)
        history += new_messages(chunk)
    print()
    for message in history:
        print(f"{message.type}: {message.text!r}")


if __name__ == "__main__":
    main()
