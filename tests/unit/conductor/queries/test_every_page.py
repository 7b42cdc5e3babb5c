"""Every list that has pages, whatever it is sorted by: its pages, put together, are the whole list.

What is tried comes from the code's own tables: the routes whose query knows ``marker`` or ``offset``, the sort keys
that each version allows, and the columns that servers and flavors are sorted by.
"""

from __future__ import annotations

import datetime
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from nova.api.routes import ROUTES
from nova.api.routing import Route
from nova.api.versions import MAX, MIN
from nova.db import flavors as flavor_rows
from nova.db.models import api as api_tables
from nova.db.models import cell as cell_tables
from nova.db.server import migrations, server_lists
from nova.model.base import Page
from nova.model.flavor.flavors import FlavorQuery
from nova.model.server.migrations import NewMigration
from nova.model.server.servers import ServerListQuery
from nova.model.volumes import BlockDevice
from nova.web.ranges import minor
from nova.web.schema import Query
from tests.fakes.api import ADMIN, ApiClient
from tests.fakes.rows import BORN, new_uuid, server_row
from tests.fakes.small_cloud import SmallCloud

pytestmark = pytest.mark.one_in(2)  # one of two runs has each

COUNT = 7
DIRECTIONS = ("asc", "desc")
SERVER = new_uuid()
#: Pages of these are the image service's to cut.
NEXT_DOOR = {"GET /images", "GET /images/detail"}
PAGED = [route for route in ROUTES if route.query and route.id not in NEXT_DOOR
         and any(param.name in ("marker", "offset") for param in route.query.params)]
#: Columns in which not any text or number can stand.
WORDS: dict[str, tuple[Any, ...]] = {
    "vm_state": ("active", "stopped", "error"), "task_state": ("rebooting", "powering-off"), "power_state": (0, 1, 4),
    "disk_config": ("AUTO", "MANUAL"), "locked_by": ("owner", "admin"), "project_id": ("admin",), "deleted": (0,),
    "access_ip_v4": ("192.0.2.1", "192.0.2.2"), "access_ip_v6": ("2001:db8::1", "2001:db8::2")}
TIMES = tuple(BORN + datetime.timedelta(days=day) for day in range(3))
KINDS: dict[type, tuple[Any, ...]] = {bool: (False, True), int: (0, 1, 2), float: (0.5, 1.0, 2.0),
                                      str: ("a", "B", "b"), datetime.datetime: TIMES}


def mixed(columns: Iterable[sa.Column[Any]], number: int) -> dict[str, Any]:
    """A row's values: of each column, some rows have the same one, and some none where there may be none."""
    found: dict[str, Any] = {}
    for place, column in enumerate(columns):
        values = WORDS.get(column.name) or KINDS[column.type.python_type]
        values = (*values, None) if column.nullable else values
        found[column.name] = values[number * (1 + place % 3) // 2 % len(values)]
    return found


def create_sample_data(cloud: SmallCloud, client: ApiClient) -> None:
    """More than one page of whatever has pages."""
    sortable = [column for name, column in server_lists.COLUMNS.items() if name not in ("id", "uuid", "flavorid")]
    flavors = [column for column in api_tables.flavors.c if column.name not in ("id", "flavorid", "name")]
    devices = tuple(BlockDevice(id=new_uuid(), volume_id=new_uuid(), attachment_id=new_uuid(),
                                device_name=f"/dev/vd{letter}") for letter in "abc")
    servers = [server_row(**mixed(sortable, number)) for number in range(COUNT)]
    servers[0] |= {"uuid": SERVER, "volumes": devices}
    cloud.cell.transact(lambda tx: [tx.execute(sa.insert(cell_tables.servers).values(**one)) for one in servers])
    cloud.api.transact(lambda tx: [tx.execute(sa.insert(api_tables.flavors).values(
        flavorid=f"f{number}", name=f"n{number}", **mixed(flavors, number))) for number in range(COUNT)])
    for number in range(3):
        cloud.cell.transact(lambda tx, number=number: tx.execute(sa.insert(cell_tables.operations).values(
            server_uuid=SERVER, action="stop", epoch=number, runner_id=1, arguments={}, data={}, history=(),
            request_id=f"req-{number}", user_id="admin", project_id="admin", started_at=BORN, updated_at=BORN,
            finished_at=BORN)))
        cloud.cell.transact(lambda tx: migrations.insert(tx, NewMigration(
            uuid=new_uuid(), server_uuid=SERVER, type="resize", status="finished", user_id="admin",
            project_id="admin", source_compute="a", dest_compute="b")))
        volume = cloud.volume_service.add()
        for path, body in (
                ("/os-keypairs", {"keypair": {"name": f"k{number}"}}),
                ("/os-server-groups", {"server_group": {"name": f"g{number}", "policies": ["affinity"]}}),
                ("/os-security-groups", {"security_group": {"name": f"s{number}", "description": "d"}}),
                ("/os-snapshots", {"snapshot": {"volume_id": volume, "force": True}})):
            made = client.post(path, body, version="2.1")
            assert made.status_int == 200, made.text


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory, templates: Path) -> Iterator[SmallCloud]:
    made = SmallCloud(tmp_path_factory.mktemp("pages"), templates, ("a", "b", "c"))
    create_sample_data(made, ApiClient(SimpleNamespace(client=lambda: made.control), token=ADMIN))
    yield made
    made.close()


@pytest.fixture(scope="module")
def client(cloud: SmallCloud) -> ApiClient:
    return ApiClient(SimpleNamespace(client=lambda: cloud.control), token=ADMIN)


# -- by the columns


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("key", sorted(server_lists.COLUMNS))
def test_servers_when_sorted_by_any_column_then_pages_of_any_size_are_the_whole_list(cloud, key, direction):
    for sort in (((key, direction),), (("vm_state", "asc"), (key, direction)),
                 (("task_state", "desc"), ("power_state", "asc"), (key, direction))):
        query = ServerListQuery(sort=sort)
        whole = page(cloud, query, COUNT + 1)
        assert len(whole) == COUNT
        for limit in range(1, COUNT + 1):
            found: list[str] = []
            while more := page(cloud, query, limit, *found[-1:]):
                found += more
            assert found == whole, (sort, limit)
    alone = page(cloud, ServerListQuery(sort=((key, direction),)), COUNT)
    values = of_column(cloud, server_lists.COLUMNS[key])
    assert [values[one] for one in alone] == sorted(values.values(), key=_rank, reverse=direction == "desc")


def page(cloud: SmallCloud, query: ServerListQuery, limit: int, marker: str | None = None) -> list[str]:
    with cloud.cell.reading() as tx:
        return [row.uuid for row in server_lists.select(
            tx, msgspec.structs.replace(query, page=Page(limit=limit, marker=marker)), limit)]


def of_column(cloud: SmallCloud, column: sa.Column[Any]) -> dict[str, Any]:
    """Each server's value."""
    with cloud.cell.reading() as tx:
        return dict(tx.execute(sa.select(cell_tables.servers.c.uuid, column)).tuples().all())


def _rank(value: Any) -> tuple[Any, ...]:
    """None before all; text by its bytes."""
    return (False,) if value is None else (True, value.encode() if isinstance(value, str) else value)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("key", sorted(flavor_rows.SORT_KEYS))
def test_flavors_when_sorted_by_any_key_then_pages_of_any_size_are_the_whole_list(cloud, key, direction):
    def ids(limit: int, marker: str | None = None) -> list[str]:
        query = FlavorQuery(is_public=None, sort_key=key, sort_dir=direction, page=Page(limit=limit, marker=marker))
        with cloud.api.reading() as tx:
            return [one.flavorid for one in flavor_rows.select(tx, query, limit)]
    whole = ids(COUNT + 2)
    assert len(whole) == len(set(whole)) == COUNT + 1
    for limit in range(1, COUNT + 2):
        found: list[str] = []
        while more := ids(limit, *found[-1:]):
            found += more
        assert found == whole, limit


# -- as clients page


def versions(route: Route) -> list[int]:
    """The first and the last minor version at which the route's query is as each of its rows says."""
    assert route.query is not None
    bounds = [(param.since, param.until) for param in route.query.params
              if param.name in ("sort_key", "limit", "marker", "offset")]
    low, high = _minor(route.since, MIN), _minor(route.until, MAX)
    edges = {low, high, *(_minor(since, low) for since, _until in bounds),
             *(_minor(until, high) for _since, until in bounds)}
    return sorted(edge for edge in edges if low <= edge <= high and _pages(route.query, edge))


def _minor(version: str | None, default: int) -> int:
    return minor(version) if version else default


def _pages(query: Query, version: int) -> str | None:
    """How the list goes on: by marker or by offset."""
    names = query.compiled(version)[0]
    return next((name for name in ("marker", "offset") if name in names), None)


def sort_keys(query: Query, version: int) -> tuple[str, ...]:
    key = query.compiled(version)[0].get("sort_key")
    return tuple(key.spec.allowed or ()) if key else ()


def walks(route: Route) -> Iterator[tuple[int, dict[str, str], int]]:
    """(version, parameters that sort, limit): each version as it comes, each key at the first and the last of its
    versions; any column in any pages is tried above."""
    assert route.query is not None
    known: dict[str, list[int]] = {}
    for version in versions(route):
        yield version, {}, 1
        yield version, {}, 2
        for key in sort_keys(route.query, version):
            known.setdefault(key, []).append(version)
    for key, edges in known.items():
        for version, direction in zip(sorted({edges[0], edges[-1]}), DIRECTIONS, strict=False):
            yield version, {"sort_key": key, "sort_dir": direction}, COUNT // 2


IDS = ("instance_id", "uuid", "id", "request_id", "volumeId", "name")


def items(body: Any) -> list[str]:
    """Ids of what a list's answer lists."""
    [listed] = [value for name, value in body.items() if not name.endswith("links")]
    if isinstance(listed, Mapping):
        listed = [listed] if listed else []
    whole = [one.get("keypair", one) for one in listed]
    parts = [part for one in whole for part in one.get("server_usages", [one])]
    return [str(next(part[name] for name in IDS if part.get(name))) for part in parts]


def ask(client: ApiClient, url: str, version: int) -> Any:
    answer = client.get(url, version=f"2.{version}")
    assert answer.status_int == 200, (url, version, answer.text)
    return answer.json


def next_url(body: Any) -> str | None:
    links = [value for name, value in body.items() if name.endswith("links")]
    href = links[0][0]["href"] if links else None
    return href[href.index("/v2.1") + len("/v2.1"):] if href else None


def by_links(client: ApiClient, url: str, version: int) -> list[str]:
    found: list[str] = []
    for _ in range(3 * COUNT):
        body = ask(client, url, version)
        found += items(body)
        following = next_url(body)
        if following is None:
            return found
        url = following
    raise AssertionError(f"{url} has no last page")


def by_offsets(client: ApiClient, url: str, version: int) -> list[str]:
    found: list[str] = []
    while more := items(ask(client, f"{url}&offset={len(found)}", version)):
        found += more
        assert len(found) < 3 * COUNT, url
    return found


#: Whoever sees all there is.
WHOLE = {"GET /servers": {"all_tenants": "1"}, "GET /servers/detail": {"all_tenants": "1"},
         "GET /os-simple-tenant-usage": {"detailed": "1", "start": "2025-12-01T00:00:00", "end": "2026-03-01T00:00:00"},
         "GET /os-simple-tenant-usage/{tenant_id}": {"start": "2025-12-01T00:00:00", "end": "2026-03-01T00:00:00"}}


@pytest.mark.parametrize("route", PAGED, ids=lambda route: route.id)
def test_list_when_paged_in_any_order_at_any_version_then_pages_are_the_whole_list(client, route):
    path = route.path.format(server_id=SERVER, tenant_id="admin")
    for version, order, limit in walks(route):
        wanted = {**WHOLE.get(route.id, {}), **order}
        whole = items(ask(client, f"{path}?{urllib.parse.urlencode(wanted)}", version))
        assert len(whole) > 2 and len(whole) == len(set(whole)), (version, order, whole)
        walk = by_links if _pages(route.query, version) == "marker" else by_offsets
        url = f"{path}?{urllib.parse.urlencode({**wanted, 'limit': limit})}"
        assert walk(client, url, version) == whole, (version, order, limit)
