; GraphQL: definitions.
(object_type_definition (name) @name) @class
(interface_type_definition (name) @name) @interface
(union_type_definition (name) @name) @union
(enum_type_definition (name) @name) @enum
(enum_value_definition (enum_value (name) @name)) @enumerator
(scalar_type_definition (name) @name) @type
(input_object_type_definition (name) @name) @struct
(directive_definition . (name) @name) @macro
(directive_definition (description) . (name) @name) @macro
(object_type_extension (name) @name) @extension
(interface_type_extension (name) @name) @extension
(enum_type_extension (name) @name) @extension
(input_object_type_extension (name) @name) @extension
(fields_definition (field_definition (name) @name) @field)
(input_fields_definition (input_value_definition (name) @name) @field)
(operation_definition (name) @name) @function
(fragment_definition (fragment_name (name) @name)) @function

; references
(comment) @skip
(string_value) @skip
(fragment_spread (fragment_name (name) @call))
(implements_interfaces (named_type (name) @base))
(directive (name) @call)
