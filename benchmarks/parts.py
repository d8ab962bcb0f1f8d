"""Over how many parts one streamed answer with one tool call is spread, here and at peers: `python -m benchmarks.parts`.

Counts, not times: files in which a function is entered, `def`s that are entered, calls (a generator and a coroutine count each time they
go on), and the lines that run. The model or agent is made and asked, as it was once before, so that nothing is imported meanwhile.
Everyone reads the same bytes over chat completions from `benchmarks.server`. `--write` puts the tables into docs/parts.md.

Peers that have an environment of their own are named with it: `--python openai_agents=.peers/bin/python`, once for each.
"""

import argparse
import asyncio
import csv
import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

Figures = dict[str, int]
COLUMNS = ("files", "defs", "calls", "lines")
LOOKS = 3
"""A figure is the least of so many looks: which thread comes first makes a difference of a few calls."""
_MODEL = "arguments-4"
_REPOSITORY = Path(__file__).resolve().parents[1]
_PAGE = _REPOSITORY / "docs" / "parts.md"
_RATCHETS = _REPOSITORY / "tests" / "ratchets.csv"


def note(text: str) -> str:
    """Note a text."""
    return str(len(text))


# ---------------------------------------------------------------------------------------------- who is asked


def autotools(url: str) -> Callable[[], str]:
    """This package."""
    from langchain_autotools import ChatOpenAI

    return lambda: "".join(chunk.text for chunk in ChatOpenAI(model=_MODEL, api_key="x", base_url=url, tools=[note]).stream("hello"))


def create_agent(url: str) -> Callable[[], str]:
    """LangChain's agent over langgraph, with langchain-openai."""
    from langchain.agents import create_agent as make
    from langchain_openai import ChatOpenAI

    def run() -> str:
        agent: Any = make(ChatOpenAI(model=_MODEL, api_key="x", base_url=url), [note])  # type: ignore[arg-type]
        chunks = agent.stream({"messages": [("user", "hello")]}, stream_mode="messages")
        return "".join(chunk.text for chunk, _ in chunks if chunk.type == "AIMessageChunk")

    return run


def pydantic_ai(url: str) -> Callable[[], str]:
    """pydantic-ai, which is asynchronous."""
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async def run() -> str:
        agent = Agent(OpenAIChatModel(_MODEL, provider=OpenAIProvider(base_url=url, api_key="x")), tools=[note])
        async with agent.run_stream("hello") as result:
            return "".join([text async for text in result.stream_text(delta=True, debounce_by=None)])

    return lambda: asyncio.run(run())


def openai_agents(url: str) -> Callable[[], str]:
    """openai-agents, which is asynchronous, without its tracing."""
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)

    async def run() -> str:
        model = OpenAIChatCompletionsModel(_MODEL, AsyncOpenAI(base_url=url, api_key="x"))
        events = Runner.run_streamed(Agent(name="a", model=model, tools=[function_tool(note)]), "hello").stream_events()
        raw = [event.data async for event in events if event.type == "raw_response_event"]
        return "".join(data.delta for data in raw if data.type == "response.output_text.delta")

    return lambda: asyncio.run(run())


def chatlas(url: str) -> Callable[[], str]:
    """chatlas."""
    from chatlas import ChatOpenAICompletions

    def run() -> str:
        chat = ChatOpenAICompletions(model=_MODEL, base_url=url, api_key="x")
        chat.register_tool(note)
        return "".join(map(str, chat.stream("hello")))

    return run


PEERS: dict[str, tuple[Callable[[str], Callable[[], str]], tuple[str, ...], tuple[str, ...], str]] = {
    "autotools": (autotools, ("langchain_autotools",), ("langchain_core", "openai"), ""),
    "create_agent": (create_agent, ("langchain", "langgraph", "langchain_openai"), ("langchain_core", "openai"), "langchain"),
    "pydantic_ai": (pydantic_ai, ("pydantic_ai", "pydantic_graph"), ("openai",), "pydantic-ai-slim"),
    "openai_agents": (openai_agents, ("agents",), ("openai",), "openai-agents"),
    "chatlas": (chatlas, ("chatlas",), ("openai",), "chatlas"),
}
"""Who is asked; the packages that are its own, those that it is built on, and the distribution that has the version."""


# ---------------------------------------------------------------------------------------------- what is counted


class Tracer:
    """Notes calls and lines of packages in every thread, from the start of the process, while it is on."""

    def __init__(self, packages: tuple[str, ...]) -> None:
        self._folders = {package: tuple(f"{path}{os.sep}" for path in import_module(package).__path__) for package in packages}
        self._packages: dict[CodeType, str] = {}
        self.on = False
        self.clear()

    def clear(self) -> None:
        """Forget what was noted."""
        self.calls: dict[CodeType, int] = {}
        self.lines: set[tuple[str, int]] = set()

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        """What `sys.settrace` takes: it sees each call, and each going on of a generator."""
        code = frame.f_code
        if not self.on or not self._package(code):
            return None
        self.calls[code] = self.calls.get(code, 0) + 1
        return self._line

    def _line(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            self.lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line

    def _package(self, code: CodeType) -> str:
        if code not in self._packages:
            name = code.co_filename
            self._packages[code] = next((package for package, folders in self._folders.items() if name.startswith(folders)), "")
        return self._packages[code]

    def figures(self, packages: tuple[str, ...]) -> Figures:
        """What was noted of these packages."""
        calls = {code: number for code, number in self.calls.items() if self._package(code) in packages}
        folders = tuple(folder for package in packages for folder in self._folders[package])
        return {
            "files": len({code.co_filename for code in calls}),
            "defs": len({(code.co_filename, code.co_qualname) for code in calls if not code.co_name.endswith(">")}),
            "calls": sum(calls.values()),
            "lines": sum(name.startswith(folders) for name, _ in self.lines),
        }


def count(peer: str, port: int) -> dict[str, Any]:
    """The figures of a peer in this process: of its own packages, and with those that it is built on."""
    make, own, below, distribution = PEERS[peer]
    run = make(f"http://127.0.0.1:{port}/v1")
    tracer = Tracer((*own, *below))
    threading.settrace(tracer.trace)
    sys.settrace(tracer.trace)
    said, looks = run(), list[tuple[Figures, Figures]]()
    for _ in range(LOOKS):
        tracer.clear()
        tracer.on = True
        again = run()
        tracer.on = False
        if "word" not in again or again != said:
            raise SystemExit(f"{peer} said {again!r}, and {said!r} before")
        looks.append((tracer.figures(own), tracer.figures((*own, *below))))
    sys.settrace(None)
    alone, together = ({name: min(look[which][name] for look in looks) for name in COLUMNS} for which in (0, 1))
    return {"version": version(distribution) if distribution else "", "own": alone, "all": together}


# ---------------------------------------------------------------------------------------------- the page


def measure(pythons: dict[str, str]) -> dict[str, dict[str, Any]]:
    """The figures of everyone, each counted in a process of its own."""
    from .__main__ import server

    found = {}
    with server() as port:
        for peer in PEERS:
            command = [pythons.get(peer, sys.executable), "-m", "benchmarks.parts", "--peer", peer, "--port", str(port)]
            done = subprocess.run(command, cwd=_REPOSITORY, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"{peer} failed (its Python: --python {peer}=PATH):\n{done.stderr[-2000:]}")
            found[peer] = json.loads(done.stdout.splitlines()[-1])
    return found


def tables(found: dict[str, dict[str, Any]]) -> dict[str, str]:
    """The tables of the page, by name."""
    rows = [f"| | {' | '.join(COLUMNS)} | with core and SDK: {' | '.join(COLUMNS)} |", f"|---|{'---|' * 2 * len(COLUMNS)}"]
    for peer, figures in found.items():
        cells = [f"{figures[which][name]:,}" for which in ("own", "all") for name in COLUMNS]
        rows.append(f"| {label(peer, figures['version'])} | {' | '.join(cells)} |")
    with _RATCHETS.open(encoding="utf-8", newline="") as file:
        ratchets = [f"| {row['what']} | {int(row['at most']):,} |" for row in csv.DictReader(file)]
    return {
        "when": f"Counted on {time.strftime('%Y-%m-%d')}, Python {platform.python_version()}.",
        "parts": "\n".join(rows),
        "ratchets": "\n".join(["| | at most |", "|---|---|", *ratchets]),
    }


def label(peer: str, release: str) -> str:
    """What the table calls a peer, with its release."""
    distribution = PEERS[peer][3]
    return peer if not release else f"create_agent (langchain {release})" if peer == "create_agent" else f"{distribution} {release}"


def write(made: dict[str, str]) -> None:
    """Put the tables into the page, each between its marks."""
    page = _PAGE.read_text(encoding="utf-8")
    for name, text in made.items():
        before, mark, rest = page.partition(f"<!-- counted: {name} -->\n")
        _, end, after = rest.partition("\n<!-- end -->")
        if not end:
            raise SystemExit(f"docs/parts.md has no place for {name}")
        page = f"{before}{mark}\n{text}\n{end}{after}"
    _PAGE.write_text(page, encoding="utf-8")


def main() -> None:
    """Count and print, or one peer in this process."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parts", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--python", action="append", default=[], metavar="PEER=PYTHON", help="a peer's Python, where it has its own")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/parts.md")
    parser.add_argument("--peer", choices=PEERS, help="count one, in this process")
    parser.add_argument("--port", type=int, help="the server's port, for --peer")
    options = parser.parse_args()
    if options.peer:
        print(json.dumps(count(options.peer, options.port)))
        return
    made = tables(measure(dict(one.split("=", 1) for one in options.python)))
    print(*made.values(), sep="\n\n")
    if options.write:
        write(made)


if __name__ == "__main__":
    main()
