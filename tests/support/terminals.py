"""Standard input for programs that run in this process: a real pipe, or a real pseudo terminal."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import pytest


@contextmanager
def input_pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[TextIO]:
    """Let standard input be a pipe; yields the end that a program writes to, line by line."""
    reading, writing = os.pipe()
    with _standard_input(monkeypatch, reading, writing) as other:
        yield other


@contextmanager
def input_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[TextIO]:
    """Let standard input be a terminal; yields what a human types on, line by line."""
    human, program = os.openpty()
    with _standard_input(monkeypatch, program, human) as other:
        yield other


@contextmanager
def _standard_input(monkeypatch: pytest.MonkeyPatch, own: int, other: int) -> Iterator[TextIO]:
    with open(own, encoding="utf-8") as reading, open(other, "w", encoding="utf-8", buffering=1) as writing:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", reading)
            yield writing


@contextmanager
def piped_in(monkeypatch: pytest.MonkeyPatch, text: str) -> Iterator[None]:
    """Let standard input be a pipe that brings this text and ends."""
    with input_pipe(monkeypatch) as pipe:
        pipe.write(text)
        pipe.close()
        yield
