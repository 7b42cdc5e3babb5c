"""systemd units of nova's daemons, on machines that run systemd; the supervisor keeps running the peer services."""

from __future__ import annotations

import fnmatch
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from .control import Control, last_lines
from .errors import StackError
from .layout import CHECKOUT, Layout
from .releases import Releases
from .spec import Daemon
from .stack import Stack

sys.path.insert(1, str(CHECKOUT))  # before a nova that the machine may have installed

from nova.manage.secret_files import readers  # noqa: E402

RUNNING = Path("/run/systemd/system")
UNITS = Path("/etc/systemd/system")
SHIPPED = CHECKOUT / "etc" / "systemd"
#: Daemons of compute hosts run as root, as under the supervisor: hosts share the machine, without a privileged helper.
OF_ROOT, AS_ROOT = ("nova-compute", "nova-network"), CHECKOUT / "etc" / "drop-ins" / "as-root.conf"


def manages(layout: Layout) -> bool:
    return not layout.sandbox and RUNNING.is_dir() and shutil.which("systemctl") is not None


def user_of(stack: Stack, program: str) -> str:
    """Return the user of a program in the active release's unit, who must be able to read its files."""
    unit = Releases(stack.layout.venvs).unit(program)
    named = re.search(r"^User=(.+)$", unit.read_text(), re.M) if manages(stack.layout) and unit.exists() else None
    return named[1] if named else readers.user_of(program)


def any_runs(layout: Layout) -> bool:
    """Return whether a unit of this stack runs or is starting."""
    names = [f"{name}.service" for name in installed(layout)]
    states = subprocess.run(["systemctl", "is-active", *names], capture_output=True, text=True, check=False).stdout
    return bool(names) and bool({"active", "activating", "reloading"} & set(states.split()))


def installed(layout: Layout) -> list[str]:
    """Return the names of the units that were created for this stack."""
    return sorted(path.name.removeprefix("unit-") for path in layout.path("stamps").glob("unit-*"))


class Units:
    """Client of systemd for the stack's units, with the methods that Control has for the supervisor's daemons."""

    def __init__(self, stack: Stack, units: Path = UNITS) -> None:
        self.stack, self.units = stack, units

    def start(self, *daemons: Daemon) -> str:
        changed = [daemon.name for daemon in daemons if self._install(daemon)]
        if changed:
            self._systemctl("daemon-reload")
        for daemon in daemons:
            # "start" would wait for the restart delay of a unit that ended, or be refused after many restarts
            verb = "restart" if daemon.name in changed or not self._is_active(daemon.name) else "start"
            self._systemctl("reset-failed", f"{daemon.name}.service", check=False)
            self._start(verb, daemon)
            self.stack.mark_done(f"unit-{daemon.name}", daemon.fingerprint)
        return f"started {', '.join(changed)}" if changed else "running"

    def _start(self, verb: str, daemon: Daemon) -> None:
        """Start a unit and wait at most `start_seconds`. Raises StackError with the end of its log.

        A unit stays in its start for as long as the daemon waits, for example for its hypervisor.
        """
        try:
            unit = f"{daemon.name}.service"
            failed = self._systemctl(verb, unit, check=False, seconds=daemon.start_seconds).returncode
            what = "does not start"
        except subprocess.TimeoutExpired:
            failed, what = True, f"is not ready after {daemon.start_seconds} s"
        if failed:
            raise StackError(
                f"{daemon.name} {what}; the end of its log:\n{self._journal(daemon.name)}",
                f"see `systemctl status {daemon.name}`; then run `bin/stack up` again",
            )

    def _install(self, daemon: Daemon) -> bool:
        """Write the unit of the release and a drop-in with this stack's settings; return False if nothing changed."""
        unit = self.units / f"{daemon.name}.service"
        program = Path(daemon.argv[0]).name
        own = Releases(self.stack.layout.venvs).unit(program)
        shipped = own if own.exists() else SHIPPED / own.name
        texts = {
            unit: shipped.read_text(),
            unit.with_name(unit.name + ".d") / "stack.conf": dropin(daemon, self.stack.layout.state, own.exists()),
        }
        same = all(path.exists() and path.read_text() == text for path, text in texts.items())
        if same and self.stack.done(f"unit-{daemon.name}", daemon.fingerprint):
            return False
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return True

    def _is_active(self, name: str) -> bool:
        return self._systemctl("is-active", f"{name}.service", check=False).returncode == 0

    def names(self) -> list[str]:
        return installed(self.stack.layout)

    def rows(self) -> list[tuple[str, ...]]:
        """Return the rows for `status`: name, host, state, pid, since, restarts."""
        return [(name, "-", *self._show(name)) for name in self.names()]

    def _show(self, name: str) -> tuple[str, str, str, str]:
        shown = self._systemctl(
            "show", f"{name}.service", "-p", "ActiveState,MainPID,NRestarts,ActiveEnterTimestampMonotonic", check=False
        ).stdout
        values = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
        since = int(time.monotonic() - int(values.get("ActiveEnterTimestampMonotonic") or 0) / 1e6)
        return values.get("ActiveState", "?"), values.get("MainPID", "-"), f"{since}s", values.get("NRestarts", "0")

    def act(self, verb: str, pattern: str | None, number: int) -> list[str]:
        chosen = fnmatch.filter(self.names(), pattern or "*")
        if chosen:
            arguments = ["kill", "--kill-whom=main", f"--signal={number}"] if verb == "kill" else [verb]
            self._systemctl(*arguments, *(f"{name}.service" for name in chosen))
        return chosen

    def stop(self) -> None:
        if names := self.names():
            self._systemctl("stop", *(f"{name}.service" for name in names), check=False)

    def remove(self) -> None:
        for name in self.names():
            (self.units / f"{name}.service").unlink(missing_ok=True)
            shutil.rmtree(self.units / f"{name}.service.d", ignore_errors=True)
        self._systemctl("daemon-reload", check=False)

    def _systemctl(
        self, *arguments: str, check: bool = True, seconds: float | None = None
    ) -> subprocess.CompletedProcess:
        """Run systemctl. Raises subprocess.TimeoutExpired after `seconds`."""
        command = ["systemctl", *arguments]
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
        if check and result.returncode:
            raise StackError(f"systemctl {' '.join(arguments)}: {result.stderr.strip()}")
        return result

    def _journal(self, name: str) -> str:
        shown = subprocess.run(
            ["journalctl", "-q", "--no-pager", "-n", "15", "-u", f"{name}.service"],
            capture_output=True,
            text=True,
            check=False,
        )
        return shown.stdout or last_lines(self.stack.layout.log(name))


def keeper(stack: Stack) -> Units | Control:
    """Return the manager of nova's daemons on this machine: systemd or the supervisor."""
    return Units(stack) if manages(stack.layout) else stack.control


def dropin(daemon: Daemon, state: Path, watched: bool = True) -> str:
    """Return the drop-in of a unit with the stack's own program, files and writable state directory.

    ``watched``: the unit is from the daemon's own release; a release without units does not send watchdog messages.
    """
    environment = "".join(f'Environment="{name}={value}"\n' for name, value in daemon.env.items())
    command = " ".join(daemon.argv)
    paths = f"ReadWritePaths={state}\n" + ("" if watched else "WatchdogSec=0\n")
    rights = AS_ROOT.read_text().partition("[Service]\n")[2] if Path(daemon.argv[0]).name in OF_ROOT else ""
    return f"# made by `bin/stack up`\n[Service]\nExecStart=\nExecStart={command}\n{paths}{environment}{rights}"
