; Python: scopes and bindings. @after: the scope begins after this node.
(function_definition name: (_) @after) @function
(lambda) @function
[(list_comprehension) (set_comprehension) (dictionary_comprehension) (generator_expression)] @function
(class_definition name: (_) @after) @class

(function_definition name: (identifier) @definition)
(class_definition name: (identifier) @definition)
(assignment left: (identifier) @name type: (_)? @type right: (_)? @value)
(assignment left: (pattern_list (identifier) @name) right: (_) @unpacked)
(assignment left: (tuple_pattern (identifier) @name) right: (_) @unpacked)
(assignment left: (attribute object: (identifier) @object attribute: (identifier) @field) type: (_)? @type right: (_)? @value)
(augmented_assignment left: (identifier) @name)
(named_expression name: (identifier) @name value: (_) @value)
(for_statement left: (identifier) @name right: (_) @element)
(for_statement left: (pattern_list (identifier) @name))
(for_in_clause left: (identifier) @name right: (_) @element)
(for_in_clause left: (pattern_list (identifier) @name))
(with_item value: (as_pattern (_) @value alias: (as_pattern_target (identifier) @name)))
(except_clause (as_pattern (_) @type alias: (as_pattern_target (identifier) @name)))
(parameters (identifier) @parameter)
(lambda_parameters (identifier) @parameter)
(default_parameter name: (identifier) @parameter value: (_) @value)
(typed_parameter . (identifier) @parameter type: (_) @type)
(typed_parameter . (list_splat_pattern (identifier) @parameter) type: (_) @many)
(typed_default_parameter name: (identifier) @parameter type: (_) @type)
(list_splat_pattern (identifier) @name)
(dictionary_splat_pattern (identifier) @name)
(case_pattern (dotted_name . (identifier) @name .))
(return_statement (_) @returned)
(yield . (_) @yielded)
