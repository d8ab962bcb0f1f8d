"""The handler of the text editor, a tool that shows and edits files by commands."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.tools import ToolException

from .folder import Folder
from .text_edits import argument, inserted, numbered, replaced

_MAX_UNDONE = 20


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
