"""nova-all: a whole cloud in one process, without root, for client developers and trials."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import time
from types import FrameType

STARTED_AT = time.monotonic()  # the start-up time is reported from here on
signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C while modules are loaded: nothing to clean up yet

from nova.memory import begin_start  # noqa: E402

begin_start()

from nova import concurrency, configuration, errors, logs  # noqa: E402
from nova.cmd import common  # noqa: E402
from nova.devel.nova_all import console_pages, fixed_ids, own_options, plan, settings, summary  # noqa: E402
from nova.devel.nova_all.state_directory import StateDirectory  # noqa: E402

BINARY = "nova-all"
INTERRUPTED = 130  # exit code of Ctrl-C before it was ready, as in shells


def main() -> int:
    """Run nova-all and return its exit code, the same as for other services."""
    wanted = plan.parse(sys.argv[1:])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupted)
    os.umask(0o077)  # only its user may access its files
    try:
        home = StateDirectory(wanted.state)
    except errors.NovaError as error:
        configuration.fail(error.message)
    try:
        return _run(wanted, home)
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:  # reached only if it could not start: a cloud that ran ends the process
        home.leave()


def _run(wanted: plan.Plan, home: StateDirectory) -> int:
    from nova import service
    from nova.conf import proxies
    from nova.devel.nova_all import cloud, hosts

    try:
        home.check_choice("networking", wanted.networking)
    except errors.NovaError as error:
        configuration.fail(error.message)
    if wanted.seed is not None:
        fixed_ids.plant(f"{wanted.seed} {home.count_start()}")
    home.secret("password", wanted.password)
    try:
        if wanted.driver == plan.LIBVIRT:
            hosts.check_programs()
        doors = cloud.bind_listeners(wanted)
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
    shown = _show_lines(min(level, logging.WARNING))  # the reasons why a start waits are warnings

    def ready(whole: cloud.WholeCloud) -> None:
        shown.setLevel(level)
        summary.tell(whole, pages, time.monotonic() - STARTED_AT)
    return service.run(options, BINARY, lambda _index: cloud.WholeCloud(wanted, home, doors, options, ready),
                       at_end=home.leave)


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt for a signal before the service handles signals, so that created files are removed."""
    raise KeyboardInterrupt


def _end_with_stdin() -> None:
    """Read and discard standard input until it is closed, then end this process."""
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    os.kill(os.getpid(), signal.SIGTERM)


def _show_lines(level: int) -> logging.Handler:
    """Show log lines of at least this level, which go to a file, also on the terminal."""
    shown = logging.StreamHandler()
    shown.setLevel(level)
    shown.setFormatter(logs.OneLine())
    logging.getLogger().addHandler(shown)
    return shown


if __name__ == "__main__":
    raise SystemExit(main())
