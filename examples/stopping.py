"""A run that is ended from outside: here as soon as one station has answered. What it has by then is kept, and can be gone on with."""

import threading
import time

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.tools import tool

from langchain_autotools import ChatOpenAI, new_messages, stop_reason


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    if city != "Paris":
        time.sleep(1)  # a station that takes its time: nobody waits for it
    return "21 °C"


def main() -> None:
    """Stream one conversation; any thread may set the event, a button's or, as here, that of a tool that has ended."""
    cancel = threading.Event()
    model = ChatOpenAI(model="gpt-5", tools=[get_temperature], on_executed=lambda result: cancel.set())
    history: list[BaseMessage] = [HumanMessage("How warm is it in Paris and in Rome?")]
    for chunk in model.stream(history, cancel=cancel):
        print(chunk.text, end="", flush=True)
        history += new_messages(chunk)
    print(f"\n[{stop_reason(chunk)}]")
    for message in history:
        print(f"{message.type}: {message.text}")


if __name__ == "__main__":
    main()
