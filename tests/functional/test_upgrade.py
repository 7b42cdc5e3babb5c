"""The release before this one, upgraded daemon by daemon under load, in each order of hosts, and back again."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from nova.db.host import services
from nova.version import RELEASE
from tests.functional import releases
from tests.functional.backends import free_port, wait_until
from tests.functional.cloud import Cloud, Plan
from tests.functional.daemons import TOP, Daemon
from tests.functional.releases import Balanced, Tenants

pytestmark = pytest.mark.in_turn(4, 5)

CONTROL = ("conductor", "conductor2", "scheduler", "imageproxy", "network")
HOSTS = ("compute1", "compute2", "compute3")
TENANTS = 3
#: Orders wait longer than a daemon takes to restart, on a busy machine too: no host counts as lost.
PATIENT = {"DEFAULT": {"long_rpc_silence": 20, "rpc_response_timeout": 30}}


@pytest.fixture(scope="module")
def before() -> Iterator[Path]:
    """The files of the release before."""
    folder = Path(tempfile.mkdtemp(prefix="nova-release-"))
    try:
        yield releases.unpack(releases.previous()[1], folder)
    except releases.NotInHistory as error:
        pytest.skip(f"this checkout has no history: {error}")
    finally:
        shutil.rmtree(folder)


class Upgraded:
    """A cloud whose daemons change their release one by one. Two APIs, of which a balancer knows one at a time."""

    def __init__(self, cloud: Cloud, before: Path) -> None:
        self.cloud, self.before = cloud, before
        port = free_port()
        config = cloud.configure("ctl2", osapi_compute_listen_port=port)
        cloud.daemons["api2"] = Daemon("api", config, cloud.root / "log" / "api2.log")
        self.urls = [cloud.url, f"http://127.0.0.1:{port}/v2.1"]
        cloud.daemons["api2"].tree = before

    def change(self, tree: Path, *names: str) -> None:
        """Restart them with the other release, as an init system does."""
        for name in names:
            daemon = self.cloud.daemons[name]
            code, _seconds = daemon.terminate()
            assert code == 0, f"{name} ended with {code}:\n{daemon.text()[-2000:]}"
            daemon.tree = tree
            daemon.start().ready()

    def change_apis(self, tree: Path) -> None:
        for name in ("api2", "api"):
            first = self.urls[0]
            if name == ("api" if first == self.cloud.url else "api2"):
                self.urls.reverse()  # it is taken out of rotation, and goes on with what it has begun
            self.change(tree, name)

    def hosts_releases(self) -> set[str]:
        """What compute hosts tell of themselves."""
        with self.cloud.stores.cell.reading() as tx:
            return {row.release for row in services.releases(tx) if row.binary == services.COMPUTE}


def lives_on(tenants: Tenants) -> None:
    """Whole lives begin and end after a change."""
    before = tenants.done["life"]
    wait_until("tenants live on", lambda: tenants.failures or tenants.done["life"] >= before + 2 * TENANTS, 120)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("hosts", [HOSTS, HOSTS[::-1]], ids=["hosts in order", "hosts in reverse"])
def test_upgrade_when_daemons_change_one_by_one_under_load_then_no_request_fails_and_nothing_is_lost(
        make_cloud, before: Path, hosts: tuple[str, ...]) -> None:
    cloud: Cloud = make_cloud(Plan(computes=len(HOSTS), conductors=2, upstream=False, options=PATIENT))
    cloud.tree = before
    changing = Upgraded(cloud.prepare(), before)
    for daemon in cloud.daemons.values():
        daemon.start()
    cloud.wait_up()
    cloud.create_sample_data()
    kept = cloud.api().boot("kept")["id"]
    with Tenants(changing.urls, TENANTS) as tenants:
        lives_on(tenants)
        cloud.tree = TOP
        cloud.sync()
        for change in (lambda: changing.change(TOP, *CONTROL), lambda: changing.change_apis(TOP),
                       lambda: changing.change(TOP, *hosts)):
            change()
            lives_on(tenants)
        assert not tenants.failures, "\n".join(tenants.failures)
        assert changing.hosts_releases() == {RELEASE}
        for change in (lambda: changing.change(before, *hosts[::-1]), lambda: changing.change_apis(before),
                       lambda: changing.change(before, *CONTROL[::-1])):
            change()
            lives_on(tenants)
    assert not tenants.failures, "\n".join(tenants.failures)
    assert changing.hosts_releases() == {releases.previous()[0]}
    assert Balanced(changing.urls).show(kept)["status"] == "ACTIVE"
    cloud.empty()
