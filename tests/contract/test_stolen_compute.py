"""What a thief who is nova-compute, and not root, asks of the helper, and what he gets: a sentence, and nothing done.

Each row is a call as bytes: he needs none of our code. Its first argument is what he has prepared in folders that are
nova's, in which he may do anything.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.fakes.helper import GUEST, asked, refusal, settings

LIMITS: dict[str, Any] = {"limits": [600, 1024, None], "timeout_s": 60.0}


class Asked(NamedTuple):
    """``wants``: what he is after. ``why``: a part of the sentence that he gets."""

    wants: str
    call: str
    arguments: Callable[[Path], dict[str, Any]]
    why: str


def _rules(*rules: str, table: str = "filter", **more: Any) -> Callable[[Path], dict[str, Any]]:
    chains = {"nova-compute-local": list(rules)}
    return lambda folder: {"program": "iptables", "tables": [{"name": table, "chains": chains, **more}]}


def _file(call: str, *parts: str, **more: Any) -> tuple[str, Callable[[Path], dict[str, Any]]]:
    return call, lambda folder: {"path": str(folder.joinpath(*parts)), **more}


ROWS = (
    Asked("the host's passwords", "guest_files.read_head", lambda folder: {"path": "/etc/shadow", "length": 64},
          "outside the directories"),
    Asked("them by a link", *_file("guest_files.read_head", "shadow", length=64), "not a regular file"),
    Asked("them by a link to a folder", *_file("guest_files.read_head", "etc", "shadow", length=64),
          "a link that does"),
    Asked("them by a second name", *_file("guest_files.read_head", "second", length=64), "other names"),
    Asked("them as a base of a disk", "qemu_img.create_overlay",
          lambda folder: LIMITS | {"overlay": {"path": f"{folder}/new", "base": "/etc/shadow", "base_format": "raw",
                                               "size_bytes": 512}}, "outside the directories"),
    Asked("them as an image to be copied", "qemu_img.convert",
          lambda folder: LIMITS | {"source": [f"{folder}/shadow", "raw", ""], "target": [f"{folder}/new", "raw"]},
          "not a regular file"),
    Asked("them on a config drive", "config_drives.make_iso",
          lambda folder: {"tree": f"{folder}/etc", "target": f"{folder}/new"}, "a link"),
    Asked("them offered to another host", "disk_exports.offer",
          lambda folder: {"folder": str(folder), "files": {"disk": "/etc/shadow"}, "listen": ["0.0.0.0", [1, 2]]},
          "outside the directories"),
    Asked("the host's own disk", "guest_files.read_head", lambda folder: {"path": "/dev/sda", "length": 64},
          "outside the directories"),
    Asked("to write over it", "qemu_img.fill",
          lambda folder: LIMITS | {"source": [f"{folder}/disk", "raw", ""], "target": ["/dev/sda", "raw"]},
          "not a volume of"),
    Asked("to write over it by another group", "qemu_img.fill",
          lambda folder: LIMITS | {"source": [f"{folder}/disk", "raw", ""], "target": ["/dev/other/root", "raw"]},
          "not a volume of"),
    Asked("to format it", "filesystems.make",
          lambda folder: {"filesystem": "ext4", "label_": "x", "path": "/dev/vg/../sda"}, "Expected"),
    Asked("another group's volume gone", "lvm.remove", lambda folder: {"group": "rootvg", "name": "root"},
          "images_volume_group"),
    Asked("a file of cron's", "qemu_img.create",
          lambda folder: LIMITS | {"path": "/etc/cron.d/x", "image_format": "raw", "size_bytes": 512},
          "outside the directories"),
    Asked("one by a link", "qemu_img.create",
          lambda folder: LIMITS | {"path": f"{folder}/etc/x", "image_format": "raw", "size_bytes": 512}, "a link"),
    Asked("to own the passwords", *_file("guest_files.give", "shadow"), "not a regular file"),
    Asked("to own a program of root's", "guest_files.give", lambda folder: {"path": "/usr/bin/env"},
          "outside the directories"),
    Asked("a folder upwards", "guest_files.give", lambda folder: {"path": f"{folder}/../../../etc/shadow"},
          "Expected"),
    Asked("an image of another pool", "qemu_img.convert",
          lambda folder: LIMITS | {"source": ["rbd:backups/all", "raw", ""], "target": [f"{folder}/new", "raw"]},
          "images_rbd_pool"),
    Asked("a file by Ceph's configuration", "qemu_img.convert",
          lambda folder: LIMITS | {"source": ["rbd:vms/x:conf=/etc/shadow", "raw", ""],
                                   "target": [f"{folder}/new", "raw"]}, "/etc/ceph"),
    Asked("an option of librbd's", "qemu_img.convert",
          lambda folder: LIMITS | {"source": ["rbd:vms/x:keyring=/etc/shadow", "raw", ""],
                                   "target": [f"{folder}/new", "raw"]}, "images_rbd_pool"),
    Asked("a second table by a line end", "iptables.apply", _rules("-j ACCEPT\n*nat\n-F"), "Expected"),
    Asked("a rule that is a command", "iptables.apply", _rules("-F INPUT"), "'-F'"),
    Asked("a library loaded from his folder", "iptables.apply", _rules("-m ../../tmp/evil -j DROP"), "matches by"),
    Asked("a match that reads files", "iptables.apply", _rules("-m bpf --object-pinned /x -j DROP"), "by 'bpf'"),
    Asked("a jump to others' chains", "iptables.apply", _rules("-j DOCKER"), "jumps to 'DOCKER'"),
    Asked("others' chains emptied", "iptables.apply",
          lambda folder: {"program": "iptables", "tables": [{"name": "filter", "chains": {"INPUT": []}}]}, "Expected"),
    Asked("others' chains removed", "iptables.remove",
          lambda folder: {"program": "iptables", "table": "filter", "own": ""}, "Expected"),
    Asked("all that outlived removed", "iptables.apply", _rules(own="I"), "Expected"),
    Asked("another table", "iptables.apply", _rules("-j DROP", table="raw"), "Expected"),
    Asked("an export on /etc", "mounts.mount",
          lambda folder: {"source": "evil:/root", "path": "/etc", "type_": "nfs"}, "mount point"),
    Asked("another file system", "mounts.mount",
          lambda folder: {"source": "evil:/root", "path": f"{folder}/x", "type_": "ext4"}, "Expected"),
    Asked("an option more", "mounts.mount",
          lambda folder: {"source": "evil:/root", "path": f"{folder}/x", "type_": "nfs", "options": "suid /x"},
          "Expected"),
    Asked("/ unmounted", "mounts.unmount", lambda folder: {"path": "/usr"}, "mount point"),
    Asked("init ended", "processes.end", lambda folder: {"pid": 1, "program": "dnsmasq", "device": "br1"}, "Expected"),
    Asked("somebody's process ended", "processes.end",
          lambda folder: {"pid": os.getppid(), "program": "dnsmasq", "device": "br1"}, "is not dnsmasq"),
    Asked("a lease script of his", "dnsmasq.start",
          lambda folder: {"order": {
              "network": GUEST, "bridge": "br1", "label": "x,--dhcp-script=/tmp/x", "address": "10.0.0.1",
              "start": "10.0.0.2", "netmask": "255.0.0.0", "most_leases": 1}}, "Expected"),
    Asked("a file as a name server's", "dnsmasq.start",
          lambda folder: {"order": {
              "network": GUEST, "bridge": "../../etc/x", "label": "x", "address": "10.0.0.1", "start": "10.0.0.2",
              "netmask": "255.0.0.0", "most_leases": 1}}, "Expected"),
    Asked("a card's address on any device", "links.ensure_up",
          lambda folder: {"device": "eth0", "mac": "02:00:00:00:00:01"}, "Expected"),
    Asked("a tap of any name", "links.ensure_tap", lambda folder: {"tap": ["eth0"]}, "Expected"),
    Asked("another's TPM", "tpm_states.read", lambda folder: {"server_uuid": "../../../etc"}, "Expected"),
    Asked("a file beside a TPM", "tpm_states.lay_out",
          lambda folder: {"server_uuid": GUEST, "files": {"../../x": b"x"}}, "Expected"),
    Asked("a library's own calls", "brick.ask",
          lambda folder: {"call": "execute", "device": {"protocol": "ISCSI", "words": {}}}, "Expected"),
    Asked("a protocol that runs what he says", "brick.ask",
          lambda folder: {"call": "connect", "device": {"protocol": "LOCAL", "words": {}}}, "Expected"),
    Asked("a command", "run", lambda folder: {"argv": ["sh", "-c", "id"]}, "no such call"),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A guest's, as he has prepared it."""
    found = tmp_path / "instances" / GUEST
    found.mkdir(parents=True)
    (found / "disk").write_bytes(b"x" * 512)
    (found / "etc").symlink_to("/etc")
    (found / "shadow").symlink_to("/etc/shadow")
    (tmp_path / "elsewhere").write_text("root's")
    os.link(tmp_path / "elsewhere", found / "second")
    if os.geteuid() == 0:  # links that root made are followed where root alone could have made them
        for path in (found, tmp_path / "instances"):
            os.chown(path, 65534, 65534)
        os.chown(found / "etc", 65534, 65534, follow_symlinks=False)
    return found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.wants)
def test_thief_when_he_asks_then_he_gets_a_sentence(row: Asked, folder: Path, tmp_path: Path) -> None:
    host = settings(tmp_path, volume_group="vg", ceph_pools=("vms",))
    before = sorted(path.name for path in folder.iterdir())
    assert row.why in refusal(row.call, row.arguments(folder), host)
    assert sorted(path.name for path in folder.iterdir() if path.name != "new") == before
    assert (tmp_path / "elsewhere").read_text() == "root's"


def test_owner_when_he_asks_for_his_guests_own_file_then_he_gets_it(folder: Path, tmp_path: Path) -> None:
    """Else the rows above prove nothing."""
    host = settings(tmp_path)
    reply = asked("guest_files.read_head", {"path": f"{folder}/disk", "length": 3}, host)
    assert reply.error is None and bytes(reply.result).endswith(b"xxx")
