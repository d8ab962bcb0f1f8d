"""Writes docs/recorded_loops.md: `python -m tests.loops`."""

from tests.conftest import REPOSITORY
from tests.loops.check import histories, replayed
from tests.loops.page import page
from tests.loops.records import loops
from tests.loops.rows import ROWS

if __name__ == "__main__":
    recorded = loops(REPOSITORY.parent / "shared" / "wire")
    said = page([replayed(row, recorded) for row in ROWS], [histories(row, recorded) for row in ROWS])
    (REPOSITORY / "docs" / "recorded_loops.md").write_text(said, encoding="utf-8")
