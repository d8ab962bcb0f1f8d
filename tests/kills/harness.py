"""Kills workers and looks at what became of their runs."""

import faulthandler
import json
import os
import random
import signal
import time
import traceback
import unicodedata
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from dbos import DBOS

from langchain_autotools import new_messages, stop_reason
from langchain_autotools.durable import DurableModel, launch, shutdown
from langchain_autotools.durable.engine import outside
from langchain_autotools.event_types import MessageDone, RunEnded, RunStarted
from langchain_autotools.history import repair
from tests.support.postgres import PostgresServer

from . import answers, conversations
from .figures import Figures, look_at_calls, look_at_texts
from .worker import LIVES_ON, Place, effects_of, in_postgresql, in_sqlite, made, stay, work

OF_CONVERSATIONS = ("queue", "ids", "steer")
"""The modes whose runs are runs of conversations: `ids` has conversations whose ids are alike, `steer` messages that join a run."""

RUNS_AT_ONCE = 3
_LONGEST = 1.2  # seconds from the launch to the kill
_LAUNCH = 0.5  # about how long a launch takes, in which a worker may be killed too
_PATIENCE = 90.0


def in_child(task: Callable[[], None], longest: float = 2 * _PATIENCE) -> int:
    """Do something in a process of its own; returns its id. What takes too long ends, and writes where it had come to."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        faulthandler.dump_traceback_later(longest, exit=True)
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


def kill(child: int) -> None:
    """Kill a process at once, unless it has ended."""
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def launched(place: Place, worker: str, task: Callable[[], None], longest: float = 2 * _PATIENCE) -> int:
    """A process that has launched a worker; returns its id."""
    told = place.folder / worker
    told.unlink(missing_ok=True)
    child = in_child(task, longest)
    begun = time.monotonic()
    while not told.exists():
        assert time.monotonic() - begun < _PATIENCE and not ended(child)
        time.sleep(0.005)
    return child


def ends_within(child: int, seconds: float) -> bool:
    """Whether a process ends by itself in so many seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if ended(child):
            return True
        time.sleep(0.005)
    return False


class Killer:
    """Kills workers at random moments.

    Args:
        place: Where they work.
        mode: How their clients wait.
        chance: Says when they are killed.
        figures: Takes what is seen.
        replaces: Whether a killed worker may be replaced by one of another id, and a worker be frozen for longer than its lease: where
            another one lives.
    """

    def __init__(self, place: Place, mode: str, chance: random.Random, figures: Figures, replaces: bool) -> None:
        self._place = place
        self._mode = mode
        self._chance = chance
        self._figures = figures
        self._replaces = replaces
        self._number = 1

    def kill_until_done(self, runs: list[str]) -> None:
        """Kill workers, until one of them sees the end of all runs."""
        longest = _LONGEST
        while True:
            worker = f"worker {self._number}"
            if self._chance.random() < 0.1:
                child = in_child(lambda worker=worker: self._work(worker, runs))
                time.sleep(self._chance.uniform(0, _LAUNCH))
            else:
                child = launched(self._place, worker, lambda worker=worker: self._work(worker, runs))
                if ends_within(child, self._chance.uniform(0, longest)) or self._freeze(child, longest):
                    return
            kill(child)
            self._figures.kills += 1
            if self._happens(0.25):
                self._number += 1
                self._figures.replaced += 1
            longest += 0.1  # so that there is an end also on a slow machine

    def _work(self, worker: str, runs: list[str]) -> None:
        if self._mode in OF_CONVERSATIONS:
            conversations.work(self._place, worker, runs)
        else:
            work(self._place, worker, self._mode, runs)

    def _freeze(self, child: int, longest: float) -> bool:
        """Now and then, freeze a worker until it has lost its runs; returns whether it has ended by itself afterwards."""
        if not self._happens(0.1):
            return False
        os.kill(child, signal.SIGSTOP)
        time.sleep(self._place.lease + 1)
        os.kill(child, signal.SIGCONT)
        self._figures.frozen += 1
        return ends_within(child, self._chance.uniform(0, longest))

    def _happens(self, often: float) -> bool:
        return self._replaces and self._chance.random() < often


def look(place: Place, runs: list[str], figures: Figures) -> None:
    """Look at what the runs came to."""
    chat = made(place.folder)
    launch(place.url, f"reader of {place.folder}", lease=place.lease)
    try:
        for run in runs:
            chat.result(run)
        effects = Counter(effects_of(place.folder))
        for run in runs:
            _look_at(chat, run, effects, figures)
            figures.elsewhere += outside(DBOS.get_workflow_status, run).executor_id == f"{LIVES_ON} of {place.folder}"
    finally:
        shutdown()
    if "py_pickle" in place.dump():
        figures.wrong.append("the database has a pickle")


def _look_at(chat: DurableModel, run: str, effects: Counter[str], figures: Figures) -> None:
    """A run is whole, and a reader from elsewhere has each message once."""
    message = chat.result(run)
    messages, told = new_messages(message), list(chat.events(run))
    figures.runs += 1
    if stop_reason(message) != "complete" or repair(messages) != messages:
        figures.wrong.append(f"{run} is not whole: {messages}")
    look_at_calls(messages, effects, figures)
    look_at_texts(told, messages, figures)
    done = [event.message for event in told if isinstance(event, MessageDone)]
    if done != messages or [event.position for event in told] != [str(number) for number in range(len(told))]:
        figures.wrong.append(f"{run} reads otherwise than it is")
    if sum(isinstance(event, RunStarted) for event in told) != 1 or not isinstance(told[-1], RunEnded):
        figures.wrong.append(f"{run} is told of without its end")


def kills(folder: Path, mode: str, wanted: int, seed: int = 0, server: PostgresServer | None = None) -> Figures:
    """Kill at least so many workers: each over a SQLite file, or all over one PostgreSQL, where another worker lives on and takes over."""
    chance, figures = random.Random(f"{mode} {seed}"), Figures()
    if server is None:
        while figures.kills < wanted:
            place = in_sqlite(_made(folder / f"{mode}{figures.runs}"))
            _round(place, Killer(place, mode, chance, figures, replaces=False), mode, figures)
        return figures
    place = in_postgresql(_made(folder / mode), server)
    stays = conversations.stay if mode in OF_CONVERSATIONS else stay
    lives_on = launched(place, LIVES_ON, lambda: stays(place, LIVES_ON), longest=3600)
    try:
        killer = Killer(place, mode, chance, figures, replaces=True)
        while figures.kills < wanted:
            _round(place, killer, mode, figures)
            assert not ended(lives_on)
    finally:
        kill(lives_on)
    return figures


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def alike(number: int) -> list[str]:
    """Names that a database may take for one another: by case, by Unicode form, as patterns, as a part of a longer one; in turn."""
    name = f"Zoë_{number}"
    others = [name.swapcase(), unicodedata.normalize("NFD", name), name.replace("_", "%"), f"{name}/1", f"{name}%"]
    return [name, others[number % 5], others[(number + 2) % 5]]


def _round(place: Place, killer: Killer, mode: str, figures: Figures) -> None:
    runs = alike(figures.runs) if mode == "ids" else [f"{mode}{figures.runs + one}" for one in range(RUNS_AT_ONCE)]
    killer.kill_until_done(runs)
    look_in_child(place, mode, runs, figures)


def look_in_child(place: Place, mode: str, runs: list[str], figures: Figures) -> None:
    """Look in a process of its own: this one stays without threads, and can be forked."""
    seen = place.folder / "figures.json"

    def task() -> None:
        own = Figures()
        (answers.look if mode in OF_CONVERSATIONS else look)(place, runs, own)
        seen.write_text(json.dumps(asdict(own)))

    child = in_child(task)
    _, status = os.waitpid(child, 0)
    assert status == 0
    for name, value in json.loads(seen.read_text()).items():
        setattr(figures, name, getattr(figures, name) + value)
