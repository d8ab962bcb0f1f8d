"""Fetches the partner packages' sdists, and runs the unit tests of their chat models against our classes, each in a process of its own."""

import difflib
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
SDISTS = HERE / "sdists.txt"

CLASSES = {
    "langchain_anthropic": ["ChatAnthropic"],
    "langchain_deepseek": ["ChatDeepSeek"],
    "langchain_google_genai": ["ChatGoogleGenerativeAI"],
    "langchain_groq": ["ChatGroq"],
    "langchain_ollama": ["ChatOllama"],
    "langchain_openai": ["AzureChatOpenAI", "ChatOpenAI"],
    "langchain_openrouter": ["ChatOpenRouter"],
    "langchain_xai": ["ChatXAI"],
}
"""The packages that are tried, and what we have of each."""

NOT_TRIED = {
    "langchain_anthropic": ["middleware", "test_llms.py", "test_compat.py"],
    "langchain_google_genai": ["test_embeddings.py", "test_llms.py"],
    "langchain_ollama": ["test_embeddings.py", "test_llms.py"],
    "langchain_openai": [
        "chat_models/test_codex.py",
        "decisions",
        "embeddings",
        "llms",
        "middleware",
        "test_chatgpt_oauth.py",
        "test_check_version.py",
        "test_compat.py",
    ],
}
"""Tests of other things than the chat models that we have: embeddings, text completion, middleware, other classes."""

OPTIONS = ["-q", "--tb=no", "-p", "partner_plugin", "-p", "no:cacheprovider", "-p", "no:anyio", "-o", "asyncio_mode=auto"]
FENCES = ["--benchmark-disable", "--timeout=120", "--disable-socket", "--allow-unix-socket", "--continue-on-collection-errors"]


@dataclass(frozen=True)
class Result:
    """How one test of a partner package went.

    Attributes:
        package: The import name of the partner package.
        id: The test, below `tests/unit_tests/`.
        outcome: "passed", "failed", "skipped" or "xfailed".
        error: What it failed with.
        private: The names beginning with an underscore that it used and we do not have.
        sent: Whether it called a private helper in whose place it reads what our class sends (`inside/sent.py`).
    """

    package: str
    id: str
    outcome: str
    error: str = ""
    private: tuple[str, ...] = ()
    sent: bool = False


def pinned(sdists: Path) -> dict[str, str]:
    """The lines of a list of sdists, by their packages."""
    lines = sdists.read_text(encoding="utf-8").splitlines()
    return {line.partition("==")[0].replace("-", "_"): line for line in lines if "==" in line}


def installed(package: str) -> str:
    """The release of a package that is installed, or ""."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def newest_of(package: str) -> str:
    """What to ask the index for: the release that is installed here, since tests are of a release; else the newest."""
    return f"{package}=={release}" if (release := installed(package)) else package


def fetch(folder: Path, sdists: Path, packages: Collection[str], *, newest: bool = False) -> dict[str, Path]:
    """Download these packages' sdists as a list pins them, or the newest, and unpack their tests; gives each package's folder."""
    pins = pinned(sdists)
    wanted = folder / "sdists.txt"
    wanted.write_text("\n".join(newest_of(package) if newest else pins[package] for package in packages), encoding="utf-8")
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary=:all:", "--no-build-isolation"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), "--requirement", str(wanted)]
    subprocess.run(command, check=True, timeout=900)
    unpacked = {}
    for archive in sorted(folder.glob("*.tar.gz")):
        with tarfile.open(archive) as tar:
            members = [member for member in tar.getmembers() if member.name.partition("/")[2].startswith("tests/")]
            tar.extractall(folder, members, filter="data")
        unpacked[archive.name.rpartition("-")[0]] = folder / archive.name.removesuffix(".tar.gz")
    for package, place in unpacked.items():
        told = {
            "tests of": release_of(place),
            "pinned": pins[package].split()[0].partition("==")[2],
            "installed": installed(package) or "none",
        }
        if newest:
            shown = subprocess.run([sys.executable, "-m", "pip", "index", "versions", package], capture_output=True, check=True, text=True)
            told["newest on the index"] = shown.stdout.split()[1].strip("()")
        print(package.replace("_", "-"), "; ".join(f"{what} {release}" for what, release in told.items()), sep=": ", flush=True)
    return unpacked


def release_of(folder: Path) -> str:
    """The release whose tests are in a folder."""
    return folder.name.rpartition("-")[2]


def settle(page: Path, text: str, *, writes: bool) -> list[str]:
    """Write a page, or name the lines in which it differs from this text."""
    old = page.read_text(encoding="utf-8")
    if writes:
        page.write_text(text, encoding="utf-8")
        return []
    lines = difflib.unified_diff(old.splitlines(), text.splitlines(), lineterm="", n=0)
    return [f"{page.name}: {line}" for line in lines if not line.startswith(("---", "+++", "@@"))]


def run(package: str, folder: Path) -> list[Result]:
    """Run a package's unit tests with our classes under its names."""
    record, settings = folder / "record.jsonl", folder / "settings.ini"
    settings.write_text("[pytest]\n", encoding="utf-8")
    left_out = [f"--ignore=tests/unit_tests/{name}" for name in NOT_TRIED.get(package, [])]
    command = [
        sys.executable,
        "-m",
        "pytest",
        *OPTIONS,
        *FENCES,
        *left_out,
        "-c",
        str(settings),
        "--rootdir",
        str(folder),
        "tests/unit_tests",
    ]
    paths = os.pathsep.join([str(HERE / "inside"), str(REPOSITORY)])
    about = {"PARTNER_RECORD": str(record), "PARTNER_CLASSES": json.dumps(CLASSES), "PYTHONPATH": paths}
    subprocess.run(command, cwd=folder, env={**os.environ, **about}, capture_output=True, check=False, timeout=1800)
    return [read(package, json.loads(line)) for line in record.read_text(encoding="utf-8").splitlines()]


def read(package: str, line: Mapping[str, Any]) -> Result:
    """One line of the record."""
    private = [name for name in line["missing"] if any(part.startswith("_") for part in name.split("."))]
    private += line.get("private", [])
    return Result(
        package,
        line["id"].removeprefix("tests/unit_tests/"),
        line["outcome"],
        line.get("error", ""),
        tuple(private),
        line.get("sent", False),
    )
