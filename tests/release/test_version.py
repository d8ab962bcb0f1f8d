"""One version is in the package, its metadata, the changelog and on the first screens of the pages."""

import re
import tomllib

from langchain_autotools import __version__
from langchain_autotools._version import DISTRIBUTION

from .lists import REPOSITORY

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_pages_carry_the_version() -> None:
    """README and the home page of the site name the version of the package, and no other."""
    for page in ("README.md", "docs/index.md"):
        text = (REPOSITORY / page).read_text(encoding="utf-8")
        assert set(re.findall(r"\b[Vv]ersion (\d+\.\d+\.\d+)", text)) == {__version__}, page


def test_the_changelog_has_a_dated_section_of_the_version_below_what_is_unreleased() -> None:
    """The newest section is that of the version, with the day of its release."""
    text = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased, newest = re.findall(r"^## (.+)$", text, re.MULTILINE)[:2]
    assert unreleased == "[Unreleased]"
    assert re.fullmatch(rf"\[{re.escape(__version__)}\] - \d{{4}}-\d\d-\d\d", newest)


def test_the_first_release_is_read_in_two_minutes() -> None:
    """Its section has fewer than 600 words: what nobody had, nobody has to read of."""
    text = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    assert len(text.partition("\n## [0.1.0]")[2].split("\n## ")[0].split()) < 600


def test_the_metadata_are_those_of_the_package() -> None:
    """The name is the one that the package tells tracers, and no address is named: the package has none."""
    assert PROJECT["name"] == DISTRIBUTION
    assert "urls" not in PROJECT


def test_the_readme_and_the_classifiers_name_the_same_pythons() -> None:
    """The oldest of them is the one that the package requires."""
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"3\.\d+", readme.partition("tested on Python ")[2].partition(".\n")[0])
    assert named == re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert PROJECT["requires-python"] == f">={named[0]}"
