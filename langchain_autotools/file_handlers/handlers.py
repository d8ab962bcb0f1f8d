"""Handlers of the vendors' file tools: `apply_patch`, the text editor, the memory tool."""

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from langchain_core.tools import ToolException

from ..providers.memory_tools import run_command
from .folder import Folder
from .text_edits import argument, changed_text, created_text, inserted, numbered, replaced

_MAX_UNDONE = 20
_MEMORY_ROOT = "/memories"
_MEMORY_ARGUMENTS: Mapping[str, Mapping[str, type[Any]]] = {
    "view": {"path": str},
    "create": {"path": str, "file_text": str},
    "str_replace": {"path": str, "old_str": str, "new_str": str},
    "insert": {"path": str, "insert_line": int, "insert_text": str},
    "delete": {"path": str},
    "rename": {"old_path": str, "new_path": str},
}


def apply_patch(folder: Folder) -> Callable[[Mapping[str, Any]], dict[str, str]]:
    """Return a handler of `apply_patch` calls, which makes, changes and deletes files of one folder.

    A diff is applied as a whole or not at all. Where its lines are not in the file, or in several places, the result says so and the
    model tries again: its status is then `failed`.

    Args:
        folder: The folder. Paths are relative to it.
    """
    return partial(_patch_result, folder)


def _patch_result(folder: Folder, arguments: Mapping[str, Any]) -> dict[str, str]:
    try:
        return {"status": "completed", "output": _apply_operation(folder, arguments.get("operation"))}
    except ToolException as error:
        return {"status": "failed", "output": str(error)}


def _apply_operation(folder: Folder, operation: Any) -> str:
    if not isinstance(operation, Mapping):
        raise ToolException("`operation` must be an object")
    kind, path, diff = operation.get("type"), operation.get("path"), operation.get("diff", "")
    if not isinstance(path, str) or not isinstance(diff, str):
        raise ToolException("`path` and `diff` of an operation must be strings")
    if kind == "create_file":
        folder.create(path, created_text(diff))
        return f"Created {path}"
    if kind == "update_file":
        folder.edit(path, lambda text: changed_text(text, diff))
        return f"Updated {path}"
    if kind == "delete_file":
        folder.delete(path)
        return f"Deleted {path}"
    raise ToolException(f"an operation must be create_file, update_file or delete_file, not {kind!r}")


# --------------------------------------------------------------------------- the text editor, a tool that shows and edits files by commands


def text_editor(folder: Folder, *, root: str | None = None, max_characters: int | None = None) -> Callable[[Mapping[str, Any]], str]:
    """Return a handler of text editor calls for the files of one folder: view, create, str_replace, insert, undo_edit.

    Args:
        folder: The folder.
        root: The absolute path under which the model knows the folder, since it often writes absolute ones; without it the folder's
            own path. Paths may also be relative to the folder.
        max_characters: Maximum length of what is shown of a file, for tools that are declared with the same.
    """
    return _TextEditor(folder.known_as(root or folder.path), max_characters)


class _TextEditor:
    def __init__(self, folder: Folder, max_characters: int | None) -> None:
        self._folder = folder
        self._max_characters = max_characters
        self._edits: deque[tuple[tuple[str, ...], str | None, str]] = deque(maxlen=_MAX_UNDONE)

    def __call__(self, arguments: Mapping[str, Any]) -> str:
        commands = {
            "view": self._view,
            "create": self._create,
            "str_replace": self._str_replace,
            "insert": self._insert,
            "undo_edit": self._undo_edit,
        }
        command = arguments.get("command")
        if not isinstance(command, str) or command not in commands:
            raise ToolException(f"Unrecognized command {command!r}. The allowed commands are: {', '.join(commands)}")
        return commands[command](argument(arguments, "path"), arguments)

    def _view(self, path: str, arguments: Mapping[str, Any]) -> str:
        view_range = arguments.get("view_range")
        if self._folder.is_directory(path):
            if view_range is not None:
                raise ToolException("The `view_range` parameter is not allowed when `path` points to a directory.")
            entries = [f"{path.rstrip('/')}/{entry.path}{'/' * entry.is_directory}" for entry in self._folder.entries(path)]
            return "\n".join([path, *entries])
        shown = numbered(self._folder.read(path), view_range, lambda number, line: f"{number}: {line}")
        if self._max_characters is None or len(shown) <= self._max_characters:
            return shown
        return f"{shown[: self._max_characters]}\n[cut off after {self._max_characters} characters: use view_range to see other lines]"

    def _create(self, path: str, arguments: Mapping[str, Any]) -> str:
        text = argument(arguments, "file_text")
        self._folder.create(path, text)
        self._edits.append((self._folder.names(path), None, text))
        return f"File created successfully at: {path}"

    def _str_replace(self, path: str, arguments: Mapping[str, Any]) -> str:
        old, new = argument(arguments, "old_str"), argument({"new_str": "", **arguments}, "new_str")
        self._edit(path, lambda text: replaced(text, old, new, path)[0])
        return "Successfully replaced text at exactly one location."

    def _insert(self, path: str, arguments: Mapping[str, Any]) -> str:
        # Versions of the tool before 2025-07 have the lines in `new_str`.
        line, added = (
            argument(arguments, "insert_line", int),
            argument(arguments, "insert_text" if "insert_text" in arguments else "new_str"),
        )
        self._edit(path, lambda text: inserted(text, line, added))
        return f"The file {path} has been edited."

    def _edit(self, path: str, change: Callable[[str], str]) -> None:
        edit: list[tuple[tuple[str, ...], str | None, str]] = []

        def changed(text: str) -> str:
            edit.append((self._folder.names(path), text, change(text)))
            return edit[0][2]

        self._folder.edit(path, changed)
        self._edits.extend(edit)

    def _undo_edit(self, path: str, arguments: Mapping[str, Any]) -> str:
        names = self._folder.names(path)
        edit = next((edit for edit in reversed(self._edits) if edit[0] == names), None)
        if edit is None:
            raise ToolException(f"No edit history found for {path}.")
        _, before, after = edit

        def undone(text: str) -> str:
            if text != after:
                raise ToolException(f"{path} has changed since its last edit, which can no longer be undone")
            return before or ""

        self._folder.edit(path, undone)
        if before is None:
            self._folder.delete(path)
        self._edits = deque((one for one in self._edits if one is not edit), maxlen=_MAX_UNDONE)
        return f"Last edit to {path} undone successfully."


# ---------------------------------------------------------- the memory tool, by which a model keeps notes from one conversation to the next


def memory(folder: Folder) -> Callable[[Mapping[str, Any]], str]:
    """Return a handler of memory calls, whose `/memories` is one folder: view, create, str_replace, insert, delete, rename.

    Args:
        folder: The folder. What one user's model keeps there, the model reads for whoever gets the same folder: give each user one.
    """
    return partial(_memory_result, folder.known_as(_MEMORY_ROOT))


def _memory_result(folder: Folder, arguments: Mapping[str, Any]) -> str:
    command = arguments.get("command")
    if not isinstance(command, str) or command not in _MEMORY_ARGUMENTS:
        raise ToolException(f"Unrecognized command {command!r}. The allowed commands are: {', '.join(_MEMORY_ARGUMENTS)}")
    given = {name: argument(arguments, name, kind) for name, kind in _MEMORY_ARGUMENTS[command].items()}
    for name in given:
        if name.endswith("path") and not given[name].startswith("/"):
            raise ToolException(f"{given[name]}: a path must begin with {_MEMORY_ROOT}")
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
