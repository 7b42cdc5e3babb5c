from __future__ import annotations

import pytest

from nova.model.scheduling import PlacementGroup
from nova.scheduler import reasons
from nova.scheduler.pipeline import Pipeline
from tests.fakes.scheduling import filter_options, host_view, placement_request

HOSTS = [
    host_view("cn1", up=False), host_view("cn2", enabled=False), host_view("cn3", enabled=False),
    host_view("cn4", zone="b"), host_view("cn5", memory_mb_used=16000), host_view("cn6", memory_mb_used=14000),
    host_view("cn7", vcpus_used=16, memory_mb_used=16384), host_view("cn8", supported=()),
]

SERVICE = ("ComputeFilter refused 3", "ComputeFilter refused 3 (disabled 2, down 1)")


@pytest.mark.parametrize(("hosts", "request_", "public", "details"), [
    ([], {}, "There is no compute host.", "There is no compute host."),
    (HOSTS, {"host": "cn9"}, "There is no host cn9.", "There is no host cn9 among 8 hosts."),
    (HOSTS, {"host": "cn1", "node": "n"}, "There is no host cn1 node n.", "There is no host cn1 node n among 8 hosts."),
    (HOSTS[:3], {}, f"3 hosts: {SERVICE[0]}.", f"3 hosts: {SERVICE[1]}."),
    (HOSTS[1:3], {"host": "cn2"}, "1 host: ComputeFilter refused 1.", "1 host: ComputeFilter refused 1 (disabled 1)."),
    (HOSTS[:7], {"memory_mb": 4096, "availability_zone": "nova"},
     f"7 hosts: {SERVICE[0]}; AvailabilityZoneFilter refused 1; capacity refused 3.",
     f"7 hosts: {SERVICE[1]}; AvailabilityZoneFilter refused 1 (not in zone nova 1); "
     "capacity refused 3 (nearest: needs 4096 MB memory, 2384 free on cn6)."),
    (HOSTS[6:7], {"memory_mb": 4096}, "1 host: capacity refused 1.",
     "1 host: capacity refused 1 (nearest: needs 1 vcpus, 0 free and needs 4096 MB memory, 0 free on cn7)."),
    (HOSTS[7:], {"image_properties": {"hw_vm_mode": "hvm"}}, "1 host: ImagePropertiesFilter refused 1.",
     "1 host: ImagePropertiesFilter refused 1 (can not run hvm guests 1)."),
    (HOSTS[4:7], {"exclude": ("cn7", "cn5"), "memory_mb": 9999}, "3 hosts: 2 refused it before; capacity refused 1.",
     "3 hosts: 2 refused it before (cn5, cn7); "
     "capacity refused 1 (nearest: needs 9999 MB memory, 2384 free on cn6)."),
    (HOSTS[7:], {"force": True, "vcpus": 99, "image_properties": {"hw_vm_mode": "hvm"}},
     "1 host: capacity refused 1.", "1 host: capacity refused 1 (nearest: needs 99 vcpus, 16 free on cn8)."),
])
def test_explain_names_each_filter_and_how_many_it_refused(hosts, request_, public, details):
    reason = reasons.explain(hosts, placement_request(**request_), Pipeline(filter_options()).filters)
    assert reason == (reasons.NO_VALID_HOST + public, reasons.NO_VALID_HOST + details)


def test_explain_when_a_group_is_asked_for_then_users_learn_why():
    request = placement_request(group=PlacementGroup(uuid="g", policy="affinity", hosts={"elsewhere": 1}))
    reason = reasons.explain(HOSTS[7:], request, Pipeline(filter_options()).filters)
    assert "the members of the server group are elsewhere" in reason.public


def test_explain_when_there_are_many_reasons_then_users_get_at_most_255_characters():
    request = placement_request(hints={"group": "g"}, memory_mb=4096, availability_zone="nova",
                                image_properties={"hw_vm_mode": "hvm"}, exclude=("cn7",))
    hosts = [*HOSTS, *(host_view(f"cm{number}", supported=(("a", "b", "hvm"),)) for number in range(1000))]
    reason = reasons.explain(hosts, request, Pipeline(filter_options()).filters)
    assert len(reason.public) <= 255 < len(reason.details)
    assert not any(host.host in reason.public for host in HOSTS)
