"""JSON-RPC 2.0 over byte streams: bytes to messages, messages to calls. It knows the registry, never an index.

From the bottom: ``wire`` has lines, queues and limits, ``message`` JSON and JSON-RPC, ``context`` what a method sees,
``dispatch`` one request, ``calls`` those of one connection, ``connection`` its read loop; ``sockets`` accepts clients
for the transports ``unix`` and ``tcp``.
"""
