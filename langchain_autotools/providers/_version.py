"""The version of this distribution, as traces tell it."""

from functools import cache
from importlib import metadata

__all__ = ["DISTRIBUTION", "installed_version"]

DISTRIBUTION = "langchain-autotools-chat"


@cache
def installed_version() -> str | None:
    """The installed version; None where the package runs from its sources alone."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return None
