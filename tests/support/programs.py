"""Programs under test that hear signals."""

import signal
import subprocess
import time


def interrupt(program: "subprocess.Popen[bytes]") -> None:
    """Press Ctrl-C once the program waits for its server.

    CPython notices a signal that comes in the microseconds between its last look and a blocking read only when the read ends, so a test
    that answers the program's output at once would lose one press in fifty.
    """
    time.sleep(0.3)
    program.send_signal(signal.SIGINT)
