"""Start-up shared by the ``main`` functions of all services: configuration, concurrency, logs."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence

from nova import concurrency, configuration, errors, failures, logs, memory, service
from nova.conf._options import Options, oslo_conf
from nova.configuration import database_urls
from nova.monitoring import counting
from nova.service_start import DaemonService

LOG = logging.getLogger(__name__)

#: Modules of the bus, with those that its libraries import at the first connection.
BUS = ("nova.rpc.buses", "nova.rpc.transport", "futurist", "kombu.transport.pyamqp")


def begin(options: Options, binary: str, mode: str = "eventlet") -> None:
    """Set up the process after nova's options were read, before modules with metrics or connections are imported."""
    memory.begin_start()
    concurrency.patch(mode)
    try:
        configuration.check_libraries(oslo_conf(options))
    except errors.config.Wrong as error:
        configuration.fail(error.message)
    open_log(options, binary)
    with failures.best_effort(LOG, "the metrics directory could not be created, so metrics are of one worker only: %s",
            on=OSError):
        counting.make_folder(binary)


def open_log(options: Options, binary: str) -> None:
    """Set up the log as configured; its first line is about ignored database URLs. Exit with 2 and a sentence if the
    log cannot be written."""
    try:
        logs.set_up(options, binary)
    except errors.config.Wrong as error:
        configuration.fail(error.message)
    except OSError as error:
        configuration.fail(f"the log cannot be written: {error.strerror}. Check [DEFAULT]log_dir and log_file: the "
                           "directory must exist, and be writable by this service's user (install -d -m 0770 -g nova "
                           "/var/log/nova)")
    if warning := database_urls.warning(oslo_conf(options), binary):
        LOG.warning("%s", warning)


@contextlib.contextmanager
def preparing(options: Options, binary: str) -> Iterator[None]:
    """Context of the preparations before workers fork: an error is logged as one line, and ends the program with 2 if
    the configuration is wrong, else with 1."""
    try:
        yield
    except errors.NovaError as error:
        LOG.error("%s cannot start: %s", binary, configuration.sentence(oslo_conf(options), error))
        raise SystemExit(errors.config.exit_status(error)) from None


def preload(modules: Sequence[str]) -> None:
    """Import modules before workers fork: workers share their memory pages and start immediately."""
    for module in modules:
        importlib.import_module(module)


def run(binary: str, make: Callable[[Options, int], DaemonService],
        workers: Callable[[Options], int] = lambda _options: 1,
        prefer: Callable[[Options], str] = lambda _options: "eventlet",
        modules: Sequence[str] = (),
        check: Callable[[Options], object] = lambda _options: None) -> int:
    """Run a service, from the command line to its exit code. ``check``: verifies required options once for all workers;
    it raises NovaError."""
    options = configuration.read(binary, configuration.beside(sys.argv[1:], binary))
    begin(options, binary, prefer(options))
    with preparing(options, binary):
        check(options)
    preload((*BUS, *modules))
    return service.run(options, binary, lambda index: make(options, index), workers(options))


def cpus() -> int:
    """Return the number of processors that this process may use (sched_getaffinity(2)): the default number of
    workers."""
    return len(os.sched_getaffinity(0))
