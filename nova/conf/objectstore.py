"""``[DEFAULT]``: nova-objectstore, a small S3."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "DEFAULT"

OPTS = [
    cfg.HostAddressOpt("s3_listen", default="0.0.0.0", help="Address that nova-objectstore listens on."),
    cfg.PortOpt("s3_listen_port", default=3333, help="Port of nova-objectstore."),
    cfg.IntOpt("s3_workers", min=1, help="Worker processes of nova-objectstore. Unset: one a CPU."),
    cfg.StrOpt("buckets_path", default="$state_path/buckets",
               help="Folder of nova-objectstore's buckets and objects. Only its user may read it. Buckets of releases "
                    "before this one have another form and are not seen: name an empty folder."),
    cfg.BoolOpt("s3_believe_all", default=False,
                help="nova-objectstore looks at no key and no signature, as Nova's old one: all objects are everybody's. "
                     "For old tools on this machine; it then starts on 127.0.0.1 only, or with "
                     "[api]noauth2_anywhere."),
    cfg.IntOpt("s3_longest_object", default=5 * 2 ** 30, min=1,
               help="Bytes that an object, or one part of a multipart upload, may have in nova-objectstore."),
    cfg.IntOpt("s3_project_bytes", default=10 * 2 ** 30, min=-1,
               help="Bytes that a project's objects may have together, with the parts of its uploads: 10 GiB. -1: no "
                    "limit, so that one project can fill the disk up to s3_reserved_disk_mb."),
    cfg.IntOpt("s3_project_objects", default=100_000, min=-1,
               help="How many objects a project may have. -1: no limit."),
    cfg.IntOpt("s3_reserved_disk_mb", default=1024, min=0,
               help="MiB that nova-objectstore leaves free on the disk of buckets_path, which often has the state of "
                    "other daemons: with less, writes are answered with 507. Images of bundles wait until the disk of "
                    "image_decryption_dir has room for them, and that much more. 0: the disk may become full."),
    cfg.IntOpt("s3_upload_expiry", default=604800, min=60,
               help="Seconds after which nova-objectstore drops a multipart upload that nobody has ended."),
    cfg.IntOpt("s3_client_timeout", default=60, min=1,
               help="Seconds that a client of nova-objectstore may send or take nothing; then it hangs up."),
    cfg.IntOpt("s3_longest_transfer", default=21600, min=60,
               help="Seconds after which nova-objectstore ends a request in any case, so that none holds a place for "
                    "ever."),
]
