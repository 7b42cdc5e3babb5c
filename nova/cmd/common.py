"""What every daemon's ``main`` does first: configuration, concurrency, logs."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence

from oslo_config import cfg

from nova import concurrency, configuration, errors, logs, service
from nova.configuration import database_urls
from nova.monitoring import counting
from nova.service_start import DaemonService

LOG = logging.getLogger(__name__)


def begin(options: cfg.ConfigOpts, binary: str, mode: str = "eventlet") -> None:
    """What comes after our own options were read, and before anything that counts or connects is imported."""
    concurrency.patch(mode)
    try:
        configuration.check_libraries(options)
    except errors.config.Wrong as error:
        configuration.fail(error.message)
    open_log(options, binary)
    try:
        counting.make_folder(binary)
    except OSError as error:
        LOG.warning("no folder to count in could be made, so metrics are one worker's alone: %s", error)


def open_log(options: cfg.ConfigOpts, binary: str) -> None:
    """Send log lines where the options say, the first of them about what is ignored. Exits with 2 and a sentence when
    that cannot be."""
    try:
        logs.set_up(options, binary)
    except errors.config.Wrong as error:
        configuration.fail(error.message)
    except OSError as error:
        configuration.fail(f"the log cannot be written: {error.strerror}. Look at [DEFAULT]log_dir and log_file: the "
                           "folder must be there, and writable for this daemon's user (install -d -m 0770 -g nova "
                           "/var/log/nova)")
    if warning := database_urls.warning(options, binary):
        LOG.warning("%s", warning)


@contextlib.contextmanager
def preparing(options: cfg.ConfigOpts, binary: str) -> Iterator[None]:
    """Of what a daemon needs before its workers fork: an error is one line in the log, and ends the program with 2
    where the configuration is wrong, else with 1."""
    try:
        yield
    except errors.NovaError as error:
        LOG.error("%s cannot start: %s", binary, configuration.sentence(options, error))
        raise SystemExit(errors.config.exit_status(error)) from None


def preload(modules: Sequence[str]) -> None:
    """Import before the fork what every worker needs: pages are shared, and workers start at once."""
    for module in modules:
        importlib.import_module(module)


def run(binary: str, make: Callable[[cfg.ConfigOpts, int], DaemonService],
        workers: Callable[[cfg.ConfigOpts], int] = lambda _options: 1,
        prefer: Callable[[cfg.ConfigOpts], str] = lambda _options: "eventlet",
        modules: Sequence[str] = ("nova.rpc.transport",),
        check: Callable[[cfg.ConfigOpts], object] = lambda _options: None) -> int:
    """A daemon, whole: from the command line to its exit code. ``check``: that what must be set is set, once for all
    workers. NovaError."""
    options = configuration.read(binary, configuration.beside(sys.argv[1:], binary))
    begin(options, binary, prefer(options))
    with preparing(options, binary):
        check(options)
    preload(modules)
    return service.run(options, binary, lambda index: make(options, index), workers(options))


def cpus() -> int:
    """Processors that this process may run on (sched_getaffinity(2)): the number of workers where none is
    configured."""
    return len(os.sched_getaffinity(0))
