"""Files of one open directory, named without a path and never through a link.

Every function takes the descriptor of a directory and a name in it: who exchanges directories meanwhile leads it nowhere else.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from secrets import token_hex

from langchain_core.tools import ToolException

Names = tuple[str, ...]


def kind_of(status: os.stat_result | None) -> str:
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


def status_of(directory: int, name: str) -> os.stat_result | None:
    """Return the status of a name itself, whatever it is; None where there is nothing."""
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def opened_directory(name: str, directory: int) -> int:
    """Return a descriptor of a directory that is no link."""
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)


@contextmanager
def descended(start: int, names: Names, *, make: bool = False) -> Iterator[int]:
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
            if make and status_of(here, name) is None:
                os.mkdir(name, dir_fd=here)
                made.callback(_remove_directory, name, here)
            here = opened_directory(name, here)
            opened.callback(os.close, here)
        yield here
        made.pop_all()


def _remove_directory(name: str, directory: int) -> None:
    with suppress(OSError):  # somebody has put something into it meanwhile: it stays
        os.rmdir(name, dir_fd=directory)


def read_file(directory: int, name: str, max_bytes: int) -> tuple[bytes, os.stat_result]:
    """Return what a regular file holds, and its status at that time.

    Raises:
        FileNotFoundError: There is none.
        ToolException: It is something else, or too large.
    """
    _require_file(status_of(directory, name), name)  # opening a device can already do something
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
    if (kind := kind_of(status)) != "file":
        raise ToolException(f"{name} is a {kind}, not a plain file")


def replace_file(directory: int, name: str, data: bytes, old: os.stat_result) -> None:
    """Put another file in the place of a regular one, with the same permissions.

    Raises:
        ToolException: The file is not the one that was read, or has changed since.
    """
    os.close(os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory))  # it may be read-only
    with _written(directory, data, stat.S_IMODE(old.st_mode) & 0o777) as temporary:
        if _version(status_of(directory, name)) != _version(old):
            raise ToolException(f"{name} was changed by somebody else meanwhile: look at it again")
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)


def create_file(directory: int, name: str, data: bytes) -> None:
    """Make a file that is new.

    Raises:
        FileExistsError: There is something of that name.
    """
    with _written(directory, data, None) as temporary:
        if status_of(directory, name) is not None:
            raise FileExistsError
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


def walked(directory: int, keep: Callable[[Names], bool], above: Names = ()) -> Iterator[tuple[Names, os.stat_result]]:
    """Yield everything in a directory and below it, sorted by name, with the names that lead there; links are yielded, never followed.

    Args:
        directory: The directory.
        keep: Returns whether to yield an entry, and to look into it where it is a directory.
        above: Names that are put before each.
    """
    for name in sorted(os.listdir(directory)):
        names = (*above, name)
        status = status_of(directory, name) if keep(names) else None
        if status is None:
            continue
        yield names, status
        if stat.S_ISDIR(status.st_mode):
            with suppress(OSError):  # it is gone, or may not be read
                with descended(opened_directory(name, directory), ()) as inner:
                    yield from walked(inner, keep, names)
