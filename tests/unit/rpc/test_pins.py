from __future__ import annotations

from oslo_config import cfg

from nova import conf
from nova.rpc import bus, transport
from nova.rpc.client import Peers
from nova.rpc.contracts.compute import ComputeRPC
from nova.rpc.contracts.conductor_host import ConductorHostRPC


def options(**pins):
    made = conf.register(cfg.ConfigOpts())
    made([], default_config_files=[])
    for name, version in pins.items():
        made.set_override(name, version, group="upgrade_levels")
    return made


def test_pins_when_the_file_names_versions_then_clients_speak_them():
    peers = Peers(bus.pins(options(compute="1.0", conductor_host="0.9")))
    assert peers.speak(ComputeRPC) == "1.0"
    assert peers.speak(ConductorHostRPC) == "0.9"


def test_pins_when_auto_or_nothing_then_the_newest_is_spoken():
    assert bus.pins(options(compute="auto")) == {}


def test_pins_when_the_section_is_not_declared_then_none():
    assert bus.pins(cfg.ConfigOpts()) == {}


def test_transport_when_nothing_is_said_then_a_listener_looks_each_second_whether_to_stop():
    made = options()
    transport.open_transport(made)
    group = made.oslo_messaging_rabbit
    assert group.heartbeat_timeout_threshold / group.heartbeat_rate / 2 <= 1  # as the library counts
