; Python: definitions. A construct's capture is its kind; nesting decides methods, fields and locals.
(class_definition name: (identifier) @name) @class
(function_definition name: (identifier) @name) @function
(type_alias_statement left: (type (identifier) @name)) @type
(type_alias_statement left: (type (generic_type (identifier) @name))) @type
(assignment left: (identifier) @name right: (lambda)) @function
(assignment left: (identifier) @name) @variable
(assignment left: (pattern_list (identifier) @name)) @variable
(assignment left: (tuple_pattern (identifier) @name)) @variable
(lambda) @anonymous

; references
(comment) @skip
(string_content) @skip
(call function: (identifier) @call)
(call function: (attribute attribute: (identifier) @call))
(decorator (identifier) @call)
(decorator (attribute attribute: (identifier) @call))
(class_definition superclasses: (argument_list (identifier) @base))
(class_definition superclasses: (argument_list (attribute attribute: (identifier) @base)))
(class_definition superclasses: (argument_list (subscript value: (identifier) @base)))
(class_definition superclasses: (argument_list (subscript value: (attribute attribute: (identifier) @base))))
(import_statement name: (dotted_name (identifier) @import))
(import_statement name: (aliased_import name: (dotted_name (identifier) @import)))
(import_statement name: (aliased_import alias: (identifier) @import))
(import_from_statement name: (dotted_name (identifier) @import))
(import_from_statement name: (aliased_import name: (dotted_name (identifier) @import)))
(import_from_statement name: (aliased_import alias: (identifier) @import))
(import_from_statement module_name: (dotted_name (identifier) @import))
(import_statement) @statement
(import_from_statement) @statement
