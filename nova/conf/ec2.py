"""``[DEFAULT]``: requests that are signed as Amazon's are, to the EC2 API and to S3."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "DEFAULT"

OPTS = [
    cfg.StrOpt("keystone_ec2_url",
               help="Where Keystone checks signatures of the EC2 API (https://identity.example/v3/ec2tokens). Those of "
                    "S3 are checked beside it, at s3tokens. Unset: Keystone's address in the catalog."),
    cfg.IntOpt("ec2_timestamp_expiry", default=300, min=1,
               help="Seconds by which the Timestamp of a request to the EC2 API may differ from our clock. Requests of "
                    "signature version 4 have 900, as at Amazon."),
]
