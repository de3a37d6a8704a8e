"""From the disk to documents: which files are ours, what they say, what changed."""
