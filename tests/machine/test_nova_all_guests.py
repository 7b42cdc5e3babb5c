"""Guests that run, on an ordinary user's own libvirt: nova-all --driver libvirt, without root."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from keystoneauth1 import adapter

from nova.devel.running import RunningCloud
from tests.functional.backends import wait_until
from tests.machine.browser import Browser
from tests.machine.cases import build_guest

pytestmark = [pytest.mark.in_turn(5, 10),
              pytest.mark.skipif(os.geteuid() != 0, reason="becomes an ordinary user, for which it needs root"),
              pytest.mark.skipif(shutil.which("libvirtd") is None, reason="needs libvirt")]

TOP = Path(__file__).resolve().parents[2]
USER = pwd.getpwnam("games").pw_uid  # Debian's, as whom nothing runs; libvirt wants one with a name
BOOT_S = 180.0  # an emulated guest, on a busy machine


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A folder of that user's, with the code: others may not be able to look into the checkout's."""
    folder = Path(tempfile.mkdtemp(prefix="nova-user-", dir="/var/tmp"))
    for name in ("nova", "alembic"):
        shutil.copytree(TOP / name, folder / "source" / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "run").mkdir(mode=0o700)
    build_guest()
    cache = Path(os.environ.get("NOVA_TEST_CACHE") or Path.home() / ".cache/nova")
    shutil.copy(Path(os.environ.get("NOVA_TEST_GUEST") or cache / "tiny.qcow2"), folder / "tiny.qcow2")
    for path in (folder, *folder.rglob("*")):
        os.chown(path, USER, USER)
    folder.chmod(0o755)
    yield folder
    _end_all()
    shutil.rmtree(folder, ignore_errors=True)


def _end_all() -> None:
    """libvirt's daemons of that user outlive their last client by minutes."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if path.stat().st_uid == USER:
                os.kill(int(path.name), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            continue


@pytest.fixture(scope="module")
def cloud(home: Path) -> Iterator[RunningCloud]:
    program = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "env", "-i", f"HOME={home}",
               "PATH=/usr/bin:/bin:/usr/sbin:/sbin", f"XDG_RUNTIME_DIR={home}/run", f"PYTHONPATH={home}/source",
               "PYTHONDONTWRITEBYTECODE=1", sys.executable, "-m", "nova.cmd.all")
    with RunningCloud(hosts=1, program=program, more=(
            "--driver", "libvirt", "--image", f"{home}/tiny.qcow2", "--state", f"{home}/state", "--clouds-file",
            f"{home}/clouds.yaml")) as running:
        yield running


class Guest:
    """The one server of these tests, as its user has it."""

    def __init__(self, cloud: RunningCloud) -> None:
        self.http = adapter.Adapter(cloud.session(), service_type="compute", default_microversion="latest")
        images = adapter.Adapter(cloud.session(), service_type="image")
        image = images.get("/v2/images?name=tiny").json()["images"][0]["id"]
        self.uuid = self.http.post("/servers", json={"server": {
            "name": "guest", "imageRef": image, "flavorRef": "1", "networks": "auto"}}).json()["server"]["id"]

    def settled(self, status: str) -> None:
        def look() -> bool:
            server = self.http.get(f"/servers/{self.uuid}").json()["server"]
            assert server["status"] != "ERROR", server["fault"]["message"]
            return server["status"] == status and not server["OS-EXT-STS:task_state"]
        wait_until(f"the guest is {status}", look, BOOT_S, 0.3)

    def act(self, action: str, argument: Any = None) -> Any:
        answer = self.http.post(f"/servers/{self.uuid}/action", json={action: argument})
        return answer.json() if answer.content else None

    def says(self, words: str) -> None:
        wait_until(f"the guest says {words!r}", lambda: words in self.act("os-getConsoleOutput", {})["output"], BOOT_S,
                   0.5)


@pytest.fixture(scope="module")
def guest(cloud: RunningCloud) -> Guest:
    made = Guest(cloud)
    made.settled("ACTIVE")
    return made


def test_guest_when_created_by_an_ordinary_user_then_it_boots_and_knows_its_name(guest: Guest) -> None:
    guest.says("nova-guest ready: hostname=guest")
    guest.says("source=config-drive")


def test_console_when_its_address_is_opened_then_the_browser_shows_the_guests_screen(guest: Guest) -> None:
    guest.says("nova-guest ready")
    url = guest.http.post(f"/servers/{guest.uuid}/remote-consoles", json={
        "remote_console": {"protocol": "vnc", "type": "novnc"}}).json()["remote_console"]["url"]
    with Browser(os.getpid()) as browser, browser.tab("nova-all") as console:
        assert console.open(url) == 200
        console.shows_guest()


def test_guest_when_stopped_saved_rebooted_and_deleted_then_each_is_done_and_nothing_is_left(
        guest: Guest, home: Path) -> None:
    guest.act("os-stop")
    guest.settled("SHUTOFF")
    guest.act("createImage", {"name": "saved"})
    guest.settled("SHUTOFF")
    guest.act("os-start")
    guest.settled("ACTIVE")
    guest.act("reboot", {"type": "HARD"})
    guest.settled("ACTIVE")
    guest.says("nova-guest ready")
    guest.http.delete(f"/servers/{guest.uuid}")
    instances = home / "state" / "host1" / "instances"
    wait_until("nothing is left of it", lambda: not (instances / guest.uuid).exists(), 60, 0.3)
