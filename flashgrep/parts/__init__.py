"""Parts: features beside the core. Each is one folder and one ``Part``; the core imports none of them."""
