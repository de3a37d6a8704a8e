"""What parts and third parties program against: protocols and values, and no code that answers anything."""
