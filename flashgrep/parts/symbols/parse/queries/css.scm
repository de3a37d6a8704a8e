; CSS: definitions. A rule defines the classes and identifiers that it selects.
(class_selector (class_name) @name) @class
(id_selector (id_name) @name) @object
(keyframes_statement (keyframes_name) @name) @function
(declaration (property_name) @name (#match? @name "^--")) @variable

; references
(comment) @skip
(string_value) @skip
(call_expression (function_name) @call)
(call_expression (function_name) @_var (arguments (plain_value) @call) (#eq? @_var "var"))
(import_statement) @statement
