; What JavaScript and TypeScript share: scopes and bindings.
(function_declaration name: (_) @after) @function
(generator_function_declaration name: (_) @after) @function
(method_definition name: (_) @after) @function
[(arrow_function) (function_expression) (generator_function)] @function
(class_declaration name: (_) @after) @class
(class name: (_) @after) @class

(function_declaration name: (identifier) @definition)
(generator_function_declaration name: (identifier) @definition)
(method_definition name: (_) @definition)
(class_declaration name: (_) @definition)
(variable_declarator name: (object_pattern (shorthand_property_identifier_pattern) @name) value: (_) @whole)
(variable_declarator name: (object_pattern (pair_pattern key: (_) @key value: (identifier) @name)) value: (_) @whole)
(variable_declarator name: (array_pattern (identifier) @name))
(assignment_expression left: (identifier) @name right: (_) @value)
(assignment_expression left: (member_expression object: (this) @object property: (_) @field) right: (_) @value)
(for_in_statement left: (identifier) @name operator: "of" right: (_) @element)
(arrow_function parameter: (identifier) @parameter)
(catch_clause parameter: (identifier) @name) @within
(object) @class
(pair key: (property_identifier) @name value: (_) @value)
(object (shorthand_property_identifier) @name @value)
(return_statement (_) @returned)
(arrow_function body: (expression) @returned)
