"""The helper's table: which calls there are, and what none of them takes."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import typing
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from nova import privileged
from nova.privileged.helper.table import TABLE, arguments_of, dispatch
from tests.fakes.helper import GUEST, asked, refusal, settings

LIMITS = [600, 1024, None]
MAC, UUID = "fa:16:3e:00:00:01", GUEST


def samples(folder: str) -> dict[str, dict[str, Any]]:
    """For each call, arguments that fit."""
    tool: dict[str, Any] = {"limits": LIMITS, "timeout_s": 60.0}
    disk, other = f"{folder}/disk", f"{folder}/other"
    network = {"network": UUID, "bridge": "br1", "label": "net", "address": "10.0.0.1", "start": "10.0.0.2",
               "netmask": "255.255.255.0", "most_leases": 256, "servers": ["9.9.9.9"]}
    port = {"id": UUID, "plugin": "ovs", "device": "tap1", "bridge": "br-int", "mac": MAC, "network_id": UUID}
    process = {"pid": 4000000, "program": "dnsmasq", "device": "br1"}
    table = {"name": "filter", "chains": {"nova-network-FORWARD": ["-i br1 -j ACCEPT"]}, "shared": ["nova-filter-top"],
             "first": {"FORWARD": ["nova-network-FORWARD"]}, "last": {"FORWARD": ["nova-filter-top"]},
             "own": "nova-compute-inst-"}
    mount = "/m/0123456789abcdef0123456789abcdef"
    return {
        "about": {}, "dmi.product_uuid": {}, "ownership.adopt": {},
        "links.ensure_bridge": {"name": "br1", "interface": "eth9", "mac": MAC},
        "links.enslave": {"bridge": "br1", "interface": "eth9"}, "links.set_ipv6": {"device": "br1", "on": True},
        "links.ensure_tap": {"tap": ["gw-12345678-ab", MAC, 1500, "br1"]},
        "links.ensure_vlan": {"vlan": ["vlan9", "eth9", 9, MAC]},
        "links.ensure_up": {"device": "gw-12345678-ab", "mac": MAC}, "links.release": {"interface": "eth9"},
        "links.delete": {"device": "br1"}, "links.ensure_guest_ports": {"devices": ["tap1"]},
        "links.ensure_address": {"device": "br1", "address": ["10.0.0.1", 24, "10.0.0.255"]},
        "links.delete_address": {"device": "br1", "address": ["10.0.0.1", 24]},
        "links.ensure_route": {"device": "br1", "route": ["10.0.0.0", 24, "10.0.0.1", None, "10.0.0.3"]},
        "vfs.set_up": {"function": ["eth9", 1], "mac": MAC, "vlan": 0},
        "files.enable_forwarding": {}, "files.enable_forwarding_v6": {}, "kernel_switches.filter_bridged": {},
        "announcements.announce": {"device": "br1", "address": "10.0.0.1", "count": 3},
        "announcements.release_lease": {"device": "br1", "address": "10.0.0.1", "mac": MAC},
        "announcements.forget_connections": {"which": "-d", "address": "10.0.0.1"},
        "announcements.mark_connections": {"address": "10.0.0.1"},
        "dnsmasq.start": {"order": network}, "radvd.start": {"device": "br1"},
        "processes.read_again": process, "processes.end": process,
        "ovs.has_bridge": {"name": "br-int"}, "ovs.datapath_of": {"bridge": "br-int"},
        "ovs.has_port": {"bridge": "br-int", "port": "vhu1"},
        "ovs.ensure_port": {"bridge": "br-int", "port": "vhu1", "ids": {"iface-id": UUID}, "kind": "dpdkvhostuser",
                            "options": {"vhost-server-path": "/run/vhu1"}},
        "ovs.delete_port": {"bridge": "br-int", "port": "vhu1"},
        "ovs.ensure_internal_port": {"timeout_s": 30, "bridge": "br-int", "device": "gw-12345678-ab", "mac": MAC},
        "ovs.delete_internal_port": {"timeout_s": 30, "bridge": "br-int", "device": "gw-12345678-ab"},
        "iptables.apply": {"program": "iptables", "tables": [table]},
        "iptables.remove": {"program": "iptables", "table": "filter", "own": "nova-compute"},
        "qemu_img.convert": {**tool, "source": [disk, "qcow2", other], "target": [f"{folder}/new", "raw"]},
        "qemu_img.fill": {**tool, "source": [disk, "qcow2", ""], "target": [other, "raw"]},
        "qemu_img.fetch": {**tool, "export": [["10.0.0.9", 49216, "5ec"], f"{folder}/keys"], "target": disk},
        "qemu_img.rebase": {**tool, "path": disk, "base": other, "base_format": "raw"},
        "qemu_img.pull": {**tool, "path": disk, "base": ["other", "raw"], "below": [other]},
        "qemu_img.create": {**tool, "path": disk, "image_format": "qcow2", "size_bytes": 512},
        "qemu_img.create_overlay": {**tool, "overlay": {"path": disk, "base": other, "base_format": "raw",
                                                        "size_bytes": 512}},
        "qemu_img.resize": {**tool, "disk": [disk, "qcow2", other], "size_bytes": 512},
        "inspection.inspect": {"path": disk}, "sandbox.check": {},
        "filesystems.make": {"filesystem": "ext4", "label_": "eph0", "path": disk},
        "config_drives.make_iso": {"tree": folder, "target": disk},
        "config_drives.make_vfat": {"tree": folder, "target": disk},
        "guest_files.read_head": {"path": disk, "length": 16}, "guest_files.read_tail": {"path": disk, "length": 16},
        "guest_files.give": {"path": disk}, "guest_files.touch": {"path": disk},
        "guest_files.copy": {"source": disk, "target": other}, "guest_files.luks_header": {"path": "/dev/null"},
        "lvm.volumes": {"group": "vg"}, "lvm.space": {"group": "vg"},
        "lvm.create": {"group": "vg", "name": "disk1", "size_bytes": 512},
        "lvm.rename": {"group": "vg", "old": "disk1", "new": "disk2"},
        "lvm.grow": {"group": "vg", "name": "disk1", "size_bytes": 512},
        "lvm.remove": {"group": "vg", "name": "disk1"},
        "disk_exports.offer": {"folder": folder, "files": {"disk": disk}, "listen": ["x", [1, 2]]},
        "disk_exports.withdraw": {"folder": folder},
        "mounts.prepare": {"path": mount}, "mounts.forget": {"path": mount}, "mounts.forget_mark": {"path": mount},
        "mounts.mount": {"source": "host:/export", "path": mount, "type_": "nfs", "options": "vers=4"},
        "mounts.unmount": {"path": mount},
        "brick.ask": {"call": "connect", "device": {"protocol": "ISCSI", "words": {}, "transport": "default"}},
        "os_vif.plug": {"port": port, "server_uuid": UUID}, "os_vif.unplug": {"port": port},
        "tpm_states.remove": {"server_uuid": UUID}, "tpm_states.read": {"server_uuid": UUID},
        "tpm_states.lay_out": {"server_uuid": UUID, "files": {"tpm2/state": b"x"}},
    }


SAMPLES = samples(f"/instances/{GUEST}")
#: Where a helper of another user's settings would be asked of a place: it is not looked at.
UNREAD = {("disk_exports.offer", "listen", 0)}
Path_ = tuple[str | int, ...]


def texts(value: Any, at: Path_ = ()) -> Iterator[Path_]:
    """Where texts are in a call's arguments; names in maps count, too."""
    if isinstance(value, str):
        yield at
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from texts(one, (*at, key))
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from texts(one, (*at, index))


def changed(value: Any, at: Path_, new: Any) -> Any:
    if not at:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[at[0]] = changed(value[at[0]], at[1:], new)
    return copy


PLACES = [(name, at) for name, arguments in SAMPLES.items() for at in texts(arguments) if (name, *at) not in UNREAD]


def fits(name: str, arguments: dict[str, Any]) -> bool:
    try:
        msgspec.msgpack.decode(msgspec.msgpack.encode(arguments), type=arguments_of(name))
    except msgspec.ValidationError:
        return False
    return True


def forwarded() -> dict[str, Any]:
    """Every function and method of nova.privileged that is sent to a helper, by its call."""
    found = {}
    for module in pkgutil.iter_modules(privileged.__path__):
        loaded = importlib.import_module(f"nova.privileged.{module.name}")
        owners = [loaded, *(one for _, one in inspect.getmembers(loaded, inspect.isclass))]
        for owner in owners:
            for _, one in inspect.getmembers(owner, inspect.isfunction):
                if hasattr(one, "forwarded_as"):
                    found[one.forwarded_as] = one
    return found


def test_table_then_it_has_what_is_forwarded_and_nothing_else() -> None:
    assert set(TABLE) == set(forwarded()) == set(SAMPLES)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_call_then_both_ends_have_the_same_parameters(name: str) -> None:
    ours = set(arguments_of(name).__struct_fields__)
    theirs = set(inspect.signature(forwarded()[name]).parameters) - {"self"}
    assert ours - {"limits", "timeout_s", "program", "group"} <= theirs
    assert fits(name, SAMPLES[name])


@pytest.mark.parametrize("name", sorted(TABLE))
def test_call_then_no_argument_is_any_text_or_anything(name: str) -> None:
    """But os-brick's words, which its process reads; and where an offer listens, which is not looked at."""
    hints = typing.get_type_hints(TABLE[name], include_extras=True)
    free = [key for key, kind in hints.items() if key not in ("return", "call_") and kind in (str, bytes, Any, object)]
    assert not free


@pytest.mark.parametrize("text", ["a\nb", "a\0b", "\n", "x" * 5000, "10.0.0.1\n", "br1\n", "../../etc/passwd\n"])
@pytest.mark.parametrize(("name", "at"), PLACES, ids=str)
def test_text_when_it_has_a_line_end_or_nul_or_is_endless_then_no_call_takes_it(name: str, at: Path_,
                                                                                 text: str) -> None:
    assert not fits(name, changed(SAMPLES[name], at, text))


@pytest.mark.parametrize("value", [7, None, True, ["x"], {"x": "y"}, b"x"], ids=repr)
@pytest.mark.parametrize(("name", "at"), [place for place in PLACES if len(place[1]) == 1], ids=str)
def test_text_when_it_is_of_another_type_then_no_call_takes_it(name: str, at: Path_, value: Any) -> None:
    optional = value is None and fits(name, {key: one for key, one in SAMPLES[name].items() if key != at[0]})
    assert optional or not fits(name, changed(SAMPLES[name], at, value))


@pytest.mark.parametrize("name", sorted(TABLE))
def test_argument_when_the_call_has_none_of_that_name_then_it_is_refused(name: str) -> None:
    assert not fits(name, SAMPLES[name] | {"argv": ["sh"]})


#: Words that a tool would take for an option, where they become words of a command line.
WORDS = [(name, at) for name, at in PLACES if at[-1] in (
    "name", "interface", "bridge", "device", "parent", "mac", "address", "group", "old", "new", "own", "filesystem",
    "label_", "port", "source", "image_format", "base_format", "program", "server_uuid", "path", "target")
    and isinstance(at[-1], str)]


@pytest.mark.parametrize("text", ["-x", "--help", "-", "--", "-o/etc/passwd"])
@pytest.mark.parametrize(("name", "at"), WORDS, ids=str)
def test_word_when_it_looks_like_an_option_then_no_call_takes_it(name: str, at: Path_, text: str) -> None:
    assert not fits(name, changed(SAMPLES[name], at, text))


def test_calls_that_are_none_then_they_are_refused(tmp_path) -> None:
    host = settings(tmp_path)
    for name in ("os.system", "links._netlink", "__import__", "", "x" * 100_000, "files.write_whole", "run"):
        assert "there is no such call" in refusal(name, {}, host)


def test_bytes_when_they_are_no_request_then_the_answer_is_a_refusal(tmp_path) -> None:
    host = settings(tmp_path)
    for given in (b"", b"\xc1", b"\x80", b"x" * 1000, msgspec.msgpack.encode(["about", 5])):
        assert b"host.helper_refused" in dispatch(given, host)


def test_failure_when_nobody_foresaw_it_then_nothing_of_the_inside_is_told(tmp_path, monkeypatch) -> None:
    def broken(call):
        raise RuntimeError("the key is 1234")
    monkeypatch.setitem(TABLE, "about", broken)
    arguments_of.cache_clear()
    reply = asked("about", {}, settings(tmp_path))
    arguments_of.cache_clear()
    assert reply.error is not None and reply.error[0] == "bug" and "1234" not in str(reply)
