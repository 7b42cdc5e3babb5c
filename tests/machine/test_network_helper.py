"""nova-network as an ordinary user, with the helper: real bridge, dnsmasq, iptables and DHCP client, as for root."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from nova.privileged.dnsmasq import HELPER_SCRIPT
from tests.fakes.network import guest
from tests.machine.network_cases import Cloud, eventually, obstacle

pytestmark = pytest.mark.skipif(obstacle() is not None, reason=str(obstacle()))


class HelpedCloud(Cloud):
    """Whose nova-network is not root; the helper runs beside it on the same host."""

    def __init__(self, state: Path, user: pwd.struct_passwd) -> None:
        super().__init__(state)
        socket, conf = state / "helper.sock", state / "nova.conf"
        conf.write_text(f"[DEFAULT]\nstate_path = {state}\nnetworks_path = {state}/networks\n"
                        f"dhcpbridge = {state}/nova-dhcpbridge\ndhcp_lease_time = 600\n"
                        f"[privileged]\nsocket = {socket}\nuser = {user.pw_name}\n")
        log = open(state / "helper.log", "wb")  # noqa: SIM115 - the process's own
        self.helper = self.host.start(sys.executable, "-m", "nova.cmd.privileged", "--config-file", str(conf),
                                      stdout=log, stderr=log)
        eventually(socket.exists, "the helper listens")
        os.environ |= {"NOVA_TEST_HELPER": str(socket), "NOVA_TEST_USER": user.pw_name}


@pytest.fixture(params=["eventlet", pytest.param("threads", marks=pytest.mark.long)])
def cloud(request, monkeypatch) -> Iterator[HelpedCloud]:
    monkeypatch.setenv("NOVA_CONCURRENCY", request.param)
    for name in ("NOVA_TEST_HELPER", "NOVA_TEST_USER"):
        monkeypatch.setenv(name, "")  # so that they are gone afterwards
    known = {one.pw_name: one for one in pwd.getpwall()}
    user = known.get("nova") or known["daemon"]
    state = Path(tempfile.mkdtemp(prefix="nova-helped-", dir="/tmp"))  # pytest's own lies below a folder of root's
    state.chmod(0o755)
    kept = HELPER_SCRIPT.parent.exists()
    made = HelpedCloud(state, user)
    for path in (state, *(one for one in state.iterdir() if one.name != "helper.sock")):
        os.chown(path, user.pw_uid, user.pw_gid)
    try:
        made.order(guest(3), version=1)
        made.start()
        yield made
    finally:
        made.remove()
        made.helper.wait(20)
        shutil.rmtree(state)
        if not kept:
            shutil.rmtree(HELPER_SCRIPT.parent, ignore_errors=True)


def test_guest_when_nova_network_is_no_root_then_it_gets_its_address_and_its_metadata(cloud):
    assert cloud.serve(guest(3), version=1) == "ok", cloud.log()
    assert os.stat(f"/proc/{cloud.daemon.pid}").st_uid != 0
    cloud.plug()
    lease = cloud.lease()
    assert (lease["ip"], lease["router"], lease["hostname"]) == ("10.0.1.3", "10.0.1.1", "vm3")
    eventually(lambda: cloud.reported() == ["add fa:16:3e:00:01:03 10.0.1.3 vm3"], "the lease is told")
    assert (cloud.state / "script.log").stat().st_uid == cloud.state.stat().st_uid, "the lease script is not root"
    cloud.host.respond("192.0.2.9", 8775)
    assert cloud.get("http://169.254.169.254/latest/") == "10.0.1.3"
    assert cloud.missing() == []


def test_dnsmasq_when_nova_network_is_started_anew_then_it_stays_and_reads_new_hosts(cloud):
    assert cloud.serve(guest(3), version=1) == "ok", cloud.log()
    (pid,) = cloud.dnsmasqs()
    rules = cloud.rules()
    cloud.kill()
    cloud.order(guest(3), guest(4), version=2)
    cloud.start()
    assert cloud.serve(guest(3), guest(4), version=2) == "ok", cloud.log()
    assert cloud.dnsmasqs() == [pid] and cloud.rules() == rules
    cloud.card(guest(4).mac)
    cloud.plug()
    assert cloud.lease()["ip"] == "10.0.1.4"


def test_helper_when_it_is_away_then_that_is_told_and_its_return_mends_all(cloud):
    cloud.helper.kill()
    cloud.helper.wait(20)
    assert cloud.serve(guest(3), guest(4), version=3).startswith("NoHelper: ")
    subprocess.run(["rm", str(cloud.state / "helper.sock")], check=True)
    cloud.helper = cloud.host.start(sys.executable, "-m", "nova.cmd.privileged", "--config-file",
                                    str(cloud.state / "nova.conf"), stderr=subprocess.DEVNULL)
    eventually((cloud.state / "helper.sock").exists, "the helper listens")
    eventually(lambda: cloud.serve(guest(3), guest(4), version=4) == "ok", "it is served")
