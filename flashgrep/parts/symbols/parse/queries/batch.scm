; Batch: definitions are labels and variables.
(label) @name @function
(variable_assignment (variable_name) @name) @variable

; references
(comment) @skip
