"""Errors about certificates, from nova-cert."""

from __future__ import annotations

from nova.errors import kinds

#: What whoever asks cannot help: the operator looks at the file. It is named as below the authority's folder.
Damaged = kinds.Unavailable.row("cert.damaged", "nova-cert cannot use {file} of its certificate authority: {reason}.",
    "Look at the file below nova-cert's ca_path; put it back from a backup, with the whole folder.")
#: One error without a reason: which check failed is what a padding oracle tells.
Decryption = kinds.Invalid.row("cert.decryption", "Unable to decrypt the text.",
    "Encrypt it with the certificate that `nova x509-get-root-cert` gives, by RSA with PKCS#1 v1.5 padding.")
Files = kinds.Unavailable.row("cert.files", "nova-cert cannot use the files of its certificate authority: {reason}.",
    "Look at space and permissions of nova-cert's ca_path and keys_path. The call may be repeated.")
NoProject = kinds.NotFound.row("cert.no_project", "Project {project_id} has no certificate authority.",
    "Its authority is made when its first certificate is.")
OnlyRoot = kinds.NotSupported.row("cert.only_root", "Only root certificate can be retrieved.",
    "Ask for the id `root`.")
Project = kinds.Invalid.row("cert.project", "{project_id!r} cannot be a project's id.")
#: Between the number's row and its signature somebody revoked it.
Revoked = kinds.Conflict.row("cert.revoked", "The certificate was revoked before it was signed.",
    "Ask for another certificate.")
Subject = kinds.Invalid.row("cert.subject", "nova.conf, [DEFAULT]{option} = {value} makes no certificate's subject: "
    "{reason}.")
