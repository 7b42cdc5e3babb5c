"""Horizon before nova-all with its small Neutron: what its users click works, and not one box turns red."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

pytestmark = [pytest.mark.in_turn(2, 10),
              pytest.mark.skipif(os.geteuid() != 0, reason="installs Horizon, for which it needs root")]

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect  # noqa: E402

from nova.devel.running import RunningCloud  # noqa: E402
from tests.functional.backends import free_port, wait_until  # noqa: E402
from tests.machine.browser import Browser  # noqa: E402
from tests.machine.dashboard_pages import Dashboard  # noqa: E402

TOP = Path(__file__).resolve().parents[2]
INSTALL_S = 300.0  # where nobody has installed Horizon yet
VIEW = (1200, 920)
INSTANCES, FLOATING = "/project/instances/", "/project/floating_ips/"
#: Of an instance's page, and a word that it must have.
TABS = {"interfaces": "private", "log": "", "audit": "Create"}
#: Pages, and of each words that the cloud has told it: those of the fakes, and what an administrator begins with.
PAGES = {
    "/project/images": "tiny", "/project/security_groups/": "default", "/admin/networks/": "public",
    "/admin/instances/": r"demo\s+host\d\s+web\s", "/admin/info/?tab=system_info__network_agents": "No items",
    "/identity/users/": "nova",
}


@pytest.fixture(scope="module")
def cloud() -> Iterator[RunningCloud]:
    with RunningCloud(more=("--networking", "neutron")) as made:
        yield made


@pytest.fixture(scope="module")
def url(cloud: RunningCloud) -> Iterator[str]:
    """Of the dashboard, in a process of its own."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    process = subprocess.Popen([TOP / "bin" / "stack", "dashboard", "--cloud", cloud.auth_url, "--port", str(port)])
    try:
        wait_until("the dashboard answers", lambda: _answers(url, process), INSTALL_S, 0.3)
        yield url
    finally:
        process.terminate()
        process.wait(10)
        shutil.rmtree(f"/run/nova-dashboard-{port}", ignore_errors=True)


def _answers(url: str, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "the dashboard ended: see what it printed"
    with contextlib.suppress(requests.ConnectionError):
        return requests.get(url, timeout=30).status_code == 200
    return False


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser(os.getpid()) as made:
        yield made


@contextlib.contextmanager
def logged_in(cloud: RunningCloud, url: str, browser: Browser, user: str) -> Iterator[Dashboard]:
    with browser.tab(f"one-process-{user}", VIEW) as console:
        made = Dashboard(console, url)
        made.log_in(user, cloud.password)
        yield made


@pytest.fixture(scope="module")
def dashboard(cloud: RunningCloud, url: str, browser: Browser) -> Iterator[Dashboard]:
    """Of the cloud's ordinary user, who has an instance."""
    with logged_in(cloud, url, browser, "demo") as made:
        made.launch("web", Source="tiny", Flavor="m1.tiny", Networks="private")
        made.settled("web", "Active")
        yield made


@pytest.fixture(scope="module")
def details(cloud: RunningCloud, dashboard: Dashboard) -> dict[str, str]:
    """Pages of single things, and words of each: of Neutron's, and of the demo project's."""
    http = cloud.session()

    def first(plural: str, query: str) -> str:
        url = f"/v2.0/{plural.replace('_', '-')}?{query}"
        return str(http.get(url, endpoint_filter={"service_type": "network"}).json()[plural][0]["id"])
    network, router = first("networks", "name=private"), first("routers", "name=router")
    return {f"/project/networks/{network}/detail?tab=network_tabs__subnets_tab": r"10\.11\.0\.0/22",
            f"/project/networks/{network}/detail?tab=network_tabs__ports_tab": r"10\.11\.0\.",
            f"/project/routers/{router}/?tab=router_details__interfaces": r"10\.11\.0\.1",
            f"/project/security_groups/{first('security_groups', 'name=default')}/": "Ingress"}


def test_details_when_networks_are_looked_at_then_they_tell_of_the_cloud_and_nothing_is_red(
        dashboard: Dashboard, details: dict[str, str]) -> None:
    walked = {path: dashboard.visit(path) for path in details}
    assert [path for path, words in details.items() if not re.search(words, walked[path])] == []


def test_floating_address_when_allocated_and_associated_by_clicks_then_the_instance_has_it(dashboard: Dashboard
                                                                                         ) -> None:
    dashboard.visit(FLOATING)
    dashboard.page.click("#floating_ips__action_allocate")
    dashboard.submit()
    expect(dashboard.page.locator("#floating_ips")).to_contain_text("172.24.4.")
    dashboard.page.get_by_text("Associate", exact=True).first.click()
    port = dashboard.page.locator(".modal-dialog:visible [name=port_id]")
    port.select_option(index=1, force=True)
    dashboard.submit()
    dashboard.visit(INSTANCES)
    expect(dashboard.row("web")).to_contain_text("172.24.4.")


def test_pages_when_the_administrator_walks_over_them_then_they_tell_of_the_cloud_and_nothing_is_red(
        cloud: RunningCloud, url: str, browser: Browser, dashboard: Dashboard) -> None:
    with logged_in(cloud, url, browser, "admin") as walker:
        walked = {path: walker.visit(path) for path in PAGES}
    assert [path for path, words in PAGES.items() if not re.search(words, walked[path])] == []


def test_instance_when_its_whole_life_is_clicked_then_nothing_is_red(dashboard: Dashboard) -> None:
    dashboard.visit(INSTANCES)
    dashboard.page.get_by_role("link", name="web", exact=True).click()
    expect(dashboard.page.locator("#instance_details__overview")).to_contain_text("Flavor Name")
    for tab, words in TABS.items():
        expect(dashboard.tab(tab)).to_contain_text(words)
    dashboard.visit(INSTANCES)
    dashboard.act("web", "Resize Instance")
    dashboard.submit(flavor="m1.small")
    dashboard.visit(INSTANCES)
    dashboard.settled("web", "Confirm or Revert Resize/Migrate")
    dashboard.press("web", "Confirm Resize/Migrate")
    dashboard.settled("web", "Active")
    dashboard.press("web", "Create Snapshot")
    dashboard.submit(name="of-web")
    dashboard.console.says(r"of-web\tSnapshot\t(Queued|Saving|Active)")
    dashboard.visit(INSTANCES)
    dashboard.settled("web", "None")  # of its tasks: the image is whole
    dashboard.act("web", "Delete Instance")
    dashboard.submit()
    expect(dashboard.row("web")).to_have_count(0)
    dashboard.fine()
