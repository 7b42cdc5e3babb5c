"""Validation of bucket names and object keys, and the file names of objects."""

from __future__ import annotations

import hashlib
import re

from nova.legacy.objectstore.s3_errors import S3Error

LONGEST_KEY = 1024  # bytes of UTF-8
#: Upper case and underscores are valid in S3's original rules.
_BUCKET = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){1,61}[A-Za-z0-9]", re.ASCII)
#: Characters that XML cannot represent, and lone surrogates, which UTF-8 cannot.
NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def check_bucket(name: str) -> str:
    """Return a valid bucket name. Raises S3Error: InvalidBucketName."""
    if not _BUCKET.fullmatch(name):
        raise S3Error("InvalidBucketName")
    return name


def check_key(key: str) -> str:
    """Return a valid object key.

    Raises S3Error: KeyTooLongError; InvalidArgument if the key is empty, has characters that no listing can show, or
    has the components "." or "..", which a client's file system would resolve to another directory.
    """
    if not key or NO_TEXT.search(key) or {".", ".."} & set(key.split("/")):
        raise S3Error("InvalidArgument", "The object's name is not valid.")
    if len(key.encode()) > LONGEST_KEY:
        raise S3Error("KeyTooLongError")
    return key


def file_name(key: str) -> str:
    """Return the file name for any key: its SHA-256 in hex."""
    return hashlib.sha256(key.encode()).hexdigest()
