"""nova-all: a whole cloud in one process, without root, for whoever writes clients or wants to look."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import time
from types import FrameType

STARTED_AT = time.monotonic()
signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C while modules are loaded: there is nothing to clean up yet

# From here on the time counts that a start takes.
from nova import concurrency, configuration, errors, logs  # noqa: E402
from nova.cmd import common  # noqa: E402
from nova.devel.nova_all import console_pages, memory, own_options, plan, seeds, settings, summary  # noqa: E402
from nova.devel.nova_all.home import Home  # noqa: E402

BINARY = "nova-all"
INTERRUPTED = 130  # before it was ready, as shells have it for Ctrl-C


def main() -> int:
    """The program nova-all; its exit code: that of every daemon."""
    wanted = plan.parse(sys.argv[1:])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupted)
    os.umask(0o077)  # what it writes is its user's alone
    memory.few_arenas()
    try:
        home = Home(wanted.state)
    except errors.NovaError as error:
        configuration.fail(error.message)
    try:
        return _run(wanted, home)
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:  # it could not start: one that ran has ended the process
        home.leave()


def _run(wanted: plan.Plan, home: Home) -> int:
    from nova import service
    from nova.conf import proxies
    from nova.devel.nova_all import cloud, hosts

    try:
        home.check_choice("networking", wanted.networking)
    except errors.NovaError as error:
        configuration.fail(error.message)
    if wanted.seed is not None:
        seeds.plant(f"{wanted.seed} {home.count_start()}")
    home.secret("password", wanted.password)
    try:
        if wanted.driver == plan.LIBVIRT:
            hosts.check_programs()
        doors = cloud.open_doors(wanted)
    except errors.NovaError as error:
        configuration.fail(error.message)
    pages = console_pages.find()
    made = settings.write_conf(wanted, home, doors.addresses(wanted), pages)
    last, line = own_options.keep(home, made, wanted.config_files)
    if line:
        sys.stderr.write(f"{BINARY}: {line}\n")
    files = (made, *wanted.config_files, *([last] if last else []))
    words = [*(word for file in files for word in ("--config-file", file)), *(["--debug"] if wanted.debug else [])]
    options = configuration.read(BINARY, words, [*proxies.CLI_OPTS, *proxies.CLI_ONLY])
    common.begin(options, BINARY, "threads")
    if wanted.end_with_stdin:
        concurrency.spawn(_end_with_stdin, name="stdin")
    level = logging.INFO if wanted.verbose or wanted.debug else logging.ERROR
    shown = _show_lines(min(level, logging.WARNING))  # what a start waits for is a warning

    def ready(whole: cloud.WholeCloud) -> None:
        shown.setLevel(level)
        summary.tell(whole, pages, time.monotonic() - STARTED_AT)
    return service.run(options, BINARY, lambda _index: cloud.WholeCloud(wanted, home, doors, options, ready),
                       at_end=home.leave)


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    """Until the service takes the signals: an exception, so that what was made is removed."""
    raise KeyboardInterrupt


def _end_with_stdin() -> None:
    """Read it, though it says nothing, until it is closed."""
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    os.kill(os.getpid(), signal.SIGTERM)


def _show_lines(level: int) -> logging.Handler:
    """Of the log, which is a file, what the user shall see where the program was started."""
    shown = logging.StreamHandler()
    shown.setLevel(level)
    shown.setFormatter(logs.OneLine())
    logging.getLogger().addHandler(shown)
    return shown


if __name__ == "__main__":
    raise SystemExit(main())
