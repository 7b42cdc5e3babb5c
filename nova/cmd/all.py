"""nova-all: a whole cloud in one process, without root, for whoever writes clients or wants to look."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import time

STARTED_AT = time.monotonic()

from nova import concurrency, errors, logs  # noqa: E402  # from here on the time counts that a start takes
from nova.cmd import common  # noqa: E402
from nova.cmd.whole import memory, plan, seeds, settings, summary  # noqa: E402
from nova.cmd.whole.home import Home  # noqa: E402

BINARY = "nova-all"


def main() -> int:
    """The program nova-all; its exit code: that of every daemon."""
    wanted = plan.parse(sys.argv[1:])
    os.umask(0o077)  # what it writes is its user's alone
    memory.few_arenas()
    try:
        home = Home(wanted.state)
    except errors.NovaError as error:
        common.fail(error.message)
    try:
        return _run(wanted, home)
    finally:  # it could not start: one that ran has ended the process
        home.leave()


def _run(wanted: plan.Plan, home: Home) -> int:
    from nova import service
    from nova.cmd.whole import cloud
    from nova.conf import proxies

    try:
        home.check_choice("networking", wanted.networking)
    except errors.NovaError as error:
        common.fail(error.message)
    if wanted.seed is not None:
        seeds.plant(f"{wanted.seed} {home.count_start()}")
    home.secret("password", wanted.password)
    try:
        doors = cloud.open_doors(wanted)
    except OSError as error:
        common.fail(f"a port of {wanted.listen} can not be listened on: {error.strerror}. Name another one with "
                    "--port, --console-port or --s3-port; 0 is a free one")
    files = (settings.write_conf(wanted, home, doors.addresses(wanted)), *wanted.config_files)
    words = [*(word for file in files for word in ("--config-file", file)), *(["--debug"] if wanted.debug else [])]
    options = common.load(BINARY, words, [*proxies.CLI_OPTS, *proxies.CLI_ONLY])
    common.begin(options, BINARY, "threads")
    if wanted.end_with_stdin:
        concurrency.spawn(_end_with_stdin, name="stdin")
    _show_lines(logging.INFO if wanted.verbose or wanted.debug else logging.ERROR)
    return service.run(options, BINARY, lambda _index: cloud.WholeCloud(
        wanted, home, doors, options, lambda whole: summary.tell(whole, time.monotonic() - STARTED_AT)),
                       at_end=home.leave)


def _end_with_stdin() -> None:
    """Read it, though it says nothing, until it is closed."""
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    os.kill(os.getpid(), signal.SIGTERM)


def _show_lines(level: int) -> None:
    """Of the log, which is a file, what the user shall see where the program was started."""
    shown = logging.StreamHandler()
    shown.setLevel(level)
    shown.setFormatter(logs.OneLine())
    logging.getLogger().addHandler(shown)


if __name__ == "__main__":
    raise SystemExit(main())
