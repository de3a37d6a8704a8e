; Ruby: definitions.
(class name: [(constant) @name (scope_resolution scope: (_) @container name: (constant) @name)]) @class
(module name: [(constant) @name (scope_resolution scope: (_) @container name: (constant) @name)]) @module
(singleton_class) @inline
(method name: (_) @name) @function
(singleton_method name: (_) @name) @method
(alias name: (_) @name) @method
(assignment left: (constant) @name) @constant
(call method: (identifier) @_attr arguments: (argument_list (simple_symbol) @name @property)
  (#any-of? @_attr "attr_reader" "attr_writer" "attr_accessor"))
(call method: (identifier) @_define arguments: (argument_list . (simple_symbol) @name)
  (#any-of? @_define "alias_method" "define_method")) @method

; references
(comment) @skip
(string_content) @skip
(heredoc_content) @skip
(call method: (identifier) @call)
(call method: (constant) @call)
(superclass (constant) @base)
(superclass (scope_resolution name: (constant) @base))
(call method: (identifier) @_mix arguments: (argument_list [
  (constant) @base
  (scope_resolution name: (constant) @base)]) (#any-of? @_mix "include" "extend" "prepend"))
(call method: (identifier) @_require (#any-of? @_require "require" "require_relative" "load" "autoload")) @statement
