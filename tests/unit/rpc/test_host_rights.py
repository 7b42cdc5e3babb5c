"""What a host's broker user may do, as the broker reads the patterns."""

from __future__ import annotations

import re

import pytest

from nova.rpc.host_rights import owner_of, permissions

ID = "0123456789abcdef" * 2
ALLOWED = {
    "configure": ("compute.host1", "network.host1", f"reply_host1_{ID}"),
    "write": ("nova-conductor-host", "nova-answers", "compute.host1", "network.host1", f"reply_host1_{ID}"),
    "read": ("nova-host-host1", "compute.host1", "network.host1", f"reply_host1_{ID}")}
OTHERS = (
    "amq.default", "amq.topic", "", "compute", "network", "compute_fanout", "compute_fanout_1", "conductor-host",
    "compute.host2", "compute.host11", "xcompute.host1", "compute.host1.x", "nova-host-host2", "nova-host-host11",
    f"reply_{ID}", f"reply_host2_{ID}", f"reply_host11_{ID}", f"reply_host1_x_{ID}", f"reply_host1_{ID}x",
    "nova-conductor", "nova-scheduler", "conductor", "scheduler", "xnova-conductor-host", "versioned_notifications")


@pytest.mark.parametrize("verb", list(ALLOWED))
def test_rights_then_its_own_names_and_no_other(verb: str) -> None:
    pattern, known = permissions("host1")[verb], {name for names in ALLOWED.values() for name in names}
    assert [name for name in sorted(known.union(OTHERS)) if re.search(pattern, name)] == sorted(ALLOWED[verb])


@pytest.mark.parametrize("host, other", [("a.b", "axb"), ("a", "a_b"), ("a_b", "a"), ("a-b", "a"), ("a+", "aa")])
def test_rights_when_a_name_looks_like_anothers_then_they_are_apart(host: str, other: str) -> None:
    rights = permissions(host)
    for name in (f"compute.{other}", f"reply_{other}_{ID}", f"nova-host-{other}"):
        assert not any(re.search(pattern, name) for pattern in rights.values())
    assert re.search(rights["read"], f"reply_{host}_{ID}") and owner_of(f"reply_{host}_{ID}") == host


@pytest.mark.parametrize("name", ["", "reply_", f"reply_{ID}", f"reply__{ID}", f"reply_a_{ID}0", f"xreply_a_{ID}",
                                  f"reply_a_{ID}\n", f"reply_a_{ID.upper()}"])
def test_owner_of_what_is_no_reply_queue_of_a_host_then_nobody(name: str) -> None:
    assert owner_of(name) == ""
