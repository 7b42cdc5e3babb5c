from __future__ import annotations

import shutil
from collections.abc import Sequence

import pytest

from nova import errors, imageinspector
from nova.compute.guests import image_format
from nova.privileged.qemu_img import TOOL_NAMES
from nova.privileged.runner import Completed
from tests.unit.compute import crafted
from tests.unit.compute.crafted import MIB

pytestmark = pytest.mark.skipif(not shutil.which("qemu-img") or not shutil.which("xorrisofs"),
                                reason="needs qemu-img and xorrisofs to craft images")


def plain(path):
    path.write_bytes(b"plain" + bytes(MIB - 5))
    return path


def kernel(path):
    content = bytearray(MIB)
    content[:2], content[446:510], content[510:514] = b"MZ", b"\xcc" * 64, b"\x55\xaaHd"
    path.write_bytes(content)
    return path


GOOD = {
    "raw": ("raw", plain, MIB),
    "raw with partitions": ("raw", crafted.partitioned, MIB),
    "ami": ("ami", plain, MIB),
    "aki with a boot sector's signature": ("aki", kernel, MIB),
    "ari": ("ari", plain, MIB),
    "iso": ("iso", crafted.iso, None),
    "hybrid iso": ("iso", lambda path: crafted.iso(path, hybrid=True), None),
    "qcow2": ("qcow2", lambda path: crafted.qcow2(path, 5 * 1024 * MIB), 5 * 1024 * MIB),
    "vmdk": ("vmdk", lambda path: crafted.converted(path, "vmdk"), 4 * MIB),
    "vmdk for streaming": ("vmdk", lambda path: crafted.converted(path, "vmdk", 4 * MIB, "-o",
                                                                  "subformat=streamOptimized"), 4 * MIB),
    "vdi": ("vdi", lambda path: crafted.converted(path, "vdi"), 4 * MIB),
    "vhdx": ("vhdx", lambda path: crafted.converted(path, "vhdx"), 4 * MIB),
}


@pytest.mark.parametrize("name", GOOD)
def test_look_at_a_good_image_gives_its_size(name, tmp_path):
    declared, make, size = GOOD[name]
    path = make(tmp_path / "image")
    looked = image_format.inspect_image(str(path), declared, "i", imageinspector.inspect)
    assert looked == (declared, size or path.stat().st_size)


def test_look_at_a_vhd_gives_at_least_its_size(tmp_path):
    path = crafted.converted(tmp_path / "image", "vpc")
    assert image_format.inspect_image(str(path), "vhd", "i", imageinspector.inspect).virtual_bytes >= 4 * MIB


LIES = {
    "qcow2 with a backing file": ("qcow2", lambda p: crafted.qcow2_with_backing_file(p, "/etc/shadow"), "backing"),
    "qcow2 with a data file": ("qcow2", lambda p: crafted.qcow2_with_data_file(p, p.with_name("data")), "data"),
    "qcow2 with unknown features": ("qcow2", crafted.qcow2_with_unknown_feature, "Unknown"),
    "qcow2 declared raw": ("raw", crafted.qcow2, "declared as raw, but its content is qcow2"),
    "qcow2 with a backing file declared raw": ("raw", lambda p: crafted.qcow2_with_backing_file(p, "/etc/shadow"),
                                               "content is qcow2"),
    "qcow2 declared ami": ("ami", crafted.qcow2, "content is qcow2"),
    "raw declared qcow2": ("qcow2", plain, "content is raw"),
    "vmdk declared raw": ("raw", lambda p: crafted.converted(p, "vmdk"), "content is vmdk"),
    "vmdk descriptor that names a host file": ("vmdk", lambda p: crafted.vmdk_descriptor(p, "/etc/shadow"), "safely"),
    "sparse vmdk that names a host file": ("vmdk", lambda p: crafted.vmdk_sparse_naming(p, "/etc/shadow"), "safely"),
    "flat vmdk": ("vmdk", lambda p: crafted.converted(p, "vmdk", 4 * MIB, "-o", "subformat=monolithicFlat"),
                  "declared as vmdk"),
    "qcow2 hidden in an iso": ("iso", lambda p: crafted.iso(p, head=crafted.qcow2(p.with_name("q")).read_bytes()[:512]),
                               "iso and qcow2"),
    "iso declared raw": ("raw", crafted.iso, "content is iso"),
    "vdi declared vhd": ("vhd", lambda p: crafted.converted(p, "vdi"), "content is vdi"),
    "qed": ("qed", lambda p: crafted.converted(p, "qed"), "not supported"),
    "ploop": ("ploop", plain, "not supported"),
    "no format at all": (None, plain, "not supported"),
}


@pytest.mark.parametrize("name", LIES)
def test_look_at_a_lying_or_harmful_image_refuses(name, tmp_path):
    declared, make, reason = LIES[name]
    path = make(tmp_path / "image")
    with pytest.raises(errors.image.Unacceptable, match=reason):
        image_format.inspect_image(str(path), declared, "i", imageinspector.inspect)


HEADERS = {"qcow2": "qcow2", "vhd": "vpc", "vhdx": "vhdx", "vdi": "vdi", "vmdk": "vmdk"}
CUTS = [(declared, length) for declared in HEADERS for length in (0, 1, 60)] + [("vhdx", 513), ("vmdk", 513)]


@pytest.mark.parametrize(("declared", "length"), CUTS)
def test_look_at_a_cut_off_header_refuses(declared, length, tmp_path):
    whole = crafted.converted(tmp_path / "whole", HEADERS[declared])
    cut = tmp_path / "cut"
    cut.write_bytes(whole.read_bytes()[:length])
    with pytest.raises(errors.image.Unacceptable):
        image_format.inspect_image(str(cut), declared, "i", imageinspector.inspect)


def test_accepted_formats_that_are_interpreted_have_a_name_for_the_tool():
    assert set(TOOL_NAMES) >= image_format.INTERPRETED


class Answering:
    """As a child that a file has taken over: it may say what it likes."""

    def __init__(self, answer: str) -> None:
        self.answer = answer

    def run(self, argv: Sequence[str], **options: object) -> Completed:
        return Completed(0, self.answer)


@pytest.mark.parametrize("answer", [
    "", "null", "[]", "{" * 100_000, '{"formats": "raw"}', '{"formats": ["raw"], "path": "/etc/shadow"}',
    '{"formats": ["' + "x" * 33 + '"]}', '{"formats": [' + ",".join(['"raw"'] * 33) + "]}",
    '{"formats": ["qcow2"], "virtual_bytes": -1}', '{"formats": ["qcow2"], "virtual_bytes": 9223372036854775808}',
    '{"formats": ["qcow2"], "unsafe": "' + "x" * 1001 + '"}', '{"problem": "' + "x" * 1001 + '"}'])
def test_answer_when_the_inspector_was_taken_over_then_it_is_refused_in_few_words(answer):
    found = image_format.inspect_in_sandbox("/nowhere", Answering(answer))
    assert found.problem.startswith("its format could not be determined") and len(found.problem) < 300
    assert found.formats == () and found.virtual_bytes is None
