"""What the broker users of control daemons may do, as the broker reads the patterns."""

from __future__ import annotations

import re

import pytest

from nova.manage.secret_files import readers
from nova.rpc import control_rights
from nova.rpc.control_rights import CONSOLE_PROXIES, LIMITED, UNLIMITED, USERS, permissions, topic_rights
from tests.golden import shapes

ID = "0123456789abcdef" * 2
VERBS = ("configure", "write", "read")
PROXY, SCHEDULER = "nova-novncproxy", "nova-scheduler"
ALLOWED = {
    PROXY: {"configure": {f"reply_{PROXY}_{ID}"},
            "write": {"nova-conductor-proxy", "nova-consoleauth-check"},
            "read": {f"reply_{PROXY}_{ID}"}},
    SCHEDULER: {"configure": {"nova-scheduler", "scheduler", "scheduler.ctl", "scheduler_fanout",
                              f"scheduler_fanout_{ID}", f"reply_{SCHEDULER}_{ID}"},
                "write": {"nova-conductor-scheduler", "nova-control-answers", "nova-scheduler", "scheduler",
                          "scheduler.ctl", "scheduler_fanout", f"scheduler_fanout_{ID}", f"reply_{SCHEDULER}_{ID}"},
                "read": {"nova-control-answers", "nova-scheduler", "scheduler", "scheduler.ctl", "scheduler_fanout",
                         f"scheduler_fanout_{ID}", f"reply_{SCHEDULER}_{ID}"}}}
OTHERS = {
    "amq.default", "amq.topic", "", "nova", "openstack", "mine", f"reply_{ID}", f"reply_nova-serialproxy_{ID}",
    f"reply_{PROXY}_{ID}x", f"xreply_{PROXY}_{ID}", "nova-conductor-proxyx", "xnova-conductor-proxy", "nova_scheduler",
    "schedulerx", "scheduler_other", "versioned_notifications",
    *(name for contract in shapes.contracts() if not contract.with_hosts
      for name in (contract.topic, f"{contract.topic}.ctl", f"{contract.topic}_fanout", f"nova-{contract.topic}"))}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("user", list(ALLOWED))
def test_rights_then_its_own_names_and_no_other(user: str, verb: str) -> None:
    pattern = permissions(user)[verb]
    known = OTHERS.union(*(names for rights in ALLOWED.values() for names in rights.values()))
    assert {name for name in known if re.search(pattern, name)} == ALLOWED[user][verb]


@pytest.mark.parametrize("user", CONSOLE_PROXIES)
def test_rights_of_a_proxy_then_it_reads_nothing_but_its_answers(user: str) -> None:
    assert permissions(user)["read"] == permissions(user)["configure"] == f"^(reply_{user}_[0-9a-f]+)$"
    assert topic_rights(user) is None


@pytest.mark.parametrize(("key", "reads", "writes"), [
    (f"reply_{SCHEDULER}_{ID}", True, True), (f"reply_{ID}", False, True), ("#", False, False), ("*", False, False),
    ("reply_*", False, True), (f"reply_{SCHEDULER}_#", False, True), ("conductor", False, False)])
def test_topic_rights_of_the_scheduler_then_it_hears_its_own_answers_and_none_by_a_pattern(key: str, reads: bool,
                                                                                           writes: bool) -> None:
    rights = topic_rights(SCHEDULER)
    assert rights is not None and rights.exchange == "nova-control-answers"
    assert (bool(re.search(rights.read, key)), bool(re.search(rights.write, key))) == (reads, writes)


@pytest.mark.parametrize("user", UNLIMITED)
def test_rights_of_a_daemon_that_acts_for_users_then_everything(user: str) -> None:
    assert set(permissions(user).values()) == {".*"} and topic_rights(user) is None


def test_limited_then_each_topic_is_of_a_part_of_a_contract_and_no_whole_one() -> None:
    """A whole contract of the conductors', or one that makes tokens, is nobody's among them."""
    known = {contract.topic: contract for contract in shapes.contracts()}
    assert all(known[topic].part_of for topic in control_rights.BOUNDED)
    assert {topic for topic, contract in known.items() if contract.part_of} == control_rights.BOUNDED
    assert all(not rights.serves or rights.serves in known for rights in LIMITED.values())
    assert len(USERS) == len(set(USERS)) and set(USERS) == set(readers.CONTROL)
