; Dart: definitions. A body is the sibling of its signature, so the range of a function ends with ``@body``.
(class_definition name: (identifier) @name) @class
(mixin_declaration (identifier) @name) @trait
(extension_declaration name: (identifier) @name) @extension
(extension_type_declaration name: (identifier) @name) @class
(enum_declaration name: (identifier) @name) @enum
(enum_constant name: (identifier) @name) @enumerator
(type_alias . (type_identifier) @name) @type
((method_signature (function_signature name: (identifier) @name)) @method . (function_body) @body)
((method_signature (getter_signature name: (identifier) @name)) @property . (function_body) @body)
((method_signature (setter_signature name: (identifier) @name)) @property . (function_body) @body)
((method_signature (operator_signature [(binary_operator) "[]" "[]=" "~"] @name)) @method . (function_body) @body)
((method_signature (constructor_signature . name: (identifier) @name .  (formal_parameter_list))) @constructor . (function_body) @body)
((method_signature (constructor_signature "." . name: (identifier) @name)) @constructor . (function_body) @body)
((method_signature (factory_constructor_signature (identifier) @name . (formal_parameter_list))) @constructor
  . (function_body) @body)
(declaration (function_signature name: (identifier) @name)) @method
(declaration (operator_signature [(binary_operator) "[]" "[]=" "~"] @name)) @method
(declaration (getter_signature name: (identifier) @name)) @property
(declaration (setter_signature name: (identifier) @name)) @property
(declaration (constructor_signature . name: (identifier) @name . (formal_parameter_list))) @constructor
(declaration (constructor_signature "." . name: (identifier) @name)) @constructor
(declaration (constant_constructor_signature (identifier) @name . (formal_parameter_list))) @constructor
(declaration (redirecting_factory_constructor_signature (identifier) @name . (formal_parameter_list))) @constructor
(declaration (initialized_identifier_list (initialized_identifier . (identifier) @name))) @field
(declaration (static_final_declaration_list (static_final_declaration . (identifier) @name))) @constant
((function_signature name: (identifier) @name) @function . (function_body) @body)
((getter_signature name: (identifier) @name) @variable . (function_body) @body)
(program (function_signature name: (identifier) @name) @declaration.function)
(program (getter_signature name: (identifier) @name) @declaration.function)
(lambda_expression parameters: (function_signature name: (identifier) @name)) @function
(program (static_final_declaration_list (static_final_declaration . (identifier) @name) @constant))
(program (initialized_identifier_list (initialized_identifier . (identifier) @name) @variable))
(function_expression) @anonymous

; references
(comment) @skip
(documentation_comment) @skip
(string_literal) @skip
((identifier) @call . (selector . (argument_part)))
((selector (unconditional_assignable_selector (identifier) @call)) . (selector . (argument_part)))
((selector (conditional_assignable_selector (identifier) @call)) . (selector . (argument_part)))
(new_expression (type_identifier) @call)
(const_object_expression (type_identifier) @call)
(superclass (type_identifier) @base)
(mixins (type_identifier) @base)
(interfaces (type_identifier) @base)
(import_specification (combinator (identifier) @import))
(import_or_export) @statement
(part_directive) @statement
