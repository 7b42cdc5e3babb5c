"""nova-objectstore: the S3 API over files, for bundles of images.

``store`` and ``uploads`` keep buckets, objects and multipart uploads below a folder; ``app`` is the WSGI application.
"""
