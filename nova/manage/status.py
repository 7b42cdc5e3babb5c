"""nova-status: whether an upgrade to this release may begin, or is complete; and whether a daemon is healthy.

    nova-status upgrade check [--json]
    nova-status health [--live] [DAEMON]

Exit codes of the check: 0 all well; 1 a warning; 2 a failure, or a wrong configuration; 255 it could not look. Of the
health: 0 the daemon is healthy; 1 it is not; 2 a wrong configuration.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from nova import concurrency, configuration
from nova.conf.monitoring import PORTS
from nova.configuration.tool_arguments import add_common, named, words_with_databases
from nova.manage import health

BINARY = "nova-status"
COULD_NOT_LOOK = 255
HEALTH = "health"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog=BINARY, description="Whether an upgrade to this release may begin, or is "
                                  "complete; and whether a daemon of this machine is healthy.",
                                  epilog="Exit status: 0 all well, 1 a warning or a daemon that is not healthy, 2 a "
                                  "failure or a wrong configuration, 255 it could not look. Run 'upgrade check' where "
                                  "nova-conductor.conf is.")
    add_common(top)
    actions = top.add_subparsers(dest="category", metavar="COMMAND", required=True)
    upgrade = actions.add_parser("upgrade", help="check").add_subparsers(dest="action", metavar="ACTION", required=True)
    about = "look at everything that an upgrade depends on"
    one = upgrade.add_parser("check", help=about, description=about)
    one.add_argument("--json", action="store_true", help="one JSON object in place of the table")
    about = "ask a daemon of this machine whether it is ready"
    two = actions.add_parser(HEALTH, help=about, description=about)
    two.add_argument("daemon", metavar="DAEMON", nargs="?", choices=sorted(PORTS),
                     help="the daemon, such as nova-scheduler; left out: the first process of this container")
    two.add_argument("--live", action="store_true", help="ask whether it lives: what it needs may be away")
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """The program nova-status; its exit code."""
    given = parser().parse_args(argv)
    return _health(given) if given.category == HEALTH else _upgrade_check(given)


def _health(given: argparse.Namespace) -> int:
    daemon = health.Daemon(given.daemon) if given.daemon else health.of_container()
    if daemon is None:
        sys.stderr.write(f"{BINARY}: the first process of this container is no daemon of nova: name one\n")
        return 1
    files = configuration.beside(named(given) or daemon.files, daemon.binary)
    options = configuration.read(daemon.binary, [*files, *given.log_words])
    fault = health.fault(options, daemon.binary, health.LIVE if given.live else health.READY)
    if fault:
        sys.stderr.write(f"{BINARY}: {daemon.binary} is not {'alive' if given.live else 'ready'}: {fault}\n")
    return 1 if fault else 0


def _upgrade_check(given: argparse.Namespace) -> int:
    concurrency.patch("threads")
    # here: a health check, which runs all the time, needs no library of databases
    from nova.cmd import tool_ending, tool_log
    from nova.manage import upgrade_checks


    options = configuration.load("nova-manage", words_with_databases(given))
    tool_log.set_up(options, BINARY, given.log_words)

    def work() -> int:
        found = upgrade_checks.check(options)
        sys.stdout.write((upgrade_checks.as_json(found) if given.json else upgrade_checks.table(found)) + "\n")
        return max(int(one.result) for _name, one in found)
    return tool_ending.status(options, BINARY, work, failed=COULD_NOT_LOOK, post_mortem=given.post_mortem)


if __name__ == "__main__":
    raise SystemExit(main())
