; SQL: definitions.
(create_table (object_reference name: (identifier) @name)) @class
(create_view (object_reference name: (identifier) @name)) @class
(create_materialized_view (object_reference name: (identifier) @name)) @class
(create_function (object_reference name: (identifier) @name)) @function
(create_trigger (keyword_trigger) . (object_reference name: (identifier) @name)) @function
(create_type (object_reference name: (identifier) @name)) @type
(create_schema (identifier) @name) @namespace
(create_sequence (object_reference name: (identifier) @name)) @variable
(create_index column: (identifier) @name) @type
(column_definition name: (identifier) @name) @field

; references
(comment) @skip
(marginalia) @skip
(literal) @skip
(invocation (object_reference name: (identifier) @call))
