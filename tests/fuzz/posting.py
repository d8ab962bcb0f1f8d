"""Posts of pages that somebody has changed: what counts of them is refused or usable, and runs nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.exceptions import LangChainException
from langchain_core.messages import BaseMessage

from langchain_autotools.encoders import Posted
from langchain_autotools.errors import AutoToolsError
from tests.faults.cases import WIRES
from tests.fuzz.spoiling import VALUES, changed
from tests.support.script import Turn


def posted(chance: random.Random, read: Callable[[Any], Posted], bodies: Sequence[Any]) -> Posted | None:
    """What counts of a changed post, as data or as bytes; None where it is refused."""
    body = json.loads(json.dumps(chance.choice(bodies)))
    for _ in range(chance.choice([1, 1, 2, 5])):
        body = changed(chance, body)
    if chance.random() < 0.05:
        body = chance.choice(VALUES)
    if chance.random() < 0.3:
        data = json.dumps(body).encode()
        place = chance.randrange(len(data))
        body = data if chance.random() < 0.6 else data[:place] + bytes([chance.randrange(256)]) + data[place + 1 :]
    try:
        return read(body)
    except AutoToolsError as error:
        assert str(error)
        return None


def sent(chance: random.Random, history: Sequence[BaseMessage], messages: Sequence[BaseMessage]) -> None:
    """Send what a post has brought to a strict server: it is written in the wire's form, or refused before.

    Raises:
        AssertionError: The server has refused it.
    """
    serve, kind, fields = WIRES[chance.choice([*WIRES])]
    with serve(lambda _: Turn("Fine.")) as server:
        try:
            kind(model="one", base_url=server.url, max_retries=0, **fields).invoke([*history, *messages])
        except (AutoToolsError, LangChainException) as error:
            assert str(error)
