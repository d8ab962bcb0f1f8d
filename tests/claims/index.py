"""The claims of the home page of the site."""

from __future__ import annotations

import pytest
from packaging.specifiers import SpecifierSet

import langchain_autotools
from langchain_autotools import __version__
from langchain_autotools._version import DISTRIBUTION
from langchain_autotools.providers.registry import model_named
from tests.claims.readme import is_lowest, project
from tests.claims.readme import the_index as the_index_of_the_readme
from tests.claims.registry import INDEX
from tests.claims.sentences import value
from tests.claims.tables import page_of, rows_of
from tests.claims.without_key import MEASURED
from tests.release.surface import described_names
from tests.support.pages import REPOSITORY

DOCS = REPOSITORY / "docs"


@INDEX.says("If you want X, read these {pages} leads from a task to its pages.")
def the_ways(pages: str, links: tuple[str, ...]) -> None:
    """Each row of that page has as many links."""
    rows = rows_of(page_of(links[0], DOCS), "You want to")
    assert {"".join(row.values()).count("](") for row in rows} == {value(pages)}


@INDEX.says("Install version {version} with Python {python} or newer.")
def the_install(version: str, python: str) -> None:
    """The package's version, and the lowest Python that it takes."""
    assert version == __version__
    assert is_lowest(python, SpecifierSet(project()["project"]["requires-python"]))


@INDEX.says("It is not on a package index yet: `{other}` there is another project.")
def the_index(other: str) -> None:
    """As on the README; the other project has another name."""
    the_index_of_the_readme()
    assert other != DISTRIBUTION


@INDEX.says("These commands download {download} MB and take {disk} GB on disk.")
def the_model_on_this_machine(download: str, disk: str) -> None:
    """The figures that were measured."""
    assert (value(download), value(disk)) == (MEASURED["download_mb"], MEASURED["disk_gb"])


@INDEX.says("Every provider of LangChain by name: {names} and others")
def the_providers(names: str, links: tuple[str, ...]) -> None:
    """Each name that LangChain has is in the page's table and leads to a class, those of the sentence among them."""
    known = {"Bedrock": "bedrock", "Claude on Vertex AI": "google_anthropic_vertex", "Perplexity": "perplexity"}
    listed = {row["name"].strip("`") for row in rows_of(page_of(links[0], DOCS), "name")}
    assert {known[name] for name in names.split(", ")} <= listed
    theirs = pytest.importorskip("langchain.chat_models.base")._BUILTIN_PROVIDERS
    assert set(theirs) <= listed
    assert {name: model_named("any", name)[0] for name in theirs} == {name: name for name in theirs}


@INDEX.says("Every public name, from the docstrings.")
def the_reference() -> None:
    """The pages of the reference describe what the package exports, and what they describe has a docstring."""
    names = set(langchain_autotools.__all__) - {"__version__"}
    assert names <= set(described_names())
    assert [name for name in names if not (getattr(langchain_autotools, name).__doc__ or "").strip()] == []
