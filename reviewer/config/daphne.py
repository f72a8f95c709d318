"""Daphne as the web process runs it: ``python -m reviewer.config.daphne``, with Daphne's own arguments.

Twisted would read each posted body for form fields, and describe each request for a log that goes nowhere.
Django reads the forms, and Daphne has an access log of its own.
"""

from __future__ import annotations

from typing import Any

from daphne import http_protocol, server
from daphne.cli import CommandLineInterface


class Request(http_protocol.WebRequest):
    """A request whose body Twisted leaves alone."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options, parsePOSTFormSubmission=False)


class Factory(http_protocol.HTTPFactory):
    """Makes such requests, and writes none of them down."""

    def buildProtocol(self, addr: Any) -> Any:  # noqa: N802  Twisted's name
        """Return what a new connection talks to."""
        protocol = super().buildProtocol(addr)
        protocol.requestFactory = Request
        return protocol

    def log(self, request: Any) -> None:
        """Write nothing."""


if __name__ == "__main__":
    server.HTTPFactory = Factory
    CommandLineInterface.entrypoint()
