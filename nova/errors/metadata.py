"""Errors about the metadata service."""

from __future__ import annotations

from nova.errors import config, kinds

BadSignature = kinds.Forbidden.row("metadata.bad_signature", "Invalid proxy request signature.")
DoubtfulHeader = kinds.Invalid.row("metadata.doubtful_header", "{header} header is not a single plain value.")
MissingHeader = kinds.Invalid.row("metadata.missing_header", "{header} header is missing from request.")
NoSecret = config.Wrong.row("metadata.no_secret",
    "[neutron]service_metadata_proxy is set, so [neutron]metadata_proxy_shared_secret must be set too, to "
    "the secret that the proxy signs with")
NotOnePort = kinds.Invalid.row("metadata.not_one_port",
    "Metadata provider {provider} asks for address {address}, which {count} servers have on its networks: exactly one "
    "must have it.")
PasswordKept = kinds.Conflict.row("metadata.password_kept", "A password is already stored.")
Template = config.Wrong.row("metadata.template",
    "[DEFAULT]injected_network_template cannot be used: {reason}.")

VendordataFailed = kinds.Unavailable.row("vendordata.failed",
    "The vendordata service {name} did not return a JSON object: {reason}",
    "Check the service of [api]vendordata_dynamic_targets.")
VendordataProvider = kinds.Invalid.row("vendordata.provider",
    "nova.conf, [api]vendordata_providers: {name} is not one of StaticJSON, DynamicJSON")
