"""A run that outlives its process: kill -9 this program while it waits, start it again, and it goes on where it was."""

import time

from langchain_core.tools import tool

from langchain_autotools import ChatOpenAI
from langchain_autotools.durable import durable, launch


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    time.sleep(2)  # a station that takes its time: time enough to kill the program
    return "21 °C"


def main() -> None:
    """Ask one question, in one run, however often the program is started."""
    model = ChatOpenAI(model="gpt-5", tools=[get_temperature])
    chat = durable(model, "weather", rerun=["get_temperature"])
    launch("sqlite:///runs.sqlite")
    for chunk in chat.stream("How warm is it in Paris and in Rome?", run_id="question 1"):
        print(chunk.text, end="", flush=True)
    print()


if __name__ == "__main__":
    main()
