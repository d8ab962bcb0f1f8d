"""How an MCP server that is a program is run, from its start to the end of all that it has started.

The SDK's own way writes a line that it cannot read to the log, secrets included. In its version 1 it waits for a server that waits for it.
Of a server that has started other processes it ends the first one alone.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Self, cast

from .reading import Lines

_SECONDS_TO_END = (1.5, 0.75, 0.5)  # after the end of its input, SIGTERM, SIGKILL; all of them less than `close` and the process's end wait
_SECONDS_BETWEEN_LOOKS = 0.01
_SECONDS_OF_LAST_WORDS = 0.25  # what it has written before it closed its input is still read
_MOST_UNREAD = 1 << 26
_MOST_LINES = 1_000


class Program(asyncio.SubprocessProtocol):
    """A program that runs: an iterator of the lines that it writes, and a stream of the messages that it gets.

    It ends with its output, or its input. What is sent to it is kept until it reads it, so that nothing of ours waits for it while it waits
    for us.
    """

    def __init__(self) -> None:
        self.exited = asyncio.Event()
        self._found = Lines()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._transport: asyncio.SubprocessTransport | None = None
        self._is_paused = self._is_over = False

    # ------------------------------------------------------------------------------------------ what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport of the program that was started."""
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Take what it has written; for some time no more of it, if nobody has read what it has written before."""
        if self._is_over:
            return
        for line in self._found.feed(data):
            self._lines.put_nowait(line)
        if self._lines.qsize() > _MOST_LINES and not self._is_paused:
            self._is_paused = True
            self._pipe(1).pause_reading()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Take the end of its output, or of its input."""
        if fd == 1:
            self._finish()
        else:
            asyncio.get_running_loop().call_later(_SECONDS_OF_LAST_WORDS, self._finish)

    def process_exited(self) -> None:
        """Take its end."""
        self.exited.set()

    def _finish(self) -> None:
        for line in self._found.rest():
            self._lines.put_nowait(line)
        self._lines.put_nowait(None)

    def _pipe(self, fd: int) -> Any:
        return None if self._transport is None else self._transport.get_pipe_transport(fd)

    # ------------------------------------------------------------------------------------------ what it writes

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        line = await self._lines.get()
        if self._lines.qsize() < _MOST_LINES // 2:
            self._go_on()
        if line is None:
            raise StopAsyncIteration
        return line

    def _go_on(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self._pipe(1).resume_reading()

    # ------------------------------------------------------------------------------------------ what it gets

    async def send(self, message: Any) -> None:
        """Write a message of the SDK's.

        Raises:
            BrokenPipeError: It takes none any more: this one has not reached it.
        """
        pipe = self._pipe(0)
        if pipe is None or pipe.is_closing() or pipe.get_write_buffer_size() > _MOST_UNREAD:
            raise BrokenPipeError("the program does not read its input")
        unset = {"exclude_none": True} if hasattr(message.message, "root") else {"exclude_unset": True}  # as each version of the SDK does
        pipe.write(json.dumps(message.message.model_dump(by_alias=True, mode="json", **unset)).encode() + b"\n")

    async def aclose(self) -> None:
        """Write no more."""
        if (pipe := self._pipe(0)) is not None:
            pipe.close()

    # ------------------------------------------------------------------------------------------ its end

    async def end(self) -> None:
        """End it: by the end of its input, then by signals, with all processes of its group."""
        assert self._transport is not None
        self._is_over = True
        self._go_on()  # what it still has to write would keep it
        await self.aclose()
        for seconds, number in zip(_SECONDS_TO_END, (None, "SIGTERM", "SIGKILL"), strict=True):
            if number is not None:
                await self._signal(number)
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._gone()
                break
        self._transport.close()

    async def _gone(self) -> None:
        """Wait until no process of the group runs."""
        await self.exited.wait()
        with suppress(ProcessLookupError, PermissionError, AttributeError):  # there is none, none of ours, or no group
            while True:
                os.killpg(self._process, 0)
                await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)

    async def _signal(self, name: str) -> None:
        """Send a signal to the group of processes; where there are no signals, end the processes."""
        if sys.platform == "win32":
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            await (await asyncio.create_subprocess_exec("taskkill", "/F", "/T", "/PID", str(self._process), **quiet)).wait()
        else:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process, getattr(signal, name))

    @property
    def _process(self) -> int:
        assert self._transport is not None
        return self._transport.get_pid()


@asynccontextmanager
async def run_program(command: Sequence[str], env: Mapping[str, str], cwd: str | Path | None) -> AsyncIterator[tuple[Program, Program]]:
    """Run a program, and yield the streams of what it writes and of what it gets; end it with the block.

    Args:
        command: The program and its arguments.
        env: Its environment variables, besides the few that every program gets.
        cwd: Its working directory.
    """
    import anyio
    from mcp.client.stdio import get_default_environment

    name, *arguments = command
    own: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        from mcp.os.win32.utilities import get_windows_executable_command

        name, own = get_windows_executable_command(name), {"creationflags": subprocess.CREATE_NO_WINDOW}
    whole = {**get_default_environment(), **env}
    loop = asyncio.get_running_loop()
    _, program = await loop.subprocess_exec(Program, name, *arguments, stderr=_stderr(), env=whole, cwd=cwd, **own)
    try:
        yield program, program
    finally:
        with anyio.CancelScope(shield=True):
            await program.end()


def _stderr() -> Any:
    """Return where a server's error output goes: `sys.stderr`, or that of the process where a program has put something else there."""
    try:
        sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return sys.__stderr__
    return sys.stderr
