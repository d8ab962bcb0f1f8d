"""The count of code lines: docstrings, comments and blank lines are none."""

from benchmarks.code_lines import code_lines

SOURCE = '''"""A module.

With two paragraphs.
"""

import os  # a comment beside code

# a comment alone
LIMIT = 3
"""What stands under a name."""


def path() -> str:
    """Return a path."""
    text = """
    two lines of a value
    """
    return os.path.join(
        text,
        # a comment inside

        "end",
    )
'''


def test_only_lines_of_code_are_counted() -> None:
    """Imports, names, every line of a text that is a value, and of a statement that goes over several lines."""
    assert len(code_lines(SOURCE)) == 2 + 1 + 3 + 4
