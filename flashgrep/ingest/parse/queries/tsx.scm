; TypeScript with JSX: definitions.
(class_declaration name: (type_identifier) @name) @class
(abstract_class_declaration name: (type_identifier) @name) @class
(interface_declaration name: (type_identifier) @name) @interface
(type_alias_declaration name: (type_identifier) @name) @type
(enum_declaration name: (identifier) @name) @enum
(enum_body name: (property_identifier) @name @enumerator)
(enum_assignment name: (property_identifier) @name) @enumerator
(internal_module name: [(identifier) (nested_identifier)] @name) @namespace
(module name: [(identifier) (nested_identifier)] @name) @namespace
(module name: (string (string_fragment) @name)) @namespace
(function_signature name: (identifier) @name) @declaration.function
(abstract_method_signature name: (property_identifier) @name) @method
(method_signature name: (property_identifier) @name) @method
(property_signature name: (property_identifier) @name) @field
(public_field_definition name: [(property_identifier) (private_property_identifier)] @name
  value: [(arrow_function) (function_expression)]) @method
(public_field_definition name: [(property_identifier) (private_property_identifier)] @name) @field
(required_parameter (accessibility_modifier) pattern: (identifier) @name) @property
(optional_parameter (accessibility_modifier) pattern: (identifier) @name) @property
(function_declaration name: (identifier) @name) @function
(generator_function_declaration name: (identifier) @name) @function
(method_definition name: [(property_identifier) (private_property_identifier)] @name) @method
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @function
(variable_declarator name: (identifier) @name value: (class)) @class
(pair key: (property_identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @method
(assignment_expression
  left: (member_expression property: (property_identifier) @name)
  right: [(arrow_function) (function_expression) (generator_function) (class)]) @function
(assignment_expression
  left: (identifier) @name
  right: [(arrow_function) (function_expression) (generator_function) (class)]) @function
(lexical_declaration kind: "const" (variable_declarator name: (identifier) @name) @constant)
(variable_declarator name: (identifier) @name) @variable
[(arrow_function) (function_expression) (generator_function)] @anonymous

; references
(comment) @skip
(string_fragment) @skip
(regex_pattern) @skip
(escape_sequence) @skip
(call_expression function: (identifier) @call)
(call_expression function: (member_expression property: [(property_identifier) (private_property_identifier)] @call))
(new_expression constructor: (identifier) @call)
(new_expression constructor: (member_expression property: (property_identifier) @call))
(import_clause (identifier) @import)
(import_specifier (identifier) @import)
(namespace_import (identifier) @import)
(export_specifier (identifier) @import)
(import_statement) @statement
(export_statement source: (string)) @statement
(extends_clause value: (identifier) @base)
(extends_clause value: (member_expression property: (property_identifier) @base))
(extends_type_clause (type_identifier) @base)
(extends_type_clause (generic_type name: (type_identifier) @base))
(implements_clause (type_identifier) @base)
(implements_clause (generic_type name: (type_identifier) @base))
(import_require_clause (identifier) @import)
(jsx_opening_element name: (identifier) @call)
(jsx_self_closing_element name: (identifier) @call)
(jsx_opening_element name: (member_expression property: (property_identifier) @call))
(jsx_self_closing_element name: (member_expression property: (property_identifier) @call))
(jsx_text) @skip
