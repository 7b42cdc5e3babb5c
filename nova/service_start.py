"""Start of a service's work, and the messages about a failed start."""

from __future__ import annotations

import contextlib
import logging
import os
import pwd
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from nova import concurrency, configuration, errors, memory
from nova.conf._options import Options, oslo_conf

if TYPE_CHECKING:
    from nova.monitoring.health import HealthChecks

LOG = logging.getLogger(__name__)

class DaemonService(Protocol):
    """Work of one process. ``start`` returns once it serves; ``stop`` drains for at most ``seconds``."""

    def start(self) -> None: ...

    def health_checks(self) -> HealthChecks:
        """Return the health checks that show, after the start, whether the service can do its work."""

    def stop(self, seconds: float) -> None:
        """Accept no new work and let running work end; return after ``seconds`` at the latest."""


def not_its_file(error: Exception) -> errors.NovaError | None:
    """Return the error that explains a file for which this service's user lacks permission; None for other errors."""
    if not isinstance(error, PermissionError) or not error.filename:
        return None
    return errors.daemon.NotItsFile(path=error.filename, user=_user_name(os.geteuid()))


def _user_name(uid: int) -> str:
    with contextlib.suppress(KeyError):  # in a container
        return pwd.getpwuid(uid).pw_name
    return str(uid)


class Start:
    """Start of a service in a thread; the main thread handles signals. ``status``: exit code without a service."""

    def __init__(self, conf: Options, binary: str, make: Callable[[int], DaemonService], index: int) -> None:
        self._conf = conf
        self.over, self.service, self.status = False, None, 1  # type: bool, DaemonService | None, int
        concurrency.spawn(self._run, binary, make, index, name="start")

    def _run(self, binary: str, make: Callable[[int], DaemonService], index: int) -> None:
        try:
            service = make(index)
            service.start()
            memory.settle()
            self.service = service
        except errors.NovaError as error:
            self._refused(binary, error)
        except Exception as error:  # libraries raise anything for a wrong option; it is explained, or a bug
            if wrong := configuration.explained(oslo_conf(self._conf), error) or not_its_file(error):
                self._refused(binary, wrong)
                return
            LOG.exception("Unexpected failure while %s started", binary)
            LOG.error("%s cannot start: %s: %s. This is not a known configuration fault: please report it with the "
                      "line above, which has the traceback", binary, type(error).__name__, error)
        finally:
            self.over = True

    def _refused(self, binary: str, error: errors.NovaError) -> None:
        self.status = errors.config.exit_status(error)
        LOG.error("%s cannot start: %s", binary, configuration.sentence(oslo_conf(self._conf), error))
