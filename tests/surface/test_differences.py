"""The comparison of two classes itself, over a class of ours and one in which differences are planted."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from langchain_autotools import ChatOpenAI
from tests.surface.differences import Difference, compare
from tests.surface.listed import OF_CLASSES, OF_WIRES, judged, news, text_of
from tests.surface.pairs import OURS, PAIRS, THEIRS, Stage

pytestmark = [pytest.mark.further, pytest.mark.filterwarnings("ignore")]


class Planted(ChatOpenAI):
    """Another default, another signature, another reply."""

    temperature: float | None = 0.25

    def get_num_tokens(self, words: str) -> int:  # type: ignore[override]
        """The argument has another name."""
        return super().get_num_tokens(words)

    def invoke(self, *args: Any, **kwargs: Any) -> Any:
        """The text has one character more, and the message says less of the reply."""
        message = super().invoke(*args, **kwargs)
        return message.model_copy(update={"content": f"{message.text}!", "response_metadata": {}})


def _differences(ours: type[ChatOpenAI], monkeypatch: pytest.MonkeyPatch) -> Iterator[Difference]:
    pair = dataclasses.replace(PAIRS[0], name="made up")
    monkeypatch.setattr(type(pair), "class_of", lambda self, side: ChatOpenAI if side == THEIRS else ours)
    for section, probe in {**OF_CLASSES, "reply": OF_WIRES["reply"], "structured": OF_WIRES["structured"]}.items():
        with Stage(pair, THEIRS) as theirs, Stage(pair, OURS) as other:
            yield from compare(section, (theirs, other), probe)


def test_a_class_does_not_differ_from_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is probed is the same each time."""
    assert [one.where for one in _differences(ChatOpenAI, monkeypatch)] == []


def test_planted_differences_are_found_and_fail(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In names, defaults and replies. They are news to a list without them, and so are they to one with them once they are gone."""
    found = list(_differences(Planted, monkeypatch))
    where = {one.where for one in found}
    assert "made up/name/get_num_tokens//text: there => -" in where
    assert "made up/argument/temperature/default/value: None => 0.25" in where
    assert 'made up/reply/text/invoke/text: "Hello there." => "Hello there.!"' in where
    assert "made up/reply/text/invoke/response_metadata: there => -" in where
    assert not any(one.section == "reply" and one.way == "stream" for one in found)
    stored = tmp_path / "differences.csv"
    verdicts = judged(found)
    stored.write_text(text_of([], judged([])), encoding="utf-8")
    assert sum(line.startswith("new: ") for line in news(found, verdicts, stored)) > 3
    stored.write_text(text_of(found, verdicts), encoding="utf-8")
    assert not any(line.startswith(("new", "gone")) for line in news(found, verdicts, stored))
    assert any(line.startswith("gone: ") for line in news(found[1:], judged(found[1:]), stored))
