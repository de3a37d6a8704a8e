; Objective-C: definitions, besides those of C. A method is named by the first word of its selector.
; inherits: c
(class_interface . (identifier) @name !category) @class
(class_interface . (identifier) @name category: (_)) @extension
(class_implementation . (identifier) @name !category) @class
(class_implementation . (identifier) @name category: (_)) @extension
(protocol_declaration . (identifier) @name) @interface
(method_declaration . (method_type) . (identifier) @name) @declaration.method
(method_definition . (method_type) . (identifier) @name) @method
(property_declaration (struct_declaration (struct_declarator [
  (identifier) @name
  (pointer_declarator declarator: (identifier) @name)]))) @property
(instance_variable (struct_declaration (struct_declarator [
  (identifier) @name
  (pointer_declarator declarator: (identifier) @name)]))) @field
; ``typedef NS_ENUM(NSInteger, Kind) { … };`` is an error to the grammar, which takes the values for names of the type.
(type_definition type: (macro_type_specifier name: (_) @_macro (ERROR (identifier) @name))
  (#any-of? @_macro "NS_ENUM" "NS_OPTIONS" "CF_ENUM" "CF_OPTIONS")) @enum
(type_definition type: (macro_type_specifier name: (_) @_macro (ERROR)) declarator: (type_identifier) @name @enumerator
  (#any-of? @_macro "NS_ENUM" "NS_OPTIONS" "CF_ENUM" "CF_OPTIONS"))
(block_literal) @anonymous

; references
(message_expression method: (identifier) @call)
(selector_expression (identifier) @call)
(class_interface superclass: (identifier) @base)
(class_interface (parameterized_arguments (type_name (type_identifier) @base)))
(protocol_reference_list (identifier) @base)
(module_import path: (identifier) @import)
(module_import) @statement
