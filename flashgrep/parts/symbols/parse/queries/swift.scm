; Swift: definitions. An extension is a scope named by the type it extends.
(protocol_declaration name: (type_identifier) @name) @interface
(class_declaration declaration_kind: "class" name: (type_identifier) @name) @class
(class_declaration declaration_kind: "actor" name: (type_identifier) @name) @class
(class_declaration declaration_kind: "struct" name: (type_identifier) @name) @struct
(class_declaration declaration_kind: "enum" name: (type_identifier) @name) @enum
(class_declaration declaration_kind: "extension" name: (user_type
  (type_identifier) @container . (type_identifier) @name . (type_arguments))) @extension
(class_declaration declaration_kind: "extension" name: (user_type (type_identifier) @name . (type_arguments))) @extension
(class_declaration declaration_kind: "extension" name: (user_type) @name) @extension
(enum_entry name: (simple_identifier) @name) @enumerator
(typealias_declaration . name: (type_identifier) @name) @type
(typealias_declaration (modifiers) . name: (type_identifier) @name) @type
(associatedtype_declaration name: (type_identifier) @name) @type
(function_declaration name: (simple_identifier) @name) @function
(function_declaration name: [(custom_operator) "+" "-" "*" "/" "%" "+=" "-=" "*=" "/=" "%=" "==" "!=" "===" "!==" "<" ">"
  "<=" ">=" "|" "&" "^" "~" "<<" ">>" "++" "--" "..." "..<" "!" "&&" "||" "??"] @name) @function
(operator_declaration (custom_operator) @name) @declaration.function
(precedence_group_declaration (simple_identifier) @name) @type
(macro_declaration (simple_identifier) @name) @macro
(protocol_function_declaration . name: (simple_identifier) @name) @method
(protocol_function_declaration (modifiers) . name: (simple_identifier) @name) @method
(init_declaration name: "init" @name) @constructor
(deinit_declaration "deinit" @name) @method
(subscript_declaration "subscript" @name) @method
(protocol_property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @property
(property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @variable
(property_declaration name: (pattern (pattern (simple_identifier) @name))) @variable
(lambda_literal) @anonymous
(computed_property) @anonymous
(willset_clause) @anonymous
(didset_clause) @anonymous

; references
(comment) @skip
(multiline_comment) @skip
(line_str_text) @skip
(multi_line_str_text) @skip
(raw_str_part) @skip
(call_expression . (simple_identifier) @call)
(call_expression . (navigation_expression suffix: (navigation_suffix suffix: (simple_identifier) @call)))
(constructor_expression constructed_type: (user_type (type_identifier) @call))
(inheritance_specifier inherits_from: (user_type (type_identifier) @base .))
(inheritance_specifier inherits_from: (user_type (type_identifier) @base . (type_arguments)))
(import_declaration (identifier (simple_identifier) @import))
(import_declaration) @statement
