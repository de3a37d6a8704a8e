package main

import (
	"encoding/json"
	"go/ast"
	"go/types"
	"os"
	"path/filepath"
	"strings"
)

// tellUses says what each name means, in lines like those of typescript/uses.cjs. Packages are read with their tests
// here, in a second reading that importers do not see.
func tellUses() {
	var infos []*types.Info
	calls := map[*ast.Ident]bool{}
	for folder, files := range parsed {
		for _, some := range byName(files) {
			info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
			checkFiles(folder, some, info)
			infos = append(infos, info)
		}
		for _, file := range files {
			ast.Inspect(file, func(node ast.Node) bool {
				if call, ok := node.(*ast.CallExpr); ok {
					function := call.Fun
					switch applied := function.(type) {
					case *ast.IndexExpr:
						function = applied.X
					case *ast.IndexListExpr:
						function = applied.X
					}
					switch callee := function.(type) {
					case *ast.Ident:
						calls[callee] = true
					case *ast.SelectorExpr:
						calls[callee.Sel] = true
					}
				}
				return true
			})
		}
	}
	tellUnseen(infos)
	seen := map[string]bool{}
	for _, info := range infos {
		for use, object := range info.Uses {
			kind, container := "", ""
			switch one := object.(type) {
			case *types.Func:
				kind = "function"
				one = one.Origin()
				object = one
				if receiver := one.Type().(*types.Signature).Recv(); receiver != nil {
					kind = "method"
					held := receiver.Type()
					if pointer, ok := held.(*types.Pointer); ok {
						held = pointer.Elem()
					}
					if named, ok := held.(*types.Named); ok {
						container = named.Obj().Name()
					}
				}
			case *types.TypeName:
				kind = "type"
			case *types.Const:
				kind = "constant"
			}
			if kind == "" || !object.Pos().IsValid() || object.Pkg() == nil {
				continue
			}
			if kind != "method" && object.Parent() != object.Pkg().Scope() {
				continue
			}
			target := place(object.Pos())
			if strings.HasPrefix(target[0].(string), "..") {
				continue
			}
			row, _ := json.Marshal(map[string]any{
				"use": place(use.Pos()), "target": target, "name": object.Name(), "container": container,
				"kind": kind, "call": calls[use],
			})
			if !seen[string(row)] {
				seen[string(row)] = true
				out.Encode(json.RawMessage(row))
			}
		}
	}
}

// tellUnseen reports the lines with a name that the checker knows nothing of, and the files that it has not read.
func tellUnseen(infos []*types.Info) {
	read := map[string]bool{}
	for _, files := range parsed {
		for _, file := range files {
			read[fset.Position(file.Pos()).Filename] = true
			ast.Inspect(file, func(node ast.Node) bool {
				name, ok := node.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				for _, info := range infos {
					if info.Uses[name.Sel] != nil {
						return true
					}
				}
				where := place(name.Sel.Pos())
				out.Encode(map[string]any{"unseen": []any{where[0], where[1], where[1]}})
				return true
			})
		}
	}
	filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") && !read[path] {
			name, _ := filepath.Rel(root, path)
			out.Encode(map[string]any{"unseen": []any{name, 1, 1 << 30}})
		}
		return nil
	})
}
