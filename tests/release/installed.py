"""What was built, installed in empty environments: on each Python, at both ends of the ranges of the dependencies."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from .archives import unpack
from .lists import SURFACE, stored

OWN = "python{}.{}".format(*sys.version_info)
PYTHONS = tuple(sys.executable if name == OWN else name for name in ("python3.11", "python3.12", "python3.13"))
ENDS = ("newest", "lowest")
README = {"answer": "examples/local_weights.py", "tests": "-m pytest"}
"""What the README tells to do without a key, and the sign of its block."""
IMPORT = """
import sys
from importlib import import_module
for path in sys.argv[1:]:
    module, _, name = f"langchain_autotools.{path}".rpartition(".")
    getattr(import_module(module), name)
print(import_module("langchain_autotools").__file__)
"""


class Place:
    """An unpacked source distribution in an empty folder, outside of any repository, with an environment of its own beside it."""

    def __init__(self, sdist: Path, folder: Path, cache: Path, python: str, end: str) -> None:
        self.source = unpack(sdist, folder)
        self.python, self.elsewhere = python, folder.parent
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        self.environment = kept | {"XDG_CACHE_HOME": str(cache)}
        if end == "lowest":
            self.environment["PIP_CONSTRAINT"] = str(self.source / ".ci" / "lowest.txt")

    def run(self, line: str, where: Path | None = None) -> str:
        """The output of a shell line; `python3` is the Python of this place."""
        line = re.sub(r"\bpython3 ", f"{shlex.quote(self.python)} ", line)
        command = ["bash", "-euc", line]
        done = subprocess.run(
            command, cwd=where or self.source, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if done.returncode:
            raise RuntimeError(f"{line}\n{done.stdout[-4000:]}")
        return done.stdout

    def install(self) -> str:
        """Install it alone, then with the extra that has a module of its own; import every public name, and start the command."""
        self.run("python3 -m venv .venv && .venv/bin/pip install --quiet .")
        names = [line.partition(":")[0] for line in stored(SURFACE) if re.match(r"[\w.]+: ", line)]
        extra = [name for name in names if name.startswith("durable.")]
        self.use([name for name in names if name not in extra])
        self.run(".venv/bin/pip install --quiet '.[durable]' && .venv/bin/pip check")
        self.use(extra)
        return f"{len(set(names))} names"

    def use(self, names: Sequence[str]) -> None:
        """Import names from the installed package, away from its source; start its command."""
        imported = self.run(shlex.join([str(self.source / ".venv/bin/python"), "-c", IMPORT, *names]), self.elsewhere)
        assert "site-packages" in imported, imported
        assert "chat" in self.run(f"{shlex.quote(str(self.source))}/.venv/bin/langchain-autotools --help", self.elsewhere)

    def follow(self, what: str) -> str:
        """Run a block of the README; returns the last line that it prints."""
        blocks = re.findall(r"^```sh\n(.*?)^```", (self.source / "README.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        (block,) = (block for block in blocks if README[what] in block)
        return self.run(block).strip().splitlines()[-1]


def runs(python: str) -> bool:
    """Whether there is such a Python: its name may stand for one that is not installed."""
    try:
        return subprocess.run([python, "-c", ""], capture_output=True).returncode == 0
    except OSError:
        return False


def check(sdist: Path, pythons: Sequence[str], ends: Sequence[str], readme: Sequence[str]) -> Iterator[str]:
    """Try a source distribution with each Python at these ends of the ranges; yields a line for each step."""
    with TemporaryDirectory() as cache:
        for python in pythons:
            if not runs(python):
                yield f"{python}: not on this machine"
                continue
            for end in ends:
                yield from (f"{python}, {end}: {step}" for step in tried(sdist, Path(cache), python, end, readme))


def tried(sdist: Path, cache: Path, python: str, end: str, readme: Sequence[str]) -> Iterator[str]:
    """Try it with one Python at one end; yields what came of each step, and the seconds so far."""
    with TemporaryDirectory() as folder:
        started = monotonic()
        place = Place(sdist, Path(folder) / "source", cache, python, end)
        yield f"{place.install()} ({monotonic() - started:.0f} s)"
        for what in readme:
            yield f"{what}: {place.follow(what)} ({monotonic() - started:.0f} s)"
