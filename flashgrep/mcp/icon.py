"""Our icon, as the protocol has it since its revision 2025-11-25.

It stands beside the server's name, once for a connection. Hosts that show icons show the server's beside its tools, and
one in each tool's entry would take a fifth of the list that conversations begin with.
"""

import base64
from typing import Any, Final

SVG: Final = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">'
    b'<rect width="16" height="16" rx="3" fill="#0b57d0"/>'
    b'<path d="M9.5 1.5 3.5 9h3.8l-.8 5.5 6-7.5H8.7z" fill="#fff"/></svg>\n'
)
"""As the page for browsers has it."""
ICONS: Final[list[dict[str, Any]]] = [
    {
        # Nothing is fetched for it.
        "src": "data:image/svg+xml;base64," + base64.b64encode(SVG).decode(),
        "mimeType": "image/svg+xml",
        "sizes": ["any"],
    }
]
