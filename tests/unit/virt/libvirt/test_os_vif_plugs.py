"""What os-vif is told of a port, and what becomes of what it says."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nova import errors
from nova.privileged.os_vif_plugs import LINUX_BRIDGE, OVS, OsVif, VifPort, _vif

ID, MAC, UUID = "ce531f90-199f-48c0-816c-13e38010b442", "fa:16:3e:4c:2c:30", "11111111-2222-4333-8444-555555555555"
NETWORK = "21111111-2222-4333-8444-555555555555"


@pytest.fixture(scope="module", autouse=True)
def known_objects() -> None:
    """As os-vif's initialization leaves them; its plugins, which need a host, are not loaded."""
    from os_vif import objects

    objects.register_all()


def port(**fields: Any) -> VifPort:
    return VifPort(**{"id": ID, "plugin": OVS, "device": "tapce531f90-19", "bridge": "br-int", "mac": MAC, "mtu": 1450,
                      "network_id": NETWORK, "label": "net", **fields})


class Library:
    """In place of os-vif. ``error``: what a plugin raises, in the library's own wrapping."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.inside, self.most, self.plugged = error, 0, 0, []

    def plug(self, vif: Any, guest: Any) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        time.sleep(0.005)
        self.inside -= 1
        self.plugged.append((vif.id, guest.uuid))
        try:
            if self.error:
                raise self.error
        except Exception as error:
            raise RuntimeError(f"Failed to plug VIF {vif}. Got error: {error}") from None

    unplug = plug


class Loaded(OsVif):
    def __init__(self, library: Library) -> None:
        super().__init__(Path("/nowhere"), SimpleNamespace())
        self.loads, self._fake = 0, library

    def _load(self) -> Any:
        self.loads += 1
        return self._fake


def test_port_on_the_switch_when_os_vif_is_told_then_it_makes_no_port_of_its_own():
    """libvirt does, when the guest's tap is there."""
    made = _vif(port(datapath="netdev", port_id=UUID))
    assert type(made).__name__ == "VIFOpenVSwitch" and made.plugin == "ovs" and made.bridge_name == "br-int"
    assert (made.vif_name, made.address, made.network.bridge, made.network.mtu) == (
        "tapce531f90-19", MAC, "br-int", 1450)
    profile = made.port_profile
    assert (profile.interface_id, profile.datapath_type, profile.create_port) == (UUID, "netdev", False)


def test_hybrid_port_when_os_vif_is_told_then_the_bridge_between_is_named_and_the_switch_behind_it():
    made = _vif(port(between="qbrce531f90-19"))
    assert type(made).__name__ == "VIFBridge"
    assert (made.bridge_name, made.network.bridge) == ("qbrce531f90-19", "br-int")
    assert made.port_profile.interface_id == ID and made.network.should_provide_bridge is False


def test_port_on_a_linux_bridge_when_os_vif_is_told_then_it_shall_make_the_bridge():
    made = _vif(port(plugin=LINUX_BRIDGE, bridge="brq1"))
    assert type(made).__name__ == "VIFBridge" and made.plugin == "linux_bridge"
    assert (made.bridge_name, made.network.should_provide_bridge, made.network.should_provide_vlan) == (
        "brq1", True, False)


def test_record_when_a_port_is_unplugged_then_what_it_tells_is_enough():
    made = _vif(VifPort(id=ID, plugin=OVS, device="tap1", bridge="br-int"))
    assert made.port_profile.interface_id == ID and made.address is None and made.network.mtu is None


@pytest.mark.parametrize(("call", "what"), [("plug", "plugged into"), ("unplug", "taken from")])
def test_port_when_os_vif_fails_then_the_host_is_refused_with_the_plugins_own_words(call, what):
    os_vif = Loaded(Library(OSError("no route to the database.")))
    with pytest.raises(errors.HostRefused) as caught:
        getattr(os_vif, call)(port(), *([UUID] if call == "plug" else []))
    assert str(caught.value) == f"Interface {ID} cannot be {what} br-int: no route to the database."
    assert caught.value.code == "host.not_plugged"


def test_port_when_its_data_are_none_for_os_vif_then_the_host_is_refused():
    with pytest.raises(errors.HostRefused, match="no mac"):
        Loaded(Library()).plug(port(mac="no mac"), UUID)


def test_ports_when_many_are_plugged_at_once_then_os_vif_is_loaded_once_and_asked_one_at_a_time():
    library = Library()
    os_vif = Loaded(library)
    threads = [threading.Thread(target=os_vif.plug, args=(port(), UUID)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert os_vif.loads == 1 and library.most == 1 and library.plugged == [(ID, UUID)] * 5


@pytest.mark.parametrize("read", [True, False])
def test_helper_when_we_are_root_then_it_is_the_one_beside_us_with_our_own_files(read):
    conf = SimpleNamespace(config_file=["/etc/nova/nova.conf"]) if read else SimpleNamespace()
    words = OsVif(Path("/nowhere"), conf)._helper()
    assert "sudo" not in words and words[2].endswith("/bin/privsep-helper")
    assert list(words[3:]) == (["--config-file", "/etc/nova/nova.conf"] if read else [])
