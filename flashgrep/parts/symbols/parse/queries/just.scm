; Just: definitions are recipes, aliases and variables.
(recipe (recipe_header name: (identifier) @name)) @function
(alias left: (identifier) @name) @function
(assignment left: (identifier) @name) @variable

; references
(comment) @skip
(dependency name: (identifier) @call)
(alias right: (identifier) @call)
(function_call name: (identifier) @call)
