"""nova-privileged: run privileged operations for nova-compute and nova-network, which are not root."""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path

from nova import configuration, errors
from nova.cmd import common
from nova.systemd import notify

LOG = logging.getLogger(__name__)

BINARY = "nova-privileged"


class _Stop:
    """Stop flag, set by SIGTERM and SIGINT."""

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGTERM, self._ask)
        signal.signal(signal.SIGINT, self._ask)

    def _ask(self, _number: int, _frame: object) -> None:
        self.asked = True

    def __call__(self) -> bool:
        return self.asked


def main() -> int:
    """Run nova-privileged, a single process, and return its exit code. Its end interrupts running calls, which clients
    repeat."""
    options = configuration.read(BINARY, configuration.beside(sys.argv[1:], BINARY))
    common.open_log(options, BINARY)
    from nova.privileged.helper import serving
    from nova.privileged.helper.settings import settings_of

    with common.preparing(options, BINARY):
        if os.geteuid() != 0:
            raise errors.service.CannotStart(reason="it must be started as root")
        settings = settings_of(options)
        users = serving.allowed_users(settings.user)
        sock = serving.listening(Path(options.privileged.socket), settings.user)
    server = serving.HelperServer(sock, settings, users)
    stop = _Stop()
    notify("READY=1")
    LOG.info("%s accepts calls from user %s", BINARY, settings.user)
    server.serve(stop)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
