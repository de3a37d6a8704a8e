; SCSS: definitions. A name with an interpolation is only known once it is compiled.
(class_selector (class_name) @name (#not-match? @name "#\\{")) @class
(id_selector (id_name) @name (#not-match? @name "#\\{")) @object
(keyframes_statement (keyframes_name) @name) @function
(placeholder (name) @name) @class
(mixin_statement (name) @name) @macro
(function_statement (name) @name) @function
(stylesheet (declaration (variable_name) @name) @variable)
(declaration (property_name) @name (#match? @name "^--[^#]+$")) @variable

; references
(comment) @skip
(single_line_comment) @skip
(string_value) @skip
(call_expression (function_name) @call)
(include_statement (identifier) @call)
(use_statement) @statement
(import_statement) @statement
(forward_statement) @statement
