"""Sentences that say what this release does not have: each is held against the code, for features come and sentences
stay. A new such sentence needs a row here, and a row whose feature has come makes its sentence false."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nova.api import absent
from nova.conf._without_effect import table
from nova.virt.libvirt import properties
from nova.virt.libvirt.guest import definition
from nova.virt.libvirt.moves import source_info
from tests import prose

CLAIM = re.compile(r"\b(in|by) this release\b|\bthis release (has|does|moves|reads|attaches|keeps|serves)\b"
                   r"|\bnot served\b|\bno (bare metal|accelerators|volumes|Cinder)\b"
                   r"|\b(is|are) not (encrypted|redirected)\b"
                   r"|\bno key manager\b|\bno driver\b", re.IGNORECASE)


def strings(path: Path) -> Iterator[str]:
    """Texts of a module, but for docstrings."""
    tree = ast.parse(path.read_text())
    documents = {id(node.body[0].value) for node in ast.walk(tree)
                 if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and node.body
                 and isinstance(node.body[0], ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
            yield node.value


def claims() -> Iterator[tuple[str, str]]:
    """(where, the sentence)."""
    for path in sorted((prose.TOP / "nova").rglob("*.py")):
        yield from ((str(path.relative_to(prose.TOP)), text) for text in strings(path) if CLAIM.search(text))
    yield from (("nova/conf/without_effect.toml", said.reason) for _section, _name, said in table()
                if CLAIM.search(said.reason))
    for path in prose.PAGES:
        if path.parent.name != "generated" and path.name != "releases.rst":
            yield from ((str(path.relative_to(prose.TOP)), text) for text in prose.sentences(path.read_text())
                        if CLAIM.search(text))


def lacks(folder: str, *words: str) -> Callable[[], bool]:
    """No module below ``folder`` has one of the words in its code or among its files' names."""
    def look() -> bool:
        found = [path for path in (prose.TOP / folder).rglob("*.py")
                 for word in words if word in path.stem or word in _code(path)]
        return not found
    return look


def _code(path: Path) -> str:
    """Without texts that say things: names and values alone."""
    return "\n".join(line for line in path.read_text().splitlines() if " in this release" not in line)


def refused(*names: str) -> Callable[[], bool]:
    """libvirt's driver keeps none of these properties."""
    return lambda: set(names) <= properties.REFUSED.keys() - properties.IMAGE.keys() - properties.FLAVOR.keys()


def always() -> bool:
    """The sentence says nothing of a feature."""
    return True


#: A part of a sentence -> whether it is true today.
TRUE: dict[str, Callable[[], bool]] = {
    "this release has barbican": lacks("nova/clients", "vault", "castellan"),
    "is not implemented by this release": lambda: bool(absent.NOT_YET),
    "moves only disks in files and in Ceph": lambda: not source_info.STORES ^ {"file", "rbd"},
    "there is no Cinder: servers have no volumes": always,  # of the cloud that doctor looks at
    "Vault is not supported in this release": lacks("nova/clients", "vault", "castellan"),
    "Accelerators are not supported in this release": lacks("nova/clients", "cyborg", "arqs"),
    "database has no such revision in this release": always,
    "Shares are not supported in this release": lambda: any("/shares" in id for _since, _until, ids in absent.NOT_YET
                                                            for id in ids),
    "Mediated devices are not supported in this release": lacks("nova/virt", "mdev", "vgpu"),
    "Hyper-V, and there is no driver for it": lambda: not (prose.TOP / "nova/virt/hyperv").exists(),
    "Bare metal is not supported in this release": lacks("nova/virt", "ironic"),
    "Intel TDX is not supported in this release": lambda: "intel-tdx" not in definition.POLICIES,
    "LXC is not supported in this release": lacks("nova/virt", "lxc"),
    "Volumes of ATA over Ethernet are not supported in this release": lacks("nova/virt", "aoe"),
    "Volumes of Quobyte, SMB and Virtuozzo are not supported in this release": lacks("nova/virt", "quobyte", "smbfs",
                                                                                     "vzstorage"),
    "Signatures of images are not verified in this release": lacks("nova/imageproxy", "signature"),
    "Certificates of image signatures are not validated in this release": lacks("nova/imageproxy", "signature"),
    "Local disks of guests are not encrypted in this release": refused("hw:ephemeral_encryption"),
    "There is no back door for eventlet in this release": lacks("nova", "backdoor"),
    "There are no external periodic tasks in this release": lacks("nova", "external_periodic"),
    "There is no asyncio in this release": lacks("nova/db", "asyncio"),
    "bare metal": lacks("nova/virt", "ironic"),
    "this release has amd-sev and amd-sev-es": lambda: set(definition.POLICIES) == {"amd-sev", "amd-sev-es"},
    "this release does not support it": refused("hw_emulation_architecture", "accel:device_profile"),
    "persistent memory is reported, but not attached to guests in this release": refused("hw:pmem"),
    "TPM secrets are stored on the host": refused("hw:tpm_secret_security"),
    "disks on hosts are not encrypted in this release": refused("hw:ephemeral_encryption", "hw_ephemeral_encryption"),
    "USB devices are not redirected to guests in this release": refused("hw:redirected_usb_ports",
                                                                        "hw_redirected_usb_ports"),
    "which this release does not support": always,
    "While no driver is set, no data is read": always,
    "What this release serves:": always,
    "Shares (microversion 2.97) are not served yet.": lambda: any(
        "/shares" in id for _since, _until, ids in absent.NOT_YET for id in ids),
    "prints how long users were not served": always,
    "mostly that there is no Cinder and no Neutron": always,  # of the cloud that a test of clients makes
    "Servers on lvm are not resized or migrated in this release.": lambda: "lvm" not in source_info.STORES,
    "Traffic on the management network is not encrypted": always,
    "Not served yet: 501.": lambda: bool(absent.NOT_YET),
    "There is no driver.": lambda: not {path.name for path in (prose.TOP / "nova/virt").iterdir()} & {
        "ironic", "vmwareapi", "vmware", "hyperv", "zvm"},
    "does not resize or migrate guests whose disks are in LVM": lambda: "lvm" not in source_info.STORES,
    "No Cinder: there are no volumes.": lacks("nova/devel/nova_all", "cinder"),
    "This release does not have the operation, or the driver cannot do it.": lambda: bool(absent.NOT_YET),
    "what this release does not do yet": lambda: "What this release does not do" in (
        prose.TOP / "doc/volumes.rst").read_text()}


@pytest.mark.parametrize(("where", "sentence"), sorted(set(claims())))
def test_sentence_when_it_says_that_a_feature_is_absent_then_it_is(where: str, sentence: str) -> None:
    parts = [part for part in TRUE if part in sentence]
    assert parts, f"{where}: say in this test's table how it is seen that this is true"
    assert all(TRUE[part]() for part in parts), f"{where}: this is not true any more: {sentence}"


def test_table_then_each_row_is_of_a_sentence() -> None:
    sentences = [sentence for _where, sentence in claims()]
    assert [part for part in TRUE if not any(part in sentence for sentence in sentences)] == []
