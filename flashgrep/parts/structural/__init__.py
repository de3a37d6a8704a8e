"""Search by syntax: patterns with placeholders, matched on syntax trees."""
