"""Kills workers and looks at what became of their runs."""

import json
import os
import random
import signal
import sqlite3
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from langchain_autotools import new_messages, stop_reason
from langchain_autotools.durable import DurableModel, LiveText, RecordedMessage, launch, shutdown
from langchain_autotools.history import repair

from .worker import effects_of, made, work

RUNS_AT_ONCE = 3
_LONGEST = 2.2  # seconds from the launch to the kill
_PATIENCE = 90.0


@dataclass
class Figures:
    """What was seen.

    Attributes:
        kills: How many processes were killed while they worked.
        runs: How many runs have ended.
        calls: How many calls they made.
        twice: Keys of calls that ran twice and must not.
        repeated: How many calls ran again that may.
        interrupted: How many calls were answered as interrupted.
        swapped: Results that belong to another call.
        wrong: What else is not as it must be.
    """

    kills: int = 0
    runs: int = 0
    calls: int = 0
    twice: list[str] = field(default_factory=list)
    repeated: int = 0
    interrupted: int = 0
    swapped: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def in_child(task: Callable[[], None]) -> int:
    """Do something in a process of its own; returns its id."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        task()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def ended(child: int) -> bool:
    """Whether a process has ended by itself; it must have ended well."""
    done, status = os.waitpid(child, os.WNOHANG)
    assert not done or status == 0, f"a worker ended with {status}"
    return bool(done)


def kill_until_done(folder: Path, mode: str, runs: list[str], chance: random.Random, figures: Figures) -> None:
    """Kill workers at random moments, until one of them sees the end of all runs."""
    longest = _LONGEST
    while True:
        (folder / "launched").unlink(missing_ok=True)
        child = in_child(lambda: work(folder, mode, runs))
        begun = time.monotonic()
        while not (folder / "launched").exists():
            assert time.monotonic() - begun < _PATIENCE and not ended(child)
            time.sleep(0.005)
        until = time.monotonic() + chance.uniform(0, longest)
        while time.monotonic() < until:
            if ended(child):
                return
            time.sleep(0.005)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        figures.kills += 1
        longest += 0.1  # so that there is an end also on a slow machine


def look(folder: Path, runs: list[str], figures: Figures) -> None:
    """Look at what the runs came to."""
    chat = made(folder)
    launch(f"sqlite:///{folder / 'runs.sqlite'}", f"worker of {folder}", lease=2)
    try:
        effects = Counter(effects_of(folder))
        for run in runs:
            _look_at(chat, run, effects, figures)
    finally:
        shutdown()
    with sqlite3.connect(folder / "runs.sqlite") as database:
        if any("py_pickle" in line for line in database.iterdump()):
            figures.wrong.append("the database has a pickle")


def _look_at(chat: DurableModel, run: str, effects: Counter[str], figures: Figures) -> None:
    message = chat.result(run)
    messages = new_messages(message)
    figures.runs += 1
    if stop_reason(message) != "complete" or repair(messages) != messages:
        figures.wrong.append(f"{run} is not whole: {messages}")
    asked = [call for one in messages if isinstance(one, AIMessage) for call in one.tool_calls]
    results = [one for one in messages if isinstance(one, ToolMessage)]
    if [call["id"] for call in asked] != [one.tool_call_id for one in results]:
        figures.wrong.append(f"{run} has calls without their result")
    for call, result in zip(asked, results, strict=False):
        figures.calls += 1
        key, times = call["args"]["key"], effects[call["args"]["key"]]
        was_interrupted = "interrupted, outcome unknown" in str(result.content)
        figures.interrupted += was_interrupted
        if not was_interrupted and result.content != f"done {key}":
            figures.swapped.append(f"{key}: {result.content}")
        if call["name"] == "look":
            figures.repeated += times > 1
        elif times > 1:
            figures.twice.append(key)
        if (not times and not was_interrupted) or (was_interrupted and call["name"] == "look"):
            figures.wrong.append(f"{key} ran {times} times, and is answered with {result.content}")
    _look_at_stream(chat, run, messages, figures)


def _look_at_stream(chat: DurableModel, run: str, messages: list[BaseMessage], figures: Figures) -> None:
    """A reader from elsewhere has each message once; of each turn's text what the last attempt wrote is how its message begins."""
    pieces = list(chat.follow(run))
    if [one.message for one in pieces if isinstance(one, RecordedMessage)] != messages:
        figures.wrong.append(f"{run} reads otherwise than it is")
    texts: dict[int, str] = {}
    attempts: dict[int, int] = {}
    for piece in pieces:
        if isinstance(piece, LiveText):
            if piece.attempt != attempts.get(piece.turn):
                texts[piece.turn] = ""
            attempts[piece.turn] = piece.attempt
            texts[piece.turn] += piece.text
    written = [one for one in messages if isinstance(one, AIMessage)]
    for turn, text in texts.items():
        if not written[turn - 1].text.startswith(text):
            figures.wrong.append(f"{run} reads {text!r} for {written[turn - 1].text!r}")


def kills(folder: Path, mode: str, wanted: int, seed: int = 0) -> Figures:
    """Kill at least so many workers."""
    chance, figures, number = random.Random(f"{mode} {seed}"), Figures(), 0
    while figures.kills < wanted:
        number += 1
        place = folder / f"{mode}{number}"
        place.mkdir(parents=True)
        runs = [f"{mode}{number}r{one}" for one in range(RUNS_AT_ONCE)]
        kill_until_done(place, mode, runs, chance, figures)
        look_in_child(place, runs, figures)
    return figures


def look_in_child(folder: Path, runs: list[str], figures: Figures) -> None:
    """Look in a process of its own: this one stays without threads, and can be forked."""
    seen = folder / "figures.json"

    def task() -> None:
        own = Figures()
        look(folder, runs, own)
        seen.write_text(json.dumps(asdict(own)))

    child = in_child(task)
    _, status = os.waitpid(child, 0)
    assert status == 0
    for name, value in json.loads(seen.read_text()).items():
        setattr(figures, name, getattr(figures, name) + value)
