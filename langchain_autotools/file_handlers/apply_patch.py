"""The handler of `apply_patch`, a tool that creates, changes and deletes files by diffs."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from langchain_core.tools import ToolException

from .diff import changed_text, created_text
from .folder import Folder


def apply_patch(folder: Folder) -> Callable[[Mapping[str, Any]], dict[str, str]]:
    """Return a handler of `apply_patch` calls, which makes, changes and deletes files of one folder.

    A diff is applied as a whole or not at all. Where its lines are not in the file, or in several places, the result says so and the
    model tries again: its status is then `failed`.

    Args:
        folder: The folder. Paths are relative to it.
    """
    return partial(_result, folder)


def _result(folder: Folder, arguments: Mapping[str, Any]) -> dict[str, str]:
    try:
        return {"status": "completed", "output": _apply(folder, arguments.get("operation"))}
    except ToolException as error:
        return {"status": "failed", "output": str(error)}


def _apply(folder: Folder, operation: Any) -> str:
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
