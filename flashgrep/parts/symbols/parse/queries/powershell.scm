; PowerShell: definitions.
(class_statement . (simple_name) @name) @class
(class_property_definition (variable) @name) @field
(class_method_definition (simple_name) @name) @method
(enum_statement . (simple_name) @name) @enum
(enum_member . (simple_name) @name) @enumerator
(function_statement (function_name) @name) @function
(script_block_expression) @anonymous

; references
(comment) @skip
(verbatim_string_characters) @skip
(command command_name: (command_name) @call)
(invokation_expression (member_name (simple_name) @call))
(class_statement . (simple_name) ":" (simple_name) @base)
(command command_name: (command_name) @_import (#any-of? @_import "using" "Import-Module" "import-module")) @statement
