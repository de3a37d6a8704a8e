; Lua: definitions. A field's container is the table it is set in.
(function_declaration name: [
  (identifier) @name
  (dot_index_expression table: (_) @container field: (identifier) @name)
  (method_index_expression table: (_) @container method: (identifier) @name)]) @function
(assignment_statement
  (variable_list . name: (dot_index_expression table: (_) @container field: (identifier) @name))
  (expression_list . value: (function_definition))) @function
(assignment_statement (variable_list . name: (identifier) @name)
  (expression_list . value: (function_definition))) @function
(field name: (identifier) @name value: (function_definition)) @function
(assignment_statement (variable_list name: (identifier) @name)) @variable
(variable_declaration (variable_list name: (identifier) @name)) @variable
(function_definition) @anonymous

; references
(comment) @skip
(string_content) @skip
(function_call name: (identifier) @call)
(function_call name: (dot_index_expression field: (identifier) @call))
(function_call name: (method_index_expression method: (identifier) @call))
(function_call name: (identifier) @_require (#eq? @_require "require")) @statement
