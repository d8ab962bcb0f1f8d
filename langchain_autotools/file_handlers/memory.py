"""The handler of the memory tool, by which a model keeps notes from one conversation to the next."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from langchain_core.tools import ToolException

from ..providers.memory_tools import run_command
from .folder import Folder
from .text_edits import argument, inserted, numbered, replaced

_ROOT = "/memories"
_ARGUMENTS: Mapping[str, Mapping[str, type[Any]]] = {
    "view": {"path": str},
    "create": {"path": str, "file_text": str},
    "str_replace": {"path": str, "old_str": str, "new_str": str},
    "insert": {"path": str, "insert_line": int, "insert_text": str},
    "delete": {"path": str},
    "rename": {"old_path": str, "new_path": str},
}


def memory(folder: Folder) -> Callable[[Mapping[str, Any]], str]:
    """Return a handler of memory calls, whose `/memories` is one folder: view, create, str_replace, insert, delete, rename.

    Args:
        folder: The folder. What one user's model keeps there, the model reads for whoever gets the same folder: give each user one.
    """
    return partial(_result, folder.known_as(_ROOT))


def _result(folder: Folder, arguments: Mapping[str, Any]) -> str:
    command = arguments.get("command")
    if not isinstance(command, str) or command not in _ARGUMENTS:
        raise ToolException(f"Unrecognized command {command!r}. The allowed commands are: {', '.join(_ARGUMENTS)}")
    given = {name: argument(arguments, name, kind) for name, kind in _ARGUMENTS[command].items()}
    for name in given:
        if name.endswith("path") and not given[name].startswith("/"):
            raise ToolException(f"{given[name]}: a path must begin with {_ROOT}")
    return run_command(_FolderMemory(folder), {**arguments, **given})


class _FolderMemory:
    """The commands of the memory tool, with the sentences that its documentation gives for their results."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def view(self, path: str, view_range: list[int] | None) -> str:
        """Return the lines of a file, or the files of a directory."""
        if not self._folder.is_directory(path):
            lines = numbered(self._folder.read(path), view_range, _numbered_line)
            return f"Here's the content of {path} with line numbers:\n{lines}"
        entries = self._folder.entries(path)
        above = path.rstrip("/")
        total = sum(entry.size for entry in entries if not entry.is_directory)
        lines = "".join(f"\n{_size(entry.size)}\t{above}/{entry.path}{'/' * entry.is_directory}" for entry in entries)
        head = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and node_modules:"
        return f"{head}\n{_size(total)}\t{path}{lines}"

    def create(self, path: str, text: str) -> str:
        """Make a new file."""
        self._folder.create(path, text)
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old: str, new: str) -> str:
        """Replace what occurs once in a file, and return the lines around it."""
        snippet = ""

        def changed(text: str) -> str:
            nonlocal snippet
            after, line = replaced(text, old, new, path)
            snippet = numbered(after, [max(1, line - 2), line + 2], _numbered_line)
            return after

        self._folder.edit(path, changed)
        return f"The memory file has been edited.\n{snippet}"

    def insert(self, path: str, line: int, text: str) -> str:
        """Add lines to a file."""
        self._folder.edit(path, lambda before: inserted(before, line, text))
        return f"The file {path} has been edited."

    def delete(self, path: str) -> str:
        """Remove a file or a directory."""
        self._folder.delete(path, directories=True)
        return f"Successfully deleted {path}"

    def rename(self, old: str, new: str) -> str:
        """Rename or move a file or a directory."""
        self._folder.rename(old, new)
        return f"Successfully renamed {old} to {new}"


def _numbered_line(number: int, line: str) -> str:
    return f"{number:6}\t{line}"


def _size(count: float) -> str:
    if count < 1024:
        return f"{count}B"
    return f"{count / 1024:.1f}K" if count < 1024**2 else f"{count / 1024**2:.1f}M"
