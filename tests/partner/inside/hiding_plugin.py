"""Runs inside a test run of LangChain's own, before it is imported: the package `PARTNER_HIDDEN` does not count as installed."""

import importlib.metadata
import os
from collections.abc import Callable

HIDDEN = os.environ["PARTNER_HIDDEN"]


def version_of(name: str, _version: Callable[[str], str] = importlib.metadata.version) -> str:
    """The installed release of a package, as `importlib.metadata` says it."""
    if name == HIDDEN:
        raise importlib.metadata.PackageNotFoundError(name)
    return _version(name)


importlib.metadata.version = version_of
