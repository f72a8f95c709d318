"""A server on the loopback that speaks as much of OpenAI's chat completions as a client needs.

It stands for a real provider: it knows nothing of our scripts, and gives the answers it was given, turn by
turn, tool calls and streaming included.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "stub-1"
USAGE = {"prompt_tokens": 30, "completion_tokens": 12, "total_tokens": 42}


@dataclass(frozen=True)
class Answer:
    """One turn of the model: text, and calls as (id, tool, arguments)."""

    text: str = ""
    calls: tuple[tuple[str, str, dict[str, Any]], ...] = ()


@dataclass
class ModelServer:
    """The running server: what it will answer, and what it was asked."""

    answers: list[Answer] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    address: str = ""

    def take(self, body: dict[str, Any], key: str) -> Answer:
        """Note a request and return its answer."""
        self.requests.append(body)
        self.keys.append(key)
        return self.answers.pop(0)


@contextlib.contextmanager
def model_server(*answers: Answer) -> Iterator[ModelServer]:
    """Run a server that gives these answers one after the other."""
    state = ModelServer(list(answers))
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(state)) as server:
        state.address = f"http://127.0.0.1:{server.server_port}/v1"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()


def _handler(state: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path != "/v1/chat/completions":
                self.send_error(404)
                return
            answer = state.take(body, self.headers["Authorization"])
            events = _stream(answer) if body.get("stream") else None
            content = "".join(events) if events is not None else json.dumps(_whole(answer))
            self.send_response(200)
            self.send_header(
                "Content-Type", "text/event-stream" if body.get("stream") else "application/json"
            )
            self.send_header("Content-Length", str(len(content.encode())))
            self.end_headers()
            self.wfile.write(content.encode())

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class named it
            """Keep the test's output clean."""

    return Handler


def _whole(answer: Answer) -> dict[str, Any]:
    message = {"role": "assistant", "content": answer.text or None, "tool_calls": _calls(answer)}
    choice = {"index": 0, "message": message, "finish_reason": _reason(answer)}
    return {
        "id": "c-1",
        "object": "chat.completion",
        "created": 0,
        "model": MODEL,
        "choices": [choice],
        "usage": USAGE,
    }


def _stream(answer: Answer) -> Iterator[str]:
    """Give a delta for each word and for each half of a call's arguments, as providers do."""
    yield _event({"role": "assistant", "content": ""})
    for word in answer.text.split(" ") if answer.text else []:
        yield _event({"content": f"{word} "})
    for place, call in enumerate(_calls(answer)):
        whole = call["function"]["arguments"]
        first, second = whole[: len(whole) // 2], whole[len(whole) // 2 :]
        opening = {**call, "index": place, "function": {**call["function"], "arguments": first}}
        yield _event({"tool_calls": [opening]})
        yield _event({"tool_calls": [{"index": place, "function": {"arguments": second}}]})
    yield _event({}, finish_reason=_reason(answer))
    yield "data: [DONE]\n\n"


def _event(delta: dict[str, Any], *, finish_reason: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    chunk = {
        "id": "c-1",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": MODEL,
        "choices": [choice],
    }
    return f"data: {json.dumps(chunk)}\n\n"


def _calls(answer: Answer) -> list[dict[str, Any]]:
    return [
        {"id": call_id, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
        for call_id, tool, arguments in answer.calls
    ]


def _reason(answer: Answer) -> str:
    return "tool_calls" if answer.calls else "stop"
