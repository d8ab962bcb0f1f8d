"""Count lines of code without docstrings, comments and blank lines: `python -m benchmarks.code_lines PATH...`."""

import argparse
import ast
import io
import tokenize
from pathlib import Path

_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING}


def code_lines(source: str) -> set[int]:
    """Return the numbers of a module's lines that hold code. A text that is a statement of its own is a docstring."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {line for token in tokens if token.type not in _NO_CODE for line in range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def main() -> None:
    """Print the figure of each path and their sum."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.code_lines", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a file, or a folder with all that lies in it")
    total = 0
    for path in parser.parse_args().paths:
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        lines = sum(len(code_lines(file.read_text(encoding="utf-8"))) for file in files)
        total += lines
        print(f"{lines:8,}  {path} ({len(files)} files)")
    print(f"{total:8,}  together")


if __name__ == "__main__":
    main()
