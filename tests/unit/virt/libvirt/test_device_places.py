"""Where a guest sees its cards, by its domain's XML."""

from __future__ import annotations

from nova.model.guest.guests import DevicePlace
from nova.virt.libvirt.xml.running import places

XML = """<domain><devices>
  <interface type='bridge'><mac address='FA:16:3E:00:00:01'/>
    <address type='pci' domain='0x0000' bus='0x01' slot='0x1f' function='0x2'/></interface>
  <interface type='hostdev'><mac address='fa:16:3e:00:00:02'/>
    <source><address type='pci' domain='0x0000' bus='0x81' slot='0x10' function='0x1'/></source>
    <address type='pci' domain='0x0000' bus='0x00' slot='0x05' function='0x0'/></interface>
  <interface type='bridge'><mac address='fa:16:3e:00:00:03'/><address type='ccw' cssid='0xfe'/></interface>
  <interface type='bridge'><mac address='fa:16:3e:00:00:04'/></interface>
</devices></domain>"""


def test_places_when_cards_are_on_pci_then_the_guests_own_addresses_are_told() -> None:
    assert places(XML) == {"fa:16:3e:00:00:01": DevicePlace(bus="pci", address="0000:01:1f.2"),
                           "fa:16:3e:00:00:02": DevicePlace(bus="pci", address="0000:00:05.0")}
