"""Requests signed by botocore and boto 2, in the form that a server reads."""

from __future__ import annotations

import calendar
import hashlib
import time
import types
import urllib.parse
from collections.abc import Mapping

import botocore.auth
import botocore.awsrequest
import botocore.credentials

from nova.legacy.signatures.request import FORM, SignedRequest, decoded_pairs

ACCESS, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
ENDPOINT = "http://127.0.0.1:8773"
PROVIDER = types.SimpleNamespace(access_key=ACCESS, secret_key=SECRET, security_token=None,
                                 header_prefix="x-amz-", date_header="x-amz-date", auth_header="AWS")


def received(method: str, url: str, headers: Mapping[str, str], body: bytes = b"") -> SignedRequest:
    """Return a request to a URL in the form that a server receives it."""
    split = urllib.parse.urlsplit(url)
    found = {"host": split.netloc, **{name.lower(): value for name, value in headers.items()}}
    form = decoded_pairs(body.decode()) if found.get("content-type", "").startswith(FORM) else ()
    return SignedRequest(method, split.path, split.query, found, form, hashlib.sha256(body).hexdigest())


def by_botocore(kind: str, request: SignedRequest, body: bytes = b"", **options: object) -> SignedRequest:
    """Sign a request by botocore. ``kind``: the signer's name; as in its client, version 1 signs a bucket with a slash.
    ``options``: other arguments of the signer."""
    made = botocore.awsrequest.AWSRequest(
        request.method, f"http://{request.headers['host']}{request.path}" + (request.query and f"?{request.query}"),
        {name: value for name, value in request.headers.items() if name != "host"}, body,
        auth_path=f"{request.path}/" if "V1" in kind and "/" not in request.path[1:] and request.path != "/" else None)
    credentials = botocore.credentials.Credentials(ACCESS, SECRET)
    names = ("s3" if kind.startswith("S3") else "ec2", "RegionOne") if "SigV4" in kind else ()
    getattr(botocore.auth, kind)(credentials, *names, **options).add_auth(made)
    text = {name: value.decode() if isinstance(value, bytes) else value for name, value in made.headers.items()}
    return received(request.method, made.url, text, body)


def time_of(text: str) -> float:
    """Return a time such as ``2013-05-24T00:00:00`` in seconds since 1970."""
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))
