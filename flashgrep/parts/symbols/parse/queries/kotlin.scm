; Kotlin: definitions. An extension function's container is its receiver's type.
(package_header (identifier) @name) @package
(class_declaration "interface" (type_identifier) @name) @interface
(class_declaration "enum" (type_identifier) @name) @enum
(class_declaration (type_identifier) @name) @class
(object_declaration (type_identifier) @name) @object
(companion_object (type_identifier) @name) @object
(companion_object) @inline
(enum_entry (simple_identifier) @name) @enumerator
(type_alias (type_identifier) @name) @type
(function_declaration
  receiver: (receiver_type [
    (user_type (type_identifier) @container .)
    (user_type (type_identifier) @container . (type_arguments) .)
    (nullable_type (user_type (type_identifier) @container .))
    (nullable_type (user_type (type_identifier) @container . (type_arguments) .))
  ])
  (simple_identifier) @name) @function
(function_declaration (simple_identifier) @name) @function
(class_parameter (binding_pattern_kind) (simple_identifier) @name) @property
(property_declaration (variable_declaration (simple_identifier) @name)) @variable
(lambda_literal) @anonymous
(anonymous_function) @anonymous

; references
(line_comment) @skip
(multiline_comment) @skip
(string_content) @skip
(call_expression . (simple_identifier) @call)
(call_expression . (navigation_expression (navigation_suffix (simple_identifier) @call)))
(infix_expression (_) . (simple_identifier) @call . (_))
(constructor_invocation (user_type (type_identifier) @call))
(delegation_specifier (user_type (type_identifier) @base .))
(delegation_specifier (user_type (type_identifier) @base . (type_arguments)))
(delegation_specifier (constructor_invocation (user_type (type_identifier) @base .)))
(delegation_specifier (constructor_invocation (user_type (type_identifier) @base . (type_arguments))))
(delegation_specifier (explicit_delegation (user_type (type_identifier) @base .)))
(import_header (identifier (simple_identifier) @import .))
(import_header (import_alias (type_identifier) @import))
(import_header) @statement
