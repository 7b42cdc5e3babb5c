from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova import errors
from nova.virt.libvirt.guest.processor import topology
from nova.virt.libvirt.properties import RequestedProperties


@pytest.mark.parametrize(("vcpus", "requested", "expected"), [
    (1, {}, (1, 1, 1)), (4, {}, (4, 1, 1)), (4, {"cores": 2}, (2, 2, 1)), (4, {"sockets": 1}, (1, 4, 1)),
    (4, {"max_sockets": 2}, (2, 2, 1)), (8, {"threads": 2, "sockets": 2}, (2, 2, 2)), (4, {"cores": 3}, (4, 1, 1)),
    (6, {"max_sockets": 1, "max_threads": 1}, (1, 6, 1)), (4, {"sockets": 2, "cores": 2, "threads": 1}, (2, 2, 1)),
])
def test_topology_meets_what_it_can(vcpus, requested, expected):
    assert tuple(topology(vcpus, RequestedProperties(**requested))) == expected


def test_topology_within_impossible_limits_is_refused():
    with pytest.raises(errors.image.WrongProperty):
        topology(5, RequestedProperties(max_sockets=2, max_cores=2, max_threads=2))


_maybe = st.none() | st.integers(1, 16)


@given(st.integers(1, 64), _maybe, _maybe, _maybe)
def test_topology_always_has_all_the_cpus(vcpus, sockets, cores, threads):
    found = topology(vcpus, RequestedProperties(sockets=sockets, cores=cores, threads=threads))
    assert found.sockets * found.cores * found.threads == vcpus
