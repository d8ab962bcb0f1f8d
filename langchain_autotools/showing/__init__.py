"""Runs shown to people while they happen: in a notebook, at a terminal."""

from .view import show

__all__ = ["show"]
