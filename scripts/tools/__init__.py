"""What the scripts of one file do; each is run by the script of its name."""
