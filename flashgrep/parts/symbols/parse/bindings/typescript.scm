; inherits: ecma
(abstract_class_declaration name: (_) @after) @class
(interface_declaration name: (_) @after) @class
; Parameters of types are seen in methods, as members are not: they are in a scope around that of the class.
(class_declaration name: (_) @outside type_parameters: (_)) @function
(abstract_class_declaration name: (_) @outside type_parameters: (_)) @function
(interface_declaration name: (_) @outside type_parameters: (_)) @function
(enum_declaration name: (_) @after) @class
(internal_module name: (_) @after) @function
(function_signature name: (_) @after) @function
(method_signature name: (_) @after) @function
(abstract_method_signature name: (_) @after) @function
(type_alias_declaration name: (_) @after) @function
(function_type) @function
(object_type) @class

(abstract_class_declaration name: (_) @definition)
(interface_declaration name: (_) @definition)
(enum_declaration name: (_) @definition)
(internal_module name: (_) @definition)
(type_alias_declaration name: (_) @definition)
(function_signature name: (_) @definition)
(method_signature name: (_) @definition)
(abstract_method_signature name: (_) @definition)
(variable_declarator name: (identifier) @name type: (_)? @type value: (_)? @value)
(public_field_definition name: (_) @name type: (_)? @type value: (_)? @value)
(property_signature name: (_) @name type: (_)? @type)
(required_parameter (accessibility_modifier) pattern: (identifier) @field type: (_)? @type value: (_)? @value)
(required_parameter pattern: (identifier) @parameter type: (_)? @type value: (_)? @value)
(optional_parameter pattern: (identifier) @parameter type: (_)? @type)
(required_parameter pattern: (rest_pattern (identifier) @parameter) type: (_)? @type)
(required_parameter pattern: (object_pattern (shorthand_property_identifier_pattern) @parameter) type: (_)? @annotated)
(required_parameter pattern: (object_pattern (object_assignment_pattern . (shorthand_property_identifier_pattern) @parameter)) type: (_)? @annotated)
(required_parameter pattern: (object_pattern (pair_pattern key: (_) @key value: (identifier) @parameter)) type: (_)? @annotated)
(required_parameter pattern: (array_pattern (identifier) @parameter))
(type_parameter name: (_) @name @generic constraint: (constraint (_) @type))
(type_parameter name: (_) @name @generic)
(import_alias (identifier) @name [(identifier) (nested_identifier)] @value)
