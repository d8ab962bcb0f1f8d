"""The table of the contract itself."""

import ast
from pathlib import Path

from tests.contract.wires import PRESETS, TOUCHED_BY_A_DIALECT, WIRES


def test_every_row_has_its_tests() -> None:
    """The tests that run over presets exist under the names by which they are chosen, and no two rows share a name."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in Path(__file__).parent.glob("test_*.py")]
    defined = {node.name for tree in trees for node in tree.body if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef)}
    assert defined >= TOUCHED_BY_A_DIALECT
    names = [row.name for row in (*WIRES, *PRESETS)]
    assert len(names) == len(set(names))
