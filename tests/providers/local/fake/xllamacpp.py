"""A stand-in for the server package: same names, same threads-and-HTTP shape, replies written here.

It runs in the real server process, started by the real code. It calls the first tool with one city per capitalised word of
the question, then answers with the results: enough for whole conversations without 491 MB of weights.
"""

import json
import os
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace


class CommonParams:
    """Attributes as the real package has them."""

    def __init__(self):
        self.model = SimpleNamespace(path="")
        self.sampling = SimpleNamespace(penalty_repeat=1.0)
        self.cpuparams = SimpleNamespace(n_threads=-1)
        self.cpuparams_batch = SimpleNamespace(n_threads=-1)
        self.chat_template = ""


class Server:
    """Serves until its process ends. The file's text may ask for trouble: `broken`, `slow`, `crash`, `sick`."""

    def __init__(self, params):
        with open(params.model.path, "rb") as file:
            self.text = file.read().decode(errors="replace")
        if "broken" in self.text:
            print("0.00.001.000 E load: this file is version 99", file=sys.stderr, flush=True)
            raise RuntimeError("Failed to init server")
        if "slow" in self.text:
            time.sleep(60)
        if "crash" in self.text:
            print("0.00.001.000 E ggml: out of memory", file=sys.stderr, flush=True)
            os._exit(3)
        self.params = params
        http = ThreadingHTTPServer((params.hostnames[0], params.port), _Handler)
        http.daemon_threads = True
        http.owner = self
        self.listening_address = f"http://{params.hostnames[0]}:{http.server_port}"
        self._http = http
        threading.Thread(target=http.serve_forever, daemon=True).start()

    def close(self):
        """For tests that run it in their own process."""
        self._http.shutdown()
        self._http.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_args):
        """Keep silent."""

    def do_GET(self):
        """`/health` as asked; everything else tells the settings."""
        owner = self.server.owner
        if self.path == "/health":
            return self._answer({"status": "ok"}, 503 if "sick" in owner.text else 200)
        params = {key: value for key, value in vars(owner.params).items() if not isinstance(value, SimpleNamespace)}
        params["repeat_penalty"] = owner.params.sampling.penalty_repeat
        self._answer({**params, "threads": owner.params.cpuparams.n_threads, "OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY")})

    def do_POST(self):
        """A chat completion, streamed or whole."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers.get("Authorization") != f"Bearer {self.server.owner.params.api_keys[0]}":
            return self._answer({"error": {"message": "Invalid API Key", "type": "authentication_error", "code": 401}}, 401)
        delta, reason = reply_to(body)
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        head = {"id": "chatcmpl-1", "created": 1, "model": body["model"]}
        if not body.get("stream"):
            choice = {"index": 0, "message": {"role": "assistant", **delta}, "finish_reason": reason}
            return self._answer({**head, "object": "chat.completion", "choices": [choice], "usage": usage})
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for choices in ([{"index": 0, "delta": {"role": "assistant", **delta}}], [{"index": 0, "delta": {}, "finish_reason": reason}], []):
            event = {**head, "object": "chat.completion.chunk", "choices": choices, **({} if choices else {"usage": usage})}
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _answer(self, value, status=200):
        body = json.dumps(value, default=str).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def reply_to(body):
    """What the fake model says next."""
    messages = body["messages"]
    if messages[-1]["role"] == "tool":
        results = [message["content"] for message in messages if message["role"] == "tool"]
        return {"content": "It is " + " and ".join(results) + "."}, "stop"
    cities = re.findall(r"\b[A-Z][a-z]+", str(messages[-1]["content"]))[1:]
    if not (body.get("tools") and cities):
        return {"content": "Hello."}, "stop"
    name = body["tools"][0]["function"]["name"]
    calls = [{"index": index, "id": f"id{len(messages)}{index}", "type": "function",
              "function": {"name": name, "arguments": json.dumps({"city": city})}} for index, city in enumerate(cities)]  # fmt: skip
    return {"content": None, "tool_calls": calls}, "tool_calls"
