"""How well search by meaning ranks: questions over real repositories, and documentation sought in functions."""
