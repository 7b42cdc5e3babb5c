"""Images that are made of bundles in the object store (EC2's RegisterImage).

``service`` answers who registers one; ``work`` does the long part of it, step by step, with the streams of ``streams``
and ``tarball``; ``jobs`` keeps on the disk what is still to do, ``workdirs`` what is there meanwhile.
"""
