; Groovy and Gradle: definitions. What the grammar cannot parse is found by keywords.
(groovy_package (qualified_name) @name) @package
(class_definition name: (identifier) @name) @class
(class_definition name: (identifier) @_type body: (closure
  (function_definition function: (identifier) @name) @constructor (#eq? @name @_type)))
(class_definition name: (identifier) @_type body: (closure
  (function_call function: (identifier) @name) @constructor (#eq? @name @_type)))
(function_definition function: (identifier) @name) @function
(function_declaration function: (identifier) @name) @declaration.function
(declaration name: (identifier) @name) @variable
((identifier) @_enum . (identifier) @name @enum . (closure) @body (#eq? @_enum "enum"))
(source_file (juxt_function_call function: (identifier) @_task args: (argument_list . (identifier) @name)
  (#eq? @_task "task")) @function . (closure) @body)
(source_file (identifier) @_task . (juxt_function_call function: (identifier) @name) @function (#eq? @_task "task"))
(argument_list (closure) @anonymous)

; references
(comment) @skip
(groovy_doc) @skip
(string_content) @skip
(class_definition superclass: (_) @base)
(function_call function: (identifier) @call)
(function_call function: (dotted_identifier (identifier) @call .))
(juxt_function_call function: (identifier) @call)
(juxt_function_call function: (dotted_identifier (identifier) @call .))
(groovy_import import: (qualified_name (identifier) @import .))
(groovy_import) @statement
