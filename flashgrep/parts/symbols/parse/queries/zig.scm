; Zig: definitions. A type is a constant whose value is a container.
(variable_declaration (identifier) @name (struct_declaration)) @struct
(variable_declaration (identifier) @name (opaque_declaration)) @struct
(variable_declaration (identifier) @name (union_declaration)) @union
(variable_declaration (identifier) @name (enum_declaration)) @enum
(variable_declaration (identifier) @name (error_set_declaration)) @enum
(enum_declaration (container_field name: (identifier) @name) @enumerator)
(container_field name: (identifier) @name type: (_)) @field
(error_set_declaration (identifier) @name @enumerator)
(container_field name: (identifier) @name !type) @enumerator
(function_declaration name: (identifier) @name) @function
(variable_declaration "const" . (identifier) @name) @constant
(variable_declaration "var" . (identifier) @name) @variable
(test_declaration) @anonymous

; references
(comment) @skip
(string) @skip
(multiline_string) @skip
(call_expression function: (identifier) @call)
(call_expression function: (field_expression member: (identifier) @call))
(variable_declaration (builtin_function (builtin_identifier) @_import (#eq? @_import "@import"))) @statement
