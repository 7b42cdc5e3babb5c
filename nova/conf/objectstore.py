"""``[DEFAULT]``: nova-objectstore, a small S3 service."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "DEFAULT"

OPTS = [
    cfg.HostAddressOpt("s3_listen", default="0.0.0.0", help="Address that nova-objectstore listens on."),
    cfg.PortOpt("s3_listen_port", default=3333, help="Port of nova-objectstore."),
    cfg.IntOpt("s3_workers", min=1, help="Worker processes of nova-objectstore. Unset: one for each CPU."),
    cfg.StrOpt("buckets_path", default="$state_path/buckets",
               help="Directory of nova-objectstore's buckets and objects. Only its user may read it. Buckets of "
                    "earlier releases have another format and are ignored: name an empty directory."),
    cfg.BoolOpt("s3_believe_all", default=False,
                help="Disable authentication in nova-objectstore, as in the old one: every client can access all "
                     "objects. For old tools on this machine; it then starts only on 127.0.0.1, or with "
                     "[api]noauth2_anywhere."),
    cfg.IntOpt("s3_longest_object", default=5 * 2 ** 30, min=1,
               help="Maximum size in bytes of an object, or of one part of a multipart upload."),
    cfg.IntOpt("s3_project_bytes", default=10 * 2 ** 30, min=-1,
               help="Maximum total size in bytes of a project's objects and upload parts: 10 GiB. -1: no limit, so "
                    "that one project can fill the disk up to s3_reserved_disk_mb."),
    cfg.IntOpt("s3_project_objects", default=100_000, min=-1,
               help="Maximum number of a project's objects. -1: no limit."),
    cfg.IntOpt("s3_reserved_disk_mb", default=1024, min=0,
               help="MiB that nova-objectstore keeps free on the disk of buckets_path, which often has the state of "
                    "other daemons: with less, writes are answered with 507. Images of bundles wait until the disk "
                    "of image_decryption_dir has space for them plus this amount. 0: the disk may fill up."),
    cfg.IntOpt("s3_upload_expiry", default=604800, min=60,
               help="Seconds after which nova-objectstore deletes an unfinished multipart upload."),
    cfg.IntOpt("s3_client_timeout", default=60, min=1,
               help="Seconds without data to or from a client after which nova-objectstore closes the connection."),
    cfg.IntOpt("s3_longest_transfer", default=21600, min=60,
               help="Seconds after which nova-objectstore ends any request, so that none occupies a slot for ever."),
]
