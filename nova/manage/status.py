"""nova-status: check an upgrade to this release, and the health of a service.

    nova-status upgrade check [--json]
    nova-status health [--live] [DAEMON]

Exit codes of the check: 0 success; 1 a warning; 2 a failure, or a wrong configuration; 255 the check could not run.
Exit codes of health: 0 the service is healthy; 1 it is not; 2 a wrong configuration.
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
    """Return the parser of the command line."""
    top = argparse.ArgumentParser(prog=BINARY, description="Check whether an upgrade to this release can begin, or is "
                                  "complete; and whether a service on this machine is healthy.",
                                  epilog="Exit status: 0 success, 1 a warning or an unhealthy service, 2 a failure or "
                                  "a wrong configuration, 255 the check could not run. Run 'upgrade check' on a host "
                                  "that has nova-conductor.conf.")
    add_common(top)
    actions = top.add_subparsers(dest="category", metavar="COMMAND", required=True)
    upgrade = actions.add_parser("upgrade", help="check").add_subparsers(dest="action", metavar="ACTION", required=True)
    about = "check everything that an upgrade depends on"
    one = upgrade.add_parser("check", help=about, description=about)
    one.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    about = "check whether a service on this machine is ready"
    two = actions.add_parser(HEALTH, help=about, description=about)
    two.add_argument("daemon", metavar="DAEMON", nargs="?", choices=sorted(PORTS),
                     help="the service, such as nova-scheduler (default: the first process of this container)")
    two.add_argument("--live", action="store_true", help="check only liveness: its dependencies may be away")
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run nova-status and return its exit code."""
    given = parser().parse_args(argv)
    return _health(given) if given.category == HEALTH else _upgrade_check(given)


def _health(given: argparse.Namespace) -> int:
    daemon = health.Daemon(given.daemon) if given.daemon else health.of_container()
    if daemon is None:
        sys.stderr.write(f"{BINARY}: the first process of this container is not a service of nova: name a service\n")
        return 1
    files = configuration.beside(named(given) or daemon.files, daemon.binary)
    options = configuration.read(daemon.binary, [*files, *given.log_words])
    fault = health.fault(options, daemon.binary, health.LIVE if given.live else health.READY)
    if fault:
        sys.stderr.write(f"{BINARY}: {daemon.binary} is not {'alive' if given.live else 'ready'}: {fault}\n")
    return 1 if fault else 0


def _upgrade_check(given: argparse.Namespace) -> int:
    concurrency.patch("threads")
    # imported here: a health check runs often and does not need the database libraries
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
