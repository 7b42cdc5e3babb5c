"""Each deployment tool's calls of nova-manage and nova-status in its own order, twice: no daemon and no broker runs."""

from __future__ import annotations

import re

import pytest

from nova.manage.upgrade_checks import Result
from nova.model.host.cells import CELL, CELL0
from tests.unit.manage.test_cell_tools import (
    KOLLA,
    charms,
    kolla,
    nova_operator,
    openstack_ansible,
    openstack_helm,
    puppet,
    tripleo,
)
from tests.unit.manage.tool_scene import BROKER, Tool, tool

pytestmark = pytest.mark.one_in(2)  # one of two runs has each

__all__ = ["tool"]

RUNS = range(2)
TEMPLATE = "{scheme}://{username}:{password}@{hostname}:{port}/{path}?{query}"


def is_sound(tool: Tool, *files: str) -> bool:
    """Whether ``nova-status upgrade check`` would end with 0."""
    return {found.result for found in tool.check(*files).values()} == {Result.SUCCESS}


def test_kolla_ansible_when_its_files_have_cell0_in_the_api_tier_then_the_cell_is_found(tool: Tool) -> None:
    tool.write("api", "nova_cell0", api=True)
    tool.write("cell", "nova", api=True)
    for run in RUNS:
        for words in ("api_db sync", "db sync --local_cell"):
            tool.ok("api", words)
        said = tool.ok("api", f"cell_v2 map_cell0 --database_connection {tool.url('nova_cell0')}")
        assert ("Cell0 is already setup" in said) is bool(run)
        assert kolla(tool.ok("api", "cell_v2 list_cells"), "cell0") == CELL0
        tool.ok("cell", "db sync --local_cell")
        assert kolla(tool.ok("cell", "cell_v2 list_cells --verbose"), "") == (CELL if run else "")
        code, said = tool.call("cell", "cell_v2 create_cell")
        assert code == 0 or run and "already exists" in said
    rows = {row["name"]: row for line in tool.ok("cell", "cell_v2 list_cells --verbose").splitlines()
            if (row := KOLLA.fullmatch(line))}
    assert (rows[""]["transport"], rows[""]["database"]) == (BROKER, tool.url("nova"))
    assert rows["cell0"]["database"] == tool.url("nova_cell0")
    tool.ok("cell", f"cell_v2 discover_hosts --by-service --cell_uuid {rows['']['uuid']}")
    tool.add_host("nova", "compute1")
    for file in ("api", "cell"):
        assert tool.check(file)["Cells v2"].details is None and is_sound(tool, file)
        assert "compute1" in tool.ok(file, "cell_v2 list_hosts")
        tool.ok(file, "db online_data_migrations")


def test_openstack_ansible_when_urls_are_templates_then_the_row_has_what_nova_conf_says(tool: Tool) -> None:
    tool.write("nova.conf", "nova", api=True)
    for run in RUNS:
        tool.ok("nova.conf", "api_db sync")
        listed = tool.ok("nova.conf", "cell_v2 list_cells")
        zero, cell = openstack_ansible(listed, "cell0"), openstack_ansible(listed, "cell1")
        assert (zero, cell) == ((CELL0, CELL) if run else ("", ""))
        cell0 = f"--database_connection {tool.url('nova_cell0')}"
        tool.ok("nova.conf", f"cell_v2 update_cell --cell_uuid {zero} {cell0} --transport-url none:/" if run else
                f"cell_v2 map_cell0 {cell0}")
        tool.ok("nova.conf", "db sync")
        urls = f"--transport-url {TEMPLATE.partition('?')[0]} --database_connection {TEMPLATE}"
        tool.ok("nova.conf", f"cell_v2 update_cell --cell_uuid {cell} {urls}" if run else
                f"cell_v2 create_cell --name cell1 {urls}")
        assert tool.call("nova.conf", f"cell_v2 create_cell --name cell1 {urls}")[0] == 2
        assert is_sound(tool, "nova.conf")
    assert "5672/nova" in tool.ok("nova.conf", "cell_v2 list_cells")
    for words in ("", " --verbose", " --by-service"):
        tool.ok("nova.conf", f"cell_v2 discover_hosts{words}")


def test_devstack_when_the_cells_file_is_named_second_then_its_urls_are_recorded(tool: Tool) -> None:
    tool.write("nova.conf", "nova_cell0", api=True)
    tool.write("nova_cell1.conf", "nova_cell1")
    for file in ("nova.conf", "nova_cell1.conf"):
        tool.ok(file, "db sync --local_cell")
    tool.ok("nova.conf", "api_db sync")
    tool.ok("nova.conf", f"cell_v2 map_cell0 --database_connection {tool.url('nova_cell0')}")
    tool.ok("nova.conf", "db online_data_migrations")
    tool.ok("nova.conf nova_cell1.conf", "cell_v2 create_cell --name cell1")
    assert f" {tool.url('nova_cell1')} " in tool.ok("nova.conf", "cell_v2 list_cells --verbose")
    tool.add_host("nova_cell1", "compute1")
    assert "compute1" in tool.ok("nova.conf", "cell_v2 discover_hosts --verbose")
    assert tool.check("nova.conf")["Cells v2"].details is None and is_sound(tool, "nova.conf")


def test_grenade_when_the_cloud_stands_still_then_both_cells_are_there_and_a_server_is_not(tool: Tool) -> None:
    tool.write("nova.conf", "nova", api=True)
    for words in ("api_db sync", "db sync", f"cell_v2 map_cell0 --database_connection {tool.url('nova_cell0')}",
                  f"cell_v2 simple_cell_setup --transport-url {BROKER}", "db online_data_migrations"):
        tool.ok("nova.conf", words)
    assert is_sound(tool, "nova.conf")
    assert tool.call("nova.conf", f"cell_v2 verify_instance --uuid {CELL}")[0] == 1


def test_openstack_helm_when_its_job_runs_again_then_it_changes_the_cells_that_it_made(tool: Tool) -> None:
    tool.write("nova.conf", "nova", api=True)
    for run in RUNS:
        tool.ok("nova.conf", "api_db sync")
        tool.ok("nova.conf", "cell_v2 map_cell0")
        assert (" cell1 " in tool.ok("nova.conf", "cell_v2 list_cells")) is bool(run)
        if not run:
            tool.ok("nova.conf", "cell_v2 create_cell --name=cell1 --verbose")
        listed = tool.ok("nova.conf", "cell_v2 list_cells")
        for name, uuid, database, broker in (("cell0", CELL0, "nova_cell0", "none:///"),
                                             ("cell1", CELL, "nova", BROKER)):
            assert openstack_helm(listed, name) == uuid
            tool.ok("nova.conf", f"cell_v2 update_cell --cell_uuid={uuid} --name={name} --transport-url={broker} "
                                 f"--database_connection={tool.url(database)}")
        for words in ("db sync", "db online_data_migrations", "cell_v2 discover_hosts --verbose"):
            tool.ok("nova.conf", words)
    assert [row["name"] for line in tool.ok("nova.conf", "cell_v2 list_cells").splitlines()
            if (row := KOLLA.fullmatch(line))] == ["cell0", "cell1"]


def test_nova_operator_when_a_cells_job_runs_then_the_cell_is_made_changed_and_deleted(tool: Tool) -> None:
    tool.write("cell0", "nova_cell0", api=True, broker=False)
    tool.write("cell1", "nova_cell1", api=True)
    for run in RUNS:
        for words in ("api_db sync", "db sync --local_cell", "cell_v2 map_cell0",
                      f"cell_v2 update_cell --cell_uuid {CELL0}"):
            tool.ok("cell0", words)
        listed = tool.ok("cell0", "cell_v2 list_cells")
        assert nova_operator(listed, "cell0") == CELL0 and f" {tool.url('nova_cell0')} " in listed
        tool.ok("cell1", "db sync --local_cell")
        assert nova_operator(tool.ok("cell1", "cell_v2 list_cells"), "cell1") == (CELL if run else "")
        tool.ok("cell1", f"cell_v2 update_cell --cell_uuid {CELL}" if run else "cell_v2 create_cell --name cell1")
        tool.ok("cell1", "cell_v2 discover_hosts --by-service")
    assert tool.call("cell1", "db archive_deleted_rows --max_rows 100 --before 2026-01-01 --verbose")[0] == 0
    assert tool.call("cell1", "db purge --before 2026-01-01 --verbose")[0] == 3
    tool.ok("cell1", f"cell_v2 delete_cell --cell_uuid {CELL}")
    assert nova_operator(tool.ok("cell0", "cell_v2 list_cells"), "cell1") == ""


def test_puppet_when_it_creates_a_cell_then_its_uuid_is_all_that_is_said(tool: Tool) -> None:
    tool.write("nova.conf", "nova", api=True)
    for run in RUNS:
        for words in ("api_db sync", "cell_v2 map_cell0"):
            tool.ok("nova.conf", words)
        assert puppet(tool.ok("nova.conf", "cell_v2 list_cells --verbose"), "default") == (CELL if run else "")
        if not run:
            made = tool.ok("nova.conf", f"cell_v2 create_cell --name default --transport-url {BROKER} "
                                        f"--database_connection {tool.url('nova')} --verbose")
            assert re.fullmatch(r"[0-9a-f-]{36}\n", made)
        for words in ("db sync", "db online_data_migrations", "cell_v2 discover_hosts", "cell_v2 map_cell_and_hosts",
                      f"cell_v2 map_instances --cell_uuid {CELL}"):
            tool.ok("nova.conf", words)
    code, _text = tool.call("nova.conf", "db purge --before 11/14/26 --verbose")
    assert code == 3
    tool.ok("nova.conf", f"cell_v2 delete_cell --cell_uuid {CELL}")


def test_tripleo_when_it_ensures_the_cell_then_it_finds_it_the_next_time(tool: Tool) -> None:
    tool.write("nova.conf", "ovs", api=True)
    urls = f"--transport-url {TEMPLATE.partition('?')[0]} --database_connection {TEMPLATE}"
    for run in RUNS:
        tool.ok("nova.conf", "api_db sync")
        tool.ok("nova.conf", f"cell_v2 map_cell0 --database_connection {TEMPLATE}")
        found = tripleo(tool.ok("nova.conf", "cell_v2 list_cells"), "default")
        assert found == (CELL if run else "")
        tool.ok("nova.conf", f"cell_v2 update_cell --cell_uuid={found} --name=default {urls}" if run else
                f"cell_v2 create_cell --name default {urls}")
        for words in ("db sync --local_cell", "cell_v2 discover_hosts --by-service", "db online_data_migrations"):
            tool.ok("nova.conf", words)


def test_charms_when_the_leader_migrates_then_hosts_of_its_cell_can_be_discovered(tool: Tool) -> None:
    tool.write("nova.conf", "nova", api=True)
    for run in RUNS:
        tool.ok("nova.conf", "api_db sync")
        tool.ok("nova.conf", "cell_v2 map_cell0")
        assert tool.call("nova.conf", "cell_v2 create_cell --name cell1 --verbose")[0] == (2 if run else 0)
        for words in ("db sync", "db online_data_migrations"):
            tool.ok("nova.conf", words)
        uuid = charms(tool.ok("nova.conf", "cell_v2 list_cells --verbose"), "cell1")
        for words in (f"discover_hosts --cell_uuid {uuid} --verbose", f"update_cell --cell_uuid {uuid}",
                      f"map_instances --cell_uuid {uuid} --max-count 50000"):
            tool.ok("nova.conf", f"cell_v2 {words}")


@pytest.mark.parametrize("program", ["nova-api", "nova-common"])
def test_debian_when_a_package_is_configured_then_each_call_succeeds(tool: Tool, program: str) -> None:
    tool.write("nova.conf", "nova", api=True)
    for words in {"nova-api": ("api_db sync", "cell_v2 map_cell0", "cell_v2 create_cell --name=cell1 --verbose"),
                  "nova-common": ("db sync",)}[program]:
        tool.ok("nova.conf", words)
