"""Verification of signed requests to the EC2 and S3 APIs: AWS's signature versions 0, 1, 2 and 4, and S3's version 2.

``request.signed_request`` parses a request. ``versions.ec2_signature`` and ``versions.s3_signature`` find its signature
and refuse malformed, expired and future ones. ``request.is_signed`` verifies it with a secret; if Keystone has the
secrets, ``keystone`` makes the body of the call to Keystone. These modules do no I/O and read no clock.
"""
