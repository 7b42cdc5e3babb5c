"""The host name that a server gets when its request has none: made of its name."""

from __future__ import annotations

import pytest

from nova import context
from nova.conductor.actions.create import sane_hostname
from nova.model.servers import NewServer
from tests.fakes.small_cloud import DEMO, SmallCloud


@pytest.mark.parametrize(("name", "host_name"), [
    ("Web 1", "web-1"), ("under_score", "under-score"), ("guest-1.domain.com", "guest-1-domain-com"),
    ("ubuntu18.04", "ubuntu18-04"), (".-vm-.", "vm"), ("a\N{SNOWMAN}b", "ab"), ("x" * 64, "x" * 63),
    ("x" * 62 + ".y", "x" * 62), ("\N{SNOWMAN}", "fallback"), ("...", "fallback")])
def test_host_name_when_made_of_a_name_then_it_is_one_label_of_letters_digits_and_dashes(
        name: str, host_name: str) -> None:
    assert sane_hostname(name, "fallback") == host_name


def test_create_when_several_servers_share_a_name_with_dots_then_each_host_name_is_one_label(cloud: SmallCloud) -> None:
    with context.entered(DEMO):
        made = cloud.control.create_servers(NewServer(name="web.example", flavor_id="1", min_count=2, max_count=2))
    rows = [cloud.ended(uuid) for uuid in made.uuids]
    assert sorted((row.name, row.hostname) for row in rows) == [
        ("web.example-1", "web-example-1"), ("web.example-2", "web-example-2")]
