"""Projects' VPN servers: made once, on the address that is set aside for them."""

from __future__ import annotations

import base64
import dataclasses
import io
import zipfile

import pytest

from nova import context, errors
from nova.conductor.engine.deps import VpnSettings
from nova.conductor.networking.network_options import NetworkOptions
from nova.conductor.nova_network.back_end import NovaNetwork
from nova.legacy.cloudpipe.vpn_servers import Cloudpipes, user_data
from nova.model.base import Scope
from nova.model.image.images import Image
from nova.model.network import addressing
from nova.model.network.network_managers import VLAN
from nova.model.network.networks import NewNetwork
from nova.model.security.certificates import VpnCredentials
from nova.model.server.servers import ServerOrder
from tests.fakes.small_cloud import SmallCloud

ADMIN = context.RequestContext(request_id="req-admin", user_id="root", project_id="admin", is_admin=True)
IMAGE = "1c2d3e4f-0000-4000-8000-00000000000a"

CREDENTIALS = VpnCredentials(
    authority="CA", revoked="CRL", server_key="KEY", server_certificate="CRT",
    public_key="ssh-rsa " + base64.b64encode(b"\x00\x00\x00\x07ssh-rsa" + b"x" * 40).decode())


def unpacked(text: str) -> dict[str, str]:
    archive = zipfile.ZipFile(io.BytesIO(base64.b64decode(base64.b64decode(text))))
    return {name: archive.read(name).decode() for name in archive.namelist()}


def test_user_data_when_packed_then_the_guest_finds_script_and_certificates():
    files = unpacked(user_data(CREDENTIALS, VpnSettings(dmz_net="10.9.0.0", cnt_vpn_clients=7)))
    assert {name: files[name] for name in files if name != "autorun.sh"} == {
        "crl.pem": "CRL", "server.key": "KEY", "ca.crt": "CA", "server.crt": "CRT"}
    assert 'push "route 10.9.0.0 255.255.255.0"' in files["autorun.sh"] and "max-clients 7" in files["autorun.sh"]
    assert "$" + "cc_dmz" not in files["autorun.sh"]


def test_user_data_when_the_template_is_the_operators_then_it_is_filled_in(tmp_path):
    script = tmp_path / "boot.sh"
    script.write_text("net $dmz_net/$dmz_mask port $cc_port keep $OTHER\n")
    assert unpacked(user_data(CREDENTIALS, VpnSettings(boot_script_template=str(script))))["autorun.sh"] == \
        "net 10.0.0.0/255.255.255.0 port 8773 keep $OTHER\n"


def test_create_when_the_cloud_has_no_image_for_it_then_the_error_names_the_option():
    class Deps:
        class settings:  # noqa: N801 - stands for a value
            vpn = VpnSettings()

    with pytest.raises(errors.Invalid, match="vpn_image_id"), context.entered(context.internal()):
        Cloudpipes(Deps(), None, None).create_cloudpipe("demo")


class Images:
    """The image service, with the one image."""

    def show(self, image_id: str, as_user: bool = False) -> Image:
        return Image(id=image_id, name="vpn", status="active", size_bytes=1, disk_format="raw",
                     container_format="bare")


class Certs:
    """nova-cert."""

    def __init__(self) -> None:
        self.away = False

    def vpn_credentials(self, project_id: str) -> VpnCredentials:
        if self.away:
            raise errors.Unavailable("nova-cert did not answer")
        return CREDENTIALS


@pytest.fixture
def vpn(cloud: SmallCloud) -> SmallCloud:
    """A cloud with VLANs, an image and a flavor for VPN servers."""
    defaults = addressing.Defaults(manager=VLAN.path, vlan_interface="eth1", vpn_ip="192.0.2.1")
    settings = dataclasses.replace(cloud.deps.settings, network_defaults=defaults, vpn=VpnSettings(
        vpn_image_id=IMAGE, vpn_flavor="tiny"), networking=NetworkOptions(manager=VLAN))
    cloud.deps.settings, cloud.deps.certs = settings, Certs()
    cloud.deps.networking = NovaNetwork(cloud.deps)
    cloud.deps.images = Images()
    cloud.control.create_network(NewNetwork(label="vlan", cidr="10.8.0.0/16", num_networks=2, network_size=32))
    return cloud


def create(cloud: SmallCloud, project: str = "demo") -> str:
    with context.entered(ADMIN):
        uuid = cloud.control.create_cloudpipe(project)
    cloud.ended(uuid)
    return uuid


def test_create_when_the_project_has_none_then_it_is_on_the_address_set_aside_for_it(vpn: SmallCloud) -> None:
    uuid = create(vpn)
    server = vpn.server(uuid)
    [network] = [one for one in vpn.control.list_networks(Scope()) if one.project_id == "demo"]
    assert (server.project_id, server.name, server.key_name) == ("demo", "demo-vpn", "demo-vpn")
    assert server.interfaces[0].addresses[0].address == network.vpn_private_address
    assert server.security_groups == ("demo-vpn",)
    [shown] = vpn.control.list_cloudpipes()
    assert (shown.server_uuid, shown.state, shown.public_address, shown.public_port) == (
        uuid, "running", "192.0.2.1", network.vpn_public_port)


def test_create_when_there_is_one_then_it_is_the_answer_and_after_its_end_another_is_made(vpn: SmallCloud) -> None:
    first = create(vpn)
    assert create(vpn) == first and create(vpn, "other") != first
    with context.entered(ADMIN):
        vpn.control.order_server(ServerOrder(uuid=first, action="delete"))
    vpn.ended(first)
    assert create(vpn) != first, "the address was given back, and is set aside again"


def test_create_when_nova_cert_is_away_then_nothing_is_made(vpn: SmallCloud) -> None:
    vpn.deps.certs.away = True
    with pytest.raises(errors.Unavailable), context.entered(ADMIN):
        vpn.control.create_cloudpipe("demo")
    assert vpn.control.list_cloudpipes() == ()


def test_configure_when_the_project_has_networks_then_their_hosts_send_the_vpns_clients_on(vpn: SmallCloud) -> None:
    create(vpn)
    vpn.control.configure_vpn("demo", "192.0.2.77", 2000)
    [shown] = vpn.control.list_cloudpipes()
    assert (shown.public_address, shown.public_port) == ("192.0.2.77", 2000)
    with pytest.raises(errors.NotFound, match="stranger"):
        vpn.control.configure_vpn("stranger", "192.0.2.77", 2000)
    for address, port in (("nowhere", 2000), ("192.0.2.77", 0)):
        with pytest.raises(errors.Invalid):
            vpn.control.configure_vpn("demo", address, port)
