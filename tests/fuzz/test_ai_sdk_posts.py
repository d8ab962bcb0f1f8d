"""Posts of the AI SDK that somebody has changed."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from tests.fuzz.posting import posted, sent
from tests.laws.ways import law
from tests.unit.encoders import test_ai_sdk_posted as page

BODIES = [
    page.post(
        "user", {"type": "text", "text": "And now?"}, {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA"}
    ),
    page.post("assistant", page.answer(False), page.output("home")),
    page.post("assistant", page.answer(False, reason="too much"), page.output({"x": [1]}, state="output-error", errorText="no")),
]


@law(25, 10_000)
def test_a_changed_post_is_read_or_refused(data: st.DataObject) -> None:
    """What was denied does not run, whatever becomes of the post."""
    chance = data.draw(st.integers(0, 2**32).map(random.Random))
    page.PAID.clear()
    found = posted(chance, page.read, BODIES)
    if found is None:
        return
    model = page.MODEL.with_tools([page.pay, page.look])
    if found.decisions:
        model.resume(page.HISTORY, found.decisions)
    sent(chance, page.HISTORY, found.messages)
    assert page.PAID == [] or any(decision.action == "approve" for decision in found.decisions)
