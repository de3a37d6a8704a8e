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
(type_conversion) @skip
((format_specifier) @skip (#not-match? @skip "[{]"))
; types in quotes, as written of what is defined later
(typed_parameter type: (type (string (string_content) @quoted)))
(typed_default_parameter type: (type (string (string_content) @quoted)))
(function_definition return_type: (type (string (string_content) @quoted)))
(assignment type: (type (string (string_content) @quoted)))
(generic_type (identifier) @_generic (type_parameter (type (string (string_content) @quoted)))
  (#not-eq? @_generic "Literal"))
(type (subscript value: (attribute attribute: (identifier) @_generic) subscript: (string (string_content) @quoted))
  (#not-eq? @_generic "Literal"))
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
