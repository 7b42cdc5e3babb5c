"""``nova-manage image_property`` and ``libvirt``: image properties in servers' records.

A guest is defined with the properties that its image had when the server was created. A change takes effect with its
next hard reboot, start after a move, or rebuild. Exit codes are upstream's (nova-manage(1)).
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from nova import errors, failures
from nova.api.views.image_properties import KNOWN
from nova.conf._options import Options
from nova.db.server import servers
from nova.db.sql.engine import Connection, Database
from nova.manage.command import Command, Run, argument
from nova.manage.databases import synced
from nova.model.image import image_properties
from nova.model.image.images import Image
from nova.model.server.states import VmState

Say = Callable[[str], None]

MACHINE = "hw_machine_type"
NO_SERVER, NO_PROPERTY, BAD_STATE = 2, 3, 3
BAD_NAME, BAD_VALUE = 4, 5
BAD_CHANGE, UNSUPPORTED = 4, 5
SOME_UNSET = 3
OFF = (VmState.STOPPED.value, VmState.SHELVED.value, VmState.SHELVED_OFFLOADED.value)
#: A libvirt machine type of the supported architectures: its kind and version.
_TYPE = re.compile(r"(pc-i440fx|pc-q35|pc|q35|virt|s390-ccw-virtio|pseries)(-[a-z0-9.\-]+)?")
_SAME = {"pc": "pc-i440fx", "q35": "pc-q35"}


class PropertyRefused(Exception):
    """A refused command, without any change; ``code``: the exit status."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


def _image(tx: Connection, uuid: str) -> Image:
    row = servers.rows_of(tx, [uuid]).get(uuid)
    if row is None:
        raise PropertyRefused(NO_SERVER, f"There is no server {uuid}.")
    return row.image or Image(id="")


def shown(cell: Database, uuid: str, name: str) -> str:
    """Return the property's value. Raises PropertyRefused."""
    with cell.reading() as tx:
        properties = _image(tx, uuid).properties
    if name not in properties:
        raise PropertyRefused(NO_PROPERTY, f"The record of server {uuid} does not have the property {name}.")
    return properties[name]


def changed(cell: Database, uuid: str, wanted: Mapping[str, str]) -> None:
    """Write properties to the record of a stopped server without an operation in progress. Raises PropertyRefused."""
    def write(tx: Connection) -> None:
        with failures.replaced(errors.server.NotFound,
                lambda _: PropertyRefused(NO_SERVER, f"There is no server {uuid}.")):
            row = servers.lock_row(tx, uuid)
        if row.vm_state not in OFF or row.task_state is not None:
            state = f"{row.vm_state}, {row.task_state}" if row.task_state else row.vm_state
            raise PropertyRefused(BAD_STATE, f"Server {uuid} is {state}. It must be stopped or shelved, without an "
                                  "operation in progress.")
        image = _image(tx, uuid)
        servers.update(tx, uuid, {"image": msgspec.structs.replace(image, properties={**image.properties, **wanted})})
    cell.transact(write)


def parsed(words: Sequence[str]) -> dict[str, str]:
    """Parse ``NAME=VALUE`` arguments. Raises PropertyRefused for an unknown name or an invalid value."""
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not value:
            raise PropertyRefused(BAD_VALUE, f"--property {word}: write it as NAME=VALUE.")
        if name not in KNOWN:
            raise PropertyRefused(BAD_NAME, f"{name} is not a property that nova-compute reads.")
        found[name] = value
    if wrong := image_properties.problem(found):
        raise PropertyRefused(BAD_VALUE, wrong)
    return found


def check_machine(now: str | None, wanted: str, force: bool) -> None:
    """Raise PropertyRefused for an unknown type, or for another kind of machine, which changes the guest's hardware."""
    if _TYPE.fullmatch(wanted) is None:
        raise PropertyRefused(UNSUPPORTED, f"{wanted} is not a machine type: use pc, q35, virt, pseries, "
                              "s390-ccw-virtio, or a version of one, such as pc-q35-7.2.")
    if not force and now is not None and _kind(now) != _kind(wanted):
        raise PropertyRefused(BAD_CHANGE, f"A change from {now} to {wanted} replaces the guest's hardware. Repeat with "
                              "--force if the guest's operating system supports that.")


def _kind(machine: str) -> str:
    found = _TYPE.fullmatch(machine)
    kind = found[1] if found else machine
    return _SAME.get(kind, kind)


def without_machine(cell: Database) -> list[str]:
    """Return the UUIDs of existing servers whose record has no machine type, with one statement."""
    with cell.reading() as tx:
        return [one.uuid for one in servers.properties_of_images(tx) if MACHINE not in one.properties]


def _run(work: Callable[[Database, argparse.Namespace], int], say: Say) -> Run:
    def run(options: Options, given: argparse.Namespace) -> int:
        try:
            return work(synced(options, "cell"), given)
        except PropertyRefused as refused:
            say(str(refused))
            return refused.code
    return run


def actions(say: Say) -> dict[str, dict[str, Command]]:
    """Return the rows of nova-manage's command table: two categories."""
    def show(cell: Database, given: argparse.Namespace) -> int:
        say(shown(cell, given.server, given.property))
        return 0

    def change(cell: Database, given: argparse.Namespace) -> int:
        changed(cell, given.server, parsed(given.property))
        return 0

    def machine(cell: Database, given: argparse.Namespace) -> int:
        say(shown(cell, given.server, MACHINE))
        return 0

    def change_machine(cell: Database, given: argparse.Namespace) -> int:
        with cell.reading() as tx:
            now = _image(tx, given.server).properties.get(MACHINE)
        check_machine(now, given.machine_type, given.force)
        changed(cell, given.server, {MACHINE: given.machine_type})
        say(f"Updated instance {given.server} machine type to {given.machine_type} (previously {now or 'undefined'})")
        return 0

    def unset(cell: Database, given: argparse.Namespace) -> int:
        found = without_machine(cell)
        for uuid in found:
            say(uuid)
        if not found:
            say("All servers have a machine type in their records.")
        return SOME_UNSET if found else 0

    server = argument("server", metavar="UUID")
    return {
        "image_property": {
            "show": Command(_run(show, say), "show an image property in a server's record", (
                server, argument("property", metavar="NAME"))),
            "set": Command(_run(change, say), "set image properties in the record of a stopped server", (
                server, argument("--property", action="append", required=True, metavar="NAME=VALUE",
                                 help="repeatable")))},
        "libvirt": {
            "get_machine_type": Command(_run(machine, say), "show the machine type in a server's record", (server,)),
            "update_machine_type": Command(_run(change_machine, say), "set the machine type of a stopped server", (
                server, argument("machine_type", metavar="TYPE"),
                argument("--force", action="store_true", help="allow a type of another kind of machine"))),
            "list_unset_machine_type": Command(_run(unset, say), "list servers without a recorded machine type: "
                                               "[libvirt]hw_machine_type of their host, or libvirt, decides", (
                argument("--cell-uuid", help="accepted; there is one cell"),))}}
