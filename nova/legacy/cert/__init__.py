"""nova-cert: the certificate authorities of the cloud and its projects."""
