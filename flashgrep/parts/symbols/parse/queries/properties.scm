; Properties: each key is a definition.
(property (key) @name) @property

; references
(comment) @skip
