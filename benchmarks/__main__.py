"""Measure this package beside its peers and print Markdown tables: `python -m benchmarks [--rounds 3] [--only text ...]`.

`--write` puts what was measured into docs/benchmarks.md and docs/benchmarks_profiles.md, each table between its marks, keeps the figures of
the charts, and draws them again. `--charts` only draws them. Without `--only` everything is measured: a quarter of an hour and more on a
quiet machine.

Peers come with the extras `bench` and `durable`; `--litellm` names the Python of another environment that has litellm. Every figure
is one process of its own; peers take turns within a round, and the figure is the median of the rounds. CPU is the client's process
time; the server is another process. Where a task measures otherwise its own module says how.
"""

import argparse
import io
import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from .charts import CHARTS, PEERS, description, draw, keep, kept, measured

_DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = (_DOCS / "benchmarks.md", _DOCS / "benchmarks_profiles.md")
"""What users read, and what contributors do."""

_PROTOCOLS = (
    "floor",
    "sdk",
    "litellm",
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
_LOOPS = ("sdk", "litellm", "langchain", "create_agent", "pydantic_ai", "autotools", "autotools_async")

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


_pythons = {"litellm": ""}
"""The Python of peers that have an environment of their own; empty where there is none."""


def _run(arguments: Sequence[str], python: str = sys.executable) -> str:
    done = subprocess.run([python, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{arguments[:4]} failed:\n{done.stderr[-2000:]}")
    return done.stdout.strip()


def interleaved(cases: Iterable[tuple[str, str, int]], port: int, rounds: int) -> dict[tuple[str, str, int], tuple[float, float]]:
    """The median CPU and wall seconds per unit of every (peer, task, size)."""
    taken: dict[tuple[str, str, int], list[dict[str, float]]] = {case: [] for case in cases if _pythons.get(case[0], "python")}
    for _ in range(rounds):
        for case, results in taken.items():
            arguments = ["-m", "benchmarks.peers", case[0], case[1], str(case[2]), str(port)]
            results.append(json.loads(_run(arguments, _pythons.get(case[0], sys.executable)).splitlines()[-1]))
    return {case: (_median(results, "cpu"), _median(results, "wall")) for case, results in taken.items()}


def _median(results: list[dict[str, float]], key: str) -> float:
    return statistics.median(result[key] for result in results)


def table(task: str, peers: Sequence[str], sizes: Sequence[int], figures: Any, per_second: float, unit: str) -> None:
    """Print the CPU of every peer and size, and its ratio to the SDK's. Every model has `tools=`."""
    print(f"| CPU in {unit}, models with `tools=` | " + " | ".join(f"{size:,} | of the SDK" for size in sizes) + " |")
    print("|---|" + "---|---|" * len(sizes))
    for peer in peers:
        cells = []
        for size in sizes:
            cpu, sdk = (figures.get((one, task, size), (None,))[0] for one in (peer, "sdk"))
            cells += ["", ""] if cpu is None else [f"{cpu * per_second:.1f}", f"{cpu / sdk:.2f}" if sdk else ""]
        if any(cells):
            print(f"| {PEERS[peer]} | " + " | ".join(cells) + " |", flush=True)


def text(port: int, rounds: int) -> Any:
    """Streamed text; returns its figures."""
    cases = [(peer, "text", 4000) for peer in _PROTOCOLS]
    cases += [(peer, "text", size) for peer in ("autotools", "autotools_async") for size in (500, 64_000)] + [("sdk", "text", 500)]
    figures = interleaved(cases, port, rounds)
    table("text", _PROTOCOLS, (500, 4000, 64_000), figures, 1e6, "µs")
    return figures


def listener(port: int, rounds: int) -> None:
    """Streamed text, with and without somebody who reads its events."""
    cases = [(peer, "text", 4000) for pair in _LISTENED.values() for peer in pair]
    figures = interleaved(cases, port, rounds)
    print("| CPU in µs, models with `tools=` | without | read through `events` / `aevents` | ratio |\n|---|---|---|---|")
    for way, pair in _LISTENED.items():
        without, heard = (figures[peer, "text", 4000][0] * 1e6 for peer in pair)
        print(f"| {way} | {without:.2f} | {heard:.2f} | {heard / without:.2f} |", flush=True)


def fragments(port: int, rounds: int) -> Any:
    """Streamed arguments of one call; returns their figures."""
    cases = [(peer, "arguments", 2000) for peer in _PROTOCOLS if peer != "floor"]
    cases += [(peer, "arguments", size) for peer in ("autotools", "autotools_chain") for size in (500, 64_000)]
    figures = interleaved(cases, port, rounds)
    table("arguments", _PROTOCOLS, (500, 2000, 64_000), figures, 1e6, "µs")
    return figures


def turns(port: int, rounds: int) -> Any:
    """Turns with two tool calls; returns their figures."""
    cases = [(peer, "turns", size) for peer in _LOOPS for size in (4, 20, 80)] + [("autotools", "turns", 320)]
    figures = interleaved(cases, port, rounds)
    table("turns", _LOOPS, (4, 20, 80, 320), figures, 1e3, "ms")
    return figures


def first(port: int, rounds: int) -> None:
    """Time to the first text, paired with the raw HTTP client."""
    print("| server, models without tools | httpx, ms | openai SDK | autotools | SDK / httpx | autotools / httpx |")
    print("|---|---|---|---|---|---|")
    for name, model in (("replies at once", "text-50"), ("thinks for 20 ms", "slow-50")):
        results = [list(map(float, _run(["-c", _FIRST_TEXT.format(port=port, model=model)]).split())) for _ in range(rounds)]
        raw, sdk, ours, sdk_ratio, ratio = (statistics.median(column) for column in zip(*results, strict=True))
        print(f"| {name} | {raw * 1e3:.2f} | {sdk * 1e3:.2f} | {ours * 1e3:.2f} | {sdk_ratio:.2f} | {ratio:.2f} |", flush=True)


def chunks(port: int, rounds: int) -> None:
    """Every wire, chunk by chunk."""
    print(_run(["-m", "benchmarks.chunks", "--rounds", str(4 * rounds)]))


def start(port: int, rounds: int) -> None:
    """A fresh process, to its model and to its first text."""
    print(_run(["-m", "benchmarks.start", "--rounds", str(rounds + 2)]))


def many(port: int, rounds: int) -> None:
    """Many runs at once."""
    print("| runs at once, models with `tools=` | | openai SDK | autotools | of the SDK |\n|---|---|---|---|---|")
    for way, count in (("tasks", 1000), ("threads", 200)):
        taken: dict[str, list[dict[str, float]]] = {"sdk": [], "autotools": []}
        for _ in range(rounds):
            for peer, results in taken.items():
                results.append(json.loads(_run(["-m", "benchmarks.many", peer, way, str(count)]).splitlines()[-1]))
        for key in taken["sdk"][0]:
            sdk, ours = (_median(results, key) for results in taken.values())
            print(f"| {count:,} {way} | {key} | {sdk:.1f} | {ours:.1f} | {ours / sdk:.2f} |", flush=True)


def _row(figures: dict[str, float]) -> str:
    return "| " + " | ".join(map(str, figures.values())) + " |"


def idle(port: int, rounds: int) -> None:
    """An idle worker, and those who follow its conversations."""
    rows = [
        json.loads(_run(["-m", "benchmarks.idle", "--poll", poll, "--followers", followers]).splitlines()[-1])
        for poll, followers in (("0.1", "0"), ("1.0", "0"), ("2.0", "0"), ("0.1", "200"), ("0.1", "2000"))
    ]
    print("| " + " | ".join(rows[0]) + " |\n|" + "---|" * len(rows[0]))
    print("\n".join(map(_row, rows)))


def recorded(port: int, rounds: int) -> None:
    """Runs of a stored conversation, and durable turns."""
    for task in ("conversation", "neighbours", "result", "turn"):
        figures = json.loads(_run(["-m", "benchmarks.recorded", task]).splitlines()[-1])
        print("\n".join(["| | |\n|---|---|", *(f"| {name} | {figure} |" for name, figure in figures.items()), ""]))


def context(port: int, rounds: int) -> None:
    """What a long run sends."""
    print(_run(["-m", "benchmarks.context"]))


def profiled(port: int, rounds: int) -> None:
    """Where the CPU time of what is aimed at goes."""
    from .profiled import COLUMNS, REST, SCENES, STORED

    print(f"| of the CPU time of | calls of ours | {' | '.join((*COLUMNS, REST))} | most of ours |\n|---|{'---|' * (len(COLUMNS) + 3)}")
    for scene in (*SCENES, *STORED):
        print(_run(["-m", "benchmarks.profiled", scene]).splitlines()[-1], flush=True)


def charts(figures: Any) -> None:
    """Keep the measured figures that the charts of the page show, and draw the charts."""
    keep({task: shown for task in CHARTS if (shown := measured(task, figures))})
    for path in draw(kept(), _IMAGES):
        print(f"drawn: {path}")


def write(tables: dict[str, str], pages: Sequence[Path] = PAGES) -> None:
    """Put tables into the pages, each between its marks wherever it has them, below its chart."""
    texts = {page: page.read_text(encoding="utf-8") for page in pages}
    for name, lines in tables.items():
        chart = f"![{description(name, kept()[name])}](images/benchmark_{name}.svg)\n\n" if name in CHARTS else ""
        places = [page for page, text in texts.items() if f"<!-- measured: {name} -->\n" in text]
        if not places:
            raise SystemExit(f"no page has a place for {name}")
        for page in places:
            before, mark, rest = texts[page].partition(f"<!-- measured: {name} -->\n")
            texts[page] = f"{before}{mark}\n{chart}{lines.strip()}\n\n<!-- end -->{rest.partition('<!-- end -->')[2]}"
    for page, text in texts.items():
        page.write_text(text, encoding="utf-8")


_IMAGES = _DOCS / "images"
_TASKS = {
    "text": text,
    "listener": listener,
    "arguments": fragments,
    "turns": turns,
    "chunks": chunks,
    "start": start,
    "first": first,
    "many": many,
    "idle": idle,
    "recorded": recorded,
    "context": context,
    "profiled": profiled,
}


def main() -> None:
    """Run the tasks asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure this package beside its peers.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=list(_TASKS), default=list(_TASKS))
    parser.add_argument("--litellm", default="", metavar="PYTHON", help="the Python of an environment that has litellm")
    parser.add_argument("--charts", action="store_true", help="draw the charts of docs/benchmarks.md, with what was measured")
    parser.add_argument("--write", action="store_true", help="put what was measured into the pages, and draw the charts")
    options = parser.parse_args()
    _pythons["litellm"] = options.litellm
    when = f"Measured on {time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, {platform.machine()}, {options.rounds} rounds."
    print(when)
    figures: dict[tuple[str, str, int], tuple[float, float]] = {}
    tables = {"when": when}
    with server() as port:
        for name in options.only:
            began, out = time.monotonic(), io.StringIO()
            with redirect_stdout(out):
                figures |= _TASKS[name](port, options.rounds) or {}
            tables[name] = out.getvalue()
            print(f"\n### {name} ({time.monotonic() - began:.0f} s)\n\n{tables[name]}", flush=True)
            if options.write:
                charts(figures)
                write(tables)
    if options.charts:
        charts(figures)


if __name__ == "__main__":
    main()
