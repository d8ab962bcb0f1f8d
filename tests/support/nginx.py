"""nginx of this machine (Debian's `nginx-light` will do) with a configuration from a page, on loopback."""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.served_program import until

PROGRAM = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")

_AROUND = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    {temporary}
    {servers}
}}
"""


@contextmanager
def nginx(servers: str, port: int, folder: Path) -> Iterator[str]:
    """Serve while the block lasts; skips where there is no nginx.

    Args:
        servers: What is in the `http` block.
        port: Where it listens, as that says.
        folder: An empty folder for its files.

    Returns:
        Where it serves.
    """
    if PROGRAM is None:
        pytest.skip("no nginx on this machine")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "\n    ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    file = folder / "nginx.conf"
    file.write_text(_AROUND.format(folder=folder, temporary=temporary, servers=servers), encoding="utf-8")
    with subprocess.Popen([PROGRAM, "-e", "stderr", "-p", str(folder), "-c", str(file)]) as process:
        try:
            until(lambda: _listens(process, port))
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _listens(process: "subprocess.Popen[bytes]", port: int) -> bool:
    assert process.poll() is None, "nginx has ended"
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0
