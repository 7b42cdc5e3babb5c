"""Views of nova's values as element trees for EC2 responses."""
