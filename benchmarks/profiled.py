"""Where the CPU time of a task goes: `python -m benchmarks.profiled SCENE` (extras `bench`, `durable`). Prints a row of a Markdown table.

It has the shares of the libraries, by the time that their functions take themselves, in all threads, and the functions of this package
that take most. The profiler adds to each call of a Python function, so that what makes many small calls weighs more than it does
without; what a function of C takes is its caller's.
"""

import argparse
import asyncio
import itertools
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yappi

from . import peers, recorded
from .__main__ import server
from .chunks import CHAT, model, reader

Run = Callable[[], Any]
Scene = Callable[[int], tuple[Run, int]]
"""Makes, with the port of the server, what is profiled, and how many units it has."""

OURS = "this package"
_HTTP = ("httpx", "httpx2", "httpcore", "httpcore2", "h11", "anyio", "jiter", "sniffio", "distro")
COLUMNS: Mapping[str, tuple[str, ...]] = {
    OURS: ("langchain_autotools",),
    "LangChain": ("langchain_core", "langsmith"),
    "SDK, HTTP": ("openai", "anthropic", "google", "ollama", *_HTTP),
    "pydantic": ("pydantic", "pydantic_core", "typing_inspection"),
    "SQLAlchemy, DBOS": ("sqlalchemy", "dbos"),
}
"""The packages of each column; whatever else there is goes to the last one."""
REST = "Python"
_LIBRARY = sysconfig.get_paths()["purelib"]
_PACKAGE = Path(__file__).parents[1] / "langchain_autotools"
SIZE = 4000
SEVERAL = 3


def _read(wire: str, way: str, kind: str) -> Scene:
    """A reply of chunks, read in one of the ways of `benchmarks.chunks`, by a model with `tools=`."""

    def scene(port: int) -> tuple[Run, int]:
        run = reader(way, model(wire, port), asyncio.new_event_loop(), tools=True)
        return lambda: run(f"{kind}-{SIZE}"), SIZE

    return scene


def _turns(count: int) -> Scene:
    """A run of so many turns with two tool calls."""

    def scene(port: int) -> tuple[Run, int]:
        run = peers.PEERS["autotools"](port)
        return lambda: run(f"turns-{count}", [("user", "hello")]), count

    return scene


def _threads(port: int) -> tuple[Run, int]:
    """200 runs at once, each in a thread."""
    from .many import in_threads

    together = in_threads("autotools", port)
    return lambda: together(200), 200


SCENES: Mapping[str, Scene] = {
    "a chunk of text, Anthropic": _read("Anthropic", "stream", "text"),
    "a chunk of text, Ollama": _read("Ollama", "stream", "text"),
    "a fragment of arguments, Chat completions": _read(CHAT, "stream", "arguments"),
    "a fragment of arguments, Anthropic": _read("Anthropic", "stream", "arguments"),
    "a fragment of arguments, Responses": _read("Responses", "stream", "arguments"),
    "a chunk of text for a listener, Chat completions": _read(CHAT, "events", "text"),
    "a piece of arguments for a listener, Chat completions": _read(CHAT, "events", "arguments"),
    "a chunk of text with an inline tracer, Chat completions": _read(CHAT, "an inline tracer", "text"),
    "a chunk of text in a chain, Chat completions": _read(CHAT, "a chain", "text"),
    "a turn with two tool calls, of 4": _turns(4),
    "a turn with two tool calls, of 80": _turns(80),
    "a turn with two tool calls, of 320": _turns(320),
    "one of 200 runs at once, in threads": _threads,
}


Recorded = Callable[[Any, Any], tuple[Run, int]]
"""Makes, with stored conversations and a durable model, what is profiled, and how many units it has."""
RUNS = 10


def _new(chats: Any, _: Any) -> tuple[Run, int]:
    """The first two runs of new conversations."""
    number = itertools.count()
    return lambda: _ask(chats, [f"new {next(number)}"] * 2), 2


def _long(chats: Any, _: Any) -> tuple[Run, int]:
    """Runs of a conversation that has a thousand."""
    before = itertools.chain([1000 - RUNS], itertools.repeat(0))
    return lambda: _ask(chats, ["long"] * (next(before) + RUNS)), RUNS


def _ask(chats: Any, conversations: Iterable[str]) -> None:
    for conversation in conversations:
        chats.result(chats.send(conversation, "How warm is it?"))


STORED: Mapping[str, Recorded] = {
    "a run of a new stored conversation": _new,
    "the thousandth run of a stored conversation": _long,
    "a turn with two tool calls of a durable run": lambda _, kept: (lambda: kept.invoke("Go"), recorded.TURNS),
}


@contextmanager
def stored() -> Iterator[tuple[Any, Any]]:
    """Stored conversations, and a durable model, over SQLite."""
    from langchain_autotools.durable import Conversations, durable, launch, shutdown
    from langchain_autotools.testing import ScriptedChatModel

    with tempfile.TemporaryDirectory() as folder:
        chat = ScriptedChatModel(replies=recorded.answers, tools=[recorded.get_temperature])
        chats = Conversations(chat, f"sqlite:///{folder}/runs.sqlite")
        kept = durable(ScriptedChatModel(replies=recorded.replies, tools=[recorded.get_temperature]), "profiled")
        launch()
        try:
            yield chats, kept
        finally:
            shutdown()


def _column(path: str) -> str:
    """The column of a file."""
    if path.startswith(str(_PACKAGE)):
        return OURS
    package = path.removeprefix(_LIBRARY).lstrip("/").partition("/")[0] if path.startswith(_LIBRARY) else ""
    return next((column for column, packages in COLUMNS.items() if package in packages), REST)


def profile(run: Run, rounds: int) -> list[Any]:
    """Return the functions that ran, of all threads; one run before is the warm-up."""
    run()
    yappi.clear_stats()
    yappi.set_clock_type("cpu")
    yappi.start()
    try:
        for _ in range(rounds):
            run()
    finally:
        yappi.stop()
    return list(yappi.get_func_stats())


def shares(functions: Iterable[Any]) -> tuple[dict[str, float], list[tuple[str, float]]]:
    """Return the share of each column, and the functions of this package that take most themselves."""
    columns, ours, total = Counter[str](), Counter[str](), 0.0
    for one in functions:
        column = _column(one.module)
        columns[column] += one.tsub
        total += one.tsub
        if column == OURS:
            ours[f"{Path(one.module).relative_to(_PACKAGE)}:{one.name}"] += one.tsub
    most = [(name, taken / total) for name, taken in ours.most_common(SEVERAL)]
    return {column: taken / total for column, taken in columns.items()}, most


def row(name: str, run: Run, units: int, rounds: int) -> str:
    """Return the row of a scene."""
    functions = profile(run, rounds)
    columns, ours = shares(functions)
    calls = sum(one.ncall for one in functions if _column(one.module) == OURS) / units / rounds
    cells = [f"{columns.get(column, 0):.0%}" for column in (*COLUMNS, REST)]
    return f"| {name} | {calls:,.0f} | {' | '.join(cells)} | {', '.join(f'`{one}` {taken:.0%}' for one, taken in ours)} |"


def main(name: str, rounds: int) -> str:
    """Return the row of the scene of a name."""
    if name in SCENES:
        with server() as port:
            return row(name, *SCENES[name](port), rounds)
    with stored() as (chats, kept):
        return row(name, *STORED[name](chats, kept), rounds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profiled", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("scene", choices=[*SCENES, *STORED])
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    print(main(options.scene, options.rounds))
