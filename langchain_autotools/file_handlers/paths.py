"""Paths that a model writes, as the names to walk from a folder to a file."""

import fnmatch
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

from langchain_core.tools import ToolException

from ..errors import ConfigurationError

MAX_DEPTH: Final = 64
"""Maximum number of names in a path: each is an open directory while a file is written."""
_REPOSITORY: Final = (".git", "git~1")  # the second is the short name of the first on Windows


def parts_of(path: object, root: str | None = None) -> tuple[str, ...]:
    """Return the names in a relative path, or in an absolute one below `root`.

    Raises:
        ToolException: It is no such path, or one that leaves the folder.
    """
    if not isinstance(path, str):
        raise ToolException("a path must be a string")
    if not is_nameable(path):
        raise ToolException(f"{path!r} has characters that no path may have")
    names = tuple(name for name in path.split("/") if name not in ("", "."))
    if ".." in names:
        raise ToolException(f"{path}: a path must not contain `..`")
    if path.startswith("/"):
        names = _below(path, names, root)
    if len(names) > MAX_DEPTH:
        raise ToolException(f"{path}: a path must not have more than {MAX_DEPTH} names")
    return names


def _below(path: str, names: tuple[str, ...], root: str | None) -> tuple[str, ...]:
    if root is None:
        raise ToolException(f"{path}: a path must be relative, without a leading `/`")
    above = tuple(name for name in root.split("/") if name)
    if names[: len(above)] != above:
        raise ToolException(f"{path}: an absolute path must begin with {root}")
    return names[len(above) :]


def is_nameable(text: str) -> bool:
    """Return whether a text has neither control characters, NUL among them, nor halves of surrogate pairs."""
    return not any(unicodedata.category(character) in ("Cc", "Cs") for character in text)


class RefusedPaths:
    """The rule for paths that are never read, listed or written: `.git`, and what the caller names.

    Names are compared as the most lenient file system does: without case and invisible characters, and without what Windows leaves out
    (`.GIT`, `.git.` and `.git::$DATA` are `.git` on some).
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        named = () if isinstance(patterns, str) else tuple(patterns)
        if isinstance(patterns, str) or not all(isinstance(pattern, str) and pattern.strip("/") for pattern in named):
            raise ConfigurationError("`refused` must be a sequence of names and patterns, for example ('.env', '*.pem', 'private/*')")
        folded = [_folded(pattern.strip("/")) for pattern in named]
        self._names = (*_REPOSITORY, *(pattern for pattern in folded if "/" not in pattern))
        self._paths = tuple(pattern for pattern in folded if "/" in pattern)

    def __contains__(self, names: tuple[str, ...]) -> bool:
        folded = [_folded(name) for name in names]
        return self._matches(folded) or self._matches([_as_windows_opens(name) for name in folded])

    def _matches(self, names: Sequence[str]) -> bool:
        if any(fnmatch.fnmatchcase(name, pattern) for name in names for pattern in self._names):
            return True
        above = ["/".join(names[: end + 1]) for end in range(len(names))] if self._paths else []
        return any(fnmatch.fnmatchcase(path, pattern) for path in above for pattern in self._paths)


def _folded(text: str) -> str:
    normal = unicodedata.normalize("NFKC", text)
    return "".join(character for character in normal if unicodedata.category(character) != "Cf").casefold()


def _as_windows_opens(name: str) -> str:
    """Return a name without the stream that it names, and without dots and spaces at its end."""
    return name.partition(":")[0].rstrip(" .")
