"""Manifests of bundles: what is read of them, and hostile ones."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement

import pytest

from nova import errors
from nova.legacy.objectstore.bundles.manifest import (
    LONGEST,
    BundleLocation,
    ManifestRefused,
    fetch,
    location_of,
    parse,
)
from nova.legacy.objectstore.store import ObjectStore
from nova.model.image.bundles import BundleMapping
from tests.fakes.bundle_world import KEYS
from tests.fakes.bundles import bundle, put

DATA = b"an image" * 4000
PLAIN = bundle(DATA, KEYS, part_bytes=64)


def changed(change: Callable[[Element], object], **facts: Any) -> bytes:
    return bundle(DATA, KEYS, part_bytes=64, change=change, **facts).manifest


def set_text(path: str, text: str) -> Callable[[Element], object]:
    return lambda root: setattr(root.find(path), "text", text)


def set_attribute(path: str, name: str, text: str) -> Callable[[Element], object]:
    return lambda root: root.find(path).set(name, text)  # type: ignore[union-attr]


def drop(owner: str, name: str) -> Callable[[Element], object]:
    return lambda root: root.find(owner).remove(root.find(f"{owner}/{name}"))  # type: ignore


def test_parse_when_a_tool_made_it_then_all_is_read() -> None:
    made = bundle(DATA, KEYS, part_bytes=64, machine={"architecture": "arm64", "kernel_id": "aki-1", "ramdisk_id":
                  "ari-1"}, mappings=[("ami", "sda1"), ("ephemeral0", "sdb")])
    found = parse(made.manifest)
    assert [part.filename for part in found.parts] == list(made.parts)
    assert found.facts.mappings == (BundleMapping(virtual="ami", device="sda1"),
                                    BundleMapping(virtual="ephemeral0", device="sdb"))
    assert (found.facts.kernel_id, found.facts.ramdisk_id, found.facts.architecture) == ("aki-1", "ari-1", "arm64")
    assert (found.facts.size, found.bundled_size) == (len(DATA), sum(map(len, made.parts.values())))
    assert len(found.sha1) == 40 and all(len(part.sha1) == 40 for part in found.parts)


def test_parse_when_the_parts_stand_in_another_order_then_their_indices_count() -> None:
    def turn(root: Element) -> None:
        parts: Any = root.find("image/parts")
        parts[:] = reversed(list(parts))
    assert [part.filename for part in parse(changed(turn)).parts] == list(PLAIN.parts)


def test_parse_when_the_parts_have_no_indices_then_they_come_as_they_stand() -> None:
    def bare(root: Element) -> None:
        for part in root.iter("part"):
            del part.attrib["index"]
    assert [part.filename for part in parse(changed(bare)).parts] == list(PLAIN.parts)


def test_parse_when_optional_elements_are_missing_then_it_is_taken() -> None:
    def bare(root: Element) -> None:
        image: Any = root.find("image")
        for name in ("digest", "size", "bundled_size", "name", "type", "user"):
            image.remove(image.find(name))
        root.remove(root.find("machine_configuration"))  # type: ignore[arg-type]
    found = parse(changed(bare))
    assert (found.sha1, found.bundled_size, found.facts.size, found.facts.name) == ("", None, None, None)
    assert found.facts.architecture == "x86_64" and found.facts.container_format == "ami"


HOSTILE: dict[str, bytes] = {
    "nothing": b"",
    "no XML": b"\x1f\x8b\x08 no XML",
    "another root": b"<Error/>",
    "no image": b"<manifest/>",
    "an entity": PLAIN.manifest.replace(b"<manifest>", b'<!DOCTYPE m [<!ENTITY a "b">]><manifest>').replace(
        b"x86_64", b"&a;"),
    "entities of entities": (
        b'<!DOCTYPE m [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;">]><manifest>&b;</manifest>'),
    "a file of ours": b'<!DOCTYPE m [<!ENTITY a SYSTEM "file:///etc/passwd">]><manifest>&a;</manifest>',
    "a DTD": PLAIN.manifest.replace(b"<manifest>", b'<!DOCTYPE manifest SYSTEM "http://127.0.0.1/x"><manifest>'),
    "an unknown encoding": b'<?xml version="1.0" encoding="klingon"?><manifest/>',
    "a hundred levels": b"<manifest>" + b"<a>" * 100 + b"</a>" * 100 + b"</manifest>",
    "a million elements": b"<manifest>" + b"<a/>" * 10 ** 6 + b"</manifest>",
    "no parts": changed(lambda root: root.find("image").remove(root.find("image/parts"))),  # type: ignore
    "a million parts": changed(lambda root: root.find("image/parts").extend(  # type: ignore
        [Element("part") for _ in range(10 ** 6)])),
    "twenty thousand and one parts": changed(lambda root: root.find("image/parts").extend(  # type: ignore
        [Element("part") for _ in range(20001)])),
    "another count": changed(set_attribute("image/parts", "count", "1")),
    "an index twice": changed(set_attribute("image/parts/part", "index", "1")),
    "an index that is none": changed(set_attribute("image/parts/part", "index", "-0")),
    "a name that leads up": changed(set_text("image/parts/part/filename", "../disk.img.part.00")),
    "a name that is up": changed(set_text("image/parts/part/filename", "..")),
    "a name in another bucket": changed(set_text("image/parts/part/filename", "/another/disk.img.part.00")),
    "a name in a folder": changed(set_text("image/parts/part/filename", "folder/disk.img.part.00")),
    "a name of two lines": changed(set_text("image/parts/part/filename", "disk\nimg")),
    "no name": changed(set_text("image/parts/part/filename", "")),
    "a long name": changed(set_text("image/parts/part/filename", "x" * 256)),
    "a digest that is none": changed(set_text("image/parts/part/digest", "x" * 40)),
    "a digest of another kind": changed(set_attribute("image/parts/part/digest", "algorithm", "MD5")),
    "a cipher of another kind": changed(set_attribute("image/ec2_encrypted_key", "algorithm", "DES")),
    "no key": changed(drop("image", "ec2_encrypted_key")),
    "no IV": changed(drop("image", "ec2_encrypted_iv")),
    "a key that is no hex": changed(set_text("image/ec2_encrypted_key", "abc")),
    "a long key": changed(set_text("image/ec2_encrypted_key", "ab" * 5000)),
    "a size below zero": changed(set_text("image/size", "-1")),
    "a size that is none": changed(set_text("image/bundled_size", "1e9")),
    "a size without end": changed(set_text("image/size", "9" * 19)),
    "many mappings": changed(lambda root: None, mappings=[("a", "b")] * 129),
    "a long mapping": changed(lambda root: None, mappings=[("a", "b" * 256)]),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_parse_when_it_is_hostile_then_it_is_refused_soon_and_in_little_memory(case: str) -> None:
    began = time.monotonic()
    tracemalloc.start()
    with pytest.raises(ManifestRefused):
        parse(HOSTILE[case])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert time.monotonic() - began < 10 and most < 64 * 2 ** 20


def test_parse_when_the_architecture_is_unknown_then_it_is_named() -> None:
    with pytest.raises(errors.bundle.Architecture, match="z80"):
        parse(bundle(DATA, KEYS, machine={"architecture": "z80"}).manifest)


def test_parse_when_elements_stand_below_others_then_they_are_not_taken() -> None:
    """Only those that belong there count, wherever else the same names are."""
    def hide(root: Element) -> None:
        SubElement(SubElement(root, "image2"), "filename").text = "../x"
        SubElement(SubElement(root.find("image"), "more"), "filename").text = "../y"  # type: ignore[arg-type]
    assert [part.filename for part in parse(changed(hide)).parts] == list(PLAIN.parts)


def test_fetch_when_the_manifest_is_huge_or_damaged_then_it_is_refused_unread(tmp_path: Path) -> None:
    store = ObjectStore(tmp_path)
    store.create_bucket("owner", "bucket")
    put(store, "owner", "bucket", "huge", bytes(LONGEST + 1))
    with pytest.raises(errors.bundle.Manifest, match="bytes"):
        fetch(store, "owner", location_of("bucket/huge"))
    put(store, "owner", "bucket", "damaged", b"text")
    store.object_path("bucket", "damaged").write_bytes(b"damaged")
    with pytest.raises(errors.bundle.Manifest, match="damaged"):
        fetch(store, "owner", location_of("bucket/damaged"))


@pytest.mark.parametrize(("location", "key"), [("bucket/a.manifest.xml", "part"), ("bucket/b/c/a.xml", "b/c/part")])
def test_beside_then_parts_lie_where_the_manifest_does(location: str, key: str) -> None:
    found = location_of(location)
    assert isinstance(found, BundleLocation) and found.beside("part") == key and str(found) == location
