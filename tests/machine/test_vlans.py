"""VLANs on a kernel that has them: two hosts inside a virtual machine, by the code that makes their devices."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.machine import vlan_machine

BIN = Path(__file__).resolve().parents[2] / "bin"
TOOLS = ("qemu-system-x86_64", "ip", "apt-get", "dpkg", "ldd", "chroot")
MISSING = [tool for tool in TOOLS if not shutil.which(tool, path="/usr/sbin:/sbin:" + os.environ.get("PATH", ""))]
TIMEOUT_S = 280  # 25 alone, much more beside others
CHECKS = 9

pytestmark = [
    pytest.mark.in_turn(5, 10),
    pytest.mark.skipif(os.geteuid() != 0, reason="unpacking the kernel needs root"),
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
]


@pytest.fixture(scope="module")
def kernel(monkeypatch_module):
    """Debian's kernel package, unpacked in the cache of bin/build-guest."""
    monkeypatch_module.syspath_prepend(str(BIN))
    packages = importlib.import_module("guest.builder.packages")
    trees = importlib.import_module("guest.builder.trees")
    shared = importlib.import_module("guest.builder.shared")
    cache = Path(os.environ.get("NOVA_TEST_CACHE") or Path.home() / ".cache/nova") / "build-guest"
    try:
        kept = packages.Packages(cache, False)
        name = kept.kernel_package()
        kept.fetch([name, "busybox-static"])
        return trees.Kernel(kept.unpacked(name), kept.unpacked("busybox-static") / "bin/busybox")
    except shared.BuildError as error:
        pytest.skip(f"no Debian kernel to be had: {error}")


@pytest.fixture(scope="module")
def monkeypatch_module():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", True)
        yield patch


def test_vlans_join_a_projects_guests_on_two_hosts_and_keep_others_out(kernel, tmp_path):
    initrd = vlan_machine.ramdisk(kernel, tmp_path, "tests.machine.vlans_inside")
    said = vlan_machine.boot(kernel.image, initrd, TIMEOUT_S)
    initrd.unlink()
    assert "vlan machine: exit 0" in said, said[-6000:]
    assert len(re.findall(r"^ok ", said, re.MULTILINE)) == CHECKS, said[-6000:]
