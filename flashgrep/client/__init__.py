"""`import flashgrep`: a typed client of the daemon for Python, synchronous and asynchronous.

It knows the wire and the shapes of answers, generated from the registry, and none of the code that answers.
"""
