"""Horizon before a real cloud: what its users click works, and not one box turns red."""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Iterator

import pytest

pytestmark = pytest.mark.in_turn(8, 10)

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect  # noqa: E402

from tests.machine.browser import Browser  # noqa: E402
from tests.machine.conftest import made_sandbox  # noqa: E402
from tests.machine.dashboard_pages import Dashboard  # noqa: E402
from tests.machine.stack import Sandbox  # noqa: E402

#: A host is enough: it may be resized to itself.
DASHBOARD = ("--hosts", "1", "--dashboard")
VIEW = (1200, 920)
INSTANCES = "/project/instances/"
#: Of an instance's page, and a word that it must have.
TABS = {"interfaces": "private", "log": "Instance Console Log", "audit": "Create"}
#: Pages, and of each words that the cloud has told it.
PAGES = {
    "/project/": "Limit Summary", INSTANCES: "Displaying|No items", "/project/images": "tiny",
    "/project/key_pairs": "Displaying|No items", "/project/server_groups": "Displaying|No items",
    "/project/api_access/": ":8774/v2.1", "/admin/": "demo", "/admin/instances/": r"demo\s+host\d\s+web\s",
    "/admin/hypervisors/": "QEMU",
    "/admin/hypervisors/?tab=hypervisor_info__compute_host": r"host1\s+nova\s+Enabled\s+Up",
    "/admin/hypervisors/?tab=hypervisor_info__provider": r"host1\s+\d+\s+0\s+\d+",
    "/admin/flavors/": "m1.xlarge", "/admin/aggregates/": "internal", "/admin/images": "tiny",
    "/admin/defaults/": "Metadata Items", "/admin/info/": ":8774/v2.1",
    "/admin/info/?tab=system_info__nova_services": "nova-conductor",
}


@pytest.fixture(scope="module")
def cloud(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with made_sandbox(request, *DASHBOARD) as made:
        yield made


@pytest.fixture(scope="module")
def browser(cloud: Sandbox) -> Iterator[Browser]:
    with Browser(cloud.controller_init) as made:
        yield made


@contextlib.contextmanager
def logged_in(cloud: Sandbox, browser: Browser, user: str) -> Iterator[Dashboard]:
    with browser.tab(f"dashboard-{user}", VIEW) as console:
        dashboard = Dashboard(console, cloud.layout.url("horizon"))
        dashboard.log_in(user, cloud.secrets.password(user))
        yield dashboard


@pytest.fixture(scope="module")
def dashboard(cloud: Sandbox, browser: Browser) -> Iterator[Dashboard]:
    """Of the cloud's ordinary user, who has an instance: its guest boots while others walk about."""
    with logged_in(cloud, browser, "demo") as made:
        made.launch("web", Source="tiny", Flavor="m1.tiny", Networks="private")
        made.settled("web", "Active")
        yield made


@pytest.fixture(scope="module")
def walker(cloud: Sandbox, browser: Browser, dashboard: Dashboard) -> Iterator[Dashboard]:
    """The administrator's, beside it."""
    with logged_in(cloud, browser, "admin") as made:
        yield made


def test_pages_of_compute_when_the_administrator_walks_over_them_then_they_tell_of_the_cloud_and_nothing_is_red(
        walker: Dashboard) -> None:
    walked = {path: walker.visit(path) for path in PAGES}
    silent = [path for path, words in PAGES.items() if not re.search(words, walked[path])]
    assert silent == []


def test_box_when_it_is_red_then_it_does_not_go_unseen(walker: Dashboard) -> None:
    """As on none of the other pages: nova has no such instance."""
    walker.page.goto(f"{walker.url}/admin/instances/{uuid.uuid4()}/detail", wait_until="networkidle")
    with pytest.raises(AssertionError, match="Unable to retrieve details for instance"):
        walker.fine()
    walker.troubles.clear()


def test_instance_when_its_whole_life_is_clicked_then_nothing_is_red(cloud: Sandbox, dashboard: Dashboard) -> None:
    dashboard.visit(INSTANCES)
    tabs_tell(dashboard, "web")
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
    expect(dashboard.row("web")).to_contain_text("m1.small")
    dashboard.settled("web", "None")  # of its tasks: the image is whole
    dashboard.act("web", "Delete Instance")
    dashboard.submit()
    expect(dashboard.row("web")).to_have_count(0)
    dashboard.fine()
    assert "web" not in [one["Name"] for one in cloud.openstack("server", "list")]
    [image] = [one for one in cloud.openstack("image", "list") if one["Name"] == "of-web"]
    assert image["Status"] == "active"
    cloud.run("openstack", "image", "delete", image["ID"])


def tabs_tell(dashboard: Dashboard, name: str) -> None:
    """All of the page of one instance, its screen too."""
    dashboard.page.get_by_role("link", name=name, exact=True).click()
    expect(dashboard.page.locator("#instance_details__overview")).to_contain_text("Flavor Name")
    for tab, words in TABS.items():
        expect(dashboard.tab(tab)).to_contain_text(words)
    dashboard.tab("console")
    dashboard.console.shows_guest()
