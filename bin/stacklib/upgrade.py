"""`upgrade`: upgrade nova of a running stack to this checkout's release, one daemon after the other, or back."""

from __future__ import annotations

import time

from . import nova, packages, summary, systemd
from .commands import stack_of
from .errors import StackError
from .layout import Layout
from .nova import FAILURE, WARNING, Found
from .releases import Releases
from .spec import Daemon
from .stack import Stack
from .stages import Progress, Stage
from .up import INSTALL_LOCK, UP_LOCK, alone, parts_of
from .venvs import Builder

BEHIND = "Schemas"  # the check of nova-status that fails until the tables are this release's
NAME_WIDTH = 20


def upgrade(layout: Layout, back: bool = False) -> None:
    """Upgrade the stack, or go back. An interrupted command can be run again. Raises StackError."""
    stack = stack_of(layout)
    if not stack.control.running():
        raise StackError(f"the stack in {layout.state} is not running", f"start it with `{_say(layout, 'up')}`")
    with alone(layout.state / UP_LOCK, "another `bin/stack up` or `upgrade` of this stack is running"):
        (_back if back else _forward)(stack, Releases(layout.venvs), Progress())


def _forward(stack: Stack, releases: Releases, progress: Progress) -> None:
    layout = stack.layout
    name = _build(stack, progress)
    _ask(stack, releases, name, progress)
    progress.timed(Stage("nova tables", lambda: nova.prepare_databases(stack, name)))
    with alone(layout.venvs / INSTALL_LOCK, "", patient=True):
        releases.activate(name)
    nova.write_files(stack)
    changed = _restart(
        stack, nova.upgrade_order(stack), progress,
        f"`{_say(layout, 'upgrade')}` continues where it stopped; `{_say(layout, 'upgrade --back')}` goes back",
    )  # fmt: skip
    with alone(layout.venvs / INSTALL_LOCK, "", patient=True):
        releases.remove_older()
    if not changed:
        print(f"Nothing to do: all of nova runs release {releases.described(name)}.")
        return
    way = _say(layout, "upgrade --back")
    back = f"; before: {releases.described(releases.previous)}. `{way}` goes back to it" if releases.previous else ""
    print(f"Release {releases.described(name)} runs, after {progress.total():.0f} s{back}.")


def _back(stack: Stack, releases: Releases, progress: Progress) -> None:
    layout, name = stack.layout, releases.previous
    none = StackError(
        f"there is no release to go back to: nova of {layout.state} runs the oldest that {layout.venvs} has",
        f"to change to another release, run `{_say(layout, 'upgrade')}` in its checkout",
    )
    if not name:
        raise none
    before = releases.active
    with alone(layout.venvs / INSTALL_LOCK, "", patient=True):
        releases.go_back()
    nova.write_files(stack, own_users=False)  # the older release may need more permissions than a daemon's user has
    changed = _restart(
        stack, nova.upgrade_order(stack)[::-1], progress,
        f"fix the cause; `{_say(layout, 'upgrade --back')}` continues where it stopped",
    )  # fmt: skip
    if not changed and before == name:
        raise none
    print(f"Went back: release {releases.described(name)} runs, after {progress.total():.0f} s. The tables did not "
          f"change. `{_say(layout, 'upgrade')}` or `up` in this checkout upgrades again.")  # fmt: skip


def _build(stack: Stack, progress: Progress) -> str:
    """Build the new environment and return its name; daemons continue to run from their own."""
    layout = stack.layout
    log = layout.venvs / "install.log"
    with alone(layout.venvs / INSTALL_LOCK, "", patient=True):
        progress.timed(Stage("packages", lambda: packages.install(parts_of(layout), log)))
        begin = time.monotonic()
        name, words = Builder(layout, log).release()
        progress.line(f"venv {name} {words} ({time.monotonic() - begin:.1f} s)")
    return name


def _ask(stack: Stack, releases: Releases, name: str, progress: Progress) -> None:
    """Check whether the upgrade may begin. Raises StackError if it may not.

    With old tables, nova-status cannot check anything else. Therefore the tables are migrated first: the daemons of the
    previous release work with the new ones.
    """
    changed = "nothing was changed"
    found = nova.upgrade_check(stack, name)
    if [one.check for one in found if one.result == FAILURE] == [BEHIND]:
        progress.timed(Stage("nova tables", lambda: nova.prepare_databases(stack, name)))
        changed = "only the tables were migrated, and the running daemons work with them"
        found = nova.upgrade_check(stack, name)
    for one in found:
        if one.result == WARNING:
            progress.line(f"warning: {_spoken(one)}")
    if failures := [one for one in found if one.result == FAILURE]:
        said = "\n".join(f"  {_spoken(one)}" for one in failures)
        raise StackError(
            f"nova-status of release {releases.described(name)} refuses the upgrade; {changed}:\n{said}",
            f"follow its advice, and run `{_say(stack.layout, 'upgrade')}` again",
        )
    progress.line("nova-status upgrade check: passed")


def _spoken(found: Found) -> str:
    return f"{found.check}: {found.details}"


def _restart(stack: Stack, daemons: list[Daemon], progress: Progress, hint: str) -> list[str]:
    """Restart the daemons that do not run the wanted release, each until it is ready, and return their names."""
    keeper, changed = systemd.keeper(stack), []
    for daemon in daemons:
        begin = time.monotonic()
        try:
            words = keeper.start(daemon)
        except StackError as error:
            raise StackError(error.message, hint) from error
        if words != "running":
            changed.append(daemon.name)
            progress.line(f"{daemon.name:{NAME_WIDTH}} ready ({time.monotonic() - begin:.1f} s)")
    return changed


def _say(layout: Layout, command: str) -> str:
    return f"{summary.command_prefix(layout)} {command}"
