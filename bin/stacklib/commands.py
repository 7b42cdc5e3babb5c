"""Commands for an existing stack: status, logs, start, stop, restart, kill, exec, down, clean."""

from __future__ import annotations

import fnmatch
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from . import children, cinder, credentials, libvirt, plain, rooms, sandbox, summary, systemd
from .control import Control, last_lines
from .errors import StackError
from .layout import CONTROLLER, Layout
from .secrets import Secrets
from .spec import CLOUD
from .stack import Stack

EXIT_NOT_RUNNING = 3  # as for init scripts
READY_SECONDS = 90


def stack_of(layout: Layout) -> Stack:
    return Stack(layout, Secrets(layout.path("secrets.json")), Control(layout))


# --- status ----------------------------------------------------------------------------------------------------------


def status(layout: Layout) -> int:
    """Print one line for each daemon; return 0 if all are ready, 3 otherwise."""
    control = Control(layout)
    if not control.running():
        print(f"{layout.state}: not running; start it with `{summary.command_prefix(layout)} up`")
        return EXIT_NOT_RUNNING
    answer = control.status()
    rows = [
        (d["name"], d["room"] or "-", d["phase"], str(d["pid"] or "-"), age(d["seconds"]), str(d["restarts"]))
        for d in sorted(answer["daemons"], key=lambda d: (d["tier"], d["name"]))
    ]
    if systemd.manages(layout):
        rows += systemd.Units(stack_of(layout)).rows()
    print(table(("DAEMON", "HOST", "STATE", "PID", "SINCE", "RESTARTS"), rows))
    print()
    for kind, url in summary.endpoints(layout).items():
        print(f"{kind:10} {url}")
    return 0 if all(row[2] in ("ready", "active") for row in rows) else EXIT_NOT_RUNNING


def age(seconds: int) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in [head, *rows]
    )


# --- logs ------------------------------------------------------------------------------------------------------------


def logs(layout: Layout, pattern: str | None, lines: int, follow: bool) -> int:
    """Print the last lines of a daemon's log, or of all logs with the daemon's name before each line."""
    names = sorted(path.stem for path in layout.logs.glob("*.log"))
    chosen = fnmatch.filter(names, pattern or "*")
    if not chosen:
        raise StackError(f"no log matches {pattern!r}", f"existing logs: {', '.join(names) or 'none yet'}")
    width = max(map(len, chosen)) if len(chosen) > 1 else 0
    positions = {name: layout.log(name).stat().st_size for name in chosen}
    for name in chosen:
        for line in last_lines(layout.log(name), lines).splitlines():
            _print_line(name, line[2:], width)
    while follow:
        time.sleep(0.3)
        for name in chosen:
            positions[name] = _print_news(layout.log(name), positions[name], width)
    return 0


def _print_news(log: Path, position: int, width: int) -> int:
    """Print only complete lines, so that lines of two daemons do not mix; start from 0 again after a rotation."""
    try:
        with log.open("rb") as stream:
            if log.stat().st_size < position:
                position = 0
            stream.seek(position)
            text = stream.read()
    except FileNotFoundError:
        return 0
    whole = text[: text.rfind(b"\n") + 1]
    for line in whole.decode(errors="replace").splitlines():
        _print_line(log.stem, line, width)
    return position + len(whole)


def _print_line(name: str, line: str, width: int) -> None:
    print(f"{name:{width}} | {line}" if width else line, flush=True)


# --- single daemons --------------------------------------------------------------------------------------------------


def daemons(layout: Layout, verb: str, pattern: str | None, number: int = signal.SIGTERM) -> int:
    """Start, stop, restart or kill the daemons that match the pattern; without one, all of nova's daemons."""
    control = Control(layout)
    units = systemd.Units(stack_of(layout)) if systemd.manages(layout) else None
    if units and (handled := units.act(verb, pattern, number)):
        print(f"{verb}: {', '.join(handled)}")
        return 0
    known = sorted(control.status()["daemons"], key=lambda d: (d["tier"], d["name"]))
    chosen = [d["name"] for d in known if (fnmatch.fnmatch(d["name"], pattern) if pattern else d["tier"] >= CLOUD)]
    if not chosen:
        raise StackError(
            f"no daemon matches {pattern!r}" if pattern else "the stack has no daemon of nova",
            f"existing daemons: {', '.join(d['name'] for d in known)}",
        )
    for name in reversed(chosen) if verb == "stop" else chosen:
        begin = time.monotonic()
        words = _ACTIONS[verb](control, name, number)
        print(f"{verb} {name}: {words} ({time.monotonic() - begin:.1f} s)")
    return 0


def _start(control: Control, name: str, _: int) -> str:
    if next(d["phase"] for d in control.status()["daemons"] if d["name"] == name) not in ("ready", "starting"):
        control.ask(do="restart", name=name)
    control.wait_ready(name, READY_SECONDS)
    return "done"


def _stop(control: Control, name: str, _: int) -> str:
    control.ask(do="stop", name=name)
    while next(d["pid"] for d in control.status()["daemons"] if d["name"] == name):
        time.sleep(0.05)
    return "done"


def _restart(control: Control, name: str, _: int) -> str:
    control.restart(name, READY_SECONDS)
    return "done"


def _kill(control: Control, name: str, number: int) -> str:
    pid = control.ask(do="kill", name=name, signal=number)["pid"]
    return f"process {pid} was signalled" if pid else "the daemon has no process now"


_ACTIONS = {"start": _start, "stop": _stop, "restart": _restart, "kill": _kill}


# --- exec ------------------------------------------------------------------------------------------------------------


def execute(layout: Layout, command: list[str], user: str, host: str | None) -> int:
    """Run a command on the controller, or on a compute host, with a user's credentials in its environment."""
    stack = stack_of(layout)
    room = None
    if layout.sandbox:
        room = CONTROLLER if host is None else f"host{host}" if host.isdigit() else host
    elif host not in (None, "1", layout.controller_host):
        raise StackError(f"there is no host {host!r}: this stack has one host", "omit --host")
    pid = stack.control.room_pid(room) if room else None
    host_name = room if room not in (None, CONTROLLER) else ""
    sys.stdout.flush()
    return rooms.run_inside(pid, command, credentials.environment(layout, stack.secrets, user, host_name))


# --- the end ---------------------------------------------------------------------------------------------------------


def down(layout: Layout) -> int:
    """Stop everything and keep all data."""
    control = Control(layout)
    if systemd.manages(layout):
        systemd.Units(stack_of(layout)).stop()
    if control.running():
        control.shutdown()
    children.end_recorded(layout.run)
    if layout.sandbox and (left := sandbox.remove_groups(layout)):
        raise StackError(
            f"processes still run in {', '.join(left)}", "`cat .../cgroup.procs` lists them"
        )
    print(f"{layout.state}: stopped; `{summary.command_prefix(layout)} up` starts it again")
    return 0


def clean(layout: Layout) -> int:
    """Stop everything and remove all that `up` created; keep packages and the environments that stacks share."""
    stack = stack_of(layout)
    if not layout.sandbox:
        _destroy_guests(layout)
        libvirt.forget_secrets(stack)
    down(layout)
    if not layout.sandbox:
        cinder.unmount(layout)
        plain.remove(stack)
        if systemd.manages(layout):
            systemd.Units(stack).remove()
    shutil.rmtree(layout.state)
    print(f"{layout.state}: removed (the Debian packages and {layout.venvs} are kept)")
    return 0


def _destroy_guests(layout: Layout) -> None:
    """Destroy the guests of the machine's own libvirt whose disks are in this stack's state directory."""
    virsh = shutil.which("virsh")
    if not virsh:
        return
    listed = subprocess.run([virsh, "-q", "list", "--all", "--name"], capture_output=True, text=True, check=False)
    for name in listed.stdout.split():
        xml = subprocess.run([virsh, "dumpxml", name], capture_output=True, text=True, check=False).stdout
        if f"'{layout.state}/" in xml:
            for verb in ("destroy", "undefine"):
                subprocess.run([virsh, "-q", verb, name], capture_output=True, check=False)
