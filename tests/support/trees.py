"""The parsed source of files, each parsed and walked once: what the rules of the house and the counts of the code are asked of."""

import ast
import gc
from functools import cache
from pathlib import Path


@cache
def tree_of(path: Path) -> ast.Module:
    """The parsed source of a file."""
    gc.freeze()  # the trees stay: collections need not look at them
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file, the outer ones first, as `ast.walk` has them."""
    found: list[ast.AST] = [tree_of(path)]
    for node in found:  # grows as it goes
        for value in vars(node).values():
            if isinstance(value, list):
                found += [one for one in value if isinstance(one, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
    return tuple(found)
