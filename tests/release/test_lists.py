"""What a release consists of: the files and the public names are those on the stored lists."""

import pytest

from .archives import tracked_files
from .lists import FILES, REPOSITORY, SURFACE, difference, stored
from .surface import surface


def test_the_public_surface_is_the_stored_one() -> None:
    """Names, parameters, defaults, fields and options change only together with the list; a module without its extra is not read."""
    lines, missing = surface()
    unread = [line for line in stored(SURFACE) if line.startswith(tuple(f"{module}." for module in missing))]
    assert not (text := difference(SURFACE, [*lines, *unread], "lines of the public surface")), text


def test_the_files_of_a_release_are_the_stored_ones() -> None:
    """Every file of the repository is on the list, and nothing else."""
    files = tracked_files()
    if files is None:
        pytest.skip("not a git checkout")
    assert not (text := difference(FILES, files, "files")), text


def test_every_file_of_a_release_is_there() -> None:
    """In a checkout and in an unpacked source distribution alike, so that the latter suffices for all that the former can do."""
    assert [line for line in stored(FILES) if not (REPOSITORY / line).is_file()] == []


def test_a_difference_says_what_changed_and_how_to_agree() -> None:
    """Lines that are gone and new are shown side by side, with the command that writes the list."""
    lines = [line for line in stored(SURFACE) if line != "Agent: class"]
    text = difference(SURFACE, [*lines, "Agent.answer()", "Agent: function"], "lines")
    assert text.splitlines() == [
        "1 lines gone and 2 new, against surface.txt:",
        "+ Agent.answer()",
        "- Agent: class",
        "+ Agent: function",
        "If this is meant: python -m tests.release --write",
    ]
