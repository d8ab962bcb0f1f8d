"""What recording costs over SQLite: `python -m benchmarks.recorded conversation|neighbours|result|turn` (extra `durable`). Prints JSON.

`conversation`: a run of a stored conversation at its second run, at its hundredth and later: milliseconds of CPU, also in proportion to
the second runs of new conversations that take turns with it, and statements.
`neighbours`: a run of a new conversation beside one other in the database, beside 100,000 (rows that are copied), and beside one again.
`result`: by how much one result of ten megabytes makes the database larger.
`turn`: a turn with two tool calls of a durable run, beside what it cannot do without: the same turn of the plain model, and as many bare
steps of DBOS's as the durable turn records. All of them take turns in one process, and the least of the rounds counts.
"""

import argparse
import json
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
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


def neighbours(url: str, count: int) -> dict[str, float]:
    """Return what a run of a new conversation costs beside few others, and beside so many."""
    chats = Conversations(ScriptedChatModel(replies=answers, tools=[get_temperature]), url)
    launch()
    _run(chats, "copied")
    figures: dict[str, float] = {}
    for name, change in (("one other", ""), (f"{count:,} others", _COPY), ("one other again", _DELETE)):
        if change:
            _change(url, change, count)
        _run(chats, f"warm-up {name}")
        cpu, sending, executing = (
            median(column) for column in zip(*(_run(chats, f"{name} {n}") for n in range(3 * NEIGHBOURS)), strict=True)
        )
        figures |= {f"beside {name}, CPU ms": round(cpu, 1), f"beside {name}, statements": sending + executing}
    few = (figures["beside one other, CPU ms"] + figures["beside one other again, CPU ms"]) / 2
    return {**figures, f"beside {count:,} others, of one": round(figures[f"beside {count:,} others, CPU ms"] / few, 2)}


_TABLES = ("workflow_status", "workflow_input", "workflow_output", "operation_outputs", "streams")
_COPY = """
WITH RECURSIVE numbers(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < {count})
INSERT INTO {table} ({columns}) SELECT {copies} FROM {table}, numbers WHERE workflow_uuid LIKE 'conversations/default/copied/%'
"""
_DELETE = "DELETE FROM {table} WHERE workflow_uuid LIKE 'conversations/default/copy %'"


def _change(url: str, statement: str, count: int) -> None:
    """Change the rows of the copied conversation in each table that has some."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as rows, rows:
        for table in _TABLES:
            columns = [column[1] for column in rows.execute(f"PRAGMA table_info({table})")]
            named = {name: f"replace({name}, '/copied', '/copy ' || number)" for name in ("workflow_uuid", "queue_partition_key")}
            copies = ", ".join(named.get(column, column) for column in columns)
            rows.execute(statement.format(table=table, columns=", ".join(columns), copies=copies, count=count))


def result(url: str) -> dict[str, float]:
    """Return by how much one large result makes the database larger."""

    def read_log(name: str) -> str:
        """Read a log."""
        return "word " * 2_000_000 if name == "large" else "Nothing."

    def asks(messages: list[BaseMessage], **_: Any) -> Any:
        if isinstance(messages[-1], ToolMessage):
            return "It is read."
        return AIMessage("", tool_calls=[{"name": "read_log", "args": {"name": messages[-1].text}, "id": "call"}])

    chats = Conversations(ScriptedChatModel(replies=asks, tools=[read_log]), url)
    launch()
    sizes = []
    for name in ("small", "large"):
        chats.result(chats.send(name, name))
        _change(url, "PRAGMA wal_checkpoint(TRUNCATE)", 0)
        sizes.append(Path(url.removeprefix("sqlite:///")).stat().st_size / 1e6)
    return {"a result of 10 MB, MB of the database": round(sizes[1] - sizes[0], 1)}


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
    parser.add_argument("task", choices=["conversation", "neighbours", "result", "turn"])
    parser.add_argument("--runs", type=int, default=1000, help="runs of the conversation")
    parser.add_argument("--conversations", type=int, default=100_000, help="other conversations of the database")
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/runs.sqlite"
        try:
            tasks: dict[str, Callable[[], dict[str, float]]] = {
                "conversation": lambda: conversation(url, given.runs),
                "neighbours": lambda: neighbours(url, given.conversations),
                "result": lambda: result(url),
                "turn": lambda: turn(url, given.rounds),
            }
            figures = tasks[given.task]()
        finally:
            shutdown()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
