"""The page for browsers: its files, and signing in. Imported with the HTTP wire."""
