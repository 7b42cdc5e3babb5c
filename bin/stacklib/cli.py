"""The command line: what can be said, and what it means."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path

from . import beside, cinder, commands, packages, up, upgrade
from .errors import StackError
from .layout import PLAIN_STATE, PORTS, Choices, Layout, default_state, find, load
from .stages import Progress

ABOUT = """\
A whole cloud on one machine: RabbitMQ, a database, Keystone, Glance, libvirt and nova's own daemons, all real.

  bin/stack up                       install, configure and start everything; ends with a server that answers
  bin/stack up --sandbox --hosts 2   the same inside network namespaces, with two compute hosts; touches nothing outside
  bin/stack up --sandbox --driver fake --neutron    networks are Neutron's instead of nova-network's
  bin/stack up --volumes nfs                        with Cinder, whose volumes are files that all hosts see
  bin/stack up --volumes ceph                       with Cinder and Ceph, which has volumes and guests' disks
  bin/stack up --dashboard                          with Horizon and Neutron, to use the cloud from a browser
  bin/stack up --ec2                                with the EC2 API and S3, to use the cloud by `aws`
  bin/stack exec openstack server list
  bin/stack exec --as demo bash      a shell at the controller with demo's credentials
  bin/stack logs nova-compute* -f    what the daemons say, as they say it
  bin/stack upgrade                  from a newer checkout: daemon by daemon, while the cloud works;  --back goes back
  bin/stack dashboard --cloud URL    Horizon before a cloud that runs already, such as nova-all
  bin/stack down                     stop, keep the data;  `up` starts it again
  bin/stack clean                    remove all that `up` made
"""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="bin/stack", description=ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    _which(top, default=None)
    sub = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_up(sub)
    install = _add(sub, "install", "install packages and Python environments, start nothing")
    install.add_argument(
        "--parts",
        type=_parts,
        default=packages.PARTS,
        metavar="A,B",
        help=f"only these of {','.join(packages.PARTS)}; or {','.join(packages.OPTIONAL)}, else left out",
    )
    upgrades = _add(sub, "upgrade", "bring nova of a stack that runs to this checkout's release, daemon by daemon")
    upgrades.add_argument("--back", action="store_true", help="to the release before, in the opposite order")
    _add(sub, "status", "a line a daemon; exit status 3 when one is not ready")
    logs = _add(sub, "logs", "the end of a daemon's log, or of all")
    logs.add_argument("daemon", nargs="?", metavar="DAEMON", help="a name or a pattern, like 'nova-compute*'")
    logs.add_argument("-f", "--follow", action="store_true", help="go on as it grows")
    logs.add_argument("-n", "--lines", type=int, help="how many lines (20; of all logs 5 each)")
    for verb, what in (
        ("restart", "restart a daemon; all of nova's when none is named"),
        ("start", "start a daemon that was stopped"),
        ("stop", "stop a daemon until it is started again"),
    ):
        one = _add(sub, verb, what)
        one.add_argument(
            "daemon", nargs="?" if verb == "restart" else None, metavar="DAEMON", help="a name or a pattern"
        )
    kill = _add(sub, "kill", "send a signal to a daemon, to see it come back")
    kill.add_argument("-s", "--signal", type=_signal, default=signal.SIGKILL, metavar="SIGNAL", help="KILL unless said")
    kill.add_argument("daemon", metavar="DAEMON")
    run = _add(sub, "exec", "run a command at the controller with OS_* credentials in its environment")
    run.add_argument("--as", dest="user", choices=("admin", "demo"), default="admin", help="whose credentials (admin)")
    run.add_argument("--host", metavar="N", help="at compute host N of a sandbox instead")
    run.add_argument("argv", nargs=argparse.REMAINDER, metavar="CMD...")
    horizon = _add(sub, "dashboard", "Horizon before a cloud that runs already, such as nova-all, until Ctrl-C")
    horizon.add_argument("--cloud", required=True, metavar="URL", help="its Keystone: http://127.0.0.1:8774/identity/v3")
    horizon.add_argument("--port", type=_port, default=PORTS["horizon"], metavar="N",
                         help=f"where it listens, on 127.0.0.1 ({PORTS['horizon']})")  # fmt: skip
    _add(sub, "down", "stop everything, keep the data")
    _add(sub, "clean", "stop everything and remove all that `up` made: databases, state, namespaces, bridges")
    return top


def _add(sub, name: str, what: str) -> argparse.ArgumentParser:
    added = sub.add_parser(name, help=what, description=what[0].upper() + what[1:] + ".")
    _which(added, default=argparse.SUPPRESS)
    return added


def _which(target: argparse.ArgumentParser, default: object) -> None:
    """Which stack is meant: may stand before and after the command."""
    group = target.add_argument_group("which stack (when there is only one, it is found)")
    group.add_argument(
        "--state",
        type=Path,
        metavar="DIR",
        default=default,
        help="where it keeps everything (/var/lib/nova-stack, sandboxes /var/lib/nova-sandbox[-NAME])",
    )
    group.add_argument("--name", default=default, help="a sandbox's name, to have several")
    group.add_argument(
        "--sandbox",
        action="store_true",
        default=default or argparse.SUPPRESS,
        help="the sandbox, not the stack on the machine itself",
    )


def _add_up(sub) -> None:
    made = _add(sub, "up", "install, configure and start everything; run again, it changes nothing")
    made.add_argument("--hosts", type=_count, default=1, metavar="N", help="compute hosts of a sandbox (1)")
    made.add_argument(
        "--driver",
        choices=("libvirt", "fake"),
        default="libvirt",
        help="libvirt runs guests with QEMU; fake only pretends, for load and scale",
    )
    made.add_argument(
        "--computes", type=_count, default=1, metavar="N", help="nova-compute processes of the fake driver (1)"
    )
    made.add_argument("--database", choices=("mariadb", "postgresql"), default="mariadb")
    made.add_argument(
        "--auth",
        choices=("keystone", "noauth2"),
        default="keystone",
        help="noauth2 believes every token USER:PROJECT: never where others can reach it",
    )
    made.add_argument(
        "--shared-storage", action="store_true", help="hosts of a sandbox keep guests' disks in one shared directory"
    )
    made.add_argument(
        "--neutron",
        nargs="?",
        const="api",
        default="",
        choices=("api",),
        help="networks are Neutron's; without it they are nova-network's (one bridge over all hosts, addresses by "
        "DHCP). `api` (when nothing is said) binds every port at once, without agents on hosts, so that frames of "
        "guests stay on their host",
    )
    made.add_argument(
        "--volumes",
        default="",
        choices=cinder.BACK_ENDS,
        help="Cinder, too. `nfs`: its volumes are files in one directory, which all hosts see as they "
        "would an NFS share. `ceph`: volumes and guests' disks are in a small Ceph",
    )
    made.add_argument(
        "--dashboard",
        action="store_true",
        help=f"Horizon, too, at port {PORTS['horizon']} of the controller, and --neutron, which it needs; the end of "
        "`up` says how to log in. A stack that has Neutron may get it later: say the options that made it, and this",
    )
    made.add_argument(
        "--ec2",
        action="store_true",
        help=f"the EC2 API at port {PORTS['ec2']} of the controller, for `aws ec2`, with nova-objectstore (S3, port "
        f"{PORTS['s3']}) and nova-cert, which images of bundles need; `openstack ec2 credentials create` makes keys",
    )
    made.add_argument(
        "--as-upstream",
        action="store_true",
        help="upstream security mode, configured as by a deployment tool of OpenStack Nova: one nova.conf for all "
        "control daemons, with one transport_url and the databases in it, and no enrolment",
    )
    made.add_argument("--no-demo", dest="demo", action="store_false", help="no image, flavors and demo server")
    made.add_argument("--neighbours-only", action="store_true", help=argparse.SUPPRESS)


def _count(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 99:
        raise argparse.ArgumentTypeError("must be 1 to 99")
    return value


def _parts(text: str) -> tuple[str, ...]:
    chosen = tuple(part for part in text.split(",") if part)
    known = (*packages.PARTS, *packages.OPTIONAL)
    if unknown := [part for part in chosen if part not in known]:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    return chosen


def _port(text: str) -> int:
    if not (text.isdecimal() and 0 < int(text) < 65536):
        raise argparse.ArgumentTypeError(f"{text!r} is no port")
    return int(text)


def _signal(text: str) -> int:
    try:
        return int(text) if text.isdigit() else signal.Signals[f"SIG{text.upper().removeprefix('SIG')}"].value
    except KeyError:
        raise argparse.ArgumentTypeError(f"no such signal: {text}") from None


def choices(args: argparse.Namespace) -> Choices:
    """Raises StackError for what does not go together."""
    sandbox = bool(getattr(args, "sandbox", False) or args.name)
    if args.hosts > 1 and not sandbox:
        raise StackError(
            "--hosts needs --sandbox: the machine itself is one host", "say `bin/stack up --sandbox --hosts N`"
        )
    if args.computes > 1 and args.driver != "fake":
        raise StackError("--computes is for --driver fake", "for several hosts with libvirt say --sandbox --hosts N")
    if args.shared_storage and (not sandbox or args.driver != "libvirt"):
        raise StackError(
            "--shared-storage is for the hosts of a sandbox with libvirt", "say `--sandbox --hosts N --shared-storage`"
        )
    networks = "--dashboard" if args.dashboard else "--neutron"
    neutron = args.neutron or ("api" if args.dashboard else "")
    if neutron and (args.auth != "keystone" or args.database != "mariadb"):
        raise StackError(
            f"{networks} is tried with Keystone and MariaDB alone", f"leave --auth and --database out beside {networks}"
        )
    if args.volumes and (args.auth != "keystone" or args.database != "mariadb"):
        raise StackError(
            "--volumes is tried with Keystone and MariaDB alone", "leave --auth and --database out beside --volumes"
        )
    if args.ec2 and args.auth != "keystone":
        raise StackError("--ec2 needs Keystone, which has its users' keys", "leave --auth out beside --ec2")
    return Choices(
        sandbox=sandbox,
        name=args.name or "default",
        hosts=args.hosts,
        driver=args.driver,
        computes=args.computes,
        database=args.database,
        auth=args.auth,
        demo=args.demo,
        shared_storage=args.shared_storage,
        neutron=neutron,
        volumes=args.volumes,
        dashboard=args.dashboard,
        ec2=args.ec2,
        as_upstream=args.as_upstream,
    )


# Options that say what a stack is.
SHAPE = {"--hosts", "--driver", "--computes", "--database", "--auth", "--no-demo", "--shared-storage", "--neutron",
         "--volumes", "--dashboard", "--ec2", "--as-upstream"}  # fmt: skip


def wanted(args: argparse.Namespace, given: list[str]) -> Layout:
    """The stack that `up` means. Without any option on its shape, a stack that is there comes up as it was made."""
    asked = choices(args)
    state = (args.state or default_state(asked.sandbox, asked.name)).resolve()
    there = load(state)
    if there and not SHAPE & {word.partition("=")[0] for word in given}:
        return there
    return Layout(state, asked)


def run(args: argparse.Namespace, given: list[str]) -> int:
    if args.command == "up":
        up.up(wanted(args, given), args.neighbours_only)
        return 0
    if args.command == "install":
        up.install(Layout(args.state or PLAIN_STATE, Choices()), args.parts, Progress())
        return 0
    if args.command == "dashboard":
        beside.serve(Layout(args.state or PLAIN_STATE, Choices()), args.cloud, args.port)
        return 0
    layout = find(args.state, bool(getattr(args, "sandbox", False)), args.name or "default")
    if args.command == "upgrade":
        upgrade.upgrade(layout, args.back)
        return 0
    if args.command == "logs":
        return commands.logs(layout, args.daemon, args.lines or (20 if args.daemon else 5), args.follow)
    if args.command in ("start", "stop", "restart", "kill"):
        return commands.daemons(layout, args.command, args.daemon, getattr(args, "signal", signal.SIGTERM))
    if args.command == "exec":
        argv = args.argv[1:] if args.argv[:1] == ["--"] else args.argv
        if not argv:
            raise StackError("exec what?", "say for example `bin/stack exec openstack server list`")
        return commands.execute(layout, argv, args.user, args.host)
    return {"status": commands.status, "down": commands.down, "clean": commands.clean}[args.command](layout)


def main(argv: list[str]) -> int:
    args = parser().parse_args(argv)
    os.umask(0o022)  # services of other users read what is made here; what nobody else may read is made so, by name
    if os.geteuid() != 0:
        print(
            "stack: this needs root: it starts system services and makes networks\n  -> say `sudo bin/stack ...`",
            file=sys.stderr,
        )
        return 1
    try:
        return run(args, argv)
    except StackError as error:
        print(f"stack: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        words = error.stderr.decode(errors="replace") if isinstance(error.stderr, bytes) else error.stderr or ""
        print(f"stack: {' '.join(map(str, error.cmd))} failed with {error.returncode} {words}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    except OSError as error:  # a full disk, a directory that cannot be written: what it is and where is in it
        print(
            f"stack: {error}\n  -> mend that, and run the same command again: it goes on where it stopped",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        print("\nstack: interrupted; the same command again goes on where it stopped", file=sys.stderr)
        sys.stdout.flush()
        os._exit(130)  # not waiting for what is being waited for
