"""nova-network for tests/machine/test_network_host.py: the real service, with a conductor made of files.

    network_host_process.py STATE_DIRECTORY

``STATE_DIRECTORY/orders.json`` is what the conductor says of this host (NetworkOnHost values); leases that are told
are appended to ``leases.log``; the directory's ``down`` file means that the conductor does not answer. Each line on
standard input orders the service to serve what the file says; the answer is a line: ok, or the error. With
NOVA_TEST_HELPER (a socket) it becomes NOVA_TEST_USER first.
"""

from __future__ import annotations

import json
import os
import pwd
import sys
from pathlib import Path

from nova import concurrency

concurrency.patch()

import msgspec  # noqa: E402 - after the patch, as nova.cmd does

from nova.errors import NovaError, Unavailable  # noqa: E402
from nova.model.network.networks import LeaseChange, NetworkOnHost  # noqa: E402
from nova.network.options import NetworkHostOptions  # noqa: E402
from nova.network.service import assemble  # noqa: E402
from nova.privileged import client  # noqa: E402
from nova.privileged.helper_socket import SocketHelper  # noqa: E402

HOST = "host1"
ELSEWHERE = "192.0.2.90/32"


class FileConductor:
    def __init__(self, state: Path) -> None:
        self._state = state

    def networks_on_host(self, host: str) -> tuple[NetworkOnHost, ...]:
        self._answer()
        return msgspec.json.decode((self._state / "orders.json").read_bytes(), type=tuple[NetworkOnHost, ...])

    def guest_ranges(self, host: str) -> tuple[str, ...]:
        """Of all networks that there are, and of a floating address on another host."""
        known = self.networks_on_host(host)
        return tuple(one.network.cidr for one in known if one.network.cidr) + (ELSEWHERE,)

    def report_lease(self, host: str, lease: LeaseChange) -> None:
        self._answer()
        with open(self._state / "leases.log", "a") as stream:
            stream.write(f"{lease.action} {lease.mac} {lease.address} {lease.hostname}\n")

    def _answer(self) -> None:
        if (self._state / "down").exists():
            raise Unavailable("the conductor does not answer")


def use_helper(path: str, user: str) -> None:
    """From here on an ordinary user, whose helper has been started."""
    found = pwd.getpwnam(user)
    os.setgroups([])
    os.setgid(found.pw_gid)
    os.setuid(found.pw_uid)
    client.use(SocketHelper(Path(path)))


def main(state: Path) -> None:
    if "NOVA_TEST_HELPER" in os.environ:
        use_helper(os.environ["NOVA_TEST_HELPER"], os.environ["NOVA_TEST_USER"])
    settings = json.loads((state / "settings.json").read_text())
    paths = {"networks_path": state / "networks", "state_path": state}
    options = NetworkHostOptions(**{**{key: tuple(value) if isinstance(value, list) else value
                                       for key, value in settings.items()}, **paths})
    conductor = FileConductor(state)
    service = assemble(conductor, HOST, options)
    service.start()
    print("started", flush=True)
    while concurrency.run_in_thread(sys.stdin.readline):
        try:
            service.serve_networks(HOST, conductor.networks_on_host(HOST))
            print("ok", flush=True)
        except NovaError as error:
            print(f"{type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
