"""The summary that `up` prints at its end: the endpoints, and how to use the cloud."""

from __future__ import annotations

from . import credentials, demo, identity, kvm
from . import layout as places
from .errors import StackError
from .layout import Layout
from .stack import Stack
from .stages import Progress


def command_prefix(layout: Layout) -> str:
    """Return `bin/stack` with the options that select this stack; without options if it is found automatically."""
    if layout.state in (places.PLAIN_STATE, places.SANDBOX_STATE):
        return "bin/stack"
    if layout.sandbox and layout.state == places.default_state(True, layout.choices.name):
        return f"bin/stack --name {layout.choices.name}"
    return f"bin/stack --state {layout.state}"


def endpoints(layout: Layout) -> dict[str, str]:
    found = {name: layout.url(port, path) for name, (_, port, path) in identity.services(layout).items()}
    if layout.choices.auth == "keystone":
        found["identity"] = layout.url("keystone", "/v3")
    if layout.choices.dashboard:
        found["dashboard"] = layout.url("horizon", "/")
    return found


def text(stack: Stack, progress: Progress, whole: bool) -> str:
    """Return the summary. `whole`: nova runs, not only its peer services."""
    layout = stack.layout
    lines = ["", f"The cloud is up, after {progress.total():.0f} s. Its files are in {layout.state}.", "", "Endpoints"]
    lines += [f"  {kind:10} {url}" for kind, url in endpoints(layout).items()]
    if layout.further_cells and whole:
        lines += ["", "Cells", *_cells(layout)]
    lines += ["", "Use it", *_usage(layout)]
    if layout.choices.dashboard:
        lines += ["", "Dashboard", *_dashboard(layout)]
    if layout.hypervisor_rooms:
        lines += ["", "Guests", f"  {kvm.sentence(layout)}"]
    if whole and layout.choices.demo:
        lines += ["", "Demo server", *_demo(stack)]
    slow = sorted(progress.seconds.items(), key=lambda item: -item[1])
    lines += [
        "",
        "Seconds per stage (in parallel): " + ", ".join(f"{name} {took:.1f}" for name, took in slow if took >= 0.05),
    ]
    return "\n".join(lines)


def _cells(layout: Layout) -> list[str]:
    """Return a line for each cell: the daemon that serves its hosts, and the hosts."""
    return [
        f"  {cell.name:10} {cell.own('nova-conductor')}: {', '.join(host.name for host in layout.computes_of(cell))}"
        for cell in layout.cells
    ]


def _usage(layout: Layout) -> list[str]:
    stack = command_prefix(layout)
    inside = [
        f"  {stack} exec openstack server list --all-projects",
        f"  {stack} exec --as demo openstack server list",
        f"  {stack} status | logs [DAEMON] [-f] | restart [DAEMON] | down | clean",
    ]
    if layout.sandbox:
        return [*inside, f"  (the endpoints are inside the sandbox; `{stack} exec bash` opens a shell there)"]
    copy = f"mkdir -p ~/.config/openstack && cp {layout.path('clouds.yaml')} ~/.config/openstack/"
    return [
        *inside,
        f"  or:  source {layout.path('openrc-admin')}; openstack server list",
        f"  or:  {copy} && openstack --os-cloud {credentials.USERS[0]} server list",
    ]


def _dashboard(layout: Layout) -> list[str]:
    """Return the dashboard's lines, with a command that prints the password: the output of `up` may be logged."""
    asked = f"{command_prefix(layout)} exec --as {credentials.USERS[-1]} printenv OS_PASSWORD"
    return [
        f"  address  {layout.url('horizon', '/')}",
        f"  log in   as {' or '.join(credentials.USERS)}, domain Default; the password: {asked}",
    ]


def _demo(stack: Stack) -> list[str]:
    try:
        shown = demo.show(stack)
    except StackError as error:
        return [f"  {error.message}"]
    if shown is None:
        return ["  none"]
    lines = [f"  state    {shown.state}", f"  address  {shown.address}"]
    if stack.layout.choices.driver == "libvirt":
        key, address = demo.key_file(stack.layout), shown.address.partition(",")[0]
        lines.append(f"  login    {command_prefix(stack.layout)} exec ssh -i {key} root@{address}")
        lines += screen_lines(stack.layout, shown.screen)
    if shown.console:
        lines += ["  log      ...", *(f"    {line[:140]}" for line in shown.console)]
    return lines


def screen_lines(layout: Layout, screen: str) -> list[str]:
    """Return the console's lines. The URL is a secret until it expires, as the one of `openstack console url show`."""
    if not screen.startswith("http"):
        return [f"  console  {screen}"]
    again = f"{command_prefix(layout)} exec --as demo openstack console url show {demo.SERVER}"
    return [f"  console  {screen}", f"           valid for 10 minutes; a new one: {again}"]
