"""Errors about certificates, from nova-cert."""

from __future__ import annotations

from nova.errors import kinds

#: One error without a reason: which check failed is what a padding oracle tells.
Decryption = kinds.Invalid.row("cert.decryption", "Unable to decrypt the text.",
    "Encrypt it with the certificate that `nova x509-get-root-cert` gives, by RSA with PKCS#1 v1.5 padding.")
NoProject = kinds.NotFound.row("cert.no_project", "Project {project_id} has no certificate authority.",
    "Its authority is made when its first certificate is.")
Project = kinds.Invalid.row("cert.project", "{project_id!r} can not be a project's id.")
