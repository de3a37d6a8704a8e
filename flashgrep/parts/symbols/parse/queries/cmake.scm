; CMake: definitions.
(function_def (function_command (argument_list . (argument) @name))) @function
(macro_def (macro_command (argument_list . (argument) @name))) @macro
(normal_command (identifier) @_command (argument_list . (argument (unquoted_argument) @name))
  (#match? @_command "^([aA][dD][dD]_([lL][iI][bB][rR][aA][rR][yY]|[eE][xX][eE][cC][uU][tT][aA][bB][lL][eE]|[cC][uU][sS][tT][oO][mM]_[tT][aA][rR][gG][eE][tT]))$")
  (#not-match? @name "[$]")) @module
(normal_command (identifier) @_command (argument_list . (argument (unquoted_argument) @name))
  (#match? @_command "^[pP][rR][oO][jJ][eE][cC][tT]$")) @package
(normal_command (identifier) @_command (argument_list . (argument (unquoted_argument) @name) (argument) @_scope .)
  (#match? @_command "^[sS][eE][tT]$") (#eq? @_scope "PARENT_SCOPE")) @declaration.variable
(normal_command (identifier) @_command (argument_list . (argument (unquoted_argument) @name))
  (#match? @_command "^([sS][eE][tT]|[oO][pP][tT][iI][oO][nN])$")) @variable

; references
(line_comment) @skip
(bracket_comment) @skip
(quoted_element) @skip
(normal_command (identifier) @call)
(variable_ref (_ (variable) @call))
(normal_command (identifier) @_command
  (#match? @_command "^([iI][nN][cC][lL][uU][dD][eE]|[fF][iI][nN][dD]_[pP][aA][cC][kK][aA][gG][eE]|[aA][dD][dD]_[sS][uU][bB][dD][iI][rR][eE][cC][tT][oO][rR][yY])$")) @statement
