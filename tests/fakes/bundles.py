"""Bundles in the format of euca-bundle-image: tar, gzip, AES-128-CBC, parts and a manifest; broken ones on demand.

The digest of the image is the SHA-1 of the tarball before gzip, as in euca2ools and Amazon's tools.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import secrets
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from nova.legacy.objectstore.store import ObjectStore, PutObject

PART_BYTES = 4096  # the tools use 10 MB


@dataclass
class Bundle:
    """A bundle. ``manifest`` and ``parts`` (name -> bytes) are uploaded; tests compare the other fields."""

    name: str
    manifest: bytes
    parts: dict[str, bytes]
    key: str = field(repr=False)
    iv: str = field(repr=False)

    @property
    def manifest_name(self) -> str:
        return f"{self.name}.manifest.xml"

    def put(self, store: ObjectStore, owner: str, bucket: str, folder: str = "") -> str:
        """Upload the bundle like euca-upload-bundle, and return its location."""
        put(store, owner, bucket, f"{folder}{self.manifest_name}", self.manifest)
        for name, data in self.parts.items():
            put(store, owner, bucket, f"{folder}{name}", data)
        return f"{bucket}/{folder}{self.manifest_name}"


def put(store: ObjectStore, owner: str, bucket: str, key: str, data: bytes) -> None:
    store.put(owner, bucket, key, PutObject((data,), hashlib.md5(data).hexdigest))


@dataclass(frozen=True)
class Keys:
    """The user's and the cloud's public keys."""

    user: rsa.RSAPublicKey
    cloud: rsa.RSAPublicKey


def tar_of(data: bytes, name: str = "disk.img") -> bytes:
    """Return a tarball with one file."""
    return tar_with(lambda tar: add_file(tar, name, data))


def tar_with(fill: Callable[[tarfile.TarFile], object], format: int = tarfile.GNU_FORMAT) -> bytes:
    """Return a tarball with the members that ``fill`` adds."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=format) as tar:
        fill(tar)
    return written.getvalue()


def add_file(tar: tarfile.TarFile, name: str, data: bytes = b"", **facts: object) -> None:
    """Add a member; ``facts`` are attributes of TarInfo, such as its type."""
    member = tarfile.TarInfo(name)
    member.size = len(data)
    for fact, value in facts.items():
        setattr(member, fact, value)
    tar.addfile(member, io.BytesIO(data))


def encrypted(data: bytes, key: str, iv: str) -> bytes:
    padder = PKCS7(128).padder()
    encryptor = Cipher(algorithms.AES(bytes.fromhex(key)), modes.CBC(bytes.fromhex(iv))).encryptor()
    return encryptor.update(padder.update(data) + padder.finalize()) + encryptor.finalize()


def for_key(text: str, key: rsa.RSAPublicKey) -> str:
    return key.encrypt(text.encode(), padding.PKCS1v15()).hex()


def bundle(data: bytes, keys: Keys, *, name: str = "disk.img", tar: bytes | None = None, packed: bytes | None = None,
           size: int | None = None, part_bytes: int = PART_BYTES, **facts: object) -> Bundle:
    """Return a bundle. ``tar`` and ``packed`` replace the tarball and the encrypted data;
    ``facts``: see :func:`manifest_of`.
    """
    key, iv = secrets.token_hex(16), secrets.token_hex(16)
    tarball = tar_of(data, name) if tar is None else tar
    whole = encrypted(gzip.compress(tarball) if packed is None else packed, key, iv)
    parts = {f"{name}.part.{number:02}": whole[start:start + part_bytes]
             for number, start in enumerate(range(0, len(whole), part_bytes))}
    manifest = manifest_of(name, parts, keys=keys, key=key, iv=iv, size=len(data) if size is None else size,
                           digest=hashlib.sha1(tarball).hexdigest(), **facts)
    return Bundle(name, manifest, parts, key, iv)


def manifest_of(name: str, parts: Mapping[str, bytes], *, keys: Keys, key: str, iv: str, size: int, digest: str,
                machine: Mapping[str, str] | None = None, mappings: Sequence[tuple[str, str]] = (),
                bundled_size: int | None = None, change: Callable[[Element], object] | None = None) -> bytes:
    """Return a manifest. ``machine``: elements of machine_configuration; ``change``: edits the final tree."""
    root = Element("manifest")
    SubElement(root, "version").text = "2007-10-10"
    _fill(SubElement(root, "bundler"), {"name": "euca2ools", "version": "3.4.1", "release": "0"})
    configuration = SubElement(root, "machine_configuration")
    _fill(configuration, {"architecture": "x86_64", **(machine or {})})
    if mappings:
        listed = SubElement(configuration, "block_device_mapping")
        for virtual, device in mappings:
            _fill(SubElement(listed, "mapping"), {"virtual": virtual, "device": device})
    image = SubElement(root, "image")
    _fill(image, {"name": name, "user": "123456789012", "digest": digest, "size": str(size),
                  "bundled_size": str(sum(map(len, parts.values())) if bundled_size is None else bundled_size),
                  "type": "machine", "ec2_encrypted_key": for_key(key, keys.cloud),
                  "user_encrypted_key": for_key(key, keys.user), "ec2_encrypted_iv": for_key(iv, keys.cloud),
                  "user_encrypted_iv": for_key(iv, keys.user)})
    _fill_parts(image, parts)
    for one, algorithm in (("digest", "SHA1"), ("ec2_encrypted_key", "AES-128-CBC"),
                           ("user_encrypted_key", "AES-128-CBC")):
        image.find(one).set("algorithm", algorithm)  # type: ignore[union-attr]
    SubElement(root, "signature").text = "00" * 256  # the user's signature, which the service cannot verify
    if change is not None:
        change(root)
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)


def _fill(parent: Element, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        SubElement(parent, name).text = text


def _fill_parts(image: Element, parts: Mapping[str, bytes]) -> None:
    listed = SubElement(image, "parts", count=str(len(parts)))
    for index, (filename, data) in enumerate(parts.items()):
        part = SubElement(listed, "part", index=str(index))
        SubElement(part, "filename").text = filename
        SubElement(part, "digest", algorithm="SHA1").text = hashlib.sha1(data).hexdigest()
