; Jsonnet: definitions are locals and fields.
(bind function: (id) @name) @function
(bind . (id) @name) @variable
(field function: (fieldname (id) @name)) @method
(field . (fieldname (id) @name) (object)) @object
(field . (fieldname (id) @name)) @property
(anonymous_function) @anonymous

; references
(comment) @skip
(functioncall . (id) @call)
(functioncall . (fieldaccess (id) @call .))
(import) @statement
