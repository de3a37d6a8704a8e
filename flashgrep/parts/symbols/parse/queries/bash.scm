; Shell: definitions.
(function_definition name: (word) @name) @function
(variable_assignment name: (variable_name) @name) @variable
(command name: (command_name (word) @_alias) argument: (concatenation . (word) @name)
  (#eq? @_alias "alias")) @function

; references
(comment) @skip
(string_content) @skip
(raw_string) @skip
(heredoc_content) @skip
(command name: (command_name (word) @call))
(command name: (command_name (word) @_source) (#any-of? @_source "source" ".")) @statement
