"""``[DEFAULT]``: requests that are signed as Amazon's are, to the EC2 API and to S3."""

from __future__ import annotations

from oslo_config import cfg, types

from nova.conf._urls import WebUrl

GROUP = "DEFAULT"

OPTS = [
    cfg.HostAddressOpt("ec2_listen", default="0.0.0.0", help="Address the EC2 API listens on."),
    cfg.PortOpt("ec2_listen_port", default=8773, help="Port of the EC2 API."),
    cfg.IntOpt("ec2_workers", min=1, help="Worker processes of the EC2 API. Unset: one a CPU."),
    cfg.HostAddressOpt("ec2_host", default="$my_ip", help="Name or address by which clients reach the EC2 API, as "
                                                          "DescribeRegions says it."),
    cfg.PortOpt("ec2_port", default=8773, help="Port by which they reach it."),
    cfg.StrOpt("ec2_scheme", default="http", choices=["http", "https"], help="How they reach it."),
    cfg.StrOpt("ec2_path", default="/services/Cloud", help="Path by which they reach it."),
    cfg.ListOpt("region_list", default=[], help="Regions that DescribeRegions names, each as NAME=HOST. Empty: this one "
                                                "alone, named nova."),
    cfg.BoolOpt("ec2_private_dns_show_ip", default=False,
                help="Show an instance's fixed address as its private DNS name, in the place of its host name."),
    cfg.BoolOpt("ec2_strict_validation", default=True,
                help="Names and descriptions of security groups may have letters, digits, blanks, dashes and "
                     "underscores alone. Off: printable ASCII in names, and anything in descriptions."),
    cfg.Opt("keystone_ec2_url", type=WebUrl(),
               help="Where Keystone checks signatures of the EC2 API (https://identity.example/v3/ec2tokens). Those of "
                    "S3 are checked beside it, at s3tokens. Unset: Keystone's address in the catalog."),
    cfg.ListOpt("ec2_signature_versions", default=["2", "4"],
                item_type=types.String(choices=["0", "1", "2", "4"]),
                help="Versions of signatures that the EC2 API takes. Clients of today have 4, boto 2 and libcloud have 2 "
                     "as well. 0 and 1 are of clients before 2009. 0 covers the action and the time alone: who reads one "
                     "request can end any instance of its user. 1 covers no host and path, and can be forged. Add them "
                     "if a user has such a client, and over TLS only."),
    cfg.IntOpt("ec2_timestamp_expiry", default=300, min=1,
               help="Seconds by which the Timestamp of a request to the EC2 API may differ from our clock. Requests of "
                    "signature version 4 have 900, as at Amazon."),
]
