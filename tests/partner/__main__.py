"""Writes docs/partner_tests.md: `python -m tests.partner`, with the extra `partner` and a package index."""

import sys
import tempfile
from pathlib import Path

from .page import write
from .rules import RULES
from .suites import fetch, run
from .verdicts import judge

with tempfile.TemporaryDirectory() as folder:
    verdicts = judge([result for package, place in sorted(fetch(Path(folder)).items()) for result in run(package, place)], RULES)
write(verdicts)
for result in verdicts.unexplained:
    print("unexplained:", result.package, result.id, result.error[:300])
print(*verdicts.stale, sep="\n")
sys.exit(bool(verdicts.unexplained or verdicts.stale))
