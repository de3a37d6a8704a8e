// What go/types says each name of a module means, as JSON lines like those of typescript_uses.cjs:
//
//	go run go_uses.go ROOT
package main

import (
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
)

var (
	fset    = token.NewFileSet()
	root    string
	module  string
	parsed  = map[string][]*ast.File{} // by folder; those of tests beside the package's own
	checked = map[string]*types.Package{}
	infos   []*types.Info
	library = importer.ForCompiler(fset, "source", nil)
)

type inside struct{}

func (inside) Import(name string) (*types.Package, error) {
	if name == module || strings.HasPrefix(name, module+"/") {
		return check(strings.TrimPrefix(strings.TrimPrefix(name, module), "/"), false), nil
	}
	return library.Import(name)
}

// check types a package; its tests are in a second reading, which importers do not see.
func check(folder string, tests bool) *types.Package {
	if found, ok := checked[folder]; ok && !tests {
		return found
	}
	byName := map[string][]*ast.File{}
	for _, file := range parsed[folder] {
		isTest := strings.HasSuffix(fset.Position(file.Pos()).Filename, "_test.go")
		if tests || !isTest {
			byName[file.Name.Name] = append(byName[file.Name.Name], file)
		}
	}
	var first *types.Package
	for name, files := range byName {
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
		config := types.Config{Importer: inside{}, Error: func(error) {}, FakeImportC: true}
		if !tests {
			checked[folder] = types.NewPackage(module+"/"+folder, name)
		}
		found, _ := config.Check(module+"/"+folder, fset, files, info)
		if !strings.HasSuffix(name, "_test") {
			first = found
		}
		if tests {
			infos = append(infos, info)
		}
	}
	if !tests {
		checked[folder] = first
	}
	return first
}

func place(pos token.Pos) []any {
	at := fset.Position(pos)
	name, _ := filepath.Rel(root, at.Filename)
	return []any{name, at.Line}
}

func main() {
	root, _ = filepath.Abs(os.Args[1])
	text, _ := os.ReadFile(filepath.Join(root, "go.mod"))
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "module ") {
			module = strings.TrimSpace(strings.TrimPrefix(line, "module "))
		}
	}
	filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") && !strings.Contains(path, "/testdata/") {
			if file, err := parser.ParseFile(fset, path, nil, 0); err == nil {
				folder, _ := filepath.Rel(root, filepath.Dir(path))
				if folder == "." {
					folder = ""
				}
				parsed[folder] = append(parsed[folder], file)
			}
		}
		return nil
	})
	calls := map[*ast.Ident]bool{}
	for folder, files := range parsed {
		check(folder, true)
		for _, file := range files {
			ast.Inspect(file, func(node ast.Node) bool {
				if call, ok := node.(*ast.CallExpr); ok {
					switch callee := call.Fun.(type) {
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
	out := json.NewEncoder(os.Stdout)
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
