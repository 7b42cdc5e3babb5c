"""nova-all's life: killed and started again, with a seed, with a demonstration, and its end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from keystoneauth1 import exceptions as refused

from nova.devel.running import NotReady, RunningCloud
from tests.functional.backends import wait_until
from tests.functional.nova_all import TOP, Compute, refusing

pytestmark = pytest.mark.in_turn(8, 10)

def test_cloud_when_it_is_killed_and_started_again_then_all_is_there(tmp_path: Path) -> None:
    kept = ("--state", str(tmp_path))
    with RunningCloud(more=kept) as first:
        demo = Compute(first)
        uuid = demo.create("survivor")
        demo.settled(uuid, "ACTIVE")
        project = first.session("admin").post("/v3/projects", json={"project": {"name": "kept"}},
                                              endpoint_filter={"service_type": "identity"}).json()["project"]["id"]
        image = demo.images.post("/v2/images", json={"name": "mine", "disk_format": "raw",
                                                     "container_format": "bare"}).json()["id"]
        demo.images.put(f"/v2/images/{image}/file", data=b"x" * 1000,
                        headers={"Content-Type": "application/octet-stream"})
        password = first.password
        first.kill()
    with RunningCloud(more=kept) as second:
        assert second.password == password
        demo = Compute(second)
        assert demo.settled(uuid, "ACTIVE")["name"] == "survivor"
        demo.http.post(f"/servers/{uuid}/action", json={"reboot": {"type": "HARD"}})
        demo.settled(uuid, "ACTIVE")
        names = second.session("admin").get("/v3/projects", endpoint_filter={"service_type": "identity"}).json()
        assert project in {one["id"] for one in names["projects"]}
        assert demo.images.get(f"/v2/images/{image}/file").content == b"x" * 1000


def test_cloud_when_it_is_killed_in_the_middle_of_a_boot_then_the_next_start_ends_it(tmp_path: Path) -> None:
    kept = ("--state", str(tmp_path))
    with RunningCloud(hosts=1, speed=5, more=kept) as first:
        uuid = Compute(first).create("half")
        wait_until("it is being built", lambda: any(tmp_path.glob("host1/building/*")), 20)
        first.kill()
    with RunningCloud(hosts=1, more=kept) as second:
        Compute(second).settled(uuid, "ACTIVE")


def test_seed_when_it_is_the_same_then_so_are_all_ids() -> None:
    def ids() -> list[str]:
        with RunningCloud(seed=7, demo=True) as seeded:
            boss = Compute(seeded, "admin")
            servers = boss.get("/servers?all_tenants=1&sort_key=display_name")["servers"]
            images = boss.images.get("/v2/images").json()["images"]  # the newest first: of one second, in any order
            return [one["id"] for one in servers] + sorted(one["id"] for one in images)
    first = ids()
    assert len(first) >= 12 and first == ids()


def test_demo_when_wanted_then_there_are_projects_servers_and_images_to_look_at() -> None:
    with RunningCloud(demo=True) as shown:
        boss = Compute(shown, "admin")
        servers = wait_until("all are settled", lambda: _settled(boss), 30)
        assert {one["status"] for one in servers} == {"ACTIVE", "PAUSED", "SHUTOFF", "SHELVED_OFFLOADED"}
        assert len({one["tenant_id"] for one in servers}) == 3
        assert Compute(shown, "alice", "shop").get("/servers")["servers"]


def _settled(boss: Compute) -> Any:
    servers = boss.get("/servers/detail?all_tenants=1")["servers"]
    return servers if all(one["OS-EXT-STS:task_state"] is None for one in servers) and \
        "SHELVED_OFFLOADED" in {one["status"] for one in servers} else None


def test_state_when_a_file_of_it_is_damaged_then_the_error_names_it_and_what_to_do(tmp_path: Path) -> None:
    kept = ("--state", str(tmp_path))
    RunningCloud(hosts=1, more=kept).stop()
    (tmp_path / "identity").write_bytes(b"not ours")
    with pytest.raises(NotReady, match="identity cannot be read.*Remove it to start with an empty state") as refusal:
        RunningCloud(hosts=1, more=kept)
    assert "Traceback" not in str(refusal.value)


def test_end_when_asked_then_nothing_is_left(tmp_path: Path) -> None:
    with RunningCloud() as running:
        folder = Path(re.search(r"the log: (\S+) \(removed at the end\)", running.said)[1])  # type: ignore[index]
        assert folder.is_dir()
    assert not folder.exists()


def test_end_when_the_starter_is_gone_then_the_cloud_ends_too(tmp_path: Path) -> None:
    script = ("import os, sys\nfrom nova.devel.running import RunningCloud\ncloud = RunningCloud()\n"
              "print(cloud.pid, flush=True)\nos.kill(os.getpid(), 9)")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd=TOP)
    assert done.stdout, done.stderr
    pid = int(done.stdout)
    wait_until("it has ended", lambda: not Path(f"/proc/{pid}/cmdline").exists()
               or not Path(f"/proc/{pid}/cmdline").read_bytes(), 15)


def test_state_when_another_cloud_has_it_then_the_start_is_refused(tmp_path: Path) -> None:
    with RunningCloud(more=("--state", str(tmp_path))), pytest.raises(NotReady, match="another nova-all uses"):
        RunningCloud(more=("--state", str(tmp_path)))


def test_config_file_when_given_then_it_stands_above_what_nova_all_chooses(tmp_path: Path) -> None:
    (tmp_path / "mine.conf").write_text("[quota]\ninstances = 1\n")
    with RunningCloud(more=("--config-file", str(tmp_path / "mine.conf"))) as small:
        demo = Compute(small)
        demo.create("first")
        with refusing(refused.Forbidden, "Quota"):
            demo.create("second")


def test_config_file_when_it_is_a_deployments_then_the_pretended_machines_stay_nova_alls_own(tmp_path: Path) -> None:
    (tmp_path / "nova.conf").write_text(
        f"[DEFAULT]\nstate_path = {tmp_path}/theirs\nlog_dir = {tmp_path}/logs\nmy_ip = 192.0.2.1\n"
        "compute_driver = libvirt.LibvirtDriver\ntransport_url = rabbit://u:p@192.0.2.1/\n"
        "[database]\nconnection = mysql://u:p@192.0.2.1/nova\n[quota]\ninstances = 1\n")
    with RunningCloud(more=("--config-file", str(tmp_path / "nova.conf"))) as cloud:
        demo = Compute(cloud)
        demo.create("first")
        with refusing(refused.Forbidden, "Quota"):
            demo.create("second")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["nova.conf"]


def test_signal_when_ctrl_c_then_exit_code_0(tmp_path: Path) -> None:
    running = subprocess.Popen([sys.executable, "-m", "nova.cmd.all", "--port", "0"], stdout=subprocess.PIPE,
                               text=True, cwd=TOP, stdin=subprocess.DEVNULL)
    assert running.stdout
    assert "The cloud is ready" in running.stdout.readline()
    running.send_signal(signal.SIGINT)
    assert running.wait(10) == 0


#: In a namespace with an empty memory: what is in it at the end was left there.
INTERRUPTED = """mount -t tmpfs none /dev/shm
timeout --signal={signal} {seconds} {python} -m nova.cmd.all --port 0 > /dev/null
status=$?; ls /dev/shm | grep nova-all; exit $status"""


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, for a mount namespace")
@pytest.mark.parametrize("number", ["INT", "TERM"])
@pytest.mark.parametrize("seconds", [0.3, 0.6, 0.9, 1.2, 1.6, 2.2, 4.0])
def test_start_when_it_is_interrupted_at_any_moment_then_it_ends_without_a_traceback_and_leaves_nothing(
        number: str, seconds: float) -> None:
    script = INTERRUPTED.format(signal=number, seconds=seconds, python=sys.executable)
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, timeout=60,
                          cwd=TOP, check=False)
    assert done.returncode == 124 and "Traceback" not in done.stderr, done.stderr[-1000:]
    assert "nova-all-home" not in done.stdout and "nova-all-metrics" not in done.stdout, done.stdout


@pytest.mark.long
def test_starts_when_many_are_side_by_side_then_each_is_ready_and_ends_by_itself() -> None:
    """A race of threads while types or directories are first used ended 3 of 101 starts."""
    def start(_number: int) -> str:
        try:
            with RunningCloud(demo=True) as cloud:
                return cloud.said.splitlines()[0][:18]
        except NotReady as error:
            return str(error)[-500:]
    with ThreadPoolExecutor(4) as starts:
        said = list(starts.map(start, range(50)))
    assert said == ["The cloud is ready"] * 50
