; Haskell: definitions. An instance is a scope named by its class.
(header module: (module) @name) @package
(data_type name: (name) @name) @type
(newtype name: (name) @name) @type
(type_synomym name: (name) @name) @type
(class name: (name) @name) @class
(instance name: (name) @name) @extension
(data_constructor constructor: (prefix name: (constructor) @name)) @enumerator
(data_constructor constructor: (record name: (constructor) @name)) @enumerator
(newtype_constructor name: (constructor) @name) @enumerator
(gadt_constructor name: (constructor) @name) @enumerator
(field_name (variable) @name) @field
(declarations (function name: [(variable) (prefix_id)] @name) @function)
(declarations (function (infix operator: (operator) @name)) @function)
(declarations (bind name: (variable) @name) @function)
(instance_declarations (function name: (variable) @name) @function)
(instance_declarations (bind name: (variable) @name) @function)
(class_declarations (signature name: (variable) @name) @function)
(declarations (signature name: (variable) @name) @declaration.function)

; references
(comment) @skip
(haddock) @skip
(pragma) @skip
(string) @skip
(apply function: (variable) @call)
(apply function: (qualified id: (variable) @call))
(infix operator: (operator) @call)
(instance name: (name) @base)
(deriving classes: (tuple (name) @base))
(deriving classes: (name) @base)
(import_name [(variable) (name)] @import)
(import) @statement
