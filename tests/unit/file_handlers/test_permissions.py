"""Permissions of the files in a folder: kept by an edit, and obeyed."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from langchain_core.tools import ToolException

from langchain_autotools.file_handlers import Folder
from tests.unit.file_handlers.test_folder import USES, contents

NOBODY = 65534


def test_permissions_are_kept(tmp_path: Path) -> None:
    """An edit keeps the permissions, without those that make a program run as somebody else."""
    file = tmp_path / "app.py"
    file.write_text("old", "utf-8")
    for mode, kept in ((0o750, 0o750), (0o604, 0o604), (0o4755, 0o755)):
        file.chmod(mode)
        Folder(tmp_path).edit("app.py", str.upper)
        assert stat.S_IMODE(file.stat().st_mode) == kept


@contextmanager
def without_root() -> Iterator[None]:
    """Be a user whose permissions are checked, which those of root are not."""
    if os.geteuid():
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_what_may_not_be_written_stays() -> None:
    """A read-only file, and all that a read-only directory holds: the result says why, and no other file is left behind."""
    with TemporaryDirectory() as name:
        place = Path(name)
        (place / "locked").mkdir()
        for file in (place / "file", place / "locked" / "file"):
            file.write_text("old", "utf-8")
        (place / "file").chmod(0o444)
        (place / "locked").chmod(0o555)
        if not os.geteuid():
            for path in (place, *place.rglob("*")):
                os.chown(path, NOBODY, NOBODY)
        before = contents(place)
        with without_root():
            folder = Folder(place)
            for use, path in (("edit", "file"), ("create", "locked/new"), ("create", "locked/a/new"), ("delete", "locked/file")):
                with pytest.raises(ToolException, match="Permission denied"):
                    USES[use](folder, path)
            with pytest.raises(ToolException, match="Permission denied"):
                folder.rename("locked/file", "other")
        (place / "locked").chmod(0o755)
        assert contents(place) == before
