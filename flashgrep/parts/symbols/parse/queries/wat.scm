; WebAssembly's text format: definitions are a module's fields that have a name.
(module (identifier) @name) @module
(module_field_type (identifier) @name) @type
(module_field_func (identifier) @name) @function
(import_desc_func_type (identifier) @name) @declaration.function
(import_desc_type_use (identifier) @name) @declaration.function
(module_field_global (identifier) @name) @variable
(module_field_memory (identifier) @name) @variable
(module_field_table (identifier) @name) @variable
(module_field_data . (index (identifier) @name)) @variable

; references
(comment_line) @skip
(comment_block) @skip
(string) @skip
(instr_plain (op_index) @_op (index (identifier) @call) (#any-of? @_op "call" "return_call"))
(module_field_start (index (identifier) @call))
