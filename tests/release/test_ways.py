"""The ways to install what was built, which `python -m tests.release` says at its end.

python -m pytest -m installs tests/release/test_ways.py   # takes them: minutes, and needs a package index
"""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from langchain_autotools import __version__
from langchain_autotools._version import DISTRIBUTION

from .__main__ import ways
from .lists import REPOSITORY


def commands(target: Path) -> list[str]:
    """The commands that are said of what a folder has."""
    return [line.strip() for line in ways(target) if line.startswith("    ")]


def test_each_way_is_one_line_that_names_what_was_built(tmp_path: Path) -> None:
    """From a checkout, a wheel file or `git+`; and without an index."""
    built = tmp_path / "built-0.1.0-py3-none-any.whl"
    built.touch()
    checkout, wheel, git, fetch, bring = commands(tmp_path)
    assert (checkout, wheel) == ("pip install .", f"pip install {built}")
    assert git == f"pip install git+URL@v{__version__}"
    assert str(built) in fetch and "--no-index" in bring and bring.endswith(DISTRIBUTION)
    assert "from a checkout, a wheel file or `git+`" in next(iter(ways(tmp_path)))


@pytest.mark.installs
@pytest.mark.timeout(1200)
def test_each_way_installs_it(tmp_path: Path) -> None:
    """Into an empty environment each; the tag of `git+` is set in a copy of the repository."""
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path / "dist", REPOSITORY], check=True)
    repository = tmp_path / "repository"
    if subprocess.run(["git", "clone", "-q", REPOSITORY, repository]).returncode:
        pytest.skip("no git checkout")
    subprocess.run(["git", "tag", f"v{__version__}"], cwd=repository, check=True)
    for number, command in enumerate(commands(tmp_path / "dist")):
        place = tmp_path / f"place{number}"
        if "--no-index" not in command:  # which goes on in the place of the command before it
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
        else:
            place = tmp_path / f"place{number - 1}"
        words = shlex.split(command.replace("git+URL", f"git+file://{repository}"))[1:]
        pip = [sys.executable, "-m", "pip", "--python", place / "bin/python", *words, "-q"]
        subprocess.run([*pip, "--no-compile"] if words[0] == "install" else pip, check=True, cwd=REPOSITORY if "." in words else tmp_path)
        if words[0] == "install":
            told = subprocess.run(
                [place / "bin/langchain-autotools", "--version"], check=True, cwd=tmp_path, capture_output=True, text=True
            )
            assert __version__ in told.stdout
