; Java: definitions.
(class_declaration name: (identifier) @name) @class
(record_declaration name: (identifier) @name) @class
(interface_declaration name: (identifier) @name) @interface
(annotation_type_declaration name: (identifier) @name) @interface
(enum_declaration name: (identifier) @name) @enum
(enum_constant name: (identifier) @name) @enumerator
(method_declaration name: (identifier) @name) @method
(annotation_type_element_declaration name: (identifier) @name) @method
(constructor_declaration name: (identifier) @name) @constructor
(compact_constructor_declaration name: (identifier) @name) @constructor
(field_declaration declarator: (variable_declarator name: (identifier) @name) @field)
(constant_declaration declarator: (variable_declarator name: (identifier) @name) @field)
(package_declaration [(identifier) (scoped_identifier)] @name) @package
(lambda_expression) @anonymous

; references
(line_comment) @skip
(block_comment) @skip
(string_fragment) @skip
(multiline_string_fragment) @skip
(method_invocation name: (identifier) @call)
(object_creation_expression type: (type_identifier) @call)
(object_creation_expression type: (generic_type (type_identifier) @call))
(object_creation_expression type: (scoped_type_identifier (type_identifier) @call .))
(method_reference "::" (identifier) @call)
(superclass (type_identifier) @base)
(superclass (generic_type (type_identifier) @base))
(superclass (scoped_type_identifier (type_identifier) @base .))
(super_interfaces (type_list (type_identifier) @base))
(super_interfaces (type_list (generic_type (type_identifier) @base)))
(super_interfaces (type_list (scoped_type_identifier (type_identifier) @base .)))
(extends_interfaces (type_list (type_identifier) @base))
(extends_interfaces (type_list (generic_type (type_identifier) @base)))
(import_declaration (scoped_identifier name: (identifier) @import))
(import_declaration) @statement
