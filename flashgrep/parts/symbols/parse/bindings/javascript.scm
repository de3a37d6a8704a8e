; inherits: ecma
(variable_declarator name: (identifier) @name value: (_)? @value)
(field_definition property: (_) @name value: (_)? @value)
(formal_parameters (identifier) @parameter)
(formal_parameters (assignment_pattern left: (identifier) @parameter right: (_) @value))
(formal_parameters (object_pattern (shorthand_property_identifier_pattern) @parameter))
