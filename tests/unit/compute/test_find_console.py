"""ComputeRPC.find_console: what the host's configuration offers, and where a guest's console is."""

from __future__ import annotations

import json

import pytest
from oslo_config import cfg

from nova import conf as nova_conf
from nova import errors
from nova.compute.reports.consoles import offers_of
from nova.model.guest.consoles import ConsoleType
from tests.fakes.compute import build_order

T = ConsoleType
ALL_ON = {"vnc": {"server_proxyclient_address": "10.0.0.1"},
          "spice": {"enabled": True, "server_proxyclient_address": "10.0.0.2"},
          "serial_console": {"enabled": True, "proxyclient_address": "10.0.0.3"}, "mks": {"enabled": True}}


def offers(**groups):
    conf = nova_conf.register(cfg.ConfigOpts())
    conf([], project="nova", default_config_files=[])
    for group, options in groups.items():
        for name, value in options.items():
            conf.set_override(name, value, group)
    return offers_of(conf)


@pytest.fixture
def guest(world):
    order = build_order()
    world.offers = offers(**ALL_ON)
    world.restart()
    world.build(order)
    return order.server_uuid


def find(world, server_uuid, kind):
    return world.service.find_console(world.host.name, server_uuid, kind)


def test_offers_when_nothing_is_set_then_vnc_alone():
    assert offers() == {T.NOVNC: "127.0.0.1", T.XVPVNC: "127.0.0.1"}


@pytest.mark.parametrize(("groups", "kinds"), [
    ({"vnc": {"enabled": False}}, ()),
    ({"spice": {"enabled": True}}, (T.NOVNC, T.XVPVNC, T.SPICE_HTML5, T.SPICE_DIRECT)),
    ({"spice": {"enabled": True, "require_secure": True}}, (T.NOVNC, T.XVPVNC, T.SPICE_DIRECT)),
    (ALL_ON, tuple(set(T) - {T.RDP_HTML5, T.UNKNOWN}))])
def test_offers_when_options_are_set_then_they_follow(groups, kinds):
    assert set(offers(**groups)) == set(kinds)


def test_find_when_the_guest_runs_then_each_has_its_address(world, guest):
    found = {kind: find(world, guest, kind) for kind in world.offers}
    assert {address.access_url_base for address in found.values()} == {""}  # not a host's to say
    assert {kind: address.host for kind, address in found.items()} == {
        T.NOVNC: "10.0.0.1", T.XVPVNC: "10.0.0.1", T.SPICE_HTML5: "10.0.0.2", T.SPICE_DIRECT: "10.0.0.2",
        T.SERIAL: "10.0.0.3", T.WEBMKS: "127.0.0.1"}
    assert all(address.port for address in found.values()) and found[T.SPICE_DIRECT].tls_port
    assert set(json.loads(found[T.WEBMKS].internal_access_path)) == {"ticket", "cfgFile", "thumbprint"}


@pytest.mark.parametrize("kind", [T.RDP_HTML5, T.UNKNOWN, T.SERIAL])
def test_find_when_the_configuration_has_no_such_type_then_invalid_in_these_words(world, guest, kind):
    world.offers = offers()
    world.restart()
    with pytest.raises(errors.Invalid, match=f"^Unavailable console type {kind.value}.$") as caught:
        find(world, guest, kind)
    assert caught.value.code == "console.type_unavailable"


def test_find_when_there_is_no_such_guest_or_host_then_not_found_or_refused(world, guest):
    with pytest.raises(errors.NotFound):
        find(world, build_order().server_uuid, T.NOVNC)
    with pytest.raises(errors.Invalid):
        find(world, "../etc/passwd", T.NOVNC)
    with pytest.raises(errors.NovaError):
        world.service.find_console("another", guest, T.NOVNC)


def test_find_when_the_guest_is_off_then_conflict(world, guest):
    world.driver.lifecycle.shut_down(guest, 0)
    with pytest.raises(errors.Conflict):
        find(world, guest, T.NOVNC)


def test_find_when_the_driver_serves_none_then_not_supported(world, guest):
    world.driver.remote_consoles = None
    with pytest.raises(errors.NotSupported, match="does not serve"):
        find(world, guest, T.NOVNC)


def test_find_when_a_guest_was_started_again_then_another_may_have_its_old_port(world, guest):
    before = find(world, guest, T.NOVNC).port
    world.driver.lifecycle.shut_down(guest, 0)
    world.driver.lifecycle.start(guest)
    assert find(world, guest, T.NOVNC).port != before
    second = build_order(number=2)
    world.build(second)
    assert find(world, second.server_uuid, T.NOVNC).port == before


def test_find_when_the_knobs_say_so_then_it_fails(world, guest):
    world.driver.knobs.fail_next("console_of", "conflict")
    with pytest.raises(errors.Conflict):
        find(world, guest, T.NOVNC)
    assert find(world, guest, T.NOVNC).port
