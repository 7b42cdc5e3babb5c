"""The contracts: who may ask whom for what. A change here needs a new version (a test fingerprints each)."""
