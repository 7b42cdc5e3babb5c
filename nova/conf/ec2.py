"""``[DEFAULT]``: the EC2 API and S3, whose requests are signed like Amazon's."""

from __future__ import annotations

from oslo_config import cfg, types

from nova.conf._urls import WebUrl

GROUP = "DEFAULT"

OPTS = [
    cfg.HostAddressOpt("ec2_listen", default="0.0.0.0", help="Address that the EC2 API listens on."),
    cfg.PortOpt("ec2_listen_port", default=8773, help="Port of the EC2 API."),
    cfg.IntOpt("ec2_workers", min=1, help="Worker processes of the EC2 API. Unset: one for each CPU."),
    cfg.HostAddressOpt("ec2_host", default="$my_ip",
                       help="Name or address at which clients reach the EC2 API, as shown by DescribeRegions."),
    cfg.PortOpt("ec2_port", default=8773, help="Port at which clients reach the EC2 API."),
    cfg.StrOpt("ec2_scheme", default="http", choices=["http", "https"],
               help="Scheme with which clients reach the EC2 API."),
    cfg.StrOpt("ec2_path", default="/services/Cloud", help="Path at which clients reach the EC2 API."),
    cfg.ListOpt("region_list", default=[], help="Regions listed by DescribeRegions, each as NAME=HOST. Empty: only "
                                                "this one, named nova."),
    cfg.BoolOpt("ec2_private_dns_show_ip", default=False,
                help="Show an instance's fixed address as its private DNS name, instead of its host name."),
    cfg.BoolOpt("ec2_strict_validation", default=True,
                help="Allow only letters, digits, blanks, dashes and underscores in names and descriptions of "
                     "security groups. Off: printable ASCII in names, and anything in descriptions."),
    cfg.Opt("keystone_ec2_url", type=WebUrl(),
               help="URL at which Keystone checks signatures of the EC2 API (https://identity.example/v3/ec2tokens). "
                    "Signatures of S3 are checked at s3tokens next to it. Unset: Keystone's URL in the catalog."),
    cfg.ListOpt("ec2_signature_versions", default=["2", "4"],
                item_type=types.String(choices=["0", "1", "2", "4"]),
                help="Signature versions that the EC2 API accepts. Current clients use 4; boto 2 and libcloud also "
                     "use 2. Clients from before 2009 use 0 and 1. 0 covers only the action and the time: a person "
                     "who reads one request can terminate any instance of its user. 1 covers no host and path, and "
                     "can be forged. Add them only for users with such clients, and only over TLS."),
    cfg.IntOpt("ec2_timestamp_expiry", default=300, min=1,
               help="Maximum difference in seconds between the Timestamp of a request to the EC2 API and this host's "
                    "clock. For signature version 4 it is 900, as at Amazon."),
]
