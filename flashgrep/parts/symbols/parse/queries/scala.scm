; Scala: definitions.
(package_clause name: (package_identifier) @name) @package
(package_object name: (identifier) @name) @module
(class_definition name: (identifier) @name) @class
(object_definition name: (identifier) @name) @object
(trait_definition name: (identifier) @name) @trait
(enum_definition name: (identifier) @name) @enum
(simple_enum_case name: (identifier) @name) @enumerator
(full_enum_case name: (identifier) @name) @enumerator
(type_definition name: (type_identifier) @name) @type
(function_definition name: (_) @name) @function
(function_declaration name: (_) @name) @function
(given_definition name: (identifier) @name) @variable
(val_definition pattern: (identifier) @name) @constant
(var_definition pattern: (identifier) @name) @variable
(val_declaration name: (identifier) @name) @constant
(var_declaration name: (identifier) @name) @variable
(class_parameter name: (identifier) @name) @property
(lambda_expression) @anonymous

; references
(comment) @skip
(block_comment) @skip
(string) @skip
(call_expression function: (identifier) @call)
(call_expression function: (field_expression field: (identifier) @call))
(call_expression function: (generic_function function: (identifier) @call))
(call_expression function: (generic_function function: (field_expression field: (identifier) @call)))
(instance_expression (type_identifier) @call)
(instance_expression (generic_type type: (type_identifier) @call))
(extends_clause type: (type_identifier) @base)
(extends_clause type: (generic_type type: (type_identifier) @base))
(extends_clause type: (stable_type_identifier (type_identifier) @base .))
(import_declaration path: (identifier) @import)
(namespace_selectors (identifier) @import)
(arrow_renamed_identifier (identifier) @import)
(import_declaration) @statement
