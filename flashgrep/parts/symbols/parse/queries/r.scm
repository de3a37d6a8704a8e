; R: definitions are assignments and calls.
(binary_operator lhs: [(identifier) (string (string_content))] @name operator: ["<-" "=" "<<-"] rhs: (function_definition)) @function
(binary_operator lhs: (identifier) @name operator: ["<-" "=" "<<-"] rhs: (call function: (identifier) @_class)
  (#any-of? @_class "R6Class" "setRefClass" "new_class")) @class
(call function: (identifier) @_kind arguments: (arguments . argument: (argument value: (string (string_content) @name)))
  (#any-of? @_kind "setClass" "setRefClass" "setClassUnion")) @class
(call function: (identifier) @_kind arguments: (arguments . argument: (argument value: (string (string_content) @name)))
  (#eq? @_kind "setGeneric")) @function
(call function: (identifier) @_kind arguments: (arguments . argument: (argument value: (string (string_content) @name)))
  (#any-of? @_kind "setMethod" "setReplaceMethod")) @method
(argument name: (identifier) @_part value: (call arguments: (arguments argument: (argument name: (identifier) @name
  value: (function_definition)) @method)) (#any-of? @_part "public" "private" "active" "methods"))
(program (binary_operator lhs: (identifier) @name operator: ["<-" "=" "<<-"]) @variable)
(function_definition) @anonymous

; references
(comment) @skip
(string_content) @skip
(call function: (identifier) @call)
(call function: (namespace_operator rhs: (identifier) @call))
(call function: (extract_operator rhs: (identifier) @call))
(call function: (identifier) @_import (#any-of? @_import "library" "require" "source" "requireNamespace")) @statement
