"""A folder whose files a model may read and write: what it does, and all that it refuses."""

import os
import pickle
import socket
import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from langchain_core.tools import ToolException

from langchain_autotools.errors import ConfigurationError
from langchain_autotools.file_handlers import Folder


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    """A folder with a file, beside a folder with a secret."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret", "utf-8")
    folder = tmp_path / "inside"
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / "src" / "deep" / "app.py").write_text("old\n", "utf-8")
    return folder


def contents(folder: Path) -> dict[str, bytes | str]:
    """Everything below a folder, links as what they point to."""
    found: dict[str, bytes | str] = {}
    for path in sorted(folder.rglob("*")):
        kind = path.lstat().st_mode
        found[str(path.relative_to(folder))] = (
            os.readlink(path) if stat.S_ISLNK(kind) else path.read_bytes() if stat.S_ISREG(kind) else "other"
        )
    return found


USES: dict[str, Callable[[Folder, str], object]] = {
    "read": lambda folder, path: folder.read(path),
    "create": lambda folder, path: folder.create(path, "new"),
    "edit": lambda folder, path: folder.edit(path, str.upper),
    "delete": lambda folder, path: folder.delete(path, directories=True),
    "rename": lambda folder, path: folder.rename(path, "elsewhere"),
    "move": lambda folder, path: folder.rename("src/deep/app.py", path),
    "is_directory": lambda folder, path: folder.is_directory(path),
    "entries": lambda folder, path: folder.entries(path),
}
PATHS = {
    "/etc/passwd": "relative",
    "..": r"\.\.",
    "../outside/secret.txt": r"\.\.",
    "src/../../outside/secret.txt": r"\.\.",
    "src/../src/deep/app.py": r"\.\.",
    "src\0/app.py": "characters",
    "src/new\nline": "characters",
    "src/\ud800": "characters",
    ".git/hooks/post-checkout": "refused",
    "src/.git": "refused",
    ".GIT/config": "refused",
    "src/.Git/config": "refused",
    ".g\u200cit/config": "refused",
    ".git./config": "refused",
    ".git ": "refused",
    "src/.GIT. .": "refused",
    ".git::$INDEX_ALLOCATION/config": "refused",
    "GIT~1/config": "refused",
    "．git/config": "refused",
    ".env": "refused",
    "src/.ENV": "refused",
    ".env ": "refused",
    ".env:stream": "refused",
    "private./a": "refused",
    "src/key.PEM": "refused",
    "private/a/b.txt": "refused",
    "a/" * 65 + "b": "more than 64",
}


@pytest.mark.parametrize("use", USES)
def test_a_path_that_leads_elsewhere_or_is_refused_does_nothing(use: str, inside: Path) -> None:
    """Absolute, `..`, NUL, `.git` in every spelling, and what the caller names: for each use of a folder."""
    folder, before = Folder(inside, refused=(".env", "*.pem", "private/*")), contents(inside.parent)
    for path, message in PATHS.items():
        with pytest.raises(ToolException, match=message):
            USES[use](folder, path)
    assert contents(inside.parent) == before


@pytest.mark.parametrize("use", USES)
def test_a_link_to_a_directory_is_never_followed(use: str, inside: Path) -> None:
    """At whichever depth of the path it is, also where it leads back into the folder."""
    for path in ("link/secret.txt", "src/link/secret.txt", "src/deep/link/secret.txt", "link/new/file.txt"):
        place = inside / path.partition("link")[0] / "link"
        for target in (inside.parent / "outside", inside / "src"):
            place.symlink_to(target)
            before = contents(inside.parent)
            with pytest.raises(ToolException, match=r"link or a file|does not exist"):
                USES[use](Folder(inside), path)
            assert contents(inside.parent) == before
            place.unlink()


def socket_at(path: Path) -> None:
    """A socket of this process, whose path stays when it is closed."""
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.relpath(path))


SPECIAL: dict[str, Callable[[Path], None]] = {
    "symbolic link": lambda path: path.symlink_to("../outside/secret.txt"),
    "symbolic link to nothing": lambda path: path.symlink_to("../outside/none.txt"),
    "hard link": lambda path: path.hardlink_to(path.parent.parent / "outside" / "secret.txt"),
    "pipe": lambda path: os.mkfifo(path),
    "socket": socket_at,
    "device": lambda path: path.symlink_to("/dev/zero") if os.geteuid() else os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5)),
}


@pytest.mark.parametrize("kind", SPECIAL)
def test_what_is_no_plain_file_is_neither_read_nor_written(kind: str, inside: Path) -> None:
    """Links of both kinds, pipes, sockets and devices stay as they are, and nothing waits for them."""
    with suppress(PermissionError):  # of the device, in a container
        SPECIAL[kind](inside / "x")
    before = contents(inside.parent)
    for use in ("read", "create", "edit", "delete", "rename", "move"):
        with pytest.raises(ToolException, match=r"link|special file|already exists|does not exist"):
            USES[use](Folder(inside), "x")
        assert contents(inside.parent) == before


def test_a_directory_is_no_file_and_the_folder_is_no_file_in_it(inside: Path) -> None:
    """Neither is read, written, or deleted as a file; the folder itself is never moved."""
    folder = Folder(inside)
    for path in ("src", "", ".", "./"):
        for use in ("read", "create", "edit"):
            with pytest.raises(ToolException, match=r"is a directory|already exists|the folder itself"):
                USES[use](folder, path)
        with pytest.raises(ToolException, match=r"is a directory|the folder itself"):
            folder.delete(path)
    for use in ("delete", "rename", "move"):
        with pytest.raises(ToolException, match="the folder itself"):
            USES[use](folder, "./")
    assert list(contents(inside)) == ["src", "src/deep", "src/deep/app.py"]


def test_files_are_created_edited_moved_and_deleted(inside: Path) -> None:
    """What is not refused happens, and leaves nothing else behind."""
    folder = Folder(str(inside))
    folder.create("docs/one/two.md", "Grüße\n")
    folder.edit("./docs//one/two.md", lambda text: text + "more\n")
    assert folder.read("docs/one/two.md") == "Grüße\nmore\n"
    folder.rename("docs/one", "notes/first")
    folder.delete("src/deep/app.py")
    folder.delete("src", directories=True)
    assert contents(inside) == {"docs": "other", "notes": "other", "notes/first": "other", "notes/first/two.md": "Grüße\nmore\n".encode()}


def test_what_cannot_be_done_says_why(inside: Path) -> None:
    """A missing file, one that is there, no text, too large: in words for the model, without the machine's paths."""
    folder = Folder(inside, max_bytes=10)
    (inside / "large.txt").write_text("x" * 11, "utf-8")
    (inside / "binary").write_bytes(b"\xff\xfe")
    long = "n" * 300
    for use, path, message in [
        (folder.read, "none.txt", "The path none.txt does not exist"),
        (folder.read, "none/none.txt", "The path none/none.txt does not exist"),
        (folder.read, "src/deep/app.py/x", "something on the way is a link or a file"),
        (folder.read, "large.txt", "larger than 10 bytes"),
        (folder.read, "binary", "no text in UTF-8"),
        (folder.read, long, "File name too long"),
        (lambda path: folder.create(path, ""), long, "File name too long"),
        (lambda path: folder.create(f"new/{path}/new", ""), long, "File name too long"),
        (lambda path: folder.create(path, ""), "src/deep/app.py", "already exists"),
        (lambda path: folder.create(path, "x" * 11), "new.txt", "larger than 10 bytes"),
        (lambda path: folder.create(path, "\ud800"), "new.txt", "surrogate"),
        (lambda path: folder.rename("src/deep/app.py", path), "large.txt", "destination large.txt already exists"),
        (lambda path: folder.rename("src", path), "src/inner/src", "Invalid argument"),
    ]:
        with pytest.raises(ToolException, match=message) as caught:
            use(path)
        assert str(inside) not in str(caught.value)
    assert list(contents(inside)) == ["binary", "large.txt", "src", "src/deep", "src/deep/app.py"]


def test_a_directory_that_holds_what_is_refused_stays_where_it_is(inside: Path) -> None:
    """Else a rename would lead around the rule, and a removal would take it along."""
    (inside / "src" / "deep" / ".git").mkdir()
    (inside / "a").mkdir()
    (inside / "a" / "key.txt").touch()
    folder, before = Folder(inside, refused=("a/key.txt", "b/*.md")), contents(inside)
    for use in (
        lambda: folder.delete("src", directories=True),
        lambda: folder.rename("src", "other"),
        lambda: folder.rename("a", "other"),
    ):
        with pytest.raises(ToolException, match="must stay where it is"):
            use()
    folder.create("c/notes.md", "")
    with pytest.raises(ToolException, match="must stay where it is"):
        folder.rename("c", "b")
    folder.delete("c", directories=True)
    assert contents(inside) == before


def test_a_change_that_fails_leaves_the_file_and_no_other(inside: Path) -> None:
    """An error of the caller's change passes; the file is the same one, byte for byte."""
    before, file = contents(inside), (inside / "src" / "deep" / "app.py").stat()

    def failing(text: str) -> str:
        raise ToolException(f"not {text}")

    with pytest.raises(ToolException, match="not old"):
        Folder(inside).edit("src/deep/app.py", failing)
    with pytest.raises(ToolException, match="larger than 1,000,000"):
        Folder(inside).edit("src/deep/app.py", lambda text: "x" * 1_000_001)
    assert contents(inside) == before
    assert (inside / "src" / "deep" / "app.py").stat().st_ino == file.st_ino


def test_an_edit_keeps_what_somebody_else_wrote_meanwhile(inside: Path) -> None:
    """The file on disk is then not the one that was read: the edit is refused."""
    file = inside / "src" / "deep" / "app.py"

    def meanwhile(text: str) -> str:
        file.write_text("theirs", "utf-8")
        return "ours"

    with pytest.raises(ToolException, match="changed by somebody else"):
        Folder(inside).edit("src/deep/app.py", meanwhile)
    assert contents(inside)["src/deep/app.py"] == b"theirs"


def test_edits_in_many_threads_follow_each_other(inside: Path) -> None:
    """None of them is lost."""
    folder = Folder(inside)
    threads = [threading.Thread(target=folder.edit, args=("src/deep/app.py", lambda text: text + "x")) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert folder.read("src/deep/app.py") == "old\n" + "x" * 40


def test_a_byte_order_mark_and_line_ends_are_kept(inside: Path) -> None:
    """A change meets the text without the mark, and CRLF as it is."""
    (inside / "dos.txt").write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")
    folder = Folder(inside)
    assert folder.read("dos.txt") == "a\r\nb\r\n"
    folder.edit("dos.txt", lambda text: text.replace("b", "c"))
    assert contents(inside)["dos.txt"] == b"\xef\xbb\xbfa\r\nc\r\n"


def test_a_list_shows_two_levels_without_what_is_hidden_or_refused(inside: Path) -> None:
    """No links, no names with control characters, and a bound."""
    for name in (".hidden", "node_modules/x.js", "src/deep/deeper/y.py", "keys/a.pem", "keys/\n.txt"):
        (inside / name).parent.mkdir(parents=True, exist_ok=True)
        (inside / name).touch()
    (inside / "link").symlink_to("../outside")
    folder = Folder(inside, refused=("*.pem",))
    assert [(entry.path, entry.is_directory) for entry in folder.entries(".")] == [("keys", True), ("src", True), ("src/deep", True)]
    assert [(entry.path, entry.size) for entry in folder.entries("src/deep") if not entry.is_directory] == [
        ("app.py", 4),
        ("deeper/y.py", 0),
    ]
    assert (folder.is_directory(""), folder.is_directory("src/deep"), folder.is_directory("src/deep/app.py")) == (True, True, False)
    for number in range(1_001):
        (inside / "keys" / f"{number}").touch()
    with pytest.raises(ToolException, match="more than 1,000"):
        folder.entries("")


def test_absolute_paths_can_be_read_from_a_root_that_the_model_knows(inside: Path) -> None:
    """Only below that root, by whole names."""
    folder = Folder(inside).known_as("/repo/main")
    assert folder.read("/repo/main/src/deep/app.py") == folder.read("src/deep/app.py") == "old\n"
    for path in ("/repo/mainly/x", "/repo", str(inside / "src/deep/app.py"), "/repo/main/../main/src/deep/app.py"):
        with pytest.raises(ToolException, match=r"must begin with /repo/main|\.\."):
            folder.read(path)


def test_a_folder_that_has_been_replaced_is_not_used(inside: Path, tmp_path: Path) -> None:
    """Neither another directory in its place, nor a link."""
    folder = Folder(inside)
    inside.rename(tmp_path / "away")
    (tmp_path / "outside" / "src").mkdir()
    for replace in (lambda: inside.symlink_to("outside"), inside.mkdir):
        replace()
        with pytest.raises(ToolException, match="has been replaced"):
            folder.create("src/new.txt", "x")
        inside.unlink() if inside.is_symlink() else inside.rmdir()
    (tmp_path / "away").rename(inside)
    assert folder.read("src/deep/app.py") == "old\n"


def test_a_folder_travels_to_another_process(inside: Path) -> None:
    """Its pickle holds what it was made with."""
    folder = pickle.loads(pickle.dumps(Folder(inside, refused=("*.md",), max_bytes=4).known_as("/repo")))
    assert folder.read("/repo/src/deep/app.py") == "old\n"
    for path, text in (("a.md", ""), ("a.txt", "12345")):
        with pytest.raises(ToolException):
            folder.create(path, text)


def test_what_cannot_work_is_refused_when_the_folder_is_made(inside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder, no patterns, no limit, and an operating system without descriptors of directories."""
    for arguments, message in [
        ({"path": inside / "none"}, "existing folder"),
        ({"path": inside / "src/deep/app.py"}, "existing folder"),
        ({"path": inside, "refused": "*.pem"}, "sequence of names"),
        ({"path": inside, "refused": ["/"]}, "sequence of names"),
        ({"path": inside, "max_bytes": 0}, "positive whole number"),
    ]:
        with pytest.raises(ConfigurationError, match=message):
            Folder(**arguments)  # type: ignore[arg-type]
    monkeypatch.setattr(os, "supports_dir_fd", set())
    with pytest.raises(ConfigurationError, match="Windows"):
        Folder(inside)


SWAPPER = textwrap.dedent("""
    import os, shutil, sys
    print("ready", flush=True)
    while True:
        for place in ("a", "a/b", "a/b/f.txt"):
            try:
                os.rename(place, "away")
                os.symlink(sys.argv[1], place)
                os.unlink(place)
            except OSError:  # a write has just made the place anew
                pass
            try:
                os.rename("away", place)
            except OSError:
                shutil.rmtree("away", ignore_errors=True)
""")


@pytest.fixture
def swapper(tmp_path: Path) -> Iterator[Path]:
    """A folder in which another process keeps exchanging directories and a file for links to the folder outside."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    (inside / "a" / "b").mkdir(parents=True)
    (outside / "b").mkdir(parents=True)
    for file in (outside / "f.txt", outside / "b" / "f.txt", inside / "a" / "b" / "f.txt"):
        file.write_text("", "utf-8")
    process = subprocess.Popen([sys.executable, "-c", SWAPPER, str(outside)], cwd=inside, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield inside
    finally:
        process.kill()
        process.communicate()


@pytest.mark.further
@pytest.mark.parametrize("writes", [2_000, pytest.param(100_000, marks=[pytest.mark.exhaustive, pytest.mark.timeout(1800)])])
def test_no_write_leaves_the_folder_while_directories_are_exchanged_for_links(writes: int, swapper: Path) -> None:
    """Some of the writes are refused, some arrive, none of them outside."""
    folder, outside = Folder(swapper), swapper.parent / "outside"
    before, arrived = contents(outside), 0
    for number in range(writes):
        with suppress(ToolException):
            folder.create("a/b/f.txt", "")
        with suppress(ToolException):
            folder.edit("a/b/f.txt", lambda text: f"{len(text)}")
            folder.create(f"a/b/n{number}.txt", "x")
            folder.delete(f"a/b/n{number}.txt")
            arrived += 1
    assert contents(outside) == before
    assert 0 < arrived < writes
