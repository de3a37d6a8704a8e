; Starlark (Bazel): definitions are functions, constants, and the targets that calls with a name make.
(function_definition name: (identifier) @name) @function
(module (expression_statement (assignment left: (identifier) @name) @constant))
(module (expression_statement (call arguments: (argument_list
  (keyword_argument name: (identifier) @_name value: (string (string_content) @name)))) @object)
  (#eq? @_name "name"))
(lambda) @anonymous

; references
(comment) @skip
(call function: (identifier) @call)
(call function: (attribute attribute: (identifier) @call))
(call function: (identifier) @_load arguments: (argument_list . (_) (string (string_content) @import))
  (#eq? @_load "load"))
(expression_statement (call function: (identifier) @_load) (#eq? @_load "load")) @statement
