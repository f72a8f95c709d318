"""Being asked to stop: noted by a signal handler, acted upon between two steps."""

import signal


class StopRequested(Exception):
    """Somebody asked us to stop."""


class StopRequests:
    """Counts Ctrl-C and SIGTERM: the first asks for an orderly end, a second for a quick one."""

    def __init__(self) -> None:
        self._count = 0
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note)

    def _note(self, *_: object) -> None:
        self._count += 1

    def raise_if_asked(self) -> None:
        if self._count:
            raise StopRequested

    def is_urgent(self) -> bool:
        return self._count > 1
