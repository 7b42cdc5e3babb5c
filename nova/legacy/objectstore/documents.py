"""Serialization and parsing of S3's XML documents."""

from __future__ import annotations

import datetime
import urllib.parse
from collections.abc import Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring

import defusedxml.ElementTree
from defusedxml.common import DefusedXmlException

from nova import failures
from nova.legacy.objectstore.listing import ListingPage
from nova.legacy.objectstore.names import NO_TEXT
from nova.legacy.objectstore.s3_errors import S3Error
from nova.legacy.objectstore.store import BucketRecord, ObjectRecord
from nova.legacy.objectstore.uploads import GivenPart, UploadRecord

NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
LONGEST_DOCUMENT = 2 ** 20  # bytes of a request document
MOST_DELETED = 1000  # objects per request
MOST_ELEMENTS = 50000

#: (name, text or children); None means no element.
Tree = Sequence[tuple[str, "str | int | Tree | None"]]


def document(name: str, tree: Tree) -> bytes:
    """Return a complete document in S3's namespace."""
    root = Element(name, {} if name == "Error" else {"xmlns": NAMESPACE})
    _fill(root, tree)
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="utf-8", xml_declaration=False)


def _fill(parent: Element, tree: Tree) -> None:
    for name, value in tree:
        if value is None:
            continue
        child = SubElement(parent, name)
        if isinstance(value, str | int):
            child.text = str(value)
        else:
            _fill(child, value)


def printable(text: str) -> str:
    """Return the text with characters that XML cannot represent replaced by "?"."""
    return NO_TEXT.sub("?", text)


def iso(seconds: float) -> str:
    """Format seconds since 1970 as S3 documents do."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


class ListingWords(NamedTuple):
    """The parameters of a list request, which the response repeats. ``is_v2``: True for ListObjectsV2."""

    bucket: str
    prefix: str
    delimiter: str
    marker: str
    most: int
    is_v2: bool
    token: str | None
    next_token: str | None
    encoding: str | None


def owner_tree(owner: str, name: str) -> Tree:
    """Return the children of an ``Owner`` element."""
    return [("ID", owner), ("DisplayName", printable(name))]


def buckets_document(owner: Tree, buckets: Sequence[BucketRecord]) -> bytes:
    """Return a ListAllMyBucketsResult document."""
    return document("ListAllMyBucketsResult", [
        ("Owner", owner),
        ("Buckets", [("Bucket", [("Name", one.name), ("CreationDate", iso(one.created))]) for one in buckets])])


def listing_document(asked: ListingWords, page: ListingPage, records: Sequence[ObjectRecord], owner: Tree) -> bytes:
    """Return a ListBucketResult document."""
    def shown(text: str) -> str:
        return urllib.parse.quote(text, safe="/-_.~") if asked.encoding == "url" else text

    place: Tree = [
        ("KeyCount", len(page.keys) + len(page.prefixes)), ("ContinuationToken", asked.token),
        ("NextContinuationToken", asked.next_token), ("StartAfter", shown(asked.marker) or None),
    ] if asked.is_v2 else [
        ("Marker", shown(asked.marker)), ("NextMarker", shown(page.last) if page.truncated else None)]
    return document("ListBucketResult", [
        ("Name", asked.bucket), ("Prefix", shown(asked.prefix)), *place, ("MaxKeys", asked.most),
        ("Delimiter", shown(asked.delimiter) or None), ("EncodingType", asked.encoding),
        ("IsTruncated", str(page.truncated).lower()),
        *[_entry("Contents", [("Key", shown(one.key)), *_what(one), ("Owner", owner), ("StorageClass", "STANDARD")])
          for one in records],
        *[_entry("CommonPrefixes", [("Prefix", shown(one))]) for one in page.prefixes]])


def _entry(name: str, tree: Tree) -> tuple[str, Tree]:
    return name, tree


def _what(record: ObjectRecord) -> Tree:
    """Return the metadata elements of an object or a part."""
    return [("LastModified", iso(record.modified)), ("ETag", f'"{record.etag}"'), ("Size", record.size)]


def acl_document(owner: Tree) -> bytes:
    """Return an AccessControlPolicy document that grants full control to the owner only."""
    root = Element("AccessControlPolicy", {"xmlns": NAMESPACE})
    _fill(root, [("Owner", owner), ("AccessControlList", [("Grant", [("Grantee", owner),
                                                                    ("Permission", "FULL_CONTROL")])])])
    for grantee in root.iter("Grantee"):
        grantee.set("xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance")
        grantee.set("xsi:type", "CanonicalUser")
    return tostring(root, encoding="utf-8", xml_declaration=True)


def parts_document(upload: UploadRecord, parts: Sequence[ObjectRecord]) -> bytes:
    """Return a ListPartsResult document with all parts."""
    return document("ListPartsResult", [
        ("Bucket", upload.bucket), ("Key", upload.key), ("UploadId", upload.id), ("StorageClass", "STANDARD"),
        ("IsTruncated", "false"),
        *[_entry("Part", [("PartNumber", one.key), *_what(one)]) for one in parts]])


def uploads_document(bucket: str, uploads: Sequence[UploadRecord]) -> bytes:
    """Return a ListMultipartUploadsResult document with all uploads."""
    return document("ListMultipartUploadsResult", [
        ("Bucket", bucket), ("IsTruncated", "false"),
        *[_entry("Upload", [("Key", one.key), ("UploadId", one.id), ("Initiated", iso(one.started)),
                            ("StorageClass", "STANDARD")]) for one in uploads]])


# -- request documents

def _read(body: bytes, root: str) -> Element:
    """Parse a document and remove namespaces. Raises S3Error: MalformedXML."""
    with failures.replaced((DefusedXmlException, SyntaxError, ValueError, LookupError),
            lambda _: S3Error("MalformedXML")):  # the last two: bad encodings
        tree: Element = defusedxml.ElementTree.fromstring(body, forbid_dtd=True)
    for count, element in enumerate(tree.iter()):
        if count > MOST_ELEMENTS:
            raise S3Error("MalformedXML")
        element.tag = element.tag.rpartition("}")[2]
    if tree.tag != root:
        raise S3Error("MalformedXML")
    return tree


def read_parts(body: bytes) -> list[GivenPart]:
    """Parse a CompleteMultipartUpload document. Raises S3Error: MalformedXML."""
    found = []
    for part in _read(body, "CompleteMultipartUpload").iter("Part"):
        number, etag = part.findtext("PartNumber", ""), part.findtext("ETag", "")
        if not (number.strip().isascii() and number.strip().isdecimal() and len(number) < 10 and etag):
            raise S3Error("MalformedXML")
        found.append(GivenPart(int(number), etag.strip().strip('"')))
    return found


class DeleteAsked(NamedTuple):
    """The keys to delete. ``quiet``: the response lists only failures."""

    keys: list[str]
    quiet: bool


def read_delete(body: bytes) -> DeleteAsked:
    """Parse a Delete document. Raises S3Error: MalformedXML."""
    tree = _read(body, "Delete")
    keys = [one.findtext("Key") or "" for one in tree.iter("Object")]
    if not keys or len(keys) > MOST_DELETED:
        raise S3Error("MalformedXML")
    return DeleteAsked(keys, tree.findtext("Quiet", "").strip() == "true")
