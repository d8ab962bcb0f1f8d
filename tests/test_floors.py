"""The floors inside the rooms that have many modules."""

import pytest

from tests.test_house import MODULES, all_imports, module_of, name_of, top_of

pytestmark = pytest.mark.house

# The floors of `executor`, from the ground up. A module imports from its own floor and from those below it.
EXECUTOR_FLOORS = (
    ("names", "pending", "user_functions"),
    ("context", "nested_runs", "results", "signatures", "policies", "tool"),
    ("call", "tools", "plan", "steps"),
    ("claims", "approvals", "handlers", "run_tool"),
    ("batch", "batch_drivers"),
    ("executor",),
)
EXECUTOR_RANKS = {module: rank for rank, modules in enumerate(EXECUTOR_FLOORS) for module in modules}


def test_imports_inside_the_executor_go_down_only() -> None:
    """A module of `executor` imports from its own floor and from those below it; each module has a floor."""
    known = {name_of(path): path for path in MODULES if top_of(path) == "executor" and path.name != "__init__.py"}
    assert {name.removeprefix("executor.") for name in known} == EXECUTOR_RANKS.keys()
    for name, path in known.items():
        for other in {module_of(full, known) for full in all_imports(path)} & known.keys():
            own, used = (EXECUTOR_RANKS[module.removeprefix("executor.")] for module in (name, other))
            assert used <= own, f"{name} imports {other}, which lies above it"
