"""Names of buckets and objects: what is taken, and the files they have."""

from __future__ import annotations

import hashlib
import re

from nova.legacy.objectstore.s3_errors import S3Error

LONGEST_KEY = 1024  # bytes of UTF-8
#: Capitals and underscores are of S3's first years.
_BUCKET = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){1,61}[A-Za-z0-9]", re.ASCII)
#: What no XML can carry, and a lone surrogate, which no UTF-8 can.
NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def check_bucket(name: str) -> str:
    """The name. S3Error: InvalidBucketName."""
    if not _BUCKET.fullmatch(name):
        raise S3Error("InvalidBucketName")
    return name


def check_key(key: str) -> str:
    """The key. S3Error: KeyTooLongError; InvalidArgument for one that is empty, has characters that no listing can
    show, or parts that a client's file system would take for another folder."""
    if not key or NO_TEXT.search(key) or {".", ".."} & set(key.split("/")):
        raise S3Error("InvalidArgument", "The object's name is not valid.")
    if len(key.encode()) > LONGEST_KEY:
        raise S3Error("KeyTooLongError")
    return key


def file_name(key: str) -> str:
    """Of the object with this key, whatever is in the key."""
    return hashlib.sha256(key.encode()).hexdigest()
