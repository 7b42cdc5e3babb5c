"""Small Glance: images, their data and members, in memory and in files."""
