"""Type checkers take a program that uses the package, in their strict modes, as they would a user's own."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_readme import REPOSITORY

pytestmark = pytest.mark.types

PROGRAMS = ("program.py", "api.py")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A user's folder with the programs in it."""
    for name in PROGRAMS:
        shutil.copy(REPOSITORY / "tests" / "typing" / name, tmp_path)
    return tmp_path


def checked(command: list[str], folder: Path) -> None:
    """Run a type checker in the folder; it finds nothing."""
    done = subprocess.run(command, cwd=folder, env={**os.environ, "MYPYPATH": str(REPOSITORY)}, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is of the extra `dev`")
def test_a_program_passes_mypy(programs: Path) -> None:
    """`mypy --strict` finds nothing in a program that uses the public API."""
    settings = ["--strict", "--follow-imports", "silent", "--cache-dir", str(REPOSITORY / ".mypy_cache" / "users")]
    checked([sys.executable, "-m", "mypy", *settings, *PROGRAMS], programs)


def test_a_program_passes_pyright(programs: Path) -> None:
    """pyright in its strict mode finds nothing in it either."""
    pyright = shutil.which("pyright", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    if pyright is None:
        pytest.skip("there is no pyright: pip install pyright (it needs Node, and fetches itself from npm's registry once)")
    begun = subprocess.run([pyright, "--version"], capture_output=True, text=True, timeout=200)
    if begun.returncode:
        pytest.skip(f"pyright cannot start: {(begun.stderr or begun.stdout)[-500:]}")
    settings = {"include": PROGRAMS, "extraPaths": [str(REPOSITORY)], "typeCheckingMode": "strict", "pythonVersion": "3.11"}
    settings["reportUnnecessaryTypeIgnoreComment"] = "error"
    (programs / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    checked([pyright, "--pythonpath", sys.executable, "--project", "."], programs)
