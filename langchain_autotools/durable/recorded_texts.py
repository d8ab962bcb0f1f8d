"""Large texts of a run, which are stored once: in the step that recorded them. Its events and its outcome name them by a digest."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from dbos import DBOS
from langchain_core.messages import AIMessage

from .engine import outside
from .plain import reply_of
from .stored import reading

_LARGE = 10_000  # characters from which on a text is named
_TEXT = "autotools_text"  # the only key of what stands in a text's place, with its digest
_NAMES = "names_texts"  # the key of what has such names


class RecordedTexts:
    """The large texts that an execution knows to be recorded in steps of its run."""

    def __init__(self) -> None:
        self._digests: set[str] = set()

    def add(self, record: Mapping[str, Any]) -> None:
        """Add the large texts of a step's record, once the step is recorded."""
        _mapped(record, lambda text: self._digests.add(_digest(text)))

    def named(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return plain JSON with names in place of recorded texts."""
        if not self._digests:
            return data
        named = _mapped(data, self._name_of)
        return data if named == data else {**named, _NAMES: True}

    def _name_of(self, text: str) -> Any:
        digest = _digest(text)
        return {_TEXT: digest} if digest in self._digests else text


def with_texts(run_id: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an outcome or a row of events of a run with the texts that it names.

    Raises:
        LookupError: No step of the run has one of them.
    """
    if not isinstance(data, Mapping) or not data.get(_NAMES):  # a row that is no mapping is its reader's to refuse
        return data
    texts: dict[str, str] = {}
    for step in outside(DBOS.list_workflow_steps, run_id):
        _mapped(step["output"], lambda text: texts.setdefault(_digest(text), text))
    return {key: _filled(value, texts) for key, value in data.items() if key != _NAMES}


def message_out(run_id: str, outcome: Any) -> AIMessage:
    """Return the run message of a run's outcome.

    Raises:
        RunFailedError: It cannot be read.
    """
    with reading(f"the outcome of run {run_id!r}"):
        return reply_of(with_texts(run_id, outcome)["message"])


def _mapped(value: Any, change: Callable[[str], Any]) -> Any:
    """Return plain JSON with its large texts changed."""
    if isinstance(value, str):
        return change(value) if len(value) >= _LARGE else value
    if isinstance(value, Mapping):
        return {key: _mapped(item, change) for key, item in value.items()}
    return [_mapped(item, change) for item in value] if isinstance(value, list) else value


def _filled(value: Any, texts: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_filled(item, texts) for item in value]
    if not isinstance(value, Mapping):
        return value
    if value.keys() == {_TEXT}:
        return texts[value[_TEXT]]
    return {key: _filled(item, texts) for key, item in value.items()}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
