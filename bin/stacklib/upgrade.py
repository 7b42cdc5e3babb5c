"""`upgrade`: nova of a stack that runs goes to this checkout's release daemon by daemon, or back to the one before."""

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
    """Each step may be interrupted, and said again. Raises StackError."""
    stack = stack_of(layout)
    if not stack.control.running():
        raise StackError(f"the stack in {layout.state} is not running", f"start it with `{_say(layout, 'up')}`")
    with alone(layout.state / UP_LOCK, "another `bin/stack up` or `upgrade` of this stack runs"):
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
        f"`{_say(layout, 'upgrade')}` goes on where it stopped; `{_say(layout, 'upgrade --back')}` goes back",
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
        f"from a checkout of the release that you want, `{_say(layout, 'upgrade')}` goes to it",
    )
    if not name:
        raise none
    before = releases.active
    with alone(layout.venvs / INSTALL_LOCK, "", patient=True):
        releases.go_back()
    nova.write_files(stack, own_users=False)  # the release before may not keep to the rights of a user of its own
    changed = _restart(
        stack, nova.upgrade_order(stack)[::-1], progress,
        f"mend the cause; `{_say(layout, 'upgrade --back')}` goes on where it stopped",
    )  # fmt: skip
    if not changed and before == name:
        raise none
    print(f"Went back: release {releases.described(name)} runs, after {progress.total():.0f} s. The tables are as they "
          f"were. `{_say(layout, 'upgrade')}` and `up` of this checkout go forward again.")  # fmt: skip


def _build(stack: Stack, progress: Progress) -> str:
    """The name of the new environment; daemons run on from theirs."""
    layout = stack.layout
    log = layout.venvs / "install.log"
    with alone(layout.venvs / INSTALL_LOCK, "", patient=True):
        progress.timed(Stage("packages", lambda: packages.install(parts_of(layout), log)))
        begin = time.monotonic()
        name, words = Builder(layout, log).release()
        progress.line(f"venv {name} {words} ({time.monotonic() - begin:.1f} s)")
    return name


def _ask(stack: Stack, releases: Releases, name: str, progress: Progress) -> None:
    """Whether the upgrade may begin. Where the tables are behind, nova-status can look at nothing else: so they come
    first, as daemons of the release before work on them. StackError: it may not."""
    changed = "nothing was changed"
    found = nova.upgrade_check(stack, name)
    if [one.check for one in found if one.result == FAILURE] == [BEHIND]:
        progress.timed(Stage("nova tables", lambda: nova.prepare_databases(stack, name)))
        changed = "the tables alone are new, and the daemons that run work on them"
        found = nova.upgrade_check(stack, name)
    for one in found:
        if one.result == WARNING:
            progress.line(f"warning: {_spoken(one)}")
    if failures := [one for one in found if one.result == FAILURE]:
        said = "\n".join(f"  {_spoken(one)}" for one in failures)
        raise StackError(
            f"nova-status of release {releases.described(name)} refuses the upgrade; {changed}:\n{said}",
            f"do what it says, and run `{_say(stack.layout, 'upgrade')}` again",
        )
    progress.line("nova-status upgrade check: it may begin")


def _spoken(found: Found) -> str:
    return f"{found.check}: {found.details}"


def _restart(stack: Stack, daemons: list[Daemon], progress: Progress, hint: str) -> list[str]:
    """Those that do not run as they should, one after the other, each until it is ready; their names."""
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
