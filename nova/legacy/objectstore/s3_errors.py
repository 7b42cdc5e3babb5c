"""S3 errors: the codes, HTTP statuses and messages that S3 clients know."""

from __future__ import annotations

#: code -> (HTTP status, message)
REFUSALS = {
    "AccessDenied": (403, "Access Denied"),
    "BadDigest": (400, "The Content-MD5 or checksum you specified did not match what we received."),
    "BucketAlreadyExists": (409, "The requested bucket name is not available."),
    "BucketAlreadyOwnedByYou": (409, "Your previous request to create the named bucket succeeded."),
    "BucketNotEmpty": (409, "The bucket you tried to delete is not empty."),
    "EntityTooLarge": (400, "Your proposed upload exceeds the maximum allowed object size."),
    "EntityTooSmall": (400, "A part of your proposed upload is smaller than the minimum allowed size."),
    "InsufficientStorage": (507, "The object store has no free space left."),
    "IncompleteBody": (400, "You did not provide the number of bytes specified by the Content-Length HTTP header."),
    "InternalError": (500, "We encountered an internal error. Please try again."),
    "InvalidArgument": (400, "Invalid Argument"),
    "InvalidBucketName": (400, "The specified bucket is not valid."),
    "InvalidDigest": (400, "The Content-MD5 or checksum you specified is not valid."),
    "InvalidPart": (400, "One or more of the specified parts could not be found, or their ETag does not match."),
    "InvalidPartOrder": (400, "The list of parts was not in ascending order."),
    "InvalidRange": (416, "The requested range is not satisfiable."),
    "InvalidRequest": (400, "Invalid Request"),
    "InvalidURI": (400, "Couldn't parse the specified URI."),
    "KeyTooLongError": (400, "Your key is too long."),
    "MalformedXML": (400, "The XML you provided was not well-formed or did not validate against our schema."),
    "MethodNotAllowed": (405, "The specified method is not allowed against this resource."),
    "MissingContentLength": (411, "You must provide the Content-Length HTTP header."),
    "NoSuchBucket": (404, "The specified bucket does not exist."),
    "NoSuchBucketPolicy": (404, "The bucket policy does not exist."),
    "NoSuchKey": (404, "The specified key does not exist."),
    "NoSuchUpload": (404, "The specified multipart upload does not exist."),
    "NotImplemented": (501, "A header or parameter you provided implies functionality that is not implemented."),
    "PreconditionFailed": (412, "At least one of the preconditions you specified did not hold."),
    "QuotaExceeded": (403, "The quota of bytes or objects is exceeded."),
    "ServiceUnavailable": (503, "Please reduce your request rate, or try again later."),
    "SlowDown": (503, "Please reduce your request rate."),
    "TooManyBuckets": (400, "You have attempted to create more buckets than allowed."),
    "XAmzContentSHA256Mismatch": (400, "The provided 'x-amz-content-sha256' header does not match what was computed."),
}


class S3Error(Exception):
    """An error response. ``code`` is one of ``REFUSALS``; ``status`` and ``message`` override the defaults."""

    def __init__(self, code: str, message: str = "", status: int = 0) -> None:
        known, text = REFUSALS.get(code, (400, code))
        self.code, self.status, self.message = code, status or known, message or text
        self.headers: dict[str, str] = {}  # of the response
        super().__init__(f"{code}: {self.message}")
