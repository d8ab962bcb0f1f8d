"""A file of weights in a repository on the Hugging Face hub."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


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
