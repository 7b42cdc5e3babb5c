"""The table: every tool that installs nova, and its story."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tests.fresh import layers, trees
from tests.installers import charms, debian, debian_packaging, devstack, helm, kolla, nova_operator, osa, puppet
from tests.installers.site import Site

#: For the table at the end of a run: name of a scenario, its seconds, how it ended.
ROWS: list[tuple[str, float, str]] = []


class Scenario(NamedTuple):
    """``story`` installs, looks at what it made as the tool does, boots a server, does it all once more and upgrades.
    It returns what the table says in the end."""

    story: Callable[[Site], str]
    tree: Callable[[], layers.Made] = trees.with_neighbours


SCENARIOS: dict[str, Scenario] = {
    "charms": Scenario(charms.story, charms.tree),
    "debian": Scenario(debian.story, debian_packaging.tree),
    "devstack": Scenario(devstack.superconductor, devstack.tree),
    "devstack-single": Scenario(devstack.single, devstack.tree),
    "kolla-ansible": Scenario(kolla.plain, kolla.tree),
    "kolla-ansible-cells": Scenario(kolla.cells, kolla.tree),
    "nova-operator": Scenario(nova_operator.story, nova_operator.tree),
    "openstack-ansible": Scenario(osa.story, osa.tree),
    "openstack-helm": Scenario(helm.story, helm.tree),
    "puppet": Scenario(puppet.story, debian_packaging.tree),
}
