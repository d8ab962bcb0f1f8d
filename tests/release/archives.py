"""Building the wheel and the source distribution, and what must hold of them."""

import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from .lists import FILES, REPOSITORY, difference

MADE = "PKG-INFO"  # by the backend


def tracked_files() -> list[str] | None:
    """The files that git knows of this checkout; None where it is none."""
    done = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return [name for name in done.stdout.splitlines() if (REPOSITORY / name).is_file()] if done.returncode == 0 else None


def build(source: Path, target: Path) -> list[Path]:
    """Build the source distribution of `source`, and the wheel from that; returns both files."""
    environment = {name: value for name, value in os.environ.items() if name not in ("SOURCE_DATE_EPOCH", "PYTHONPATH")}
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", target, source]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    return sorted(path for path in target.iterdir() if path.name.endswith((".tar.gz", ".whl")))


def unpack(sdist: Path, folder: Path) -> Path:
    """Unpack a source distribution; returns its one folder."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (top,) = folder.iterdir()
    return top


def members(path: Path) -> Mapping[str, bytes]:
    """The files in an archive, under the names that they have in the repository; of a wheel's metadata under their own."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist()}
    with tarfile.open(path) as sdist:
        read = ((member.name, sdist.extractfile(member)) for member in sdist if not member.isdir())
        return {"/".join(PurePosixPath(name).parts[1:]): file.read() for name, file in read if file}


def complaints(archives: list[Path]) -> Iterator[str]:
    """What is wrong with a wheel and a source distribution: files that are not on the list, or that name places of this machine."""
    places = [str(place).encode() for place in (REPOSITORY, Path.home()) if len(place.parts) > 1]
    for path in archives:
        found = members(path)
        for name, content in found.items():
            yield from (f"{path.name}: {name} names {place.decode()}" for place in places if place in content)
        if path.suffix == ".whl":
            listed = {line for line in FILES.read_text(encoding="utf-8").splitlines() if line.startswith("langchain_autotools/")}
            inside = {name for name in found if ".dist-info/" not in name}
            yield from (f"{path.name}: {name} is in one of wheel and list only" for name in sorted(listed ^ inside))
        elif text := difference(FILES, found.keys() - {MADE}, "files"):
            yield text


def check(target: Path) -> Iterator[str]:
    """Build into `target`, and a second time from what was built; yields what is wrong."""
    archives = build(REPOSITORY, target)
    yield from complaints(archives)
    with TemporaryDirectory() as folder:
        (sdist,) = (path for path in archives if path.suffix == ".gz")
        again = build(unpack(sdist, Path(folder) / "source"), Path(folder) / "again")
        for first, second in zip(archives, again, strict=True):
            if first.name != second.name or first.read_bytes() != second.read_bytes():
                yield f"{first.name} has other bytes when it is built again, from the source distribution"
    twine = subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *archives], capture_output=True, text=True, check=False)
    if twine.returncode:
        yield twine.stdout + twine.stderr
