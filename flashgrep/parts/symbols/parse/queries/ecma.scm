; What JavaScript and TypeScript share: definitions.
(function_declaration name: (identifier) @name) @function
(generator_function_declaration name: (identifier) @name) @function
(method_definition name: [(property_identifier) @name (private_property_identifier) @name (string . (string_fragment) @name .)]) @method
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @function
(variable_declarator name: (identifier) @name value: (class)) @class
(pair key: [(property_identifier) @name (string . (string_fragment) @name .)] value: [(arrow_function) (function_expression) (generator_function)]) @method
(arguments (function_expression name: (identifier) @name) @function)
(assignment_expression
  left: (member_expression
    object: (member_expression object: (_) @container property: (property_identifier) @_prototype)
    property: (property_identifier) @name)
  right: [(arrow_function) (function_expression) (generator_function)]
  (#eq? @_prototype "prototype")) @method
(assignment_expression
  left: (member_expression property: (property_identifier) @name)
  right: [(arrow_function) (function_expression) (generator_function) (class)]) @function
(assignment_expression
  left: (identifier) @name
  right: [(arrow_function) (function_expression) (generator_function) (class)]) @function
(lexical_declaration kind: "const" (variable_declarator name: [
  (identifier) @name
  (object_pattern [
    (shorthand_property_identifier_pattern) @name
    (object_assignment_pattern left: (shorthand_property_identifier_pattern) @name)
    (pair_pattern value: [(identifier) @name (assignment_pattern left: (identifier) @name)])
    (rest_pattern (identifier) @name)])
  (array_pattern [(identifier) @name (assignment_pattern left: (identifier) @name) (rest_pattern (identifier) @name)])]) @constant)
(variable_declarator name: [
  (identifier) @name
  (object_pattern [
    (shorthand_property_identifier_pattern) @name
    (object_assignment_pattern left: (shorthand_property_identifier_pattern) @name)
    (pair_pattern value: [(identifier) @name (assignment_pattern left: (identifier) @name)])
    (rest_pattern (identifier) @name)])
  (array_pattern [(identifier) @name (assignment_pattern left: (identifier) @name) (rest_pattern (identifier) @name)])]) @variable
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
