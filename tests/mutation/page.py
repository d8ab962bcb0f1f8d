"""docs/mutation.md: how many mutants the tests notice, and each that they do not."""

from collections.abc import Collection, Mapping

from .mutants import REPOSITORY, ROOMS, Mutant
from .notes import Tried
from .reasons import EQUIVALENT, REASONS

_START = """# Mutants

Tests are only as good as what they notice. `python -m tests.mutation --write` makes small wrong changes in the package
({rooms}), one at a time,
and runs tests that run the changed statement, until one fails. First come unit tests and those of a vendor, those of the room before the
others. Then, where these let it live and wider tests are among those that are given, come the laws (with few examples), the recorded loops,
the compositions, and what the contract says of one class of each wire. The changes: a comparison that is off by its edge or turned round,
one word or sign for another (`and` for `or`, `any` for `all`, `min` for `max`, `+` for `-`), a `not` less, a number one up or down. Also
True for False, None for what is returned, a statement left out. Left out are texts, annotations, decorators, assertions and what the log
says at DEBUG. Which mutants are tried is drawn with a fixed seed, from the package as it was at the commit that is named here. Those that
lived at first were tried again with tests that were written since.

{result}
Each was tried with the tests of its own room alone (`--count 420 --seed 21 --only encoders/ tests/unit/encoders`, and so on): the
whole suite kills more. Of 500 drawn with seed 8 in `run`, `turn`, `tool_calls`, `history` and `executor`, tried with all of these
tests at `aa43985` and `de56de1`, 461 (92.2%) were killed and 18 were equivalent.
Those drawn with seed 33 were tried at `300c3c6` for minutes alone, with the unit tests of `run` and of their own room. Of these 33 of 48
were killed in `run`, 16 of 26 in `turn` and 51 of 65 in `executor`. No mutant of `durable` was tried: its tests take too long for that.

300 mutants of `run`, `turn`, `executor`, `history` and `tool_calls` were drawn at `3fc68c26`, before the layers were joined, and 210 were
killed: `--count 300 --seed 7 --rooms run turn executor history tool_calls tests/unit/{{run,turn,executor,history,tool_calls}}`.
With `--again` at `7776a64d` 247 of them were found again. Of these 169 were killed before, and all are still killed but one that is
equivalent. The other 41 of the killed ones went with their code.

52 others were drawn in `run` at `f3262790`. Of these 27 were killed by the room's default tests, and 9 more by its `further` tests, those
of `executor`, the laws and the compositions. Three more are killed by tests that were there but were not tried. Ten are killed by tests
written since. Two went with their code, and one is equivalent.

| Room | Mutants | Killed | Equivalent |
|---|---|---|---|
{table}

## Survivors

Each with the reason why it lives. An equivalent one does the same as the code that it was made from, as far as anybody can tell.

"""


def summary(known: Mapping[Mutant, Tried], drawn: int, possible: int) -> str:
    """The result in a few sentences."""
    killed = sum(tried.killed for tried in known.values())
    alive = [mutant for mutant, tried in known.items() if not tried.killed]
    different = len(known) - sum(mutant.key in EQUIVALENT for mutant in alive)
    timed = sum(tried.fate == "killed by time" for tried in known.values())
    stopped = "" if len(known) == drawn else f" The run was stopped: {drawn} were drawn."
    return (
        f"{killed} of {len(known)} mutants ({killed / max(1, len(known)):.1%}) are killed, {timed} of them because a test never ended. "
        f"Of the {different} that are not equivalent these are {killed / max(1, different):.1%}. "
        f"{possible} are possible. They were tried at {_commits(known.values())}.{stopped}"
    )


def _commits(tried: Collection[Tried]) -> str:
    count = {commit: sum(one.commit == commit for one in tried) for commit in dict.fromkeys(one.commit for one in tried)}
    return ", ".join(f"`{commit}` ({number})" for commit, number in sorted(count.items(), key=lambda entry: -entry[1]))


def write(known: Mapping[Mutant, Tried], drawn: int, possible: int) -> None:
    """Write the page."""
    rows = []
    for room in ROOMS:
        of_room = {mutant: tried for mutant, tried in known.items() if mutant.room == room}
        killed = sum(tried.killed for tried in of_room.values())
        equivalent = sum(mutant.key in EQUIVALENT and not tried.killed for mutant, tried in of_room.items())
        rows.append(f"| `{room}` | {len(of_room)} | {killed} | {equivalent} |")
    alive = sorted((mutant for mutant, tried in known.items() if not tried.killed), key=lambda mutant: (mutant.path, mutant.line))
    text = _START.format(
        rooms=", ".join(f"`{room}`" for room in ROOMS), result=summary(known, drawn, possible), table="\n".join(rows)
    ) + "".join(_survivor(mutant, known[mutant]) for mutant in alive)
    (REPOSITORY / "docs" / "mutation.md").write_text(text)


def _survivor(mutant: Mutant, tried: Tried) -> str:
    open_ = "no test enters it" if tried.fate == "not reached" else "open: none of the tests that were tried tells"
    where = f"`{mutant.path}` `{mutant.function}`" if mutant.function else f"`{mutant.path}`"
    statement = "" if mutant.statement == mutant.was else f", `{_code(mutant.statement)}`"
    change = f"`{_code(mutant.was)}` became `{_code(mutant.becomes)}`"
    return f"- {where}{statement}: {change}: {REASONS.get(mutant.key, open_)}\n"


def _code(text: str) -> str:
    return text.replace("`", "'")
