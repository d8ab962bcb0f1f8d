"""Posts of AG-UI's clients that somebody has changed."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from langchain_autotools.encoders import from_ag_ui
from tests.fuzz.posting import posted, sent
from tests.laws.ways import law
from tests.unit.encoders import test_from_ag_ui as page

PARTS = [{"type": "text", "text": "And?"}, {"type": "image", "source": {"type": "url", "value": "https://example.org/a.png"}}]
BODIES = [
    page.body([*page.echoed(), {"id": "u2", "role": "user", "content": PARTS}], state={"x": 1}),
    page.body(page.echoed(), [page.answer({"approved": False, "reason": "too much"})]),
    page.body([*page.echoed(), {"id": "t2", "role": "tool", "toolCallId": "c2", "content": "blue"}], []),
]


@law(25, 10_000)
def test_a_changed_post_is_read_or_refused(data: st.DataObject) -> None:
    """What was denied does not run, whatever becomes of the post."""
    chance = data.draw(st.integers(0, 2**32).map(random.Random))
    page.RAN.clear()
    found = posted(chance, lambda body: from_ag_ui(body, page.HISTORY, approval_key=page.KEY), BODIES)
    if found is None:
        return
    if found.decisions:
        page.model_of("Fine.").resume(page.HISTORY, found.decisions)
    sent(chance, page.HISTORY, found.messages)
    assert page.RAN == [] or any(decision.action == "approve" for decision in found.decisions)
