; C#: definitions.
(namespace_declaration name: (_) @name) @namespace
(file_scoped_namespace_declaration name: (_) @name) @package
(class_declaration name: (identifier) @name) @class
(record_declaration name: (identifier) @name) @class
(struct_declaration name: (identifier) @name) @struct
(interface_declaration name: (identifier) @name) @interface
(enum_declaration name: (identifier) @name) @enum
(enum_member_declaration name: (identifier) @name) @enumerator
(delegate_declaration name: (identifier) @name) @type
(method_declaration name: (identifier) @name) @method
(local_function_statement name: (identifier) @name) @function
(constructor_declaration name: (identifier) @name) @constructor
(destructor_declaration name: (identifier) @name) @method
(operator_declaration operator: _ @name) @method
(property_declaration name: (identifier) @name) @property
(event_declaration name: (identifier) @name) @event
(event_field_declaration (variable_declaration (variable_declarator name: (identifier) @name) @event))
(field_declaration (variable_declaration (variable_declarator name: (identifier) @name) @field))
(lambda_expression) @anonymous

; references
(comment) @skip
(preproc_region) @skip
(preproc_endregion) @skip
(string_literal_content) @skip
(string_content) @skip
(invocation_expression function: (identifier) @call)
(invocation_expression function: (generic_name (identifier) @call))
(invocation_expression function: (member_access_expression name: (identifier) @call))
(invocation_expression function: (member_access_expression name: (generic_name (identifier) @call)))
(invocation_expression function: (conditional_access_expression (member_binding_expression name: (identifier) @call)))
(invocation_expression function: (conditional_access_expression
  (member_binding_expression name: (generic_name (identifier) @call))))
(object_creation_expression type: (identifier) @call)
(object_creation_expression type: (generic_name (identifier) @call))
(object_creation_expression type: (qualified_name name: (identifier) @call))
(object_creation_expression type: (qualified_name name: (generic_name (identifier) @call)))
(base_list (identifier) @base)
(base_list (generic_name (identifier) @base))
(base_list (qualified_name name: (identifier) @base))
(base_list (qualified_name name: (generic_name (identifier) @base)))
(base_list (primary_constructor_base_type type: (identifier) @base))
(using_directive name: (identifier) @import)
(using_directive) @statement
