"""Security groups on each database for real: quotas and names that many want at once, and members while groups go."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from nova import context, errors
from nova.conductor.engine.deps import ConductorSettings, Deps
from nova.conductor.nova_network import host_rules
from nova.conductor.nova_network.groups import Groups
from nova.db.models import api as api_models
from nova.db.models import cell as cell_models
from nova.db.network import guest_rules, security_groups
from nova.db.quota import quotas
from nova.db.sql.engine import Database
from nova.model.base import Page, Scope
from nova.model.network.networks import FixedAddress, Interface
from nova.model.network.security_groups import (
    GroupMembership,
    NewSecurityGroup,
    NewSecurityRule,
    SecurityGroup,
    SecurityGroupQuery,
    SecurityGroupUpdate,
)
from nova.model.quota.quotas import NETWORK_RESOURCES, RESOURCES
from tests.fakes.racing import together
from tests.fakes.rows import add_servers, server_row
from tests.functional.backends import KINDS, Absent

POOL = 12
NUMBERS = itertools.count(1)


class Deaf:
    """Hosts that take whatever they are told."""

    def refresh_firewall(self, host: str) -> None: ...


@pytest.fixture(scope="module", params=list(KINDS))
def deps(backends: Any, request: pytest.FixtureRequest) -> Iterator[Deps]:
    try:
        server = backends.database(request.param)
    except Absent as absent:
        pytest.skip(f"needs the Debian package {absent}")
    made = []
    for name, models in (("api", api_models), ("cell", cell_models)):
        made.append(Database(server.create(f"group_races_{name}"), pool_size=POOL))
        models.metadata.create_all(made[-1].engine)
    limits = dict.fromkeys((*RESOURCES, *NETWORK_RESOURCES), -1)
    yield Deps(api=made[0], cell=made[1], settings=ConductorSettings(quota_defaults=limits), host="ctl", scheduler=None,
                        certs=None, compute=Deaf(), network=None, images=None)
    for database in made:
        database.dispose()


@pytest.fixture
def calls(deps: Deps) -> Groups:
    return Groups(deps)


@pytest.fixture
def project() -> str:
    return f"project-{next(NUMBERS)}"


def sorted_out(works: list[Any], *refusals: type[errors.NovaError]) -> tuple[list[Any], int]:
    """What came of them all at once, and how many were refused."""
    def entered(work: Any) -> Any:
        with context.entered(context.internal()):
            return work()
    results = together([lambda work=work: entered(work) for work in works])
    done = [one for one in results if not isinstance(one, Exception)]
    refused = [one for one in results if isinstance(one, Exception)]
    assert all(isinstance(one, refusals) for one in refused), refused
    return done, len(refused)


def make(calls: Groups, project: str, name: str) -> SecurityGroup:
    with context.entered(context.internal()):
        return calls.create_security_group(NewSecurityGroup(name=name, project_id=project))


def test_groups_when_many_want_them_at_once_then_names_and_quotas_hold(deps: Deps, calls: Groups, project: str
                                                                       ) -> None:
    deps.api.transact(lambda tx: quotas.write(tx, project, None, {"security_groups": 6}))
    look = SecurityGroupQuery(scope=Scope(project_id=project))
    works = [lambda at=at: make(calls, project, f"g{at % 8}") for at in range(40)]
    done, refused = sorted_out([*works, *[lambda: calls.list_security_groups(look)] * 10], errors.OverQuota,
                               errors.Invalid)
    made = [one for one in done if isinstance(one, SecurityGroup)]
    assert len(made) == len({one.name for one in made}) == 5 and refused == 35
    names = [one.name for one in calls.list_security_groups(look)]
    assert sorted(names) == sorted(["default", *[one.name for one in made]])


def test_rules_when_many_want_them_at_once_then_each_is_there_once_and_the_quota_holds(deps: Deps, calls: Groups,
                                                                                       project: str) -> None:
    deps.api.transact(lambda tx: quotas.write(tx, project, None, {"security_group_rules": 5}))
    group = make(calls, project, "web")
    works = [lambda port=port: calls.create_security_rule(
        NewSecurityRule(group_id=group.id, protocol="tcp", from_port=port % 8 + 1, to_port=9), Scope())
        for port in range(30)]
    done, refused = sorted_out(works, errors.OverQuota, errors.Invalid)
    assert len({one.from_port for one in done}) == len(done) == 5 and refused == 25


def booted(deps: Deps, project: str, group: str) -> list[str]:
    card = Interface(id="1", mac="fa:16:3e:00:00:01", network_id="n", label="l", device="tap1",
                     addresses=(FixedAddress(address=f"10.0.0.{next(NUMBERS)}"),))
    return add_servers(deps.cell, server_row(project_id=project, host="h", security_groups=(group,),
                                              interfaces=(card,)))


def test_members_when_their_group_is_renamed_or_deleted_meanwhile_then_all_rows_agree(deps: Deps, calls: Groups,
                                                                                      project: str) -> None:
    group = make(calls, project, "web")
    key = security_groups.key_of(group.id) or 0

    def boot() -> str:
        uuid, = booted(deps, project, "web")
        deps.cell.transact(lambda tx: security_groups.join_new(tx, {key: "web"}, [uuid]))
        return uuid

    def rename() -> None:
        calls.update_security_group(SecurityGroupUpdate(id=group.id, name="www"))

    def delete() -> None:
        calls.delete_security_group(group.id, Scope())
    works: list[Any] = [*[boot] * 8, rename, *[boot] * 8, delete]
    sorted_out(works, errors.Invalid, errors.NotFound)
    with deps.cell.reading() as tx:
        left = security_groups.select(tx, Scope(project_id=project), Page())
        of_host = [row.uuid for row in guest_rules.guests_on(tx, "h")]
        for uuid in of_host:
            for one in security_groups.of_server(tx, uuid):
                assert one.project_id != project or one.name in {group.name for group in left}


def test_guest_s_part_when_groups_name_each_other_then_it_is_what_the_host_is_told(deps: Deps, calls: Groups,
                                                                                   project: str) -> None:
    group = make(calls, project, "web")
    uuid, = booted(deps, project, "web")
    calls.change_group_membership(GroupMembership(server_uuid=uuid, group="web"))
    calls.create_security_rule(NewSecurityRule(group_id=group.id, source_id=group.id), Scope())
    with deps.cell.reading() as tx:
        whole = {one.server_uuid: one for one in host_rules.of_host(tx, "h", "instance-%08x").guests}
        row = next(row for row in guest_rules.guests_on(tx, "h") if row.uuid == uuid)
        alone = host_rules.of_guests(tx, [row], "instance-%08x")
    assert alone.guests[uuid] == whole[uuid] and len(whole[uuid].allowed) == 3
    assert alone.let_in_on == {"h"}
    with deps.cell.reading() as tx:
        assert security_groups.hosts_of(tx, [security_groups.key_of(group.id) or 0]) == {"h"}
        assert security_groups.hosts_allowing(tx, [security_groups.key_of(group.id) or 0]) == {"h"}
