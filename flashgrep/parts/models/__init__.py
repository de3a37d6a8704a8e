"""The user's own models: added by one command, measured on the user's repository, used from then on."""
