"""The command line of bin/stack: its commands and options, and the functions that they call."""

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
Install and run a whole cloud on one machine: RabbitMQ, a database, Keystone, Glance, libvirt and nova's daemons.

  bin/stack up                       install, configure and start everything; ends with a running demo server
  bin/stack up --sandbox --hosts 2   the same inside network namespaces, with two compute hosts; the host's own network
                                     does not change
  bin/stack up --sandbox --driver fake --neutron    networks from Neutron instead of nova-network
  bin/stack up --sandbox --driver fake --cells 3    three cells, each with a database, a conductor and a host of its own
  bin/stack up --volumes nfs                        with Cinder; volumes are files that all hosts can read
  bin/stack up --volumes ceph                       with Cinder and Ceph; Ceph keeps volumes and guests' disks
  bin/stack up --dashboard                          with Horizon and Neutron, to use the cloud from a browser
  bin/stack up --ec2                                with the EC2 API and S3, to use the cloud with `aws`
  bin/stack exec openstack server list
  bin/stack exec --as demo bash      a shell on the controller with demo's credentials
  bin/stack logs nova-compute* -f    follow the logs of the daemons that match the pattern
  bin/stack upgrade                  upgrade to this (newer) checkout, one daemon after the other, while the cloud runs;
                                     --back returns to the previous release
  bin/stack dashboard --cloud URL    Horizon for a cloud that runs already, such as nova-all
  bin/stack down                     stop everything and keep the data;  `up` starts it again
  bin/stack clean                    remove everything that `up` created
"""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="bin/stack", description=ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    _which(top, default=None)
    sub = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_up(sub)
    install = _add(sub, "install", "install packages and Python environments without starting a daemon")
    install.add_argument(
        "--parts",
        type=_parts,
        default=packages.PARTS,
        metavar="A,B",
        help=f"install only these parts (default: {','.join(packages.PARTS)}; optional: {','.join(packages.OPTIONAL)})",
    )
    upgrades = _add(sub, "upgrade", "upgrade nova in a running stack to this checkout's release, daemon by daemon")
    upgrades.add_argument("--back", action="store_true", help="return to the previous release, in the opposite order")
    _add(sub, "status", "show one line for each daemon; the exit status is 3 if a daemon is not ready")
    logs = _add(sub, "logs", "show the last lines of a daemon's log, or of all logs")
    logs.add_argument("daemon", nargs="?", metavar="DAEMON", help="a name or a pattern, such as 'nova-compute*'")
    logs.add_argument("-f", "--follow", action="store_true", help="print new lines as they are written")
    logs.add_argument("-n", "--lines", type=int, help="number of lines (default: 20, or 5 of each log for all logs)")
    for verb, what in (
        ("restart", "restart a daemon, or all of nova's daemons if none is named"),
        ("start", "start a stopped daemon"),
        ("stop", "stop a daemon until it is started again"),
    ):
        one = _add(sub, verb, what)
        one.add_argument(
            "daemon", nargs="?" if verb == "restart" else None, metavar="DAEMON", help="a name or a pattern"
        )
    kill = _add(sub, "kill", "send a signal to a daemon, for example to test its restart")
    kill.add_argument("-s", "--signal", type=_signal, default=signal.SIGKILL, metavar="SIGNAL",
                      help="name or number of the signal (default: KILL)")  # fmt: skip
    kill.add_argument("daemon", metavar="DAEMON")
    run = _add(sub, "exec", "run a command on the controller with OS_* credentials in its environment")
    run.add_argument("--as", dest="user", choices=("admin", "demo"), default="admin",
                     help="user whose credentials are set (default: admin)")  # fmt: skip
    run.add_argument("--host", metavar="N", help="run it on compute host N of a sandbox instead")
    run.add_argument("argv", nargs=argparse.REMAINDER, metavar="CMD...")
    horizon = _add(sub, "dashboard", "run Horizon for a cloud that runs already, such as nova-all, until Ctrl-C")
    horizon.add_argument("--cloud", required=True, metavar="URL",
                         help="Keystone URL of the cloud, such as http://127.0.0.1:8774/identity/v3")  # fmt: skip
    horizon.add_argument("--port", type=_port, default=PORTS["horizon"], metavar="N",
                         help=f"port to listen on, on 127.0.0.1 (default: {PORTS['horizon']})")  # fmt: skip
    _add(sub, "down", "stop everything and keep the data")
    _add(sub, "clean", "stop everything and remove what `up` created: databases, state, namespaces, bridges")
    return top


def _add(sub, name: str, what: str) -> argparse.ArgumentParser:
    added = sub.add_parser(name, help=what, description=what[0].upper() + what[1:] + ".")
    _which(added, default=argparse.SUPPRESS)
    return added


def _which(target: argparse.ArgumentParser, default: object) -> None:
    """Add the options that select a stack; they may precede or follow the command."""
    group = target.add_argument_group("stack selection (a single stack on the machine is found automatically)")
    group.add_argument(
        "--state",
        type=Path,
        metavar="DIR",
        default=default,
        help="state directory (default: /var/lib/nova-stack; for sandboxes /var/lib/nova-sandbox[-NAME])",
    )
    group.add_argument("--name", default=default, help="name of a sandbox, for several sandboxes on one machine")
    group.add_argument(
        "--sandbox",
        action="store_true",
        default=default or argparse.SUPPRESS,
        help="use the sandbox instead of the stack on the machine itself",
    )


def _add_up(sub) -> None:
    made = _add(sub, "up", "install, configure and start everything; a second run changes nothing")
    made.add_argument("--hosts", type=_count, metavar="N",
                      help="number of compute hosts of a sandbox (default: 1, or one for each cell)")  # fmt: skip
    made.add_argument(
        "--driver",
        choices=("libvirt", "fake"),
        default="libvirt",
        help="libvirt runs guests with QEMU; fake simulates them, for load and scale tests (default: libvirt)",
    )
    made.add_argument(
        "--computes", type=_count, metavar="N",
        help="number of nova-compute processes of the fake driver (default: 1, or one for each cell)",
    )  # fmt: skip
    made.add_argument(
        "--cells", type=_count, default=1, metavar="N",
        help="number of cells of a sandbox (default: 1); its hosts are spread over them in turns. Each further cell "
        "has its own database, broker vhost and nova-conductor-cellN. More than one implies --neutron, because a "
        "network of nova-network belongs to one cell",
    )  # fmt: skip
    _add_cloud_options(made)
    _add_service_options(made)
    made.add_argument("--no-demo", dest="demo", action="store_false",
                      help="do not create the image, the flavors and the demo server")  # fmt: skip
    made.add_argument("--neighbours-only", action="store_true", help=argparse.SUPPRESS)


def _add_cloud_options(made) -> None:
    """Add the options of nova itself: its database, its credentials, and its security mode."""
    made.add_argument("--database", choices=("mariadb", "postgresql"), default="mariadb")
    made.add_argument(
        "--auth",
        choices=("keystone", "noauth2"),
        default="keystone",
        help="noauth2 accepts every token USER:PROJECT without a check: do not use it where others can reach the API",
    )
    made.add_argument(
        "--shared-storage", action="store_true", help="keep guests' disks in one directory that all sandbox hosts share"
    )
    made.add_argument(
        "--as-upstream",
        action="store_true",
        help="use upstream security mode, configured as by a deployment tool of OpenStack Nova: one nova.conf for all "
        "control daemons, with one transport_url and the database URLs, and no host enrolment",
    )


def _add_service_options(made) -> None:
    """Add the options of the services next to nova's core: networks, volumes, the dashboard, and EC2."""
    made.add_argument(
        "--neutron",
        nargs="?",
        const="api",
        default="",
        choices=("api",),
        help="use Neutron for networks; default: nova-network (one bridge over all hosts, addresses by "
        "DHCP). `api` (the default value) binds every port immediately, without agents on hosts, so "
        "guests' frames do not leave their host",
    )
    made.add_argument(
        "--volumes",
        default="",
        choices=cinder.BACK_ENDS,
        help="add Cinder. `nfs`: volumes are files in one directory that all hosts access like an "
        "NFS share. `ceph`: volumes and guests' disks are in a small Ceph cluster",
    )
    made.add_argument(
        "--dashboard",
        action="store_true",
        help=f"add Horizon on port {PORTS['horizon']} of the controller; implies --neutron. `up` prints "
        "how to log in. To add it to a stack that has Neutron, repeat the stack's options together with this one",
    )
    made.add_argument(
        "--ec2",
        action="store_true",
        help=f"add the EC2 API on port {PORTS['ec2']} of the controller, for `aws ec2`; nova-objectstore (S3, port "
        f"{PORTS['s3']}) and nova-cert, for bundled images; `openstack ec2 credentials create` creates keys",
    )


def _count(text: str) -> int:
    if not (text.isdecimal() and 1 <= int(text) <= 99):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 99")
    return int(text)


def _parts(text: str) -> tuple[str, ...]:
    chosen = tuple(part for part in text.split(",") if part)
    known = (*packages.PARTS, *packages.OPTIONAL)
    if unknown := [part for part in chosen if part not in known]:
        raise argparse.ArgumentTypeError(f"unknown parts: {', '.join(unknown)}; valid parts: {', '.join(known)}")
    return chosen


def _port(text: str) -> int:
    if not (text.isdecimal() and 0 < int(text) < 65536):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port number")
    return int(text)


def _signal(text: str) -> int:
    try:
        return int(text) if text.isdigit() else signal.Signals[f"SIG{text.upper().removeprefix('SIG')}"].value
    except KeyError:
        raise argparse.ArgumentTypeError(f"no such signal: {text}") from None


def choices(args: argparse.Namespace) -> Choices:
    """Return the choices that the options of `up` make. Raises StackError for options that exclude each other."""
    sandbox = bool(getattr(args, "sandbox", False) or args.name)
    hosts, computes = _hosts(args, sandbox)
    if args.shared_storage and (not sandbox or args.driver != "libvirt"):
        raise StackError(
            "--shared-storage needs --sandbox and the libvirt driver", "use `--sandbox --hosts N --shared-storage`"
        )
    implied = [option for option, there in (("--dashboard", args.dashboard), ("--cells", args.cells > 1)) if there]
    networks = implied[0] if implied else "--neutron"
    neutron = args.neutron or ("api" if implied else "")
    if neutron and (args.auth != "keystone" or args.database != "mariadb"):
        raise StackError(
            f"{networks} is tested only with Keystone and MariaDB", f"omit --auth and --database with {networks}"
        )
    if args.volumes and (args.auth != "keystone" or args.database != "mariadb"):
        raise StackError(
            "--volumes is tested only with Keystone and MariaDB", "omit --auth and --database with --volumes"
        )
    if args.ec2 and args.auth != "keystone":
        raise StackError("--ec2 needs Keystone, which stores the EC2 keys of users", "omit --auth with --ec2")
    return Choices(
        sandbox=sandbox,
        name=args.name or "default",
        hosts=hosts,
        driver=args.driver,
        computes=computes,
        cells=args.cells,
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


def _hosts(args: argparse.Namespace, sandbox: bool) -> tuple[int, int]:
    """Return the numbers of hosts and of fake hosts. Raises StackError for options that exclude each other."""
    fake = args.driver == "fake"
    hosts = args.hosts or (args.cells if sandbox and not fake else 1)
    computes = args.computes or (args.cells if fake else 1)
    if hosts > 1 and not sandbox:
        raise StackError(
            "--hosts needs --sandbox: the machine itself is one host", "run `bin/stack up --sandbox --hosts N`"
        )
    if computes > 1 and not fake:
        raise StackError("--computes needs --driver fake", "for several libvirt hosts, use --sandbox --hosts N")
    if args.cells > 1 and (not sandbox or args.as_upstream):
        raise StackError(
            "--cells is tested only in sandboxes in bounded security mode",
            "use `--sandbox --cells N`, without --as-upstream",
        )
    if args.cells > (computes if fake else hosts):
        option = "--computes" if fake else "--hosts"
        raise StackError(f"--cells {args.cells} needs at least {args.cells} hosts", f"omit {option}, or raise it")
    return hosts, computes


# Options that define a stack: `up` without any of them reuses the saved choices.
SHAPE = {"--hosts", "--driver", "--computes", "--cells", "--database", "--auth", "--no-demo", "--shared-storage",
         "--neutron", "--volumes", "--dashboard", "--ec2", "--as-upstream"}  # fmt: skip


def wanted(args: argparse.Namespace, given: list[str]) -> Layout:
    """Return the stack for `up`. Without a SHAPE option, an existing stack keeps the choices it was made with."""
    asked = choices(args)
    usual = default_state(asked.sandbox, asked.name)  # it refuses a wrong name, with --state, too
    state = (args.state or usual).resolve()
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
            raise StackError("exec needs a command", "for example: `bin/stack exec openstack server list`")
        return commands.execute(layout, argv, args.user, args.host)
    return {"status": commands.status, "down": commands.down, "clean": commands.clean}[args.command](layout)


def main(argv: list[str]) -> int:
    args = parser().parse_args(argv)
    os.umask(0o022)  # services that run as other users read these files; private files get an explicit mode
    if os.geteuid() != 0:
        print(
            "stack: root is required to start system services and create networks\n  -> run `sudo bin/stack ...`",
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
    except OSError as error:  # a full disk or an unwritable directory: the error has the reason and the path
        print(
            f"stack: {error}\n  -> fix the cause and run the same command again: it continues where it stopped",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        print("\nstack: interrupted; run the same command again to continue where it stopped", file=sys.stderr)
        sys.stdout.flush()
        os._exit(130)  # do not wait for the threads of running stages
