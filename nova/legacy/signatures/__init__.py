"""Whether a request to the EC2 or S3 API is signed with a secret: AWS's signature versions 0, 1, 2 and 4, and S3's own
version 2.

``request.signed_request`` takes a request apart. ``versions.ec2_signature`` and ``versions.s3_signature`` find its
signature and refuse what is malformed, too old or too new. ``request.is_signed`` holds that against a secret; where
Keystone has the secrets, ``keystone`` makes the body of the call that asks it. Nothing here does I/O or reads a clock.
"""
