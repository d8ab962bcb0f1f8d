"""One folder, whose files a model may reach: no path or link leads out of it."""

import errno
import fnmatch
import os
import shutil
import stat
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from secrets import token_hex
from typing import Any, Final, NamedTuple

from langchain_core.tools import ToolException

from ..errors import ConfigurationError

_MAX_DEPTH: Final = 64
"""Maximum number of names in a path: each is an open directory while a file is written."""

_REPOSITORY: Final = (".git", "git~1")  # the second is the short name of the first on Windows
_BYTE_ORDER_MARK = "\ufeff"
_MAX_LISTED = 1_000
_Names = tuple[str, ...]


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
        refused: Names and patterns of what is neither read, listed nor written. A pattern without a `/` holds for every name on the way
            (`".env"`, `"*.pem"`), one with a `/` for paths from the folder on (`"private/*"`). Each holds for all that lies below, too.
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
        self._refused = _RefusedPaths(refused)
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
            return _decoded(_read_file(directory, name, self.max_bytes)[0], path).removeprefix(_BYTE_ORDER_MARK)

    def create(self, path: str, text: str) -> None:
        """Make a new file, and the directories that lead to it."""
        *above, name = self._names(path)
        data = self._encoded(text, path)
        with self._lock, _reported(path), self._opened(above, make=True) as directory:
            with _written(directory, data, None) as temporary:
                if _status_of(directory, name) is not None:
                    raise FileExistsError
                os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)

    def edit(self, path: str, change: Callable[[str], str]) -> None:
        """Replace the text of a file by what `change` makes of it. What `change` raises leaves the file as it is."""
        *above, name = self._names(path)
        with self._lock, _reported(path), self._opened(above) as directory:
            data, status = _read_file(directory, name, self.max_bytes)
            old = _decoded(data, path)
            mark = _BYTE_ORDER_MARK if old.startswith(_BYTE_ORDER_MARK) else ""
            _replace_file(directory, name, self._encoded(mark + change(old.removeprefix(mark)), path), status)

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
                if _status_of(target, name_new) is not None:
                    raise ToolException(f"The destination {new} already exists")
                os.rename(name_old, name_new, src_dir_fd=source, dst_dir_fd=target)

    def _require_movable(self, directory: int, old: tuple[str, ...], new: tuple[str, ...], directories: bool) -> str:
        """Return `file` or `directory`; raise if a name is neither, or a directory holds something refused, here or at its new place."""
        kind = _kind_of(_status_of(directory, old[-1]))
        if kind == "nothing":
            raise FileNotFoundError
        if kind != "file" and not (directories and kind == "directory"):
            raise ToolException(f"{'/'.join(old)} is a {kind}")
        if kind == "directory":
            with _descended(os.dup(directory), old[-1:]) as inner:
                held = [names for names, _ in _walked(inner, lambda _: True)]
            if any((*place, *names) in self._refused for place in (old, new) for names in held):
                raise ToolException(f"{'/'.join(old)} holds something that must stay where it is")
        return kind

    def is_directory(self, path: str) -> bool:
        """Return whether a path leads to a directory. It is one, a file, or refused."""
        names = self._names(path, empty=True)
        with _reported(path), self._opened(names[:-1]) as directory:
            status = _status_of(directory, names[-1] if names else ".")
            if status is None:
                raise FileNotFoundError
            return _kind_of(status) == "directory"

    def entries(self, path: str, depth: int = 2) -> list[Entry]:
        """Return what a directory holds, down to `depth` levels: no hidden names, no `node_modules`, nothing refused, no links."""
        above = self._names(path, empty=True)

        def is_shown(names: tuple[str, ...]) -> bool:
            name = names[-1]
            is_plain = _is_nameable(name) and not name.startswith(".") and name != "node_modules"
            return is_plain and len(names) <= depth and (*above, *names) not in self._refused

        found: list[Entry] = []
        with _reported(path), self._opened(above) as directory:
            for names, status in _walked(directory, is_shown):
                if (kind := _kind_of(status)) in ("file", "directory"):
                    found.append(Entry("/".join(names), status.st_size, kind == "directory"))
                if len(found) > _MAX_LISTED:
                    raise ToolException(f"{path} holds more than {_MAX_LISTED:,} files: list one of its directories")
        return found

    def names(self, path: str) -> tuple[str, ...]:
        """Return the names that lead from the folder to a file: equal for all spellings of one path."""
        return self._names(path)

    def _names(self, path: str, *, empty: bool = False) -> tuple[str, ...]:
        names = _parts_of(path, self._root)
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
        return _descended(start, tuple(names), make=make)

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


# ---------------------------------------------------------------------------------------------- paths


def _parts_of(path: object, root: str | None = None) -> tuple[str, ...]:
    """Return the names in a relative path, or in an absolute one below `root`.

    Raises:
        ToolException: It is no such path, or one that leaves the folder.
    """
    if not isinstance(path, str):
        raise ToolException("a path must be a string")
    if not _is_nameable(path):
        raise ToolException(f"{path!r} has characters that no path may have")
    names = tuple(name for name in path.split("/") if name not in ("", "."))
    if ".." in names:
        raise ToolException(f"{path}: a path must not contain `..`")
    if path.startswith("/"):
        names = _below(path, names, root)
    if len(names) > _MAX_DEPTH:
        raise ToolException(f"{path}: a path must not have more than {_MAX_DEPTH} names")
    return names


def _below(path: str, names: tuple[str, ...], root: str | None) -> tuple[str, ...]:
    if root is None:
        raise ToolException(f"{path}: a path must be relative, without a leading `/`")
    above = tuple(name for name in root.split("/") if name)
    if names[: len(above)] != above:
        raise ToolException(f"{path}: an absolute path must begin with {root}")
    return names[len(above) :]


def _is_nameable(text: str) -> bool:
    """Return whether a text has neither control characters, NUL among them, nor halves of surrogate pairs."""
    return not any(unicodedata.category(character) in ("Cc", "Cs") for character in text)


class _RefusedPaths:
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
        return self._matches(folded) or self._matches([name.partition(":")[0].rstrip(" .") for name in folded])  # as Windows opens it

    def _matches(self, names: Sequence[str]) -> bool:
        if any(fnmatch.fnmatchcase(name, pattern) for name in names for pattern in self._names):
            return True
        above = ["/".join(names[: end + 1]) for end in range(len(names))] if self._paths else []
        return any(fnmatch.fnmatchcase(path, pattern) for path in above for pattern in self._paths)


def _folded(text: str) -> str:
    normal = unicodedata.normalize("NFKC", text)
    return "".join(character for character in normal if unicodedata.category(character) != "Cf").casefold()


# ---------------------------------------------------------------------------------------------- files of one open directory
#
# They are named without a path and never through a link: every function takes the descriptor of a directory and a name in it, so that who
# exchanges directories meanwhile leads it nowhere else.


def _kind_of(status: os.stat_result | None) -> str:
    """Return what a status describes: `nothing`, `directory`, `file`, or what else it is, in words."""
    if status is None:
        return "nothing"
    if stat.S_ISDIR(status.st_mode):
        return "directory"
    if stat.S_ISLNK(status.st_mode):
        return "symbolic link"
    if not stat.S_ISREG(status.st_mode):
        return "special file"
    return "file" if status.st_nlink == 1 else "file with several hard links"


def _status_of(directory: int, name: str) -> os.stat_result | None:
    """Return the status of a name itself, whatever it is; None where there is nothing."""
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _opened_directory(name: str, directory: int) -> int:
    """Return a descriptor of a directory that is no link."""
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)


@contextmanager
def _descended(start: int, names: _Names, *, make: bool = False) -> Iterator[int]:
    """Open one directory after the other, from `start` on; close them all at the end.

    Args:
        start: A descriptor, which is closed too.
        names: The directories.
        make: Whether to make those that are missing. They are removed again when the block fails.
    """
    with ExitStack() as opened, ExitStack() as made:
        opened.callback(os.close, start)
        here = start
        for name in names:
            if make and _status_of(here, name) is None:
                os.mkdir(name, dir_fd=here)
                made.callback(_remove_directory, name, here)
            here = _opened_directory(name, here)
            opened.callback(os.close, here)
        yield here
        made.pop_all()


def _remove_directory(name: str, directory: int) -> None:
    with suppress(OSError):  # somebody has put something into it meanwhile: it stays
        os.rmdir(name, dir_fd=directory)


def _read_file(directory: int, name: str, max_bytes: int) -> tuple[bytes, os.stat_result]:
    """Return what a regular file holds, and its status at that time.

    Raises:
        FileNotFoundError: There is none.
        ToolException: It is something else, or too large.
    """
    _require_file(_status_of(directory, name), name)  # opening a device can already do something
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    with open(handle, "rb") as file:
        status = os.fstat(handle)
        _require_file(status, name)
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise ToolException(f"{name} is larger than {max_bytes:,} bytes")
    return data, status


def _require_file(status: os.stat_result | None, name: str) -> None:
    if status is None:
        raise FileNotFoundError
    if (kind := _kind_of(status)) != "file":
        raise ToolException(f"{name} is a {kind}, not a plain file")


def _replace_file(directory: int, name: str, data: bytes, old: os.stat_result) -> None:
    """Put another file in the place of a regular one, with the same permissions.

    Raises:
        ToolException: The file is not the one that was read, or has changed since.
    """
    os.close(os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory))  # it may be read-only
    with _written(directory, data, stat.S_IMODE(old.st_mode) & 0o777) as temporary:
        if _version(_status_of(directory, name)) != _version(old):
            raise ToolException(f"{name} was changed by somebody else meanwhile: look at it again")
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)


@contextmanager
def _written(directory: int, data: bytes, mode: int | None) -> Iterator[str]:
    """Write a temporary file for the block to rename; remove it when the block fails."""
    temporary = f".{token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(temporary, flags, 0o666 if mode is None else 0o600, dir_fd=directory)
    try:
        with open(handle, "wb") as file:
            if mode is not None:
                os.fchmod(handle, mode)
            file.write(data)
        yield temporary
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=directory)
        raise


def _version(status: os.stat_result | None) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns, status.st_nlink) if status else ()


def _walked(directory: int, keep: Callable[[_Names], bool], above: _Names = ()) -> Iterator[tuple[_Names, os.stat_result]]:
    """Yield everything in a directory and below it, sorted by name, with the names that lead there; links are yielded, never followed.

    Args:
        directory: The directory.
        keep: Returns whether to yield an entry, and to look into it where it is a directory.
        above: Names that are put before each.
    """
    for name in sorted(os.listdir(directory)):
        names = (*above, name)
        status = _status_of(directory, name) if keep(names) else None
        if status is None:
            continue
        yield names, status
        if stat.S_ISDIR(status.st_mode):
            with suppress(OSError):  # it is gone, or may not be read
                with _descended(_opened_directory(name, directory), ()) as inner:
                    yield from _walked(inner, keep, names)
