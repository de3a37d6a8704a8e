; Zig: definitions. A type is a constant whose value is a container.
(VarDecl variable_type_function: (IDENTIFIER) @name
  (ErrorUnionExpr (SuffixExpr (ContainerDecl (ContainerDeclType "struct"))))) @struct
(VarDecl variable_type_function: (IDENTIFIER) @name
  (ErrorUnionExpr (SuffixExpr (ContainerDecl (ContainerDeclType "union"))))) @union
(VarDecl variable_type_function: (IDENTIFIER) @name
  (ErrorUnionExpr (SuffixExpr (ContainerDecl (ContainerDeclType "enum"))))) @enum
(VarDecl variable_type_function: (IDENTIFIER) @name (ErrorUnionExpr (SuffixExpr (ErrorSetDecl)))) @enum
(ContainerField field_member: (IDENTIFIER) @name) @field
(ErrorSetDecl field_constant: (IDENTIFIER) @name @enumerator)
(ContainerField !field_member (ErrorUnionExpr (SuffixExpr variable_type_function: (IDENTIFIER) @name .))) @enumerator
(Decl (FnProto function: (IDENTIFIER) @name)) @function
(VarDecl "const" variable_type_function: (IDENTIFIER) @name) @constant
(VarDecl variable_type_function: (IDENTIFIER) @name) @variable
(TestDecl (STRINGLITERALSINGLE)) @anonymous

; references
(line_comment) @skip
(doc_comment) @skip
(container_doc_comment) @skip
(STRINGLITERALSINGLE) @skip
(LINESTRING) @skip
(SuffixExpr variable_type_function: (IDENTIFIER) @call . (FnCallArguments))
(FieldOrFnCall function_call: (IDENTIFIER) @call)
(VarDecl (ErrorUnionExpr (SuffixExpr (BUILTINIDENTIFIER) @_import (#eq? @_import "@import")))) @statement
