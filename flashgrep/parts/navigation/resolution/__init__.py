"""What a name means where it is used: imports, exports, scopes and types, language by language."""
