"""Response bodies, built from the conductor's values. Fields added in a version are listed in tables."""
