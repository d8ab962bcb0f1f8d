"""Draws the charts of docs/benchmarks.md: one SVG a task, with a text alternative, in the colours of the reader's light or dark scheme."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

KEPT = Path(__file__).with_name("figures.json")
"""The figures that are in docs/benchmarks.md: by task, the CPU time of each peer per unit."""

PEERS = {
    "floor": "httpx + jiter",
    "sdk": "openai SDK",
    "litellm": "litellm",
    "langchain": "langchain-openai",
    "create_agent": "create_agent",
    "pydantic_ai": "pydantic-ai",
    "autotools": "autotools",
    "autotools_async": "autotools, asynchronous",
    "autotools_traced": "autotools, with a handler",
    "autotools_chain": "autotools, in a chain",
}


@dataclass(frozen=True)
class Chart:
    """What a chart shows of a task.

    Attributes:
        title: What is measured.
        size: The size of the task that it shows.
        unit: The unit of a figure.
        per_second: How many of the unit a second has.
    """

    title: str
    size: int
    unit: str
    per_second: float


CHARTS = {
    "text": Chart("Streamed text: CPU per chunk (of 4,000)", 4000, "µs", 1e6),
    "arguments": Chart("Arguments: CPU per fragment (of 2,000)", 2000, "µs", 1e6),
    "turns": Chart("Two tool calls: CPU per turn (of 80)", 80, "ms", 1e3),
}

# Written by matplotlib in these colours, and read in those of the reader's scheme.
_COLOURS = {"#010101": "var(--paper)", "#020202": "var(--ink)", "#030303": "var(--other)", "#040404": "var(--ours)"}
_PAPER, _INK, _OTHER, _OURS = _COLOURS
_STYLE = """<style>
  svg { --paper: #fff; --ink: #1f2328; --other: #8c959f; --ours: #1f6feb }
  @media (prefers-color-scheme: dark) { svg { --paper: #0d1117; --ink: #e6edf3; --other: #848d97; --ours: #58a6ff } }
</style>"""


def measured(task: str, figures: Mapping[tuple[str, str, int], tuple[float, float]]) -> dict[str, float]:
    """What the chart of a task shows of the measured CPU and wall seconds by peer, task and size."""
    chart = CHARTS[task]
    taken = {peer: figures.get((peer, task, chart.size)) for peer in PEERS}
    return {peer: round(figure[0] * chart.per_second, 1) for peer, figure in taken.items() if figure is not None}


def keep(figures: Mapping[str, Mapping[str, float]], path: Path = KEPT) -> None:
    """Write figures into the kept ones; those of other tasks stay."""
    path.write_text(json.dumps({**kept(path), **figures}, indent=2) + "\n", encoding="utf-8")


def kept(path: Path = KEPT) -> dict[str, dict[str, float]]:
    """The figures that are kept, by task and peer."""
    figures: dict[str, dict[str, float]] = json.loads(path.read_text(encoding="utf-8"))
    return figures


def description(task: str, figures: Mapping[str, float]) -> str:
    """What a chart shows, in words."""
    return f"{CHARTS[task].title}. " + ", ".join(f"{PEERS[peer]} {_label(task, figures, peer)}" for peer in figures) + "."


def draw(figures: Mapping[str, Mapping[str, float]], folder: Path) -> list[Path]:
    """Draw the charts of these tasks.

    Returns:
        The files, `benchmark_<task>.svg` in the folder.
    """
    paths = []
    for task, costs in figures.items():
        path = folder / f"benchmark_{task}.svg"
        path.write_text(_accessible(task, costs, _drawn(task, costs)), encoding="utf-8")
        paths.append(path)
    return paths


def _label(task: str, figures: Mapping[str, float], peer: str) -> str:
    cost = f"{figures[peer]:,.1f} {CHARTS[task].unit}"
    return cost if peer == "sdk" else f"{cost} ({figures[peer] / figures['sdk']:.2f} of the SDK)"


def _drawn(task: str, figures: Mapping[str, float]) -> str:
    from io import StringIO

    from matplotlib import rc_context
    from matplotlib.figure import Figure

    settings: dict[str, Any] = {"svg.fonttype": "none", "svg.hashsalt": task, "font.size": 11, "text.color": _INK, "axes.facecolor": _PAPER}
    written = StringIO()
    with rc_context(settings):
        height = 0.5 * len(figures) + 0.5  # inches: half of one for each peer, and for the title
        figure = Figure(figsize=(4.4, height), facecolor=_PAPER)
        axes = figure.add_axes((0.03, 0.0, 0.94, 1 - 0.5 / height))
        for place, (peer, cost) in enumerate(figures.items()):
            axes.barh(place, cost, 0.36, color=_OURS if peer.startswith("autotools") else _OTHER)
            weight = "bold" if peer == "autotools" else "normal"
            axes.text(0, place - 0.28, f"{PEERS[peer]}: {_label(task, figures, peer)}", fontweight=weight, parse_math=False)
        axes.set(xlim=(0, max(figures.values())), ylim=(len(figures) - 0.5, -0.7))
        axes.set_axis_off()
        figure.text(0.03, 1 - 0.15 / height, CHARTS[task].title, fontweight="bold", fontsize=12, verticalalignment="top")
        figure.savefig(written, format="svg", facecolor=_PAPER, metadata={"Date": None})
    return written.getvalue()


def _accessible(task: str, figures: Mapping[str, float], svg: str) -> str:
    """The SVG with a title, a description and the colours of both schemes."""
    svg = re.sub("|".join(_COLOURS), lambda match: _COLOURS[match[0]], svg)
    svg = re.sub(r"font-family: [^;\"]*", "font-family: system-ui, sans-serif", svg)
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    words = f'<title id="title">{escape(CHARTS[task].title)}</title>\n<desc id="desc">{escape(description(task, figures))}</desc>'
    head = re.sub(r"(<svg[^>]*)>", rf'\1 role="img" aria-labelledby="title desc">\n{words}\n{_STYLE}', svg, count=1)
    return "\n".join(line.rstrip() for line in head.splitlines()) + "\n"
