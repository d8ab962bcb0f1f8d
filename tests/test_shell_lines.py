"""The shell lines of the README and the pages: what installs this package can be installed; why no test runs the others is here.

python -m pytest -m installs tests/test_shell_lines.py   # from the wheel, with pip's `--dry-run`: needs a package index
"""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.pages import REPOSITORY, fences
from tests.test_readme import PAGES, page_name

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
NAME = PROJECT["project"]["name"]
NOT_RUN = {
    r"python3? -m venv \.venv": "the test makes an environment of its own",
    r"export \w+=": "a key",
    r"pip install --requirement tests/surface/pins\.txt": "others' packages: .ci/run installs them",
    r"pip install langchain-mcp-adapters": "another package; the extra `compat` has it",
    r"pip install FILE\.whl": "the tests of installs install such a file",
    r"pip install git\+URL": "a test of installs installs this repository so",
    r"pip install langfuse": "another package, whose client the page sends traces with",
    r"pip install diskcache": "another package, in a comment about a cache of one's own",
    r"python examples/local_weights\.py": "478 MB of weights, and what pages install elsewhere, too: tests/stranger.sh runs it",
    r"(python )?examples/chat_app\.py": "a server that stays: tests/browser",
    r"langchain-autotools ": "asks a model: tests/unit/cli runs the program",
    r"(\w+=\d+ )*python -m pytest": "the tests themselves",
    r"bash tests/stranger\.sh": "fetches more than a gigabyte, by hand",
    r"\.ci/run": "the tests and all the rest",
    r"\.ci/world": "others' suites and programs, by hand",
    r"python -m (tests|benchmarks)": "minutes to hours, or writes a page",
    r"mkdocs serve": "a server that stays; .ci/run builds the site",
}
"""Beginnings of shell lines (without `.venv/bin/`) that no test runs, and why."""


def commands(page: Path) -> list[str]:
    """The commands of a page: those of its shell blocks, and every `pip install` of its text and its comments."""
    text = page.read_text(encoding="utf-8")
    blocks = [line for language, block in fences(page) if language == "sh" for line in block.replace("\\\n", " ").splitlines()]
    elsewhere = re.findall(r"[`#] ?((?:\S*/)?pip install [^`\n]*)", text)
    found = [part.strip() for line in [*blocks, *elsewhere] for part in re.split(r"&&|;", line.partition(" #")[0])]
    return list(dict.fromkeys(part.replace(".venv/bin/", "") for part in found if part and not part.startswith("#")))


def requirements(command: str) -> list[str]:
    """What a `pip install` of this package installs; nothing of any other command."""
    words = shlex.split(command, comments=True)
    if words[:2] != ["pip", "install"] or "-r" in words:
        return []
    return words[2:] if any(word.startswith((".", NAME)) for word in words[2:]) else []


INSTALLS = sorted({tuple(requirements(command)) for page in PAGES for command in commands(page)} - {()})


def test_every_shell_line_is_run_or_says_why_not() -> None:
    """And names files and markers that exist."""
    markers = {marker.partition(":")[0] for marker in PROJECT["tool"]["pytest"]["ini_options"]["markers"]}
    for name, command in ((page_name(page), command) for page in PAGES for command in commands(page)):
        known = requirements(command) or any(re.match(line, command) for line in NOT_RUN)
        assert known, f"{name}: no test runs {command!r}, and NOT_RUN has no reason"
        for path in re.findall(r"(?<!\S)(?:examples|tests|benchmarks|\.ci)/\S+", command):
            assert list(REPOSITORY.glob(path)), f"{name}: {path}"
        assert set(re.findall(r"pytest -m (\w+)", command)) <= markers, f"{name}: {command}"


def test_what_the_pages_install_is_a_checkout_with_extras_that_exist() -> None:
    """This package is on no index: `.` and `.[extra]`, of which there are several."""
    assert len(INSTALLS) > 4
    for requirement in (word for words in INSTALLS for word in words):
        found = re.fullmatch(r"\.(?:\[([\w,-]+)\])?", requirement)
        assert found, f"{requirement!r} is not installed from a checkout"
        assert set((found[1] or "").split(",")) <= {"", *PROJECT["project"]["optional-dependencies"]}, requirement


def test_every_reason_is_of_a_line() -> None:
    """None is left of a line that is gone."""
    written = {command for page in PAGES for command in commands(page)}
    assert [line for line in NOT_RUN if not any(re.match(line, command) for command in written)] == []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, and beside it the pip of an empty environment."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "venv", folder / "empty"], check=True)
    subprocess.run([folder / "empty/bin/python", "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, REPOSITORY], check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.installs
@pytest.mark.parametrize("words", INSTALLS, ids=" ".join)
def test_what_the_pages_install_can_be_installed(words: tuple[str, ...], wheel: Path) -> None:
    """The same requirements of the wheel, into an empty environment; nothing is installed."""
    asked = [f"{wheel}{word.removeprefix('.')}" for word in words]
    pip = [wheel.parent / "empty/bin/python", "-m", "pip", "install", "--dry-run", "--disable-pip-version-check", *asked]
    done = subprocess.run(pip, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Would install {NAME}" in done.stdout or re.search(rf"Would install .*\b{NAME}-\d", done.stdout), done.stdout


@pytest.mark.installs
def test_a_repository_can_be_installed(wheel: Path) -> None:
    """`git+` and an address: here that of this checkout."""
    if not (REPOSITORY / ".git").exists():
        pytest.skip("an unpacked source distribution is no repository")
    python, address = wheel.parent / "empty/bin/python", f"git+{REPOSITORY.as_uri()}"
    pip = [python, "-m", "pip", "install", "--dry-run", "--disable-pip-version-check", address]
    done = subprocess.run(pip, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    assert NAME in done.stdout


@pytest.mark.installs
def test_no_index_has_it(wheel: Path) -> None:
    """The README says so. Where this fails, say there how to install it from the index."""
    pip = [
        wheel.parent / "empty/bin/python",
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--disable-pip-version-check",
        "-d",
        wheel.parent / "none",
    ]
    done = subprocess.run([*pip, NAME], capture_output=True, text=True, timeout=280)
    assert done.returncode != 0
    assert f"No matching distribution found for {NAME}" in done.stderr
