"""Which file of weights the local model runs, where it comes from, and that no wrong file is ever used."""

import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from langchain_autotools.errors import ConfigurationError
from langchain_autotools.providers.local.cache import CachedFile, HashMismatchError
from langchain_autotools.providers.local.progress import Progress
from langchain_autotools.providers.local.weights import DEFAULT_MODEL, MODEL_PATH_VARIABLE, find_weights

from .conftest import WEIGHTS


@pytest.fixture
def said() -> io.StringIO:
    """What the progress lines say."""
    return io.StringIO()


@pytest.fixture
def progress(said: io.StringIO) -> Progress:
    """Progress that can be read."""
    return Progress(stream=said)


def test_a_given_file_wins_over_everything(tmp_path, model, install_parts, progress):
    """`model_path` is taken as it is: any GGUF file, no hash, nothing written."""
    install_parts()
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


def test_installed_packages_are_joined_once_and_never_imported(model, install_parts, progress, said, hub):
    """The parts become one verified cache file; size and source are said once; the hub is not asked."""
    install_parts()
    first = find_weights(None, progress, model)
    assert first.is_default and first.path.read_bytes() == WEIGHTS
    assert said.getvalue().count("\n") == 1 and "tiny-part1 to tiny-part3" in said.getvalue()
    before = first.path.stat()
    assert find_weights(None, progress, model) == first
    assert first.path.stat() == before and said.getvalue().count("\n") == 1
    assert not hub.requests
    assert not [name for name in sys.modules if name.startswith("tiny_part")]


def test_packages_with_other_bytes_are_refused(model, install_parts, progress, hub, empty_cache):
    """Parts that do not have the hash are not used, nothing is left in the cache, and no other source is tried."""
    install_parts(content=WEIGHTS[:-1] + b"!")
    with pytest.raises(HashMismatchError, match=f"SHA-256 is [0-9a-f]{{64}}, not {model.sha256}"):
        find_weights(None, progress, model)
    assert sorted(path.name for path in (empty_cache / "langchain-autotools").iterdir()) == ["tiny.gguf.lock"]
    assert not hub.requests


def test_the_hub_is_the_last_source(model, install_parts, progress, said, hub, empty_cache):
    """With a part missing the file comes from the hub, at the pinned commit, once."""
    install_parts(parts=(1, 3))
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
    """One line names each source's reason, the command that installs the weights, and the variable."""
    hub.shutdown()
    hub.server_close()
    with pytest.raises(ConfigurationError) as caught:
        find_weights(None, progress, model)
    text = str(caught.value)
    assert "\n" not in text
    for part in ("weight packages are not installed", "Hugging Face hub cannot be reached", "--require-hashes", MODEL_PATH_VARIABLE):
        assert part in text


def test_a_repository_without_the_file_is_a_source_without_it(model, progress, hub):
    """A hub that answers but does not have the file is told apart from one that cannot be reached."""
    from dataclasses import replace

    elsewhere = replace(model, hub=replace(model.hub, name="other.gguf"))
    with pytest.raises(ConfigurationError, match=r"owner/tiny on the Hugging Face hub has no other\.gguf"):
        find_weights(None, progress, elsewhere)


def test_a_damaged_cache_file_is_made_again(model, install_parts, progress):
    """A cache file that changed since it was verified is hashed again, found wrong, and replaced."""
    install_parts()
    path = find_weights(None, progress, model).path
    path.write_bytes(WEIGHTS[:-1] + b"!")
    assert find_weights(None, progress, model).path.read_bytes() == WEIGHTS


def test_a_copied_cache_file_is_verified_and_kept(model, progress, said, hub):
    """A right file without its note (copied there by hand) is hashed once and used."""
    from langchain_autotools.providers.local.weights import cache_folder

    cache_folder().mkdir(parents=True)
    path = cache_folder() / "tiny.gguf"
    path.write_bytes(WEIGHTS)
    assert find_weights(None, progress, model).path == path
    assert not hub.requests and not said.getvalue()
    assert CachedFile(path, model.sha256).is_verified()


def test_an_unwritable_cache_is_a_clear_error(model, install_parts, progress, empty_cache):
    """Where the folder cannot be made the error names it."""
    install_parts()
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


def test_processes_that_start_together_share_one_file(model, install_parts, tmp_path):
    """Four processes at once end with the same verified file and nothing half written."""
    install_parts()
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from langchain_autotools.providers.local.cache import CachedFile;"
        "from langchain_autotools.providers.local.progress import Progress;"
        "from langchain_autotools.providers.local.sources import PackagedFile;"
        "from pathlib import Path;"
        "cached = CachedFile(Path(sys.argv[2]), sys.argv[3]);"
        "packaged = PackagedFile([f'tiny-part{n}' for n in (1, 2, 3)], [f'tiny_part{n}/data/part{n}.bin' for n in (1, 2, 3)]);"
        "lock = cached.locked(Progress(show=False)); lock.__enter__();"
        "cached.verify(Progress(show=False)) or print('wrote') or cached.write(packaged.read(packaged.find(), float), 'parts');"
        "lock.__exit__(None, None, None)"
    )
    target = tmp_path / "shared" / "tiny.gguf"
    arguments = [sys.executable, "-c", program, str(tmp_path / "site-packages"), str(target), model.sha256]
    running = [subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    outputs = [process.communicate(timeout=60)[0] for process in running]
    assert [process.returncode for process in running] == [0] * 4
    assert sorted(outputs) == ["", "", "", "wrote\n"]
    assert target.read_bytes() == WEIGHTS


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("with_rich", [True, False])
def test_a_terminal_sees_a_bar_and_a_file_does_not(with_rich, monkeypatch):
    """At a terminal the bar moves, with `rich` or without; elsewhere there is no bar, and silence when not wanted."""
    if with_rich:
        pytest.importorskip("rich")
    else:
        monkeypatch.setitem(sys.modules, "rich.progress", None)
    terminal, file, silent = _Terminal(), io.StringIO(), _Terminal()
    for progress in (Progress(stream=terminal), Progress(stream=file), Progress(show=False, stream=silent)):
        with progress.bar("Joining", 100) as advance:
            advance(40)
            advance(60)
    assert "Joining" in terminal.getvalue() and ("100 %" in terminal.getvalue() or with_rich)
    assert file.getvalue() == silent.getvalue() == ""


def test_the_listed_packages_are_those_that_are_looked_for():
    """examples/local-weights.txt pins, with hashes, exactly the packages the code reads."""
    listing = Path(__file__).parents[3] / "examples" / "local-weights.txt"
    lines = [line for line in listing.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    assert [line.split("==")[0] for line in lines] == list(DEFAULT_MODEL.packaged.distributions)
    assert all("==0.9.0 --hash=sha256:" in line for line in lines)
    assert DEFAULT_MODEL.sha256 in listing.read_text(encoding="utf-8")


def test_the_hub_can_be_silenced(model, hub, monkeypatch, capfd):
    """Without progress the hub's own bars are off for the download, and on again afterwards."""
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled

    monkeypatch.delenv("HF_HUB_DISABLE_PROGRESS_BARS", raising=False)
    find_weights(None, Progress(show=False), model)
    assert not are_progress_bars_disabled() or os.environ.get("HF_HUB_DISABLE_PROGRESS_BARS")
    assert capfd.readouterr().err == ""
