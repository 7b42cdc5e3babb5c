"""The compute service: runs the guests of one host according to the conductor's orders."""
