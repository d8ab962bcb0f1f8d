"""`python -m tests.kills.full_disk [200]`: kills workers over a SQLite file whose disk is full again and again. Needs root. Prints JSON."""

import argparse
import json
import random
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path

from .figures import Figures
from .harness import RUNS_AT_ONCE, Killer, in_child, kill, look_in_child
from .worker import FULL_DISK, in_sqlite


class NoDiskError(Exception):
    """This user may not mount a disk."""


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A disk of so many megabytes in the place of a folder.

    Raises:
        NoDiskError: This user may not mount one.
    """
    folder.mkdir(exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, check=False)
    if mounted.returncode:
        raise NoDiskError("needs a user who may mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def filled(disk: Path) -> Iterator[None]:
    """Fill a disk to the last byte for a while."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass
    yield
    filler.unlink()


def fill_again_and_again(disk: Path, chance: random.Random) -> None:
    """Fill the disk, and make room, at random moments, until somebody kills this process."""
    while True:
        time.sleep(chance.uniform(0.2, 2.0))
        with filled(disk):
            time.sleep(chance.uniform(0.1, 1.0))


def kills(home: Path, wanted: int, seed: int = 0) -> Figures:
    """Kill at least so many workers."""
    chance, figures = random.Random(f"full disk {seed}"), Figures()
    while figures.kills < wanted:
        (folder := home / f"{figures.runs}").mkdir()
        with small_disk(folder / "disk", "4m") as disk:
            place = replace(in_sqlite(disk), folder=folder)
            runs = [f"full{figures.runs + one}" for one in range(RUNS_AT_ONCE)]
            filling = in_child(lambda disk=disk: fill_again_and_again(disk, chance), longest=600)
            try:
                Killer(place, FULL_DISK, chance, figures, replaces=False).kill_until_done(runs)
            finally:
                kill(filling)
                (disk / "filler").unlink(missing_ok=True)
            look_in_child(place, FULL_DISK, runs, figures)
    return figures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.kills.full_disk")
    parser.add_argument("kills", type=int, nargs="?", default=200)
    with tempfile.TemporaryDirectory() as place_of_all:
        print(json.dumps(asdict(kills(Path(place_of_all), parser.parse_args().kills))))
