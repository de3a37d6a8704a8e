; OCaml interfaces: definitions.
(module_binding (module_name) @name) @module
(module_type_definition (module_type_name) @name) @interface
(type_binding name: (type_constructor) @name) @type
(exception_definition (constructor_declaration (constructor_name) @name)) @type
(constructor_declaration (constructor_name) @name) @enumerator
(field_declaration (field_name) @name) @field
(value_specification (value_name) @name) @function
(value_specification (parenthesized_operator (_) @name)) @function
(external (value_name) @name) @function
(class_binding (class_name) @name) @class
(class_type_binding (class_type_name) @name) @interface
(method_definition (method_name) @name) @method
(method_specification (method_name) @name) @method
(instance_variable_definition (instance_variable_name) @name) @field

; references
(comment) @skip
(string_content) @skip
(quoted_string_content) @skip
(open_module) @statement
(include_module) @statement
