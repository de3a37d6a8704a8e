; OCaml: definitions.
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
(let_expression (value_definition (let_binding pattern: (value_name)) @anonymous))
(value_definition (let_binding pattern: (value_name) @name (parameter)) @function)
(value_definition (let_binding pattern: (value_name) @name body: (fun_expression)) @function)
(value_definition (let_binding pattern: (value_name) @name body: (function_expression)) @function)
(value_definition (let_binding pattern: (parenthesized_operator (_) @name)) @function)
(value_definition (let_binding pattern: (value_name) @name) @variable)

; references
(comment) @skip
(string_content) @skip
(quoted_string_content) @skip
(open_module) @statement
(include_module) @statement
(application_expression function: (value_path (value_name) @call))
(method_invocation method: (method_name) @call)
(inheritance_definition (class_application class: (class_path (class_name) @base)))
(inheritance_definition (class_path (class_name) @base))
