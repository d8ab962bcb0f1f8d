"""Writes docs/recorded_loops.md: `python -m tests.loops`."""

from tests.conftest import REPOSITORY
from tests.loops.page import page
from tests.loops.records import loops

if __name__ == "__main__":
    said, _ = page(loops(REPOSITORY.parent / "shared" / "wire"))
    (REPOSITORY / "docs" / "recorded_loops.md").write_text(said, encoding="utf-8")
