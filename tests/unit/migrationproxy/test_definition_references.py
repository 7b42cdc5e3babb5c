"""What a definition that comes from another host may point to on this one."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from nova.migrationproxy.references import Refused, check

GOLDEN = sorted(Path(__file__).parents[1].joinpath("virt/libvirt/golden").glob("*.xml"))
OURS = """
<domain type="kvm"><name>instance-00000001</name><uuid>5f1c2d0a-58c4-4c55-9f0e-1d0f7d1f9a11</uuid>
  <memory unit="MiB">512</memory><vcpu cpuset="0-2,^1">2</vcpu>
  <os><type arch="x86_64">hvm</type><kernel>/srv/b/5f1c/kernel</kernel><cmdline>root=/dev/vda</cmdline></os>
  <cputune><vcpupin vcpu="0" cpuset="2"/></cputune>
  <devices>
    <disk type="file" device="disk"><driver name="qemu" type="qcow2" cache="none"/><source file="/srv/b/5f1c/disk"/>
      <backingStore type="file"><format type="raw"/><source file="/srv/b/_base/0b5e"/><backingStore/></backingStore>
      <target dev="vda" bus="virtio"/></disk>
    <disk type="file" device="disk"><driver name="qemu" type="raw"/><source file="/srv/b/5f1c/disk.swap"/>
      <target dev="vdb" bus="virtio"/></disk>
    <interface type="bridge"><mac address="fa:16:3e:11:22:33"/><source bridge="br100"/><target dev="tapaa"/>
      <model type="virtio"/><driver name="qemu"/></interface>
    <serial type="tcp"><source mode="bind" host="10.0.0.1" service="10000"/><protocol type="raw"/>
      <log file="/srv/b/5f1c/console.log" append="off"/><target port="0"/></serial>
    <graphics type="vnc" port="-1" autoport="yes"><listen type="address" address="10.0.0.1"/></graphics>
    <rng model="virtio"><backend model="random">/dev/urandom</backend></rng>
    <tpm model="tpm-crb"><backend type="emulator" version="2.0"><encryption secret="1111"/></backend></tpm>
  </devices>
</domain>"""
RUNS = OURS.replace("<memory unit", '<resource><partition>/machine</partition></resource><memory unit').replace(
    "<devices>", """<seclabel type="dynamic" model="apparmor" relabel="yes"/><devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <controller type="pci" index="0" model="pcie-root"/><input type="mouse" bus="ps2"/><audio id="1" type="none"/>
    <memballoon model="virtio"><stats period="10"/><address type="pci" domain="0x0000" bus="0x00" slot="0x06"
      function="0x0"/></memballoon>""").replace('file="/srv/b/5f1c/disk"', 'file="/srv/b/5f1c/disk" index="2"').replace(
    'cpuset="0-2,^1"', 'cpuset="0,2"')
#: What a thief puts in the place of what.
HOSTILE = {
    "another guest's disk": ('file="/srv/b/5f1c/disk"', 'file="/srv/b/0ther/disk"'),
    "a disk that is a device": ('file="/srv/b/5f1c/disk"', 'dev="/dev/sda"'),
    "another base": ("/srv/b/_base/0b5e", "/etc/shadow"),
    "a raw disk whose content is read as a header": ('type="raw"/><source file="/srv/b/5f1c/disk.swap"',
                                                     'type="qcow2"/><source file="/srv/b/5f1c/disk.swap"'),
    "a chain without an end": ("<backingStore/></backingStore>", "</backingStore>"),
    "no chain at all": ("""<backingStore type="file"><format type="raw"/><source file="/srv/b/_base/0b5e"/>"""
                        "<backingStore/></backingStore>", ""),
    "a disk too many": ("<interface", """<disk type="file"><driver type="raw"/><source file="/etc/shadow"/>
                        <target dev="vdc"/></disk><interface"""),
    "a source with more in it": ('<source file="/srv/b/5f1c/disk" index="2"/>',
                                 '<source file="/srv/b/5f1c/disk"><reservations managed="no">'
                                 '<source type="unix" path="/run/x"/></reservations></source>'),
    "a mirror": ('<target dev="vda" bus="virtio"/>', '<target dev="vda"/><mirror><source file="/etc/x"/></mirror>'),
    "a program for the emulator": ("/usr/bin/qemu-system-x86_64", "/srv/b/5f1c/disk"),
    "a program in a place like it": ("/usr/bin/qemu-system-x86_64", "/usr/bin/../../tmp/qemu-kvm"),
    "an emulator that is a shell": ("/usr/bin/qemu-system-x86_64", "/usr/bin/sh"),
    "a command line": ("<devices>", '<q:commandline xmlns:q="http://libvirt.org/schemas/domain/qemu/1.0"><q:arg '
                       'value="-x"/></q:commandline><devices>'),
    "a directory of the host": ("<interface", '<filesystem><source dir="/"/><target dir="x"/></filesystem><interface'),
    "a device of the host": ("<interface", '<hostdev mode="subsystem" type="pci"><source><address bus="0x01"/>'
                             "</source></hostdev><interface"),
    "shared memory": ("<interface", '<shmem name="x"/><interface'),
    "another bridge": ('bridge="br100"', 'bridge="br-management"'),
    "another tap": ('dev="tapaa"', 'dev="tapbb"'),
    "the host's own card": ('<interface type="bridge"><mac address="fa:16:3e:11:22:33"/><source bridge="br100"/>',
                            '<interface type="direct"><mac address="fa:16:3e:11:22:33"/><source dev="eth0"/>'),
    "an interface with a script": ('<model type="virtio"/>', '<script path="/tmp/x"/>'),
    "an interface's backend": ('<model type="virtio"/>', '<backend tap="/dev/x"/>'),
    "another's interface": ("fa:16:3e:11:22:33", "fa:16:3e:11:22:44"),
    "a serial port of the host's": ('<serial type="tcp"><source mode="bind" host="10.0.0.1" service="10000"/>',
                                    '<serial type="dev"><source path="/dev/ttyS0"/>'),
    "a serial port that calls": ('mode="bind" host="10.0.0.1"', 'mode="connect" host="10.0.0.1"'),
    "a log elsewhere": ("/srv/b/5f1c/console.log", "/etc/cron.d/x"),
    "a channel to a daemon": ("<graphics", '<channel type="unix"><source mode="connect" path="/run/libvirt/'
                              'libvirt-sock"/><target type="virtio" name="x"/></channel><graphics'),
    "a screen for everybody": ('address="10.0.0.1"/></graphics>', 'address="0.0.0.0"/></graphics>'),
    "a screen on a socket": ('<listen type="address" address="10.0.0.1"/>', '<listen type="socket" socket="/run/x"/>'),
    "a screen on another's port": ('port="-1" autoport="yes"', 'port="5901"'),
    "a graphics card of the host's": ("<graphics", '<video><model type="virtio"><acceleration rendernode="/dev/dri/x"/>'
                                      "</model></video><graphics"),
    "a keyboard of the host's": ('<input type="mouse" bus="ps2"/>',
                                 '<input type="evdev"><source dev="/dev/x"/></input>'),
    "sound into a file": ('<audio id="1" type="none"/>', '<audio id="1" type="file" path="/etc/x"/>'),
    "random numbers from a file": ('model="random">/dev/urandom', 'model="random">/etc/shadow'),
    "random numbers from a daemon": ('<backend model="random">/dev/urandom</backend>', '<backend model="egd" '
                                     'type="tcp"><source mode="connect" host="x"/></backend>'),
    "another guest's secret": ('secret="1111"', 'secret="2222"'),
    "the host's own TPM": ('<backend type="emulator" version="2.0"><encryption secret="1111"/></backend>',
                           '<backend type="passthrough"><device path="/dev/tpm0"/></backend>'),
    "a kernel of the host's": ("/srv/b/5f1c/kernel", "/boot/vmlinuz"),
    "another command line of the kernel": ("root=/dev/vda", "init=/bin/sh"),
    "firmware that is a secret": ("<kernel>", "<loader type='rom'>/etc/shadow</loader><kernel>"),
    "firmware by a way round": ("<kernel>", "<loader>/usr/share/../../etc/shadow</loader><kernel>"),
    "variables made from a secret": ("<kernel>", "<nvram template='/etc/shadow'>/srv/b/5f1c/nvram</nvram><kernel>"),
    "tables for ACPI": ("<kernel>", "<acpi><table type='slic'>/etc/shadow</table></acpi><kernel>"),
    "a boot loader": ("<memory unit", "<bootloader>/tmp/x</bootloader><memory unit"),
    "files in its firmware's tables": ("<memory unit", "<sysinfo type='fwcfg'><entry name='x' file='/etc/shadow'/>"
                                       "</sysinfo><memory unit"),
    "a relative file in them": ("<memory unit", "<sysinfo type='smbios'><entry name='x' file='etc/shadow'/>"
                                "</sysinfo><memory unit"),
    "another control group": ("/machine", "/system.slice"),
    "no confinement": ('type="dynamic" model="apparmor" relabel="yes"', 'type="none"'),
    "a label of its own": ('type="dynamic" model="apparmor" relabel="yes"/>', 'type="static" model="dac"><label>0:0'
                           "</label></seclabel>"),
    "others' processors": ('vcpu="0" cpuset="2"', 'vcpu="0" cpuset="1"'),
    "all processors": ('cpuset="0,2"', 'cpuset="0-63"'),
    "endless processors": ('cpuset="0,2"', 'cpuset="0-99999999999"'),
    "another guest": ("5f1c2d0a-58c4", "6f1c2d0a-58c4"),
    "another guest's name": ("instance-00000001", "instance-00000002"),
    "entities": ("<domain", "<!DOCTYPE x [<!ENTITY a 'b'>]><domain"),
    "no XML": ("</domain>", ""),
    "two systems": ("<devices>", "<os><loader>/etc/shadow</loader></os><devices>"),
}


def test_definition_when_it_is_the_guests_as_it_runs_then_it_is_taken():
    check(RUNS, OURS)


@pytest.mark.parametrize("what", HOSTILE)
def test_definition_when_a_thief_wrote_it_then_it_is_refused(what):
    before, after = HOSTILE[what]
    assert before in RUNS, f"nothing was changed: {what}"
    with pytest.raises(Refused) as refused:
        check(RUNS.replace(before, after, 1), OURS)
    assert str(refused.value)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_definition_when_it_is_as_this_host_makes_it_then_it_is_taken(path):
    text = path.read_text()
    if ET.fromstring(text).find("devices/hostdev") is None:
        check(text, text)
    else:  # a guest that holds a device of its host does not leave it while it runs
        with pytest.raises(Refused, match="hostdev"):
            check(text, text)


@pytest.mark.parametrize("change", [
    ("/dev/urandom", "/dev/random"), ("qemu-system-x86_64", "qemu-system-aarch64"),
    ("<kernel>", "<loader readonly='yes' type='pflash'>/usr/share/OVMF/OVMF_CODE_4M.fd</loader><kernel>"),
    ("<graphics", "<channel type='spicevmc'><target type='virtio' name='com.redhat.spice.0'/></channel><graphics"),
    ("<graphics", "<console type='tcp'><source mode='bind' host='10.0.0.1' service='10000'/><protocol type='raw'/>"
     "<log file='/srv/b/5f1c/console.log' append='off'/><target type='serial' port='0'/></console><graphics"),
    ('cpuset="0,2"', 'cpuset="0-2,^1"')])
def test_definition_when_libvirt_or_another_release_says_it_in_its_own_way_then_it_is_taken(change):
    assert change[0] in RUNS
    check(RUNS.replace(*change, 1), OURS)
