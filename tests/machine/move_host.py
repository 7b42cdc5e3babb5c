"""Run in a host's room: the libvirt driver as that host's nova.conf makes it, told what to do by lines of JSON.

A line in: {"id": 1, "call": "leave", "with": ...}; a line out, in the order in which the calls end: {"id": 1,
"done": ...} or {"id": 1, "failed": [kind, code, message]}.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from oslo_config import cfg

from nova import concurrency, errors, migrationproxy
from nova import conf as nova_conf
from nova.migrationproxy import libvirt_uri
from nova.model.guest.orders import BuildOrder, LiveOrder, MoveOrder
from nova.virt.libvirt import LibvirtDriver, from_conf
from tests.machine import helped

concurrency.patch("threads")

_said = threading.Lock()


class Cached:
    """What nova-compute keeps on this host."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def path(self, image_id: str) -> str:
        key = hashlib.sha1(image_id.encode(), usedforsecurity=False).hexdigest()
        for name in (key, f"{key}.qcow2"):
            if (self._directory / name).exists():
                return str(self._directory / name)
        raise KeyError(image_id)


class Calls:
    def __init__(self, driver: LibvirtDriver, images: Cached) -> None:
        self._driver, self._images = driver, images
        self._reported: list[int] = []

    def order(self, uuid: str) -> BuildOrder | None:
        return self._driver.kept_orders.kept_order(uuid)

    def leave(self, uuid: str) -> Any:
        return self._driver.cold_moves.leave(uuid)

    def restore_source(self, uuid: str) -> bool:
        return self._driver.cold_moves.restore_source(uuid)

    def forget(self, uuid: str) -> None:
        self._driver.cold_moves.forget(uuid)

    def kept_sources(self) -> list[str]:
        return sorted(self._driver.cold_moves.kept_sources())

    def describe(self, uuid: str) -> Any:
        return self._driver.live_moves.describe(uuid)

    def fetch(self, order: MoveOrder) -> None:
        self._driver.cold_moves.fetch(order, self._images)

    def prepare_arrival(self, order: MoveOrder) -> Any:
        return self._driver.live_moves.prepare_arrival(order, self._images)

    def migrate(self, order: LiveOrder) -> list[int]:
        reported: list[int] = []
        self._driver.live_moves.migrate(order, lambda percent, progress: reported.append(percent), lambda: False)
        return reported

    def open_tunnel(self, order: LiveOrder) -> str:
        """As far as a migration goes before libvirtd is told: where that would find the other one."""
        proxies = self._driver.live_moves.proxies
        proxies.open_tunnel(order.server_uuid, order.arrival.gate)
        return libvirt_uri(proxies.directory(order.server_uuid))

    def close_tunnel(self, uuid: str) -> None:
        self._driver.live_moves.proxies.close(uuid)

    def abort(self, uuid: str) -> None:
        self._driver.live_moves.abort(uuid)

    def force(self, uuid: str) -> None:
        self._driver.live_moves.force(uuid)

    def land(self, order: MoveOrder) -> str:
        for _ in range(100):
            try:
                return str(self._driver.live_moves.finish_arrival(order))
            except errors.Conflict:
                time.sleep(0.1)
        raise TimeoutError("it never lands")

    def start(self, order: BuildOrder) -> str:
        self._driver.interfaces.plug(order)
        return str(self._driver.lifecycle.start_new(order))

    def power_off(self, uuid: str) -> str:
        return str(self._driver.lifecycle.shut_down(uuid, 0))

    def pause(self, uuid: str) -> str:
        return str(self._driver.pausing.pause(uuid))

    def unpause(self, uuid: str) -> str:
        return str(self._driver.pausing.unpause(uuid))

    def clean(self, uuid: str) -> None:
        """What destroy_guests does."""
        self._driver.lifecycle.destroy(uuid)
        self._driver.interfaces.unplug(uuid, None)
        self._driver.disks.remove_disks(uuid)

    def state(self, uuid: str) -> str:
        return str(self._driver.lifecycle.power_state(uuid))

    def guests(self) -> list[str]:
        return [guest.server_uuid for guest in self._driver.guests()]


TYPES: dict[str, Any] = {"fetch": MoveOrder, "prepare_arrival": MoveOrder, "land": MoveOrder, "migrate": LiveOrder,
                         "open_tunnel": LiveOrder,
                         "start": BuildOrder, "guests": None, "kept_sources": None}


def answer(number: int, call: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        said: dict[str, Any] = {"id": number, "done": call(*arguments)}
    except errors.NovaError as error:
        said = {"id": number, "failed": [error.kind, error.code, str(error)]}
    except Exception as error:
        said = {"id": number, "failed": ["", type(error).__name__, str(error)]}
    with _said:
        sys.stdout.write(msgspec.json.encode(said).decode() + "\n")
        sys.stdout.flush()


def without_rights(conf_file: str) -> None:
    """From here on an ordinary user with a helper, as nova-compute is by its unit."""
    helped.let_in_by_libvirt()
    folder = migrationproxy.DIRECTORY
    folder.mkdir(mode=0o711, exist_ok=True)
    user = helped.some_user()
    os.chown(folder, user.pw_uid, user.pw_gid)
    socket = Path("/run/helper.sock")
    socket.unlink(missing_ok=True)
    helped.start_helper([conf_file], socket, Path("/run/helper.log"))
    helped.become_user(socket, "root")  # QEMU's group in a sandbox's rooms


def main(conf_file: str) -> None:
    conf = nova_conf.register(cfg.ConfigOpts())
    conf(["--config-file", conf_file], project="nova")
    if os.environ.get("NOVA_TEST_HELPED"):
        without_rights(conf_file)
    driver = from_conf(conf, conf.host)
    driver.connect()
    calls = Calls(driver, Cached(Path(conf.instances_path) / conf.image_cache.subdirectory_name))
    for line in sys.stdin:
        asked = msgspec.json.decode(line)
        kind = TYPES.get(asked["call"], str)
        arguments = () if kind is None else (msgspec.convert(asked["with"], kind),)
        call = getattr(calls, asked["call"])
        threading.Thread(target=answer, args=(asked["id"], call, arguments), daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1])
