"""Whether a host that registers for the first time takes servers at once."""

from __future__ import annotations

import dataclasses

import pytest

from nova.conductor.hosts.registration import NEW_IS_DISABLED
from nova.model.host.services import Registration, ServiceQuery
from nova.version import RELEASE
from tests.fakes.small_cloud import SmallCloud, node_id


def register(cloud: SmallCloud, host: str, binary: str = "nova-compute") -> tuple[bool, str | None]:
    """Whether its service is enabled then, and why not."""
    cloud.daemons.register(Registration(host=host, binary=binary, topic="compute", host_id=node_id(host),
                                        release=RELEASE))
    found, = cloud.control.list_services(ServiceQuery(host=host, binary=binary, hidden=True))
    return not found.disabled, found.disabled_reason


@pytest.mark.parametrize(("option", "said"), [(True, (True, None)), (False, (False, NEW_IS_DISABLED))])
def test_host_when_it_registers_for_the_first_time_then_the_option_says_whether_it_is_enabled(
        cloud: SmallCloud, option: bool, said: tuple[bool, str | None]) -> None:
    cloud.deps.settings = dataclasses.replace(cloud.deps.settings, enable_new_services=option)
    assert register(cloud, "fresh") == said


def test_host_when_it_registers_again_then_it_stays_as_it_was(cloud: SmallCloud) -> None:
    assert register(cloud, "fresh") == (True, None)
    cloud.deps.settings = dataclasses.replace(cloud.deps.settings, enable_new_services=False)
    assert register(cloud, "fresh") == (True, None)
    assert register(cloud, "net2", "nova-network") == (True, None)
