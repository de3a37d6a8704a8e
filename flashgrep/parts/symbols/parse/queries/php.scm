; PHP: definitions.
(namespace_definition name: (namespace_name) @name body: (_)) @namespace
(namespace_definition name: (namespace_name) @name !body) @package
(class_declaration name: (name) @name) @class
(interface_declaration name: (name) @name) @interface
(trait_declaration name: (name) @name) @trait
(enum_declaration name: (name) @name) @enum
(enum_case name: (name) @name) @enumerator
(function_definition name: (name) @name) @function
(method_declaration name: (name) @name) @method
(property_element name: (variable_name (name) @name)) @field
(property_promotion_parameter name: (variable_name (name) @name)) @field
(const_element . (name) @name) @constant
(function_call_expression function: (name) @_define arguments: (arguments . (argument (string (string_content) @name)))
  (#eq? @_define "define")) @constant
(anonymous_function) @anonymous
(arrow_function) @anonymous

; references
(comment) @skip
(string_content) @skip
(heredoc_body (string_content) @skip)
(nowdoc_string) @skip
(text) @skip
(function_call_expression function: (name) @call)
(function_call_expression function: (qualified_name (name) @call .))
(member_call_expression name: (name) @call)
(nullsafe_member_call_expression name: (name) @call)
(scoped_call_expression name: (name) @call)
(object_creation_expression (name) @call)
(object_creation_expression (qualified_name (name) @call .))
(base_clause (name) @base)
(base_clause (qualified_name (name) @base .))
(class_interface_clause (name) @base)
(class_interface_clause (qualified_name (name) @base .))
(use_declaration (name) @base)
(use_declaration (qualified_name (name) @base .))
(namespace_use_clause (name) @import)
(namespace_use_clause (qualified_name (name) @import .))
(namespace_use_declaration) @statement
