"""The memory tool over any storage, on the SDK's own base class."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Protocol


class MemoryStorage(Protocol):
    """What keeps a model's memory: one method for each command of the tool, which returns the text for the model."""

    def view(self, path: str, view_range: list[int] | None) -> str:
        """Return the lines of a file, or the files of a directory."""

    def create(self, path: str, text: str) -> str:
        """Make a new file."""

    def str_replace(self, path: str, old: str, new: str) -> str:
        """Replace what occurs once in a file."""

    def insert(self, path: str, line: int, text: str) -> str:
        """Add lines to a file."""

    def delete(self, path: str) -> str:
        """Remove a file or a directory."""

    def rename(self, old: str, new: str) -> str:
        """Rename or move a file or a directory."""


def run_command(storage: MemoryStorage, arguments: Mapping[str, Any]) -> str:
    """Return what a command of the memory tool (`memory_20250818`) returns. Its arguments are complete and of the right types."""
    return str(_memory_tool()(storage).call(dict(arguments)))


@cache
def _memory_tool() -> type[Any]:
    from anthropic.lib.tools import BetaAbstractMemoryTool

    class StoredMemory(BetaAbstractMemoryTool):
        def __init__(self, storage: MemoryStorage) -> None:
            super().__init__()
            self._storage = storage

        def view(self, command: Any) -> str:
            return self._storage.view(command.path, command.view_range)

        def create(self, command: Any) -> str:
            return self._storage.create(command.path, command.file_text)

        def str_replace(self, command: Any) -> str:
            return self._storage.str_replace(command.path, command.old_str, command.new_str)

        def insert(self, command: Any) -> str:
            return self._storage.insert(command.path, command.insert_line, command.insert_text)

        def delete(self, command: Any) -> str:
            return self._storage.delete(command.path)

        def rename(self, command: Any) -> str:
            return self._storage.rename(command.old_path, command.new_path)

    return StoredMemory
