"""Answers of the application have what published answers of the same operation have, and no more than is known here."""

from __future__ import annotations

import pytest

from tests.fakes.conductor_networks import PORT
from tests.unit.legacy.xml import samples
from tests.unit.legacy.xml.client import XMLClient, tree

pytestmark = samples.needs_samples

#: Path, published answer, and names that others of its operation's extensions add there.
FORMS = [
    ("/servers/{server}", "all_extensions/server-get-resp", ()),
    ("/servers/detail?all_tenants=1", "all_extensions/servers-details-resp", ()),
    ("/servers?all_tenants=1", "all_extensions/servers-list-resp", ()),
    ("/servers/{server}/ips", "server-ips-resp", ()),
    ("/servers/{server}/ips/private", "server-ips-network-resp", ()),
    ("/servers/{server}/metadata", "server-metadata-all-resp", ()),
    ("/servers/{server}/metadata/k", "server-metadata-resp", ()),
    ("/servers/{server}/os-virtual-interfaces", "OS-EXT-VIF-NET/vifs-list-resp", ()),
    ("/servers/{server}/os-interface", "os-attach-interfaces/attach-interfaces-list-resp", ()),
    ("/flavors/1", "all_extensions/flavor-get-resp", ()),
    ("/flavors", "flavors-list-resp", ()),
    ("/flavors/detail", "os-flavor-access/flavor-access-detail-resp", ("disabled", "ephemeral", "rxtx_factor", "swap")),
    ("/images", "images-list-resp", ()),
    ("/images/detail", "OS-EXT-IMG-SIZE/images-details-get-resp", ()),
    ("/images/{image}", "image-get-resp", ("size",)),
    ("/images/{image}/metadata", "image-metadata-get-resp", ()),
    ("/extensions", "all_extensions/extensions-get-resp", ()),
    ("/os-keypairs", "os-keypairs/keypairs-list-resp", ()),
    ("/os-security-groups", "os-security-groups/security-groups-list-get-resp", ()),
    ("/os-server-groups", "os-server-groups/server-groups-list-resp", ()),
    ("/os-migrations", "os-migrations/migrations-get", ()),
    ("/os-quota-sets/demo", "os-server-group-quotas/quotas-show-get-resp", ()),
    ("/os-quota-sets/demo/defaults", "os-server-group-quotas/quotas-show-defaults-get-resp", ()),
    ("/os-quota-class-sets/default", "os-quota-class-sets/quota-classes-show-get-resp", ()),
]


@pytest.fixture
def client() -> XMLClient:
    made = XMLClient()
    made.conductor.add_flavor("1")
    image = made.conductor.add_image(properties={"architecture": "x86_64"})
    server = made.conductor.add_server(image_id=image.id, metadata={"k": "v"}, interfaces=(PORT,),
                                       security_groups=("default",))
    made.conductor.add_migration(server_uuid=server.uuid)
    for path, body in (
            ("/os-keypairs", "<keypair><name>k</name></keypair>"),
            ("/os-security-groups", '<security_group name="web"><description>w</description></security_group>'),
            ("/os-server-groups", '<server_group name="far"><policies><policy>affinity</policy></policies>'
                                  "</server_group>")):
        assert made.say("POST", path, body).status_int == 200
    return made


@pytest.mark.parametrize(("path", "published", "added"), FORMS)
def test_answer_then_has_the_form_of_the_published_one(client: XMLClient, path: str, published: str,
                                                       added: tuple[str, ...]) -> None:
    named = {"server": next(iter(client.conductor.servers)), "image": next(iter(client.conductor.images))}
    ours = samples.names(tree(client.ask(path.format(**named))))
    theirs = samples.names(samples.parsed((samples.FOLDER / f"{published}.xml").read_bytes()))
    assert theirs - ours == set()
    assert {samples.last(name) for name in ours - theirs} == set(added)
