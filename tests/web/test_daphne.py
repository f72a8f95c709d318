"""A connection of the web process is ended when it is silent, and not while it has a request."""

from __future__ import annotations

from typing import Any, cast

import pytest
from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionDone
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from reviewer.config.daphne import Factory, Request

HERE = IPv4Address("TCP", "127.0.0.1", 80)
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n"


class Answered(Request):
    """A request that waits for the test to answer it."""

    open: list[Any] = []

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.open.append(self)

    def process(self) -> None:
        """Wait."""


class Nobody:
    """A server that knows of no request."""

    server_name = "tests"

    def protocol_connected(self, request: Any) -> None:
        """Know nothing of it."""

    protocol_disconnected = protocol_connected


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def connection(clock: Clock) -> tuple[Any, StringTransport]:
    factory = Factory(cast(Any, Nobody()))
    factory.reactor = clock
    channel = factory.buildProtocol(HERE)
    channel.factory, channel.requestFactory = factory, Answered
    transport = StringTransport(hostAddress=HERE, peerAddress=HERE)  # type: ignore[no-untyped-call]
    channel.makeConnection(transport)
    return channel, transport


def test_a_silent_connection_is_ended(clock: Clock, connection: tuple[Any, StringTransport]) -> None:
    _, transport = connection
    clock.advance(59)
    assert not transport.disconnecting
    clock.advance(1)
    assert transport.disconnecting


def test_a_connection_is_silent_only_between_its_requests(
    clock: Clock, connection: tuple[Any, StringTransport]
) -> None:
    channel, transport = connection
    for _ in range(3):
        channel.dataReceived(REQUEST)
        clock.pump([30] * 10)
        assert not transport.disconnecting
        request = Answered.open.pop()
        request.setResponseCode(200)
        request.responseHeaders.addRawHeader(b"Content-Length", b"3")
        super(Request, request).write(b"ok\n")
        super(Request, request).finish()
        clock.advance(59)
        assert not transport.disconnecting
    clock.advance(1)
    assert transport.disconnecting
    sent = transport.value()  # type: ignore[no-untyped-call]
    assert sent == 3 * b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"


def test_a_connection_that_ends_leaves_no_timer(
    clock: Clock, connection: tuple[Any, StringTransport]
) -> None:
    channel, _ = connection
    channel.connectionLost(Failure(ConnectionDone()))  # type: ignore[no-untyped-call]
    assert not clock.getDelayedCalls()
