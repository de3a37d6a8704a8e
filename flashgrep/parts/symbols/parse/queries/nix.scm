; Nix: definitions are bindings.
(binding attrpath: (attrpath attr: (identifier) @name .) expression: (function_expression)) @function
(binding attrpath: (attrpath attr: (string_expression . (string_fragment) @name .) .) expression: (function_expression)) @function
(attrset_expression (binding_set (binding attrpath: (attrpath attr: (identifier) @name .)) @property))
(rec_attrset_expression (binding_set (binding attrpath: (attrpath attr: (identifier) @name .)) @property))
(binding attrpath: (attrpath attr: (string_expression . (string_fragment) @name .) .)) @property
(binding attrpath: (attrpath attr: (identifier) @name .)) @variable

; references
(comment) @skip
(string_fragment) @skip
(apply_expression function: (variable_expression name: (identifier) @call))
(apply_expression function: (select_expression attrpath: (attrpath attr: (identifier) @call .)))
(apply_expression function: (variable_expression name: (identifier) @_import) (#eq? @_import "import")) @statement
