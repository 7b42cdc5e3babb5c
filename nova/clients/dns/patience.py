"""A DNS driver whose calls end in time, whatever it does: nobody's boot or delete waits for a name.

A call runs in a thread of its own. One that does not come back in time is given up (its thread ends when it ends), and
for a while after it calls are refused at once instead of queueing behind a server that is away.
"""

from __future__ import annotations

import concurrent.futures
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from nova import concurrency, errors
from nova.clients.dns.drivers import DnsDriver, NoopDNSDriver
from nova.model.base import Json

LOG = logging.getLogger(__name__)

PATIENCE_S, PAUSE_S = 5.0, 30.0
MOST_HANGING = 4  # calls that were given up and did not end yet


class Patient:
    """Has a driver's methods. dns.Away for whatever is not one of our errors, and for what takes too long."""

    def __init__(self, driver: DnsDriver, patience_s: float = PATIENCE_S, pause_s: float = PAUSE_S,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.driver, self._patience_s, self._pause_s, self._clock = driver, patience_s, pause_s, clock
        self._lock = threading.Lock()
        self._refused_until = float("-inf")
        self._hanging = 0

    @property
    def silent(self) -> bool:
        """Nothing is kept, so nobody need ask."""
        return isinstance(self.driver, NoopDNSDriver)

    def get_domains(self) -> list[str]:
        """Names of all domains that the driver has. dns.Away."""
        return list(self._ask("get_domains"))

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

    def _ask(self, method: str, *args: Json) -> Json:
        kind = type(self.driver).__name__
        with self._lock:
            if self._clock() < self._refused_until or self._hanging >= MOST_HANGING:
                raise errors.dns.Away(driver=kind, reason="it did not a moment ago")
            self._hanging += 1
        answer: concurrent.futures.Future[Any] = concurrent.futures.Future()
        concurrency.spawn(self._run, answer, method, args, name="dns")
        try:
            return answer.result(self._patience_s)
        except errors.NovaError as error:
            if isinstance(error, errors.Unavailable):
                self._pause()
            raise
        except concurrent.futures.TimeoutError:
            self._pause()
            raise errors.dns.Away(driver=kind, reason=f"{method} took longer than {self._patience_s:g} s") from None
        except Exception as error:
            self._pause()
            raise errors.dns.Away(driver=kind, reason=f"{type(error).__name__}: {error}"[:300]) from error

    def _run(self, answer: concurrent.futures.Future[object], method: str, args: tuple[object, ...]) -> None:
        try:
            answer.set_result(concurrency.run_in_thread(getattr(self.driver, method), *args))
        except BaseException as error:  # whoever waits for it raises it
            answer.set_exception(error)
        finally:
            with self._lock:
                self._hanging -= 1

    def _pause(self) -> None:
        with self._lock:
            self._refused_until = self._clock() + self._pause_s
