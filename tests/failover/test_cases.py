"""Conversations whose first vendor breaks off at any byte of any reply: tools run once, no character is lost or comes twice."""

import threading
from collections.abc import Iterator

import pytest

from tests.failover.cases import HAS_DURABLE, PAIRS, Broken, Case
from tests.failover.worker import stop_worker


@pytest.fixture(autouse=True)
def stopped(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The worker of durable cases ends with its test."""
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    yield
    stop_worker()


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@pytest.mark.parametrize(("turn", "byte"), [(0, 0), (1, 900)])
def test_each_pair_of_vendors_goes_on(pair: tuple[str, str], turn: int, byte: int) -> None:
    """Before any byte of the first reply, and in the middle of the second, with reasoning."""
    Broken(Case(*pair, turn, byte, drop=True, thinks=bool(turn), way="stream", approvals=False)).play()


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(4, 300))])
def test_a_case_of_a_number(seed: int) -> None:
    """One that fails is played alone by `python -m tests.failover --seed <number>`."""
    Broken(Case.of(seed)).play()


@pytest.mark.skipif(not HAS_DURABLE, reason="needs the extra `durable`")
def test_a_durable_run_goes_on_after_a_crash() -> None:
    """The cut reply and the model that took over are recorded: neither is asked for again when the worker has died behind them."""
    Broken(Case("openai", "anthropic", 1, 900, drop=True, thinks=False, way="stream", approvals=False, durable="crash")).play()
