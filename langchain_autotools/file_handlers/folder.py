"""One folder, whose files a model may read and write."""

import errno
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

from langchain_core.tools import ToolException

from ..errors import ConfigurationError
from .directories import create_file, descended, kind_of, read_file, replace_file, status_of, walked
from .paths import RefusedPaths, is_nameable, parts_of

_BYTE_ORDER_MARK = "\ufeff"
_MAX_LISTED = 1_000


class Entry(NamedTuple):
    """A file or directory in a list.

    Attributes:
        path: From the listed directory on.
        size: In bytes.
        is_directory: Whether it is a directory.
    """

    path: str
    size: int
    is_directory: bool


class Folder:
    """Read and write the text files of one folder, and nothing outside it.

    No link is followed, neither to a directory nor to a file, also if somebody exchanges directories for links meanwhile: each directory
    on the way is opened by its descriptor, and a file is written beside its place and renamed. A file that other hard links share, a
    device or a pipe is refused; so are paths that are absolute, or contain `..`, a control character, or `.git` in any spelling.

    Give one folder to all handlers that write to it: edits through one `Folder` follow each other; an edit that meets a change made
    elsewhere is refused.

    Args:
        path: An existing folder.
        refused: Names and patterns of what is neither read, listed nor written: a pattern without a `/` holds for every name on the way
            (`".env"`, `"*.pem"`), one with a `/` for paths from the folder on (`"private/*"`), each for all that lies below, too.
        max_bytes: Maximum size of a file that is read or written.

    Raises:
        ConfigurationError: An argument cannot work, or the operating system cannot open files in a directory by its descriptor, as
            Windows cannot.
    """

    path: str
    """The folder's absolute path."""

    def __init__(self, path: str | os.PathLike[str], *, refused: Iterable[str] = (), max_bytes: int = 1_000_000) -> None:
        if not isinstance(max_bytes, int) or max_bytes < 1:
            raise ConfigurationError("`max_bytes` must be a positive whole number")
        self.path = os.path.abspath(path)
        self.max_bytes = max_bytes
        self._refused = RefusedPaths(refused)
        self._root: str | None = None
        self._prepare()

    def _prepare(self) -> None:
        if os.open not in os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW"):
            raise ConfigurationError(f"`Folder` does not work on this operating system ({sys.platform}), for example on Windows")
        if not os.path.isdir(self.path):
            raise ConfigurationError(f"`path` must be an existing folder, and {self.path!r} is none")
        status = os.stat(self.path)
        self._identity = (status.st_dev, status.st_ino)
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Folder({self.path!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_lock", "_identity")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._prepare()

    def known_as(self, root: str) -> "Folder":
        """Return the same folder, in which an absolute path that begins with `root` is a path in the folder."""
        other = object.__new__(Folder)
        vars(other).update(vars(self), _root=root)
        return other

    def read(self, path: str) -> str:
        """Return the text of a file.

        Raises:
            ToolException: There is none, it is no UTF-8, too large, or refused. So for every other method.
        """
        *above, name = self._names(path)
        with _reported(path), self._opened(above) as directory:
            return _decoded(read_file(directory, name, self.max_bytes)[0], path).removeprefix(_BYTE_ORDER_MARK)

    def create(self, path: str, text: str) -> None:
        """Make a new file, and the directories that lead to it."""
        *above, name = self._names(path)
        data = self._encoded(text, path)
        with self._lock, _reported(path), self._opened(above, make=True) as directory:
            create_file(directory, name, data)

    def edit(self, path: str, change: Callable[[str], str]) -> None:
        """Replace the text of a file by what `change` makes of it. What `change` raises leaves the file as it is."""
        *above, name = self._names(path)
        with self._lock, _reported(path), self._opened(above) as directory:
            data, status = read_file(directory, name, self.max_bytes)
            old = _decoded(data, path)
            mark = _BYTE_ORDER_MARK if old.startswith(_BYTE_ORDER_MARK) else ""
            replace_file(directory, name, self._encoded(mark + change(old.removeprefix(mark)), path), status)

    def delete(self, path: str, *, directories: bool = False) -> None:
        """Remove a file.

        Args:
            path: The file.
            directories: Whether it may be a directory, which goes with all that it holds, unless that includes something refused.
        """
        *above, name = names = self._names(path)
        with self._lock, _reported(path), self._opened(above) as directory:
            kind = self._require_movable(directory, names, names, directories)
            if kind == "directory":
                shutil.rmtree(name, dir_fd=directory)
            else:
                os.unlink(name, dir_fd=directory)

    def rename(self, old: str, new: str) -> None:
        """Rename or move a file or a directory, to a place where nothing is yet. Directories that lead there are made."""
        *above_old, name_old = names_old = self._names(old)
        *above_new, name_new = names_new = self._names(new)
        with self._lock, _reported(old), self._opened(above_old) as source:
            self._require_movable(source, names_old, names_new, True)
            with _reported(new), self._opened(above_new, make=True) as target:
                if status_of(target, name_new) is not None:
                    raise ToolException(f"The destination {new} already exists")
                os.rename(name_old, name_new, src_dir_fd=source, dst_dir_fd=target)

    def _require_movable(self, directory: int, old: tuple[str, ...], new: tuple[str, ...], directories: bool) -> str:
        """Return `file` or `directory`; raise if a name is neither, or a directory holds something refused, here or at its new place."""
        kind = kind_of(status_of(directory, old[-1]))
        if kind == "nothing":
            raise FileNotFoundError
        if kind != "file" and not (directories and kind == "directory"):
            raise ToolException(f"{'/'.join(old)} is a {kind}")
        if kind == "directory":
            with descended(os.dup(directory), old[-1:]) as inner:
                held = [names for names, _ in walked(inner, lambda _: True)]
            if any((*place, *names) in self._refused for place in (old, new) for names in held):
                raise ToolException(f"{'/'.join(old)} holds something that must stay where it is")
        return kind

    def is_directory(self, path: str) -> bool:
        """Return whether a path leads to a directory. It is one, a file, or refused."""
        names = self._names(path, empty=True)
        with _reported(path), self._opened(names[:-1]) as directory:
            status = status_of(directory, names[-1] if names else ".")
            if status is None:
                raise FileNotFoundError
            return kind_of(status) == "directory"

    def entries(self, path: str, depth: int = 2) -> list[Entry]:
        """Return what a directory holds, down to `depth` levels: no hidden names, no `node_modules`, nothing refused, no links."""
        above = self._names(path, empty=True)

        def is_shown(names: tuple[str, ...]) -> bool:
            name = names[-1]
            is_plain = is_nameable(name) and not name.startswith(".") and name != "node_modules"
            return is_plain and len(names) <= depth and (*above, *names) not in self._refused

        found: list[Entry] = []
        with _reported(path), self._opened(above) as directory:
            for names, status in walked(directory, is_shown):
                if (kind := kind_of(status)) in ("file", "directory"):
                    found.append(Entry("/".join(names), status.st_size, kind == "directory"))
                if len(found) > _MAX_LISTED:
                    raise ToolException(f"{path} holds more than {_MAX_LISTED:,} files: list one of its directories")
        return found

    def names(self, path: str) -> tuple[str, ...]:
        """Return the names that lead from the folder to a file: equal for all spellings of one path."""
        return self._names(path)

    def _names(self, path: str, *, empty: bool = False) -> tuple[str, ...]:
        names = parts_of(path, self._root)
        if names in self._refused:
            raise ToolException(f"{path}: this path is refused")
        if not names and not empty:
            raise ToolException(f"{path} is the folder itself, not a file in it")
        return names

    def _opened(self, names: Iterable[str], *, make: bool = False) -> AbstractContextManager[int]:
        start = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        status = os.fstat(start)
        if (status.st_dev, status.st_ino) != self._identity:
            os.close(start)
            raise ToolException("the folder is not the one that it was: it has been replaced")
        return descended(start, tuple(names), make=make)

    def _encoded(self, text: str, path: str) -> bytes:
        try:
            data = text.encode("utf-8")
        except UnicodeEncodeError:
            raise ToolException(f"{path}: the text has half a surrogate pair, which no file can hold") from None
        if len(data) > self.max_bytes:
            raise ToolException(f"{path} would be larger than {self.max_bytes:,} bytes")
        return data


def _decoded(data: bytes, path: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ToolException(f"{path} is no text in UTF-8") from None


@contextmanager
def _reported(path: str) -> Iterator[None]:
    """Raise what the operating system refuses as an error that a model can act on, without the machine's own paths."""
    try:
        yield
    except FileNotFoundError:
        raise ToolException(f"The path {path} does not exist. Please provide a valid path.") from None
    except FileExistsError:
        raise ToolException(f"File {path} already exists") from None
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise ToolException(f"{path}: something on the way is a link or a file, not a directory") from None
        raise ToolException(f"{path}: {os.strerror(error.errno or 0)}") from None
