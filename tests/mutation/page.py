"""docs/mutation.md: how many mutants the tests notice, and each that they do not."""

from .mutants import REPOSITORY, ROOMS
from .reasons import REASONS
from .session import Trials

_START = """# Mutants

Tests are only as good as what they notice. `python -m tests.mutation --write` makes small wrong changes in the rooms that hold a
conversation ({rooms}), one at a time, and runs the unit tests that run the changed statement, until one fails. The changes: a comparison
that is off by its edge or turned round, `and` for `or`, a `not` less, `any` for `all`, `min` for `max`, `+` for `-`, a number one up or
down, True for False, None for what is returned, a statement left out. Left out are texts, annotations, decorators, assertions and what
the log says at DEBUG. Which mutants are tried is drawn with a fixed seed.

{result}

| Room | Mutants | Killed |
|---|---|---|
{table}

## Survivors

Each with what stands in the way of a test. One that is called open is one that a test should kill.

"""


def summary(trials: Trials, possible: int, seconds: float) -> str:
    """The result in one sentence."""
    fates = trials.fates
    killed = sum(fate.startswith("killed") for fate in fates.values())
    timed = sum(fate == "killed by time" for fate in fates.values())
    stopped = (
        "" if len(fates) == len(trials.mutants) else f" The run was stopped after the first {len(fates)} of {len(trials.mutants)} drawn."
    )
    return (
        f"{killed} of {len(fates)} mutants ({killed / max(1, len(fates)):.1%}) are killed, {timed} of them because a test never ended. "
        f"{possible} are possible; {trials.tests} tests were asked, in {seconds / 60:.0f} minutes.{stopped}"
    )


def write(trials: Trials, result: str) -> None:
    """Write the page."""
    rows = []
    for room in ROOMS:
        fates = [fate for mutant, fate in trials.fates.items() if mutant.room == room]
        rows.append(f"| `{room}` | {len(fates)} | {sum(fate.startswith('killed') for fate in fates)} |")
    lines = []
    for mutant, fate in sorted(trials.fates.items(), key=lambda entry: (entry[0].path, entry[0].line)):
        if not fate.startswith("killed"):
            why = REASONS.get(mutant.key) or ("no test of these enters it" if fate == "not reached" else "open: no test tells yet")
            lines.append(f"- `{mutant.path}:{mutant.line}` `{_code(mutant.was)}` became `{_code(mutant.becomes)}`: {why}\n")
    head = _START.format(rooms=", ".join(f"`{room}`" for room in ROOMS), result=result, table="\n".join(rows))
    (REPOSITORY / "docs" / "mutation.md").write_text(head + "".join(lines))


def _code(text: str) -> str:
    return text.replace("`", "'")
