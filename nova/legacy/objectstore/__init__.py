"""nova-objectstore: a file-backed S3 API, for image bundles.

``store`` and ``uploads`` keep buckets, objects and multipart uploads in a directory; ``app`` is the WSGI application.
"""
