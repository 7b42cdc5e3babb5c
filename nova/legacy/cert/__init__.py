"""nova-cert: the certificate authorities of the cloud and of its projects."""
