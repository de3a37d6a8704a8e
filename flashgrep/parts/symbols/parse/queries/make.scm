; Make: definitions.
(rule (targets (word) @name) (#not-match? @name "^\\.[A-Z_]+$|[%$]")) @function
(define_directive name: (word) @name) @macro
(variable_assignment name: (word) @name) @variable

; references
(comment) @skip
(function_call function: "call" (arguments . argument: (text) @call))
(variable_reference (word) @call)
(include_directive) @statement
