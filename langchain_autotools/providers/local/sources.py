"""The two sources of a file of weights: installed packages that hold its parts, and a repository on the Hugging Face hub."""

import importlib.metadata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .progress import Advance

__all__ = ["HubFile", "PackagedFile", "SourceError"]

_PIECE = 1 << 20


class SourceError(Exception):
    """A source does not have the file. The text says why, as a part of a sentence."""


@dataclass(frozen=True)
class PackagedFile:
    """A file that was cut into parts, one in each of some installed distributions.

    The distributions are data from strangers: they are found by their metadata and read, never imported.

    Attributes:
        distributions: The names of the distributions, in the order of the parts.
        files: The path of each part inside its distribution.
    """

    distributions: Sequence[str]
    files: Sequence[str]

    def find(self) -> list[Path]:
        """Where the parts are, in order.

        Raises:
            SourceError: Not all of them are installed.
        """
        found = [_locate(name, file) for name, file in zip(self.distributions, self.files, strict=True)]
        missing = [name for name, path in zip(self.distributions, found, strict=True) if path is None]
        if missing:
            what = "the weight packages are" if len(missing) == len(found) else f"of the weight packages {', '.join(missing)} is"
            raise SourceError(f"{what} not installed")
        return [path for path in found if path is not None]

    @staticmethod
    def read(parts: Sequence[Path], advance: Advance) -> Iterator[bytes]:
        """The bytes of the parts, one after another."""
        for part in parts:
            with part.open("rb") as file:
                while piece := file.read(_PIECE):
                    yield piece
                    advance(len(piece))


def _locate(distribution: str, file: str) -> Path | None:
    try:
        listed = importlib.metadata.files(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    paths = (Path(str(entry.locate())) for entry in listed if entry.as_posix() == file)
    return next((path for path in paths if path.is_file()), None)


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
        """The hash that the hub itself reports for the file at that commit. One small request.

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
        """Fetch the file into `folder`, going on where an earlier attempt was broken off, and say where it is.

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
    """Whatever goes wrong between us and the hub is one more source that does not have the file."""
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
    """The hub's progress bars as asked for; a user's own choice to have none is left alone."""
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    if show or are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()
