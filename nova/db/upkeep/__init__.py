"""What periodic tasks look for, and how the cloud as a whole stands."""
