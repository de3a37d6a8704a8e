; Perl: definitions.
(package_statement (package_name) @name) @package
(use_constant_statement constant: (identifier) @name) @constant
(use_constant_statement value: (hash_ref (call_expression_with_bareword function_name: (identifier) @name) @constant
  . (fat_comma)))
(function_definition name: (identifier) @name . [(function_prototype) (function_signature)]? . body: (block)) @function
(function_definition name: (identifier) @name . (function_attribute) . body: (block)) @function
; ``sub Shop::close {`` is an error to the grammar, and not found.
(function_definition name: (identifier) @name !body) @declaration.function
(source_file (binary_expression variable: (variable_declaration (scope) @_scope variable_name: (_) @name)
  (#eq? @_scope "our")) @variable)
(anonymous_function) @anonymous

; references
(comments) @skip
(pod_statement) @skip
(data_not_for_compiler) @skip
(string_single_quoted) @skip
(call_expression_with_bareword function_name: (identifier) @call)
(method_invocation function_name: (identifier) @call)
(use_parent_statement) @statement
(use_no_statement) @statement
(require_statement) @statement
