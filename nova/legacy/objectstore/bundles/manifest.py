"""Location and parsing of bundle manifests. A manifest is untrusted input."""

from __future__ import annotations

import re
from typing import NamedTuple
from xml.etree.ElementTree import Element, ParseError, TreeBuilder

import defusedxml.ElementTree
import msgspec
from defusedxml.common import DefusedXmlException

from nova import errors, failures
from nova.legacy.objectstore.files import RecordDamaged
from nova.legacy.objectstore.names import check_bucket, check_key
from nova.legacy.objectstore.s3_errors import S3Error
from nova.legacy.objectstore.store import ObjectStore
from nova.model.image.bundles import ITSELF, KERNEL, MACHINE, RAMDISK, BundleFacts, BundleMapping
from nova.model.image.image_properties import ARCHITECTURES, LOOSE

LONGEST = 4 * 2 ** 20  # bytes of a manifest
MOST_PARTS = 20000
MOST_ELEMENTS, DEEPEST = 4 * MOST_PARTS, 12
LONGEST_TEXT, LONGEST_KEY = 255, 4096  # characters
MOST_MAPPINGS = 128
USUAL_ARCHITECTURE = "x86_64"
KNOWN_ARCHITECTURES = frozenset(ARCHITECTURES) | LOOSE["hw_architecture"].keys()
ALGORITHMS = {"digest": "SHA1", "key": "AES-128-CBC"}
#: S3 errors that are all reported as "not found", to reveal nothing of other projects' buckets.
MISSING = ("NoSuchBucket", "NoSuchKey", "AccessDenied")


class BundleLocation(NamedTuple):
    """The location of a manifest; its parts are in the same directory."""

    bucket: str
    key: str

    def beside(self, filename: str) -> str:
        """Return the key of a part."""
        folder, slash, _name = self.key.rpartition("/")
        return f"{folder}{slash}{filename}"

    def __str__(self) -> str:
        return f"{self.bucket}/{self.key}"


class BundlePart(msgspec.Struct, frozen=True):
    """A part of a bundle. ``sha1``: lower-case hex; empty if the manifest does not have it."""

    filename: str
    sha1: str = ""


class BundleManifest(msgspec.Struct, frozen=True):
    """The facts needed to create the image. ``encrypted_key`` and ``encrypted_iv``: hex, for nova-cert. ``sha1``: of
    the uncompressed tarball; empty if unknown. ``bundled_size``: of all parts, in bytes."""

    facts: BundleFacts
    parts: tuple[BundlePart, ...]
    encrypted_key: str
    encrypted_iv: str
    sha1: str = ""
    bundled_size: int | None = None


def location_of(text: str) -> BundleLocation:
    """Parse ``bucket/path``; one leading slash is ignored. Raises bundle.Location."""
    bucket, _slash, key = text.removeprefix("/").partition("/")
    with failures.replaced(S3Error, lambda _: errors.bundle.Location(location=text)):
        if key.startswith("/") or not text.isprintable():
            raise S3Error("InvalidArgument")
        return BundleLocation(check_bucket(bucket), check_key(key))


def known_architecture(name: str) -> str:
    """Return the name of a known architecture. Raises bundle.Architecture."""
    if name.lower() not in KNOWN_ARCHITECTURES:
        raise errors.bundle.Architecture(architecture=name)
    return name


def fetch(store: ObjectStore, owner: str, location: BundleLocation) -> BundleManifest:
    """Read and parse a manifest.

    Raises bundle.NotFound, also for a bucket of another owner; bundle.Location, bundle.Manifest, bundle.Architecture.
    """
    try:
        opened = store.get(owner, location.bucket, location.key)
    except S3Error as error:
        if error.code in MISSING:
            raise errors.bundle.NotFound(location=str(location)) from None
        raise errors.bundle.Location(location=str(location)) from None
    except RecordDamaged:
        raise errors.bundle.Manifest(location=str(location), reason="its file is damaged") from None
    if opened.record.size > LONGEST:
        opened.close()
        raise errors.bundle.Manifest(location=str(location), reason=f"it has more than {LONGEST} bytes")
    try:
        return parse(b"".join(opened.pieces()))
    except RecordDamaged:
        raise errors.bundle.Manifest(location=str(location), reason="its file is damaged") from None
    except ManifestRefused as error:
        raise errors.bundle.Manifest(location=str(location), reason=str(error)) from None


class ManifestRefused(Exception):
    """A manifest is invalid; the text is the reason."""


class _BoundedTree(TreeBuilder):
    """A tree builder that refuses too many or too deep elements while parsing, before it builds a huge tree."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = self._count = 0

    def start(self, tag: str, attrs: dict[str, str], /) -> Element:
        self._depth, self._count = self._depth + 1, self._count + 1
        if self._depth > DEEPEST or self._count > MOST_ELEMENTS:
            raise ManifestRefused("it has too many elements")
        return super().start(tag, attrs)

    def end(self, tag: str, /) -> Element:
        self._depth -= 1
        return super().end(tag)


def parse(document: bytes) -> BundleManifest:
    """Parse a manifest. Raises ManifestRefused, bundle.Architecture."""
    root = _tree(document)
    image = root.find("image")
    if root.tag != "manifest" or image is None:
        raise ManifestRefused("it is not an image manifest")
    parts = _parts(image)
    for name in ("ec2_encrypted_key", "ec2_encrypted_iv"):
        _check_algorithm(image.find(name), "key")
    return BundleManifest(
        facts=_facts(root, image, len(parts)), parts=parts,
        encrypted_key=_hex(image, "ec2_encrypted_key"), encrypted_iv=_hex(image, "ec2_encrypted_iv"),
        sha1=_sha1(image), bundled_size=_number(image, "bundled_size"))


def _tree(document: bytes) -> Element:
    parser = defusedxml.ElementTree.XMLParser(target=_BoundedTree(), forbid_dtd=True)
    with failures.replaced((DefusedXmlException, ParseError, ValueError, LookupError),
            lambda _: ManifestRefused("it is not valid XML, or has entities or a DTD")):  # the last two: bad encodings
        parser.feed(document)
        root: Element = parser.close()
        return root


def _facts(root: Element, image: Element, parts: int) -> BundleFacts:
    kernel, ramdisk = (_text(root, f"machine_configuration/{name}") for name in ("kernel_id", "ramdisk_id"))
    architecture = _text(root, "machine_configuration/architecture") or USUAL_ARCHITECTURE
    return BundleFacts(
        name=_text(image, "name") or None, architecture=known_architecture(architecture),
        container_format=KERNEL if kernel == ITSELF else RAMDISK if ramdisk == ITSELF else MACHINE,
        kernel_id=_other(kernel), ramdisk_id=_other(ramdisk), mappings=_mappings(root), parts=parts,
        size=_number(image, "size"))


def _other(image_id: str) -> str | None:
    return image_id if image_id and image_id != ITSELF else None


def _mappings(root: Element) -> tuple[BundleMapping, ...]:
    found = root.findall("machine_configuration/block_device_mapping/mapping")
    if len(found) > MOST_MAPPINGS:
        raise ManifestRefused("it has too many mappings")
    return tuple(BundleMapping(virtual=_text(one, "virtual"), device=_text(one, "device")) for one in found)


def _parts(image: Element) -> tuple[BundlePart, ...]:
    """Return the parts in the order of their indices, or in document order without indices."""
    found = image.findall("parts/part")
    if not 0 < len(found) <= MOST_PARTS:
        raise ManifestRefused(f"it has {len(found)} parts; it must have 1 to {MOST_PARTS}")
    for count in image.findall("parts"):
        if count.get("count", str(len(found))).strip() != str(len(found)):
            raise ManifestRefused("the number of its parts differs from its part count")
    indices = [one.get("index", "").strip() for one in found]
    if any(indices):
        if sorted(indices) != sorted(map(str, range(len(found)))):
            raise ManifestRefused("the indices of its parts are not 0, 1, 2 ...")
        found = [part for _index, part in sorted(zip(map(int, indices), found, strict=True), key=lambda one: one[0])]
    return tuple(BundlePart(_filename(part), _sha1(part)) for part in found)


def _filename(part: Element) -> str:
    """Return the file name of a part, which must be in the manifest's directory."""
    name = _text(part, "filename")
    if not name or "/" in name or name in (".", "..") or not name.isprintable():
        raise ManifestRefused("the filename of a part is not a plain name")
    return name


def _sha1(owner: Element) -> str:
    digest = owner.find("digest")
    if digest is None:
        return ""
    _check_algorithm(digest, "digest")
    text = _text(owner, "digest").lower()
    if not re.fullmatch("[0-9a-f]{40}", text):
        raise ManifestRefused("one of its digests is not a SHA-1")
    return text


def _check_algorithm(element: Element | None, kind: str) -> None:
    if element is not None and element.get("algorithm", ALGORITHMS[kind]).upper() != ALGORITHMS[kind]:
        raise ManifestRefused(f"it uses an algorithm other than {ALGORITHMS[kind]}")


def _hex(image: Element, name: str) -> str:
    text = _text(image, name, LONGEST_KEY)
    if not re.fullmatch("(?:[0-9a-fA-F]{2})+", text):
        raise ManifestRefused(f"its {name} is missing or is not hexadecimal")
    return text


def _number(image: Element, name: str) -> int | None:
    text = _text(image, name)
    if not text:
        return None
    if not re.fullmatch("[0-9]{1,18}", text):
        raise ManifestRefused(f"its {name} is not a number of bytes")
    return int(text)


def _text(owner: Element, path: str, longest: int = LONGEST_TEXT) -> str:
    text = owner.findtext(path, "").strip()
    if len(text) > longest:
        raise ManifestRefused(f"its {path.rpartition('/')[2]} is too long")
    return text
