"""Errors about certificates, from nova-cert."""

from __future__ import annotations

from nova.errors import kinds

#: Only the operator can fix this. The file is named relative to the authority's directory.
Damaged = kinds.Unavailable.row("cert.damaged", "nova-cert cannot use {file} of its certificate authority: {reason}.",
    "See the file under nova-cert's ca_path; restore it from a backup, together with the whole directory.")
#: One error for all causes, without a reason: telling which check failed would make a padding oracle.
Decryption = kinds.Invalid.row("cert.decryption", "Unable to decrypt the text.",
    "Encrypt it with the certificate that `nova x509-get-root-cert` returns, by RSA with PKCS#1 v1.5 padding.")
Files = kinds.Unavailable.row("cert.files", "nova-cert cannot use the files of its certificate authority: {reason}.",
    "Check the free space and permissions of nova-cert's ca_path and keys_path. The call can be repeated.")
NoProject = kinds.NotFound.row("cert.no_project", "Project {project_id} has no certificate authority.",
    "The authority is created together with the project's first certificate.")
OnlyRoot = kinds.NotSupported.row("cert.only_root", "Only root certificate can be retrieved.",
    "Ask for the id `root`.")
Project = kinds.Invalid.row("cert.project", "{project_id!r} is not a valid project id.")
#: The certificate was revoked between the write of its serial number's row and its signature.
Revoked = kinds.Conflict.row("cert.revoked", "The certificate was revoked before it was signed.",
    "Request another certificate.")
Subject = kinds.Invalid.row("cert.subject", "nova.conf, [DEFAULT]{option} = {value} does not make a valid certificate "
    "subject: {reason}.")
