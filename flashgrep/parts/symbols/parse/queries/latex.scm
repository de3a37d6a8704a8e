; LaTeX: definitions are sections, labels, commands and environments.
(part text: (curly_group) @name) @heading
(chapter text: (curly_group) @name) @heading
(section text: (curly_group) @name) @heading
(subsection text: (curly_group) @name) @heading
(subsubsection text: (curly_group) @name) @heading
(paragraph text: (curly_group) @name) @heading
(subparagraph text: (curly_group) @name) @heading
(label_definition name: (curly_group_label label: (label) @name)) @constant
(new_command_definition declaration: (_ command: (command_name) @name)) @function
(new_command_definition declaration: (command_name) @name) @function
(old_command_definition declaration: (command_name) @name) @function
(environment_definition name: (curly_group_text text: (_) @name)) @function
(theorem_definition name: (curly_group_text_list text: (_) @name)) @function
(counter_declaration counter: (curly_group_word word: (_) @name)) @variable
(generic_command command: (command_name) @_command arg: (curly_group (text) @name) (#eq? @_command "\\bibitem")) @constant

; references
(line_comment) @skip
(block_comment) @skip
(comment_environment) @skip
(generic_command command: (command_name) @call)
(generic_environment begin: (begin name: (curly_group_text text: (_) @call)))
(latex_include) @statement
(package_include) @statement
