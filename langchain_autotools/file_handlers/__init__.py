"""Handlers of the file tools that vendors train their models on, each for the files of one folder."""

from .folder import Entry, Folder
from .handlers import apply_patch, memory, text_editor

__all__ = ["Entry", "Folder", "apply_patch", "memory", "text_editor"]
