; TOML: definitions are tables and the keys in them.
(table . (_) @name) @module
(table_array_element . (_) @name) @module
(document (pair . (_) @name) @property)
(table (pair . (_) @name) @property)
(table_array_element (pair . (_) @name) @property)

; references
(comment) @skip
