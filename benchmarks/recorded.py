"""What recording costs over SQLite: `python -m benchmarks.recorded conversation|turn [--runs 1000]` (extra `durable`). Prints JSON.

`conversation`: a run of a stored conversation at its second run, at its hundredth and later: milliseconds of CPU, also in proportion to
the second runs of new conversations that take turns with it, and statements.
`turn`: a turn with two tool calls of a durable run, beside what it cannot do without: the same turn of the plain model, and as many bare
steps of DBOS's as the durable turn records; all of them take turns in one process, and the least of the rounds counts.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from dbos import DBOS
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from langchain_autotools.durable import Conversations, durable, launch, shutdown
from langchain_autotools.testing import ScriptedChatModel
from tests.support.statements import statements

TURNS = 10
NEIGHBOURS = 10
"""A figure at one run is the median of so many runs around it."""


def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return f"{city}: 21 °C"


def replies(messages: list[BaseMessage], **_: Any) -> Any:
    """Ask for two cities in each of the turns, then answer."""
    turn = sum(isinstance(message, AIMessage) for message in messages)
    if turn >= TURNS:
        return "Done."
    calls = [(f"call {turn} {number}", f"{city} {turn}") for number, city in enumerate(("Rome", "Oslo"))]
    return AIMessage("", tool_calls=[{"name": "get_temperature", "args": {"city": city}, "id": call_id} for call_id, city in calls])


def answers(messages: list[BaseMessage], **_: Any) -> Any:
    """Ask for one city, then answer."""
    if isinstance(messages[-1], ToolMessage):
        return "It is 21 °C."
    return AIMessage("", tool_calls=[{"name": "get_temperature", "args": {"city": "Rome"}, "id": f"call {len(messages)}"}])


def conversation(url: str, runs: int) -> dict[str, float]:
    """Return what a run costs at several lengths of its conversation, and beside each the second run of a new one."""
    chats = Conversations(ScriptedChatModel(replies=answers, tools=[get_temperature]), url)
    launch()
    figures: dict[str, float] = {}
    done = 0
    for place in (place for place in (2, 100, 1000, 10_000) if place <= runs):
        first = max(2, place - NEIGHBOURS // 2)
        for _ in range(done + 1, first):
            _run(chats, "alice")
        done = first - 1 + NEIGHBOURS
        long, short = [], []
        for number in range(NEIGHBOURS):
            _run(chats, f"new {place} {number}")
            short.append(_run(chats, f"new {place} {number}"))
            long.append(_run(chats, "alice"))
        cpu, sending, executing = (median(column) for column in zip(*long, strict=True))
        figures[f"run {place}, CPU ms"] = round(cpu, 1)
        figures[f"run {place}, of a second run beside it"] = round(cpu / median(one[0] for one in short), 2)
        figures[f"run {place}, statements that send"] = sending
        figures[f"run {place}, statements that execute"] = executing
    return figures


def _run(chats: Conversations, conversation: str) -> tuple[float, int, int]:
    """Have one run of a conversation; return its milliseconds of CPU, and its statements of the sender and of the worker."""
    before = time.process_time()
    with statements("autotools-tool") as here, statements("dbos-executor") as there:
        with statements() as sent:
            one = chats.send(conversation, "How warm is it?")
        chats.result(one)
    return (time.process_time() - before) * 1e3, len(sent), len(here) + len(there)


@DBOS.workflow(name="bare steps")
def bare_steps(count: int) -> int:
    """Take so many steps that do nothing."""
    for number in range(count):
        DBOS.run_step({"name": f"step {number}"}, _nothing)
    return count


def _nothing() -> str:
    return "done"


def turn(url: str, rounds: int) -> dict[str, float]:
    """Return what a turn costs, plain and recorded, and as many bare steps."""
    plain = ScriptedChatModel(replies=replies, tools=[get_temperature])
    recorded = durable(ScriptedChatModel(replies=replies, tools=[get_temperature]), "measured")
    launch(url, poll_interval=60)
    recorded.invoke("Go", run_id="first")
    steps = round((len(DBOS.list_workflow_steps("first")) - 2) / TURNS)  # without those of the answer, and of the events
    runs: dict[str, Callable[[], Any]] = {
        "plain": lambda: plain.invoke("Go"),
        "bare steps": lambda: bare_steps(steps * TURNS),
        "durable": lambda: recorded.invoke("Go"),
    }
    least = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            before = time.process_time()
            run()
            least[name] = min(least[name], (time.process_time() - before) / TURNS * 1e3)
    figures = {f"{name}, CPU ms a turn": round(cost, 2) for name, cost in least.items()}
    return {
        **figures,
        "steps a turn": steps,
        "durable of plain and bare": round(least["durable"] / (least["plain"] + least["bare steps"]), 2),
    }


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recorded", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("task", choices=["conversation", "turn"])
    parser.add_argument("--runs", type=int, default=1000, help="runs of the conversation")
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/runs.sqlite"
        try:
            figures = conversation(url, given.runs) if given.task == "conversation" else turn(url, given.rounds)
        finally:
            shutdown()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
