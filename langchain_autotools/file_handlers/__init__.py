"""Handlers of the file tools that vendors train their models on, each for the files of one folder."""

from .apply_patch import apply_patch
from .folder import Entry, Folder
from .memory import memory
from .text_editor import text_editor

__all__ = ["Entry", "Folder", "apply_patch", "memory", "text_editor"]
