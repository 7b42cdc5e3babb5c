"""A wrapper of DNS drivers with a time limit for each call, so that no boot or delete waits for DNS.

A call runs in a thread of its own. A call that exceeds the limit is abandoned (its thread continues until it ends). For
a while afterwards, calls are refused immediately instead of queueing behind a server that is unavailable.
"""

from __future__ import annotations

import concurrent.futures
import logging
import threading
import time
from collections.abc import Callable

from nova import concurrency, errors
from nova.clients.dns.drivers import DnsDriver, NoopDNSDriver

LOG = logging.getLogger(__name__)

TIMEOUT_S, PAUSE_S = 5.0, 30.0
MOST_HANGING = 4  # abandoned calls that have not ended yet


class DeadlineDriver:
    """Wrapper with a driver's methods. Raises dns.Away for exceptions that are not nova errors, and for timeouts."""

    def __init__(self, driver: DnsDriver, timeout_s: float = TIMEOUT_S, pause_s: float = PAUSE_S,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.driver, self._timeout_s, self._pause_s, self._clock = driver, timeout_s, pause_s, clock
        self._lock = threading.Lock()
        self._refused_until = float("-inf")
        self._hanging = 0

    @property
    def silent(self) -> bool:
        """True if the driver stores nothing, so that it need not be asked."""
        return isinstance(self.driver, NoopDNSDriver)

    def get_domains(self) -> list[str]:
        """Return the names of all domains of the driver. Raises dns.Away."""
        return list(self._ask("get_domains") or ())

    def create_domain(self, fqdomain: str) -> None:
        self._ask("create_domain", fqdomain)

    def delete_domain(self, fqdomain: str) -> None:
        self._ask("delete_domain", fqdomain)

    def create_entry(self, name: str, address: str, type: str, domain: str) -> None:
        self._ask("create_entry", name, address, type, domain)

    def delete_entry(self, name: str, domain: str) -> None:
        self._ask("delete_entry", name, domain)

    def modify_address(self, name: str, address: str, domain: str) -> None:
        self._ask("modify_address", name, address, domain)

    def get_entries_by_address(self, address: str, domain: str) -> list[str]:
        return list(self._ask("get_entries_by_address", address, domain) or ())

    def get_entries_by_name(self, name: str, domain: str) -> list[str]:
        return list(self._ask("get_entries_by_name", name, domain) or ())

    def _ask(self, method: str, *args: str) -> list[str] | None:
        kind = type(self.driver).__name__
        with self._lock:
            if self._clock() < self._refused_until or self._hanging >= MOST_HANGING:
                raise errors.dns.Away(driver=kind, reason="it did not answer a moment ago")
            self._hanging += 1
        answer: concurrent.futures.Future[list[str] | None] = concurrent.futures.Future()
        concurrency.spawn(self._run, answer, method, args, name="dns")
        try:
            return answer.result(self._timeout_s)
        except errors.NovaError as error:
            if isinstance(error, errors.Unavailable):
                self._pause()
            raise
        except concurrent.futures.TimeoutError:
            self._pause()
            raise errors.dns.Away(driver=kind, reason=f"{method} took longer than {self._timeout_s:g} s") from None
        except Exception as error:  # an operator's own driver may raise anything
            self._pause()
            raise errors.dns.Away(driver=kind, reason=f"{type(error).__name__}: {error}"[:300]) from error

    def _run(self, answer: concurrent.futures.Future[object], method: str, args: tuple[object, ...]) -> None:
        try:
            answer.set_result(concurrency.run_in_thread(getattr(self.driver, method), *args))
        except BaseException as error:  # the waiting caller raises it
            answer.set_exception(error)
        finally:
            with self._lock:
                self._hanging -= 1

    def _pause(self) -> None:
        with self._lock:
            self._refused_until = self._clock() + self._pause_s
