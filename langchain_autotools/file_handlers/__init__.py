"""Handlers of the file tools that vendors train their models on, each for the files of one folder."""

from .folder import Entry, Folder

__all__ = ["Entry", "Folder"]
