; Vim script: definitions.
(function_definition (function_declaration name: [(identifier) @name (scoped_identifier (identifier) @name)])) @function
(function_definition (function_declaration name: (field_expression value: (_) @container field: (identifier) @name))) @method
(command_statement name: (command_name) @name) @macro
(augroup_statement (augroup_name) @name (#not-match? @name "^(END|end)")) @module
(let_statement . (scoped_identifier (scope) @_scope (identifier) @name) (#any-of? @_scope "g:" "s:")) @variable
(lambda_expression) @anonymous

; references
(comment) @skip
(string_literal) @skip
(call_expression function: (identifier) @call)
(call_expression function: (scoped_identifier (identifier) @call))
(source_statement) @statement
(runtime_statement) @statement
