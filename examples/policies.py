"""A tool that fails now and then: tried again after the errors it names, its results kept for the run, at most 5 s an attempt."""

import random

from langchain_core.tools import tool

from langchain_autotools import ChatOpenAI, RetryPolicy, ToolCallResult, ToolPolicy


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    if random.random() < 0.3:
        raise ConnectionError("the station does not answer")
    return {"Paris": "21 °C", "Rome": "27 °C"}.get(city, "unknown")


def show(result: ToolCallResult) -> None:
    """Tell how often a call was tried; 0 where its result was known already."""
    print(f"[{result.call.name} {result.call.args}: {result.message.text}, attempts: {result.attempts}]")


def main() -> None:
    """Ask; a call that fails nine times in a row is told to the model as it is."""
    retry = RetryPolicy(attempts=9, wait_initial=0.05)
    policy = ToolPolicy(timeout=5, retry=retry, retry_on=(ConnectionError,), cache=True, max_output=20_000)
    model = ChatOpenAI(model="gpt-5", tools=[get_temperature], policies={"get_temperature": policy}, on_executed=show)
    print(model.invoke("How warm is it in Paris and in Rome?").text)


if __name__ == "__main__":
    main()
