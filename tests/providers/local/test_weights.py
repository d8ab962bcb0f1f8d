"""Which file of weights the local model runs, where it comes from, and that no wrong file is ever used."""

import io
import os
import re
import runpy
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from langchain_autotools.errors import ConfigurationError
from langchain_autotools.providers.local.weights import (
    DEFAULT_MODEL,
    MODEL_PATH_VARIABLE,
    CachedFile,
    HashMismatchError,
    Progress,
    find_weights,
    store_weights,
)

from .conftest import WEIGHTS

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def said() -> io.StringIO:
    """What the progress lines say."""
    return io.StringIO()


@pytest.fixture
def progress(said: io.StringIO) -> Progress:
    """Progress that can be read."""
    return Progress(stream=said)


def test_a_given_file_wins_over_everything(tmp_path, model, progress):
    """`model_path` is taken as it is: any GGUF file, no hash, nothing written."""
    file = tmp_path / "own.gguf"
    file.write_bytes(b"GGUF of somebody")
    weights = find_weights(file, progress, model)
    assert (weights.path, weights.is_default) == (file, False)
    assert not (tmp_path / "langchain-autotools").exists()


def test_the_variable_names_a_file_and_the_argument_wins(tmp_path, model, progress, monkeypatch):
    """LANGCHAIN_AUTOTOOLS_MODEL_PATH names the file, unless `model_path` does."""
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(b"GGUF")
    monkeypatch.setenv(MODEL_PATH_VARIABLE, str(tmp_path / "one"))
    assert find_weights(None, progress, model).path == tmp_path / "one"
    assert find_weights(str(tmp_path / "two"), progress, model).path == tmp_path / "two"


def test_a_given_file_that_cannot_work_is_named(tmp_path, model, progress, monkeypatch):
    """A missing file and one that is no GGUF file are refused with the name of what gave them."""
    with pytest.raises(ConfigurationError, match=r"model_path: .*none\.gguf cannot be read: No such file"):
        find_weights(tmp_path / "none.gguf", progress, model)
    (tmp_path / "text").write_text("hello")
    monkeypatch.setenv(MODEL_PATH_VARIABLE, str(tmp_path / "text"))
    with pytest.raises(ConfigurationError, match=f"{MODEL_PATH_VARIABLE}: .*text is not a GGUF file"):
        find_weights(None, progress, model)


PARTS = {f"tiny_part{n}": f"tiny_part{n}/data/part{n}.bin" for n in (1, 2, 3)}


@pytest.fixture
def script() -> dict[str, Any]:
    """What `examples/local_weights.py` defines."""
    return runpy.run_path(str(EXAMPLES / "local_weights.py"))


def test_packages_are_read_as_archives_once_and_never_imported(model, listing, progress, said, hub, script, tmp_path):
    """The example's parts become the verified cache file; size and source are said once; the hub is not asked, nothing is left."""
    (folder := tmp_path / "fetched").mkdir()
    for fetching in (script["Fetching"](folder, listing), script["Fetching"](folder, tmp_path / "no list is read twice")):
        stored = store_weights(fetching.pieces(PARTS), "an index", progress, model)
    assert stored.read_bytes() == WEIGHTS and not list(folder.iterdir())
    assert said.getvalue().count("\n") == 1 and "from an index" in said.getvalue()
    weights = find_weights(None, progress, model)
    assert (weights.path, weights.is_default) == (stored, True)
    assert not hub.requests
    assert not [name for name in sys.modules if name.startswith("tiny_part")]


def test_packages_with_other_bytes_are_refused(model, progress, hub, empty_cache):
    """Bytes that do not have the hash are not used, and nothing is left in the cache."""
    with pytest.raises(HashMismatchError, match=f"The weights from a friend .* SHA-256 is [0-9a-f]{{64}}, not {model.sha256}"):
        store_weights([WEIGHTS[:-1], b"!"], "a friend", progress, model)
    assert sorted(path.name for path in (empty_cache / "langchain-autotools").iterdir()) == ["tiny.gguf.lock"]
    assert not hub.requests


@pytest.mark.further
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda listing: listing.replace("part2==", "part4=="), "No matching distribution found for tiny-part4==0.9.0"),
        (lambda listing: re.sub(r"[0-9a-f]{64}", "0" * 64, listing), "THESE PACKAGES DO NOT MATCH THE HASHES"),
    ],
)
def test_packages_that_cannot_be_fetched_are_named(change, reason, listing, script, tmp_path):
    """The example ends with what pip says of them."""
    listing.write_text(change(listing.read_text()))
    with pytest.raises(SystemExit, match=f"(?s){reason}.*The weights were not fetched"):
        list(script["Fetching"](tmp_path, listing).pieces(PARTS))


@pytest.mark.further
def test_what_pip_cannot_install_ends_the_example(script, tmp_path, monkeypatch):
    """It says what was not installed, and pip, which fetches the weights at the same time, ends with it."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(SystemExit, match="no-such-thing was not installed"):
        script["installs"](["no-such-thing"])
    fetching = script["Fetching"](tmp_path)
    started = fetching.start()
    fetching.stop()
    assert started.returncode is not None


def test_the_hub_is_the_last_source(model, progress, said, hub, empty_cache):
    """With nothing given or cached the file comes from the hub, at the pinned commit, once."""
    weights = find_weights(None, progress, model)
    assert weights.is_default and weights.path.read_bytes() == WEIGHTS
    assert "fetched from owner/tiny" in said.getvalue()
    assert hub.requests and all(model.hub.revision in path for path in hub.requests)
    asked = len(hub.requests)
    assert find_weights(None, progress, model) == weights and len(hub.requests) == asked
    assert not (empty_cache / "langchain-autotools" / "download").exists()


def test_a_hub_that_reports_another_hash_is_refused_before_the_download(model, progress, hub):
    """The hub's own statement is compared first."""
    hub.reported = "f" * 64
    with pytest.raises(HashMismatchError, match="The hub reports SHA-256 f{64}"):
        find_weights(None, progress, model)
    assert not [path for path in hub.requests if "resolve" in path]


def test_a_hub_that_sends_other_bytes_is_refused(model, progress, hub, empty_cache):
    """What arrives is hashed, whatever the hub said."""
    hub.content = WEIGHTS[:-1] + b"!"
    with pytest.raises(HashMismatchError, match="The weights from owner/tiny"):
        find_weights(None, progress, model)
    assert not list((empty_cache / "langchain-autotools").rglob("*.gguf"))


def test_without_any_source_the_error_says_what_to_do(model, progress, hub):
    """One line names the reason, the variable, and the example that assembles the weights from a package index."""
    hub.shutdown()
    hub.server_close()
    with pytest.raises(ConfigurationError) as caught:
        find_weights(None, progress, model)
    text = str(caught.value)
    assert "\n" not in text
    for part in ("Hugging Face hub cannot be reached", "examples/local_weights.py", MODEL_PATH_VARIABLE):
        assert part in text


def test_a_repository_without_the_file_is_a_source_without_it(model, progress, hub):
    """A hub that answers but does not have the file is told apart from one that cannot be reached."""
    from dataclasses import replace

    elsewhere = replace(model, hub=replace(model.hub, name="other.gguf"))
    with pytest.raises(ConfigurationError, match=r"owner/tiny on the Hugging Face hub has no other\.gguf"):
        find_weights(None, progress, elsewhere)


def test_a_damaged_cache_file_is_made_again(model, progress, hub):
    """A cache file that changed since it was verified is hashed again, found wrong, and replaced; without a source the error says so."""
    path = find_weights(None, progress, model).path
    path.write_bytes(WEIGHTS[:-1] + b"!")
    assert find_weights(None, progress, model).path.read_bytes() == WEIGHTS
    path.write_bytes(WEIGHTS[:-1] + b"?")
    hub.shutdown()
    hub.server_close()
    with pytest.raises(ConfigurationError, match="is damaged; the Hugging Face hub cannot be reached"):
        find_weights(None, progress, model)


def test_a_copied_cache_file_is_verified_and_kept(model, progress, said, hub):
    """A right file without its note (copied there by hand) is hashed once and used."""
    from langchain_autotools.providers.local.weights import cache_folder

    cache_folder().mkdir(parents=True)
    path = cache_folder() / "tiny.gguf"
    path.write_bytes(WEIGHTS)
    assert find_weights(None, progress, model).path == path
    assert not hub.requests and not said.getvalue()
    assert CachedFile(path, model.sha256).is_verified()


def test_an_unwritable_cache_is_a_clear_error(model, progress, empty_cache):
    """Where the folder cannot be made the error names it."""
    (empty_cache / "langchain-autotools").write_text("a file in the way")
    with pytest.raises(ConfigurationError, match="cannot be written to .*langchain-autotools"):
        find_weights(None, progress, model)


def test_a_second_thread_waits_for_the_first(tmp_path, said):
    """The lock admits one at a time, also within a process, and the one that waits says so."""
    cached = CachedFile(tmp_path / "file", "0")
    order = []

    def second() -> None:
        with cached.locked(Progress(stream=said)):
            order.append("second")

    with cached.locked(Progress(show=False)):
        thread = threading.Thread(target=second)
        thread.start()
        while "Waiting" not in said.getvalue():
            thread.join(0.01)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


@pytest.mark.further
def test_processes_that_start_together_share_one_file(model, tmp_path):
    """Four processes at once end with the same verified file and nothing half written."""
    (tmp_path / "parts").write_bytes(WEIGHTS)
    program = """
import os, sys
from pathlib import Path
from langchain_autotools.providers.local.weights import CachedFile
from langchain_autotools.providers.local.weights import Progress

def share():
    cached = CachedFile(Path(sys.argv[2]), sys.argv[3])
    with cached.locked(Progress(show=False)):
        if not cached.verify(Progress(show=False)):
            os.write(1, b"wrote\\n")
            cached.write([Path(sys.argv[1]).read_bytes()], "parts")

forked, (waits, start) = [], os.pipe()
for _ in range(4):  # of one program that has imported everything: they start at the same moment, and seconds of CPU are saved
    if not (child := os.fork()):
        os.close(start)
        os.read(waits, 1)
        share()
        os._exit(0)
    forked.append(child)
os.close(start)
print(*(os.waitpid(child, 0)[1] for child in forked), file=sys.stderr)
"""
    target = tmp_path / "shared" / "tiny.gguf"
    arguments = [sys.executable, "-c", program, str(tmp_path / "parts"), str(target), model.sha256]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr.split(), done.returncode) == ("wrote\n", ["0"] * 4, 0)
    assert target.read_bytes() == WEIGHTS


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_a_bar_and_a_file_does_not():
    """At a terminal the bar moves; elsewhere there is no bar, and silence when not wanted."""
    terminal, file, silent = _Terminal(), io.StringIO(), _Terminal()
    for progress in (Progress(stream=terminal), Progress(stream=file), Progress(show=False, stream=silent)):
        with progress.bar("Joining", 100) as advance:
            advance(40)
            advance(60)
    assert "Joining" in terminal.getvalue() and "100" in terminal.getvalue()
    assert file.getvalue() == silent.getvalue() == ""


def test_the_listed_packages_are_those_that_are_assembled(script):
    """examples/local-weights.txt pins, with hashes, exactly the packages that the example reads; the library names none of them."""
    listing = EXAMPLES / "local-weights.txt"
    lines = [line for line in listing.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    assert [line.split("==")[0].replace("-", "_") for line in lines] == list(script["PARTS"])
    library = Path(__file__).parents[3] / "langchain_autotools"
    assert not [path for path in library.rglob("*.py") if "-part" in path.read_text(encoding="utf-8")]
    assert all("==0.9.0 --hash=sha256:" in line for line in lines)
    assert DEFAULT_MODEL.sha256 in listing.read_text(encoding="utf-8")


def test_the_hub_can_be_silenced(model, hub, monkeypatch, capfd):
    """Without progress the hub's own bars are off for the download, and on again afterwards."""
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled

    monkeypatch.delenv("HF_HUB_DISABLE_PROGRESS_BARS", raising=False)
    find_weights(None, Progress(show=False), model)
    assert not are_progress_bars_disabled() or os.environ.get("HF_HUB_DISABLE_PROGRESS_BARS")
    assert capfd.readouterr().err == ""
