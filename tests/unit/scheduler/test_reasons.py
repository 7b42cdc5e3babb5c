from __future__ import annotations

import pytest

from nova.model.placement.providers import Amount, RequestGroup, ResourceRequest
from nova.model.scheduling.decisions import HostRequirements, PlacementGroup, Refusal
from nova.scheduler import reasons
from nova.scheduler.filters import Filter
from nova.scheduler.pipeline import Pipeline
from tests.fakes.scheduling import filter_options, host_view, placement_request

HOSTS = [
    host_view("cn1", up=False), host_view("cn2", enabled=False), host_view("cn3", enabled=False),
    host_view("cn4", zone="b"), host_view("cn5", memory_mb_used=16000), host_view("cn6", memory_mb_used=14000),
    host_view("cn7", vcpus_used=16, memory_mb_used=16384), host_view("cn8", supported=()),
]

SERVICE = "ComputeFilter refused 3 (disabled 2, down 1)"
PLAIN = "There are not enough hosts available."


def unmet(*asked: str) -> str:
    return f"{PLAIN[:-1]}: {'; '.join(asked)}."


@pytest.mark.parametrize(("hosts", "request_", "public", "details"), [
    ([], {}, PLAIN, "There is no compute host."),
    (HOSTS, {"host": "cn9"}, "There is no host cn9.", "There is no host cn9 among 8 hosts."),
    (HOSTS, {"host": "cn1", "node": "n"}, "There is no host cn1 node n.", "There is no host cn1 node n among 8 hosts."),
    (HOSTS[:3], {}, PLAIN, f"3 hosts: {SERVICE}."),
    (HOSTS[1:3], {"host": "cn2"}, PLAIN, "1 host: ComputeFilter refused 1 (disabled 1)."),
    (HOSTS[:7], {"memory_mb": 4096, "availability_zone": "nova"},
     unmet("zone nova", "not enough memory (4096 MB requested)"),
     f"7 hosts: {SERVICE}; AvailabilityZoneFilter refused 1 (not in zone nova 1); "
     "capacity refused 3 (nearest: needs 4096 MB memory, 2384 free on cn6)."),
    (HOSTS[6:7], {"memory_mb": 4096}, unmet("not enough vcpus (1 requested)", "not enough memory (4096 MB requested)"),
     "1 host: capacity refused 1 (nearest: needs 1 vcpus, 0 free and needs 4096 MB memory, 0 free on cn7)."),
    (HOSTS[7:], {"image_properties": {"hw_vm_mode": "hvm"}}, unmet("the image's properties"),
     "1 host: ImagePropertiesFilter refused 1 (cannot run hvm guests 1)."),
    (HOSTS[4:7], {"exclude": ("cn7", "cn5"), "memory_mb": 9999}, unmet("not enough memory (9999 MB requested)"),
     "3 hosts: 2 refused it before (cn5, cn7); "
     "capacity refused 1 (nearest: needs 9999 MB memory, 2384 free on cn6)."),
    (HOSTS[7:], {"force": True, "vcpus": 99, "image_properties": {"hw_vm_mode": "hvm"}},
     unmet("not enough vcpus (99 requested)"), "1 host: capacity refused 1 (nearest: needs 99 vcpus, 16 free on cn8)."),
])
def test_explain_names_requirements_to_users_and_filters_with_counts_to_admins(hosts, request_, public, details):
    pipeline, request = Pipeline(filter_options()), placement_request(**request_)
    reason = reasons.explain(hosts, request, pipeline.asked(request))
    assert (reason.public, reason.details) == (reasons.NO_VALID_HOST + public, reasons.NO_VALID_HOST + details)


def test_explain_when_hosts_are_refused_then_values_say_it_too_without_a_hosts_name():
    request = placement_request(memory_mb=4096, availability_zone="nova", exclude=("cn5",))
    reason = reasons.explain(HOSTS[:7], request, Pipeline(filter_options()).asked(request))
    assert reason.asked == 7 == sum(one.hosts for one in reason.refusals)
    assert reason.refusals == (
        Refusal(filter=reasons.TRIED, hosts=1),
        Refusal(filter="ComputeFilter", hosts=3, reasons={"disabled": 2, "down": 1}),
        Refusal(filter="AvailabilityZoneFilter", hosts=1, reasons={"not in zone nova": 1}),
        Refusal(filter="capacity", hosts=2, reasons={"not enough memory": 1, "not enough vcpus, memory": 1},
                nearest="needs 4096 MB memory, 2384 free"))
    assert not any(host.host in str(reason.refusals) for host in HOSTS)


def test_explain_when_there_is_a_reason_a_host_then_only_the_commonest_are_kept():
    class Chatty(Filter):
        def refuses(self, host, request):
            return f"reason {host.host[2:]} " + "x" * 1000

    hosts = [host_view(f"cn{number}") for number in range(100)]
    [refusal] = reasons.explain(hosts, placement_request(), [Chatty()]).refusals
    assert (refusal.hosts, len(refusal.reasons)) == (100, reasons.SHOWN)
    assert max(map(len, refusal.reasons)) == reasons.REASON_LONGEST


def test_explain_when_other_classes_and_traits_are_missing_then_the_nearest_miss_names_them():
    class_ = {"CUSTOM_GPU": Amount(capacity=4, used=3, max_unit=4)}
    hosts = [host_view("cn1", amounts=class_), host_view("cn2")]
    group = RequestGroup(resources={"VCPU": 1, "CUSTOM_GPU": 2})
    request = placement_request(requirements=HostRequirements(request=ResourceRequest(groups=(group,))))
    reason = reasons.explain(hosts, request, Pipeline(filter_options()).asked(request))
    assert reason.public == reasons.NO_VALID_HOST + unmet("not enough CUSTOM_GPU (2 requested)")
    assert reason.refusals[0].nearest == "needs 2 CUSTOM_GPU, 1 free"
    assert reason.details.endswith("nearest: needs 2 CUSTOM_GPU, 1 free on cn1).")
    wanted = RequestGroup(resources={"VCPU": 1}, required=(("HW_CPU_X86_AVX2",),))
    request = placement_request(requirements=HostRequirements(request=ResourceRequest(groups=(wanted,))))
    reason = reasons.explain(hosts, request, Pipeline(filter_options()).asked(request))
    assert reason.public == reasons.NO_VALID_HOST + unmet("no trait HW_CPU_X86_AVX2")


def test_explain_when_a_group_is_asked_for_then_users_learn_why():
    request = placement_request(group=PlacementGroup(uuid="g", policy="affinity", hosts={"elsewhere": 1}))
    reason = reasons.explain(HOSTS[7:], request, Pipeline(filter_options()).filters)
    assert "the members of the server group are on other hosts" in reason.public


def test_explain_when_there_are_many_reasons_then_users_get_at_most_255_characters():
    request = placement_request(hints={"group": "g"}, memory_mb=4096, availability_zone="nova",
                                image_properties={"hw_vm_mode": "hvm"}, exclude=("cn7",))
    hosts = [*HOSTS, *(host_view(f"cm{number}", supported=(("a", "b", "hvm"),)) for number in range(1000))]
    reason = reasons.explain(hosts, request, Pipeline(filter_options()).filters)
    assert len(reason.public) <= 255 < len(reason.details)
    assert not any(host.host in reason.public for host in HOSTS)
