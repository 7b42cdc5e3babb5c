"""Creation of images from bundles in the object store (EC2's RegisterImage).

``service`` serves registration requests; ``work`` creates the image in steps, with the streams of ``streams`` and
``tarball``; ``jobs`` keeps unfinished jobs on the disk, ``workdirs`` their temporary files.
"""
