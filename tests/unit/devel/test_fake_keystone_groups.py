"""Groups of the fake Keystone: who is in one, and that a member has its roles; through keystoneclient."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from keystoneauth1 import exceptions
from keystoneclient.v3 import client

from nova.devel.identity.directory import Directory
from tests.unit.devel.served import PASSWORD, FakeCloud


class Scene(NamedTuple):
    """A user without a role of her own, in a group that has one in a project."""

    admin: client.Client
    user: Any
    group: Any
    project: Any
    role: Any


@pytest.fixture
def scene(cloud: FakeCloud) -> Scene:
    admin = client.Client(session=cloud.session())
    made = Scene(admin, admin.users.create("eve", password=PASSWORD), admin.groups.create("team"),
                 admin.projects.create("new", domain="default"), admin.roles.find(name="member"))
    admin.users.add_to_group(made.user, made.group)
    admin.roles.grant(made.role, group=made.group, project=made.project)
    return made


def test_group_then_its_members_are_listed_from_both_sides_until_they_leave(scene: Scene) -> None:
    admin = scene.admin
    assert [one.name for one in admin.users.list(group=scene.group)] == ["eve"]
    assert [one.name for one in admin.groups.list(user=scene.user)] == ["team"]
    assert admin.users.check_in_group(scene.user, scene.group)
    admin.users.remove_from_group(scene.user, scene.group)
    assert admin.users.list(group=scene.group) == [] == admin.groups.list(user=scene.user)
    for refused in (admin.users.check_in_group, admin.users.remove_from_group):
        with pytest.raises(exceptions.NotFound):
            refused(scene.user, scene.group)


def test_group_when_it_has_a_role_then_a_member_may_log_in_until_she_leaves(cloud: FakeCloud, scene: Scene) -> None:
    assert cloud.session("eve", "new").get_token()
    assert [one.name for one in scene.admin.projects.list(user=scene.user)] == ["new"]
    assert [one.name for one in scene.admin.roles.list(group=scene.group, project=scene.project)] == ["member"]
    assert scene.admin.roles.list(user=scene.user, project=scene.project) == []  # none of her own
    scene.admin.users.remove_from_group(scene.user, scene.group)
    with pytest.raises(exceptions.Unauthorized):
        cloud.session("eve", "new").get_token()


def test_assignments_when_a_group_has_a_role_then_it_is_named_and_effectively_its_members_are(scene: Scene) -> None:
    listed = scene.admin.role_assignments.list
    [one] = listed(group=scene.group)
    assert one.group["id"] == scene.group.id and not hasattr(one, "user")
    [named] = listed(project=scene.project, include_names=True)
    assert (named.group["name"], named.role["name"]) == ("team", "member")
    effective = listed(project=scene.project, effective=True)
    assert {one.user["id"] for one in effective} == {scene.user.id} and len(effective) == 2  # member and reader


@pytest.mark.parametrize("gone", ["user", "group"])
def test_group_when_a_part_of_it_is_deleted_then_nothing_of_it_is_left(cloud: FakeCloud, scene: Scene, gone: str
                                                                       ) -> None:
    getattr(scene.admin, f"{gone}s").delete(getattr(scene, gone))
    assert not cloud.keystone.directory.memberships
    with pytest.raises(exceptions.Unauthorized):
        cloud.session("eve", "new").get_token()


def test_groups_when_the_directory_is_kept_then_its_members_come_back(cloud: FakeCloud, scene: Scene) -> None:
    again = Directory()
    again.restore(cloud.keystone.directory.packed())
    assert again.memberships == cloud.keystone.directory.memberships != set()


@pytest.mark.parametrize("missing", ["user", "group"])
def test_membership_when_a_part_is_missing_then_404(scene: Scene, missing: str) -> None:
    user, group = ("nobody", scene.group) if missing == "user" else (scene.user, "nothing")
    with pytest.raises(exceptions.NotFound):
        scene.admin.users.add_to_group(user, group)
