"""The core's methods: text, lines, files, the index and its state, and the skill that teaches an agent to use them."""
