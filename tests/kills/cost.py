"""`python -m tests.kills.cost`: seconds that a run of 21 turns with 20 calls takes, as it is, over SQLite and over PostgreSQL."""

import json
import tempfile
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import tool

from langchain_autotools.durable import durable, launch, shutdown
from langchain_autotools.testing import ScriptedChatModel
from tests.support.postgres import PostgresMissingError, postgres

CALLS = 20
TIMES = 5


@tool
def look(number: int) -> str:
    """Look."""
    return f"seen {number}"


def reply(messages: list[BaseMessage], **_: object) -> Any:
    """A call in each turn but the last."""
    turn = sum(message.type == "ai" for message in messages)
    calls = [{"name": "look", "args": {"number": turn}, "id": f"call {turn}"}]
    return "Done." if turn == CALLS else AIMessage("Let me see.", tool_calls=calls)


def seconds(run: Callable[[], object]) -> float:
    """How long a run takes, the first one aside: the median."""
    times = []
    for _ in range(TIMES + 1):
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    return round(median(times[1:]), 2)


def main() -> None:
    """Measure, and print what was seen."""
    model = ScriptedChatModel(tools=[look], replies=reply)
    chat = durable(model, "cost")
    figures = {"as it is": seconds(lambda: model.invoke("Go", max_turns=CALLS + 1))}
    with tempfile.TemporaryDirectory() as folder:
        launch(f"sqlite:///{folder}/runs.sqlite")
        figures["SQLite"] = seconds(lambda: chat.invoke("Go", max_turns=CALLS + 1))
        shutdown()
    try:
        with postgres() as server:
            launch(server.create("cost"))
            figures["PostgreSQL"] = seconds(lambda: chat.invoke("Go", max_turns=CALLS + 1))
            shutdown()
    except PostgresMissingError:
        pass
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
