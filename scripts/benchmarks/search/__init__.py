"""Quality of search by meaning: questions about real repositories, and functions found by their documentation."""
