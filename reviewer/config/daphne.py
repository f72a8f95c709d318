"""Daphne as the web process runs it: ``python -m reviewer.config.daphne``, with Daphne's own arguments.

Twisted would read each posted body for form fields, and describe each request for a log that goes nowhere.
Django reads the forms, and Daphne has an access log of its own. And it would hand on the head of each answer
in a few dozen pieces, and end a timer with each request that begins, and start one with each that is done.
"""

from __future__ import annotations

from typing import Any

from daphne import http_protocol, server
from daphne.cli import CommandLineInterface
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel
from twisted.web.http_headers import Headers


class Request(http_protocol.WebRequest):
    """A request whose body Twisted leaves alone."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options, parsePOSTFormSubmission=False)


class Channel(HTTPChannel):
    """A connection that sends the head of an answer in one piece, and sets one timer for many requests."""

    def setTimeout(self, period: float | None) -> float | None:  # noqa: N802  Twisted's name
        """Let the timer of an idle connection run on while it has a request; what is set next moves it."""
        previous: float | None = self.timeOut
        if period is None:
            self.timeOut = None
        else:
            super().setTimeout(period)  # type: ignore[no-untyped-call]
        return previous

    def timeoutConnection(self) -> None:  # noqa: N802  Twisted's name
        """End the connection if it is idle."""
        if self.timeOut is not None:
            super().timeoutConnection()  # type: ignore[no-untyped-call]

    def connectionLost(self, reason: Failure) -> None:  # type: ignore[override]  # noqa: N802  Twisted's name
        """Forget the connection and its timer."""
        super().connectionLost(reason)  # type: ignore[no-untyped-call]
        super().setTimeout(None)  # type: ignore[no-untyped-call]

    def writeHeaders(self, version: bytes, code: bytes, reason: bytes, headers: Headers) -> None:  # noqa: N802  Twisted's name
        """Send it."""
        fields = headers.getAllRawHeaders()
        lines = [name + b": " + value for name, values in fields for value in values]
        head = b"\r\n".join((version + b" " + code + b" " + reason, *lines, b"", b""))
        self.write(head)  # type: ignore[no-untyped-call]


class Factory(http_protocol.HTTPFactory):
    """Makes such requests on such connections, and writes none of them down."""

    protocol = Channel

    def buildProtocol(self, addr: Any) -> Any:  # noqa: N802  Twisted's name
        """Return what a new connection talks to."""
        protocol = super().buildProtocol(addr)
        protocol.requestFactory = Request
        return protocol

    def acceptableProtocols(self) -> list[bytes]:  # noqa: N802  Twisted's name
        """Return what is spoken on such connections."""
        return [b"http/1.1"]

    def log(self, request: Any) -> None:
        """Write nothing."""


if __name__ == "__main__":
    server.HTTPFactory = Factory
    CommandLineInterface.entrypoint()
