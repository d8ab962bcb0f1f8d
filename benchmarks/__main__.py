"""Measure this package beside its peers and print Markdown tables: `python -m benchmarks [--rounds 5] [--only text ...]`.

`--charts` also draws the charts of docs/benchmarks.md, with the measured figures in place of those that are kept; after `--only` without a
task nothing is measured.

Peers come with the extra `bench`. Every figure is one process of its own; peers take turns within a round, and the figure
is the median of the rounds. CPU is the client's process time; the server is another process.
"""

import argparse
import json
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import langchain_autotools

from .charts import CHARTS, draw, keep, kept, measured
from .wires import WIRES

_PROTOCOLS = (
    "floor",
    "sdk",
    "langchain",
    "create_agent",
    "pydantic_ai",
    "autotools",
    "autotools_async",
    "autotools_traced",
    "autotools_chain",
)
_LISTENED = {
    "stream": ("autotools", "autotools_events"),
    "astream": ("autotools_async", "autotools_events_async"),
    "a chain": ("autotools_chain", "autotools_events_chain"),
}
_LOOPS = ("sdk", "langchain", "create_agent", "pydantic_ai", "autotools", "autotools_async")

_CONSTRUCT = {
    "BaseChatModel alone": "from langchain_core.language_models import BaseChatModel",
    "openai SDK": "from openai import OpenAI; OpenAI(api_key='x')",
    "langchain-openai": "from langchain_openai import ChatOpenAI; ChatOpenAI(model='m', api_key='x')",
    "pydantic-ai": (
        "from pydantic_ai import Agent; from pydantic_ai.models.openai import OpenAIChatModel as M;"
        "from pydantic_ai.providers.openai import OpenAIProvider as P; Agent(M('m', provider=P(api_key='x')))"
    ),
    "autotools": "from langchain_autotools import ChatOpenAI; ChatOpenAI(model='m', api_key='x')",
}
_CPU = "import resource, time; t = time.perf_counter(); {code}; print(time.process_time(), time.perf_counter() - t)"

_FIRST_TEXT = """
import statistics, time, httpx
from langchain_autotools import ChatOpenAI
from openai import OpenAI
url, model = "http://127.0.0.1:{port}/v1", "{model}"
client, sdk, chat = httpx.Client(), OpenAI(api_key="x", base_url=url), ChatOpenAI(model=model, api_key="x", base_url=url)
body = {{"model": model, "messages": [{{"role": "user", "content": "hello"}}], "stream": True}}
def first(chunks, has_text):
    start, taken = time.perf_counter(), None
    for chunk in chunks():
        if taken is None and has_text(chunk):
            taken = time.perf_counter() - start
    return taken
def raw():
    with client.stream("POST", url + "/chat/completions", json=body) as response:
        yield from response.iter_raw()
def round():
    return (
        first(raw, lambda piece: b"word" in piece),
        first(lambda: sdk.chat.completions.create(**body), lambda chunk: chunk.choices and chunk.choices[0].delta.content),
        first(lambda: chat.stream("hello"), lambda chunk: chunk.text),
    )
rounds = [round() for _ in range(220)][20:]
medians = [statistics.median(column) for column in zip(*rounds)]
print(*medians, statistics.median(b / a for a, b, _ in rounds), statistics.median(c / a for a, _, c in rounds))
"""


@contextmanager
def server() -> Any:
    """The loopback server; gives its port."""
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdin is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(10)


def _run(arguments: Sequence[str]) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{arguments[:4]} failed:\n{done.stderr[-2000:]}")
    return done.stdout.strip().splitlines()[-1]


def interleaved(cases: Iterable[tuple[str, str, int]], port: int, rounds: int) -> dict[tuple[str, str, int], tuple[float, float]]:
    """The median CPU and wall seconds per unit of every (peer, task, size)."""
    taken: dict[tuple[str, str, int], list[dict[str, float]]] = {case: [] for case in cases}
    for _ in range(rounds):
        for case, results in taken.items():
            results.append(json.loads(_run(["-m", "benchmarks.peers", case[0], case[1], str(case[2]), str(port)])))
    return {case: (_median(results, "cpu"), _median(results, "wall")) for case, results in taken.items()}


def _median(results: list[dict[str, float]], key: str) -> float:
    return statistics.median(result[key] for result in results)


def table(title: str, peers: Sequence[str], task: str, sizes: Sequence[int], figures: Any, unit: float, suffix: str) -> None:
    """Print CPU / wall of every peer and size, and CPU relative to the SDK."""
    print(f"\n### {title}\n\n| peer | " + " | ".join(f"{size:,}: CPU / wall ({suffix}) | of SDK" for size in sizes) + " |")
    print("|---|" + "---|---|" * len(sizes))
    for peer in peers:
        cells = []
        for size in sizes:
            cpu, wall = figures.get((peer, task, size), (None, None))
            sdk = figures.get(("sdk", task, size), (None,))[0]
            cells += ["", ""] if cpu is None else [f"{cpu * unit:.2f} / {wall * unit:.2f}", f"{cpu / sdk:.2f}" if sdk else ""]
        print(f"| {peer} | " + " | ".join(cells) + " |", flush=True)


def text(port: int, rounds: int) -> Any:
    """Streamed text; returns its figures."""
    cases = [(peer, "text", 4000) for peer in _PROTOCOLS]
    cases += [(peer, "text", size) for peer in ("autotools", "autotools_async") for size in (500, 64_000)] + [("sdk", "text", 500)]
    figures = interleaved(cases, port, rounds)
    table("Streamed text, per chunk", _PROTOCOLS, "text", (500, 4000, 64_000), figures, 1e6, "us")
    return figures


def listener(port: int, rounds: int) -> None:
    """Streamed text, with and without somebody who reads its events."""
    cases = [(peer, "text", 4000) for pair in _LISTENED.values() for peer in pair]
    figures = interleaved(cases, port, rounds)
    print("\n### What a listener costs: CPU per text chunk (us), 4,000 chunks\n\n| | without | with | ratio |\n|---|---|---|---|")
    for way, pair in _LISTENED.items():
        without, heard = (figures[peer, "text", 4000][0] * 1e6 for peer in pair)
        print(f"| {way} | {without:.2f} | {heard:.2f} | {heard / without:.2f} |", flush=True)


def fragments(port: int, rounds: int) -> Any:
    """Streamed arguments of one call; returns their figures."""
    cases = [(peer, "arguments", 2000) for peer in _PROTOCOLS]
    cases += [(peer, "arguments", size) for peer in ("autotools", "autotools_chain") for size in (500, 64_000)]
    title = "Argument fragments, the tool run and the answer read, per fragment"
    figures = interleaved(cases, port, rounds)
    table(title, _PROTOCOLS, "arguments", (500, 2000, 64_000), figures, 1e6, "us")
    return figures


def turns(port: int, rounds: int) -> Any:
    """Turns with two tool calls; returns their figures."""
    cases = [(peer, "turns", size) for peer in _LOOPS for size in (4, 20, 80)] + [("autotools", "turns", 320)]
    figures = interleaved(cases, port, rounds)
    table("A turn with two tool calls, by length of the run", _LOOPS, "turns", (4, 20, 80, 320), figures, 1e3, "ms")
    return figures


def construct(port: int, rounds: int) -> None:
    """Import and construct, in a fresh process."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in _CONSTRUCT}
    for _ in range(rounds):
        for name, code in _CONSTRUCT.items():
            cpu, wall = _run(["-c", _CPU.format(code=code)]).split()
            taken[name].append((float(cpu), float(wall)))
    base = statistics.median(cpu for cpu, _ in taken["langchain-openai"])
    print("\n### A fresh process to a constructed model\n\n| peer | CPU ms | wall ms | CPU of langchain-openai |\n|---|---|---|---|")
    for name, results in taken.items():
        cpu, wall = (statistics.median(column) for column in zip(*results, strict=True))
        print(f"| {name} | {cpu * 1e3:.0f} | {wall * 1e3:.0f} | {cpu / base:.2f} |", flush=True)


def first(port: int, rounds: int) -> None:
    """Time to the first text, paired with the raw HTTP client."""
    print("\n### Time to the first text, wall\n\n| server | raw httpx ms | SDK ms | autotools ms | SDK / raw | autotools / raw |")
    print("|---|---|---|---|---|---|")
    for name, model in (("replies at once", "text-50"), ("thinks for 20 ms", "slow-50")):
        results = [list(map(float, _run(["-c", _FIRST_TEXT.format(port=port, model=model)]).split())) for _ in range(rounds)]
        raw, sdk, ours, sdk_ratio, ratio = (statistics.median(column) for column in zip(*results, strict=True))
        print(f"| {name} | {raw * 1e3:.2f} | {sdk * 1e3:.2f} | {ours * 1e3:.2f} | {sdk_ratio:.2f} | {ratio:.2f} |", flush=True)


def wires(port: int, rounds: int) -> None:
    """Every other wire beside its vendor's SDK, and its class beside LangChain's partner package."""
    names = [name for name in WIRES if WIRES[name].construct[2].split()[3].rstrip(";") in langchain_autotools.__all__]
    peers = ("sdk", "raw", "autotools", "autotools_async")
    for task, size, title in (("text", 4000, "text chunk"), ("arguments", 2000, "argument fragment")):
        print(f"\n### CPU per {title} in us, by wire ({size:,} of them)\n")
        print("| wire | SDK | its helper with the whole message | `raw_stream` | of SDK | autotools | of SDK | asynchronous | of SDK |")
        print("|---|---|---|---|---|---|---|---|---|")
        for name in names:
            if task == "arguments" and not WIRES[name].arguments:
                continue
            helped = ("whole",) if WIRES[name].whole else ()
            taken: dict[str, list[dict[str, float]]] = {peer: [] for peer in (*peers, *helped)}
            for _ in range(rounds):
                for peer, results in taken.items():
                    results.append(json.loads(_run(["-m", "benchmarks.wires", name, peer, task, str(size), str(port)])))
            sdk, *others = (_median(taken[peer], "cpu") * 1e6 for peer in peers)
            helper = f"{_median(taken['whole'], 'cpu') * 1e6:.1f}" if helped else ""
            print(
                f"| {name} | {sdk:.1f} | {helper} | " + " | ".join(f"{cost:.1f} | {cost / sdk:.2f}" for cost in others) + " |", flush=True
            )
    print("\n### A fresh process to a constructed model, CPU ms, by wire\n\n| wire | SDK | partner package | autotools | of partner |")
    print("|---|---|---|---|---|")
    for name in names:
        costs: list[list[float]] = [[], [], []]
        for _ in range(rounds):
            for column, code in zip(costs, WIRES[name].construct, strict=True):
                column.append(float(_run(["-c", _CPU.format(code=code)]).split()[0]))
        sdk, partner, ours = (statistics.median(column) * 1e3 for column in costs)
        print(f"| {name} | {sdk:.0f} | {partner:.0f} | {ours:.0f} | {ours / partner:.2f} |", flush=True)


def charts(figures: Any) -> None:
    """Draw the charts of the page, and keep the measured figures that they show."""
    keep({task: shown for task in CHARTS if (shown := measured(task, figures))})
    for path in draw(kept(), _IMAGES):
        print(f"drawn: {path}")


_IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
_TASKS = {
    "text": text,
    "listener": listener,
    "arguments": fragments,
    "turns": turns,
    "construct": construct,
    "first": first,
    "wires": wires,
}


def main() -> None:
    """Run the tasks asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure this package beside its peers.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=list(_TASKS), default=list(_TASKS))
    parser.add_argument("--charts", action="store_true", help="draw the charts of docs/benchmarks.md, with what was measured")
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, {platform.machine()}; median of {options.rounds} rounds, peers in turn")
    figures: dict[tuple[str, str, int], tuple[float, float]] = {}
    with server() as port:
        for name in options.only:
            figures |= _TASKS[name](port, options.rounds) or {}
    if options.charts:
        charts(figures)


if __name__ == "__main__":
    main()
