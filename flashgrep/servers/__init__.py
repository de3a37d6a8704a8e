"""Language servers that the user has installed and allowed: asked what a name means, and not believed unchecked."""
