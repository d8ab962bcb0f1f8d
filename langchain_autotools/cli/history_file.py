"""The conversation file of `--history FILE`: LangChain's messages as JSON, written atomically."""

import json
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from langchain_core.messages import BaseMessage, messages_from_dict

from langchain_autotools.errors import ConfigurationError
from langchain_autotools.messages.carrier import serialize_messages


class HistoryFile:
    """A file with a conversation.

    Args:
        path: The file; it need not exist yet.

    Raises:
        ConfigurationError: No file can be written there.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        folder = self._path.absolute().parent
        if self._path.is_dir() or not os.access(folder, os.W_OK):
            raise ConfigurationError(f"--history {path}: no file can be written there")

    def read(self) -> list[BaseMessage]:
        """Return the messages in the file; an empty list if it does not exist.

        Raises:
            ConfigurationError: It holds something else.
        """
        try:
            stored = json.loads(self._path.read_text(encoding="utf-8"))
            if not isinstance(stored, list):
                raise TypeError(type(stored).__name__)
            return messages_from_dict(stored)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ConfigurationError(f"--history {self._path}: cannot be read: {error.strerror or error}") from error
        except Exception as error:
            raise ConfigurationError(f"--history {self._path}: holds no conversation (a JSON list of messages)") from error

    def write(self, messages: Sequence[BaseMessage]) -> None:
        """Replace the file's content by these messages. A new file is readable only by its owner."""
        text = json.dumps(serialize_messages(messages), ensure_ascii=False, indent=1)
        handle, unfinished = tempfile.mkstemp(dir=self._path.absolute().parent, prefix=f".{self._path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text + "\n")
            with suppress(FileNotFoundError):
                os.chmod(unfinished, self._path.stat().st_mode & 0o777)
            os.replace(unfinished, self._path)
        except BaseException:
            Path(unfinished).unlink(missing_ok=True)
            raise
