"""What became of mutants, in a file that a later run goes on with."""

import json
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from .mutants import REPOSITORY, Mutant

Fate = Literal["killed", "killed by time", "survived", "not reached"]


@dataclass(frozen=True)
class Tried:
    """What became of a mutant, and at which commit."""

    fate: Fate
    commit: str

    @property
    def killed(self) -> bool:
        """Whether a test noticed it."""
        return self.fate.startswith("killed")


class Notes:
    """A line of JSON for each trial, the latest last."""

    def __init__(self, file: Path) -> None:
        self._file = file
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
        self._commit = commit.stdout.strip()

    def read(self) -> dict[str, Tried]:
        """What became of each mutant when it was tried last, by its key."""
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        return {key: Tried(**tried) for key, tried in map(json.loads, lines)}

    def add(self, mutant: Mutant, fate: Fate) -> None:
        """Note a trial at the commit that is checked out."""
        with self._file.open("a") as file:
            file.write(f"{json.dumps([mutant.key, asdict(Tried(fate, self._commit))])}\n")
