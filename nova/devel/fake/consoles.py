"""Consoles of fake guests: ports without a listener, allocated and released as by a hypervisor.

Each boot of a guest, and each host that it moves to, gives it a new number; another guest soon gets its previous
number. So tests see a port that changes its guest.
"""

from __future__ import annotations

import json
import uuid

from nova import errors
from nova.devel.fake.hypervisor import UP, Part, knobbed
from nova.devel.fake.store import FakeGuest
from nova.model.guest.consoles import PROTOCOLS, ConsoleType
from nova.model.server.states import PowerState
from nova.virt.interface import ConsoleEndpoint

#: First port of each protocol; a guest's number is added.
FIRST = {"vnc": 5900, "spice": 16000, "serial": 10000, "mks": 9000}
FIRST_TLS = 26000
TICKETS = uuid.UUID("0d7d3b0e-7c5a-4f6e-9a55-6f3f2f0a5a01")  # namespace of the tickets


class FakeRemoteConsoles(Part):
    @knobbed
    def console_of(self, server_uuid: str, type: ConsoleType) -> ConsoleEndpoint:
        state = PowerState(self._hypervisor.defined(server_uuid).power_state)
        protocol = PROTOCOLS.get(type, "")
        if protocol not in FIRST:
            raise errors.host.NoSuchConsole(type=type.value)
        if state not in UP:
            raise errors.guest.WrongPower(uuid=server_uuid, state=state.name)
        with self._hypervisor.changed(server_uuid) as guest:
            self._number(guest)
            port = FIRST[protocol] + guest.display
            if protocol == "mks":
                return ConsoleEndpoint(host="127.0.0.1", port=port, internal_access_path=self._ticket(guest))
            return ConsoleEndpoint(port=port, tls_port=FIRST_TLS + guest.display if protocol == "spice" else None)

    def _number(self, guest: FakeGuest) -> None:
        """Choose a number that no other running guest of this host has. It is chosen on demand, which callers cannot
        notice."""
        if guest.display_of == self._hypervisor.boot_of(guest):
            return
        taken = {other.display for other in self._hypervisor.store.all()
                 if other.display_of == self._hypervisor.boot_of(other) and other.power_state in UP}
        taken.add(guest.display)
        guest.display = next(number for number in range(len(taken) + 1) if number not in taken)
        guest.display_of = self._hypervisor.boot_of(guest)

    def _ticket(self, guest: FakeGuest) -> str:
        """Return a ticket in the form of vCenter's."""
        number = uuid.uuid5(TICKETS, f"{guest.uuid} {guest.display_of}")
        print_ = ":".join(f"{byte:02X}" for byte in (number.bytes + number.bytes)[:20])
        return json.dumps({"ticket": str(number), "cfgFile": f"[fake] {guest.uuid}/{guest.uuid}.vmx",
                           "thumbprint": print_})
