"""The server process's program, which runs llama.cpp's HTTP server until its parent ends.

Started by `server.py` as a file of its own, not as a module: it must load nothing but the server. It reads one JSON
line of settings from standard input, writes one JSON line (`address` or `error`) to standard output, and ends when
standard input closes, which happens however the parent ends.
"""

import json
import os
import signal
import sys
from typing import Any


def main() -> None:
    """Serve until standard input closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program that the user runs
    settings = json.loads(sys.stdin.buffer.readline())
    sys.path[:] = settings["sys_path"]
    try:
        server = start(settings)
        answer = {"address": server.listening_address}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
    if "address" in answer:
        sys.stdin.buffer.read()
    os._exit(0)  # the server's own end waits for its last request, up to 30 s; its parent is gone


def start(settings: dict[str, Any]) -> Any:
    """Start the server and return it as soon as the model is loaded."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings["model_path"]
    params.model_alias = [settings["model_name"]]
    if settings["chat_template"] is not None:
        params.chat_template = settings["chat_template"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0  # the system picks a free one: two servers on one port would take each other's requests
    params.api_keys = [settings["api_key"]]
    params.cors_origins = ""
    params.ui = False
    params.endpoint_slots = False
    params.n_ctx = settings["context_size"]
    params.n_parallel = 1
    params.n_gpu_layers = settings["gpu_layers"]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    params.cache_ram_mib = 256  # llama.cpp would keep 8 GB of earlier prompts
    params.sampling.penalty_repeat = settings["repeat_penalty"]
    params.warmup = False
    params.fit_params = False  # nothing is left to choose: llama.cpp would load the file twice
    params.verbosity = 1  # errors only
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
